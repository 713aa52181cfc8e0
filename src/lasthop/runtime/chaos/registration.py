"""Makes devices known to a gateway that has just been started, before anything is broken."""

from __future__ import annotations

import http.client
import time
from collections.abc import Sequence

import msgspec

from lasthop.runtime.chaos.gateway_http import open_connection
from lasthop.runtime.failure import Failure

BETWEEN_ATTEMPTS = 0.05
"""Seconds between two attempts to reach a gateway that is starting."""


class ChaosRegistration:
    """A connection over which devices are registered."""

    def __init__(self, url: str, ca: str | None, patience: float) -> None:
        """`patience`: seconds that the gateway has to start."""
        self._connection = open_connection(url, ca, patience)
        self._deadline = time.monotonic() + patience

    def register(self, devices: Sequence[str], topic: str) -> dict[str, str]:
        """Register devices, each with a user of its name and a subscription; return their tokens.

        Raises `Failure` if the gateway does not start in time, or refuses.
        """
        tokens = {}
        for name in devices:
            made = self._ask("POST", "/v1/devices", {"name": name, "user": name})
            tokens[name] = msgspec.json.decode(made)["token"]
            self._ask("PUT", f"/v1/devices/{name}/subscriptions/{topic}")
        self._connection.close()
        return tokens

    def _ask(self, method: str, path: str, body: object = None) -> bytes:
        content = None if body is None else msgspec.json.encode(body)
        while True:
            try:
                self._connection.request(method, path, content)
                response = self._connection.getresponse()
                said = response.read()
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                if time.monotonic() > self._deadline:
                    raise Failure(f"the gateway did not start: {error}") from None
                time.sleep(BETWEEN_ATTEMPTS)
                continue
            if response.status >= 300:
                raise Failure(f"the gateway refuses {method} {path}: {said.decode()}")
            return said
