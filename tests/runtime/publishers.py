"""Publishers that go on, whatever happens to the gateway."""

from __future__ import annotations

import http.client
import json
import threading
import time

PAUSE = 0.005
"""Seconds between a publisher's messages, so that the backlog stays within what a busy machine
works off in the end."""


class Publisher(threading.Thread):
    """Sends numbered messages one after the other, each until it is accepted."""

    def __init__(self, name: str, address: str, device: str) -> None:
        super().__init__(name=name)
        self._address = address
        self._device = device
        self._enough = threading.Event()
        self.accepted: list[str] = []

    def stop(self) -> None:
        self._enough.set()

    def run(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=30)
        number = 0
        while not self._enough.is_set():
            text = f"{self.name}-{number}"
            number += 1
            while not self._accepts(connection, text):
                connection.close()
                time.sleep(0.02)
            self.accepted.append(text)
            self._enough.wait(PAUSE)
        connection.close()

    def _accepts(self, connection: http.client.HTTPConnection, text: str) -> bool:
        """Whether the gateway said that it has it; if not, it may have it all the same."""
        body = json.dumps({"device": self._device, "body": text})
        try:
            connection.request("POST", "/v1/messages", body, {"Idempotency-Key": text})
            response = connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            return False
        assert response.status in (200, 202, 503), response.status
        return response.status != 503
