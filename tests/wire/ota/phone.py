"""A phone on a rehearsed network: it opens sessions when asked to, and keeps what it is pushed."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lasthop.clock import Micros
from lasthop.wire.ota.wsp_client import (
    Connected,
    Event,
    PushArrived,
    Resumed,
    SessionAsked,
    SessionClient,
    SessionFailed,
    contact_of,
)
from lasthop.wire.ota.wsp_session import Address
from tests.wire.wtp.air import Air

SERVER: Address = ("10.0.0.1", 9201)


class Phone:
    """A client with an application that takes what it gets, or refuses it."""

    def __init__(self, air: Air, host: str = "10.0.0.2", **options: Any) -> None:
        self.air = air
        self.host = host
        self.client = SessionClient(first_tid=5, **options)
        self.had: Counter[bytes] = Counter()
        self.kinds: list[str] = []
        self.events: list[Event] = []
        self.refuses: dict[bytes, int] = {}
        self.obeys = True
        """Whether it opens a session when asked."""
        air.add((host, 2948), _Nothing(), self._unit, lambda now: None)
        air.add((host, 49152), self.client, self._receive, self._timeout)

    def _unit(self, data: bytes, peer: Any, now: Micros) -> None:
        self._act(self.client.receive_unit(data), now)

    def _receive(self, data: bytes, peer: Any, now: Micros) -> None:
        self._act(self.client.receive(data, peer, now), now)

    def _timeout(self, now: Micros) -> None:
        self._act(self.client.timeout(now), now)

    def _act(self, events: list[Event], now: Micros) -> None:
        self.events += events
        for event in events:
            match event:
                case SessionAsked():
                    contact = contact_of(event.request)
                    if self.obeys and contact is not None:
                        self.client.connect(contact, now)
                case PushArrived(side=None):
                    self.had[event.push.data] += 1
                case PushArrived():
                    assert event.side is not None
                    reason = self.refuses.get(event.push.data)
                    if reason is None:
                        self.had[event.push.data] += 1
                        self.client.accept(event.side, now)
                    else:
                        self.client.refuse(event.side, reason, now)
                case Connected() | Resumed() | SessionFailed():
                    pass


class _Nothing:
    """Somebody who never speaks unasked."""

    def datagrams(self) -> list[tuple[bytes, Any]]:
        return []

    def next_timeout(self) -> Micros | None:
        return None
