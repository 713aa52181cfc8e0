"""The demo's publishers: services over REST, and a push initiator over PAP.

Each sends one message after the other and waits for the answer, so that the order of its messages
is known. They use HTTP, like any service.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lasthop.core.lifecycle import State
from lasthop.message import DeliveryMethod
from lasthop.runtime.cli.client import RestClient
from lasthop.runtime.cli.pap_client import Initiator
from lasthop.runtime.demo import messages
from lasthop.runtime.demo.ledger import DemoLedger, LedgerLane
from lasthop.runtime.demo.script import NOTICES, DemoTopic
from lasthop.runtime.failure import Failure
from lasthop.wire.pap.codes import MessageState
from lasthop.wire.pap.documents import (
    PushMessage,
    PushResponse,
    QualityOfService,
    StatusQueryMessage,
    StatusQueryResponse,
)
from lasthop.wire.pap.multipart import Entity

T = TypeVar("T")

ACCEPTED = 1001
"""PAP's code for an accepted push."""


class RestService:
    """A service that publishes over REST, and records its messages in the ledger."""

    def __init__(self, url: str, ledger: DemoLedger) -> None:
        self._url = url
        self._ledger = ledger
        self._client = RestClient(url)
        self._numbers: dict[str, int] = {}

    async def order(self, device: str) -> None:
        """Send a message to one device."""
        await self._lanes("orders", [device], {"device": device})

    async def notice(self, devices: Sequence[str]) -> None:
        """Send a message to all devices, which have subscribed to a plain topic."""
        await self._lanes(NOTICES, devices, {"topic": NOTICES})

    async def news(self, topic: DemoTopic, rank: float) -> None:
        """Publish a message to a ranked topic, from which devices get only the best."""
        number = self._numbers[topic.name] = self._numbers.get(topic.name, 0) + 1
        message = {
            "topic": topic.name,
            "rank": rank,
            "ttl": topic.lifetime,
            "body": messages.write(topic.name, number),
        }
        await self._publish(message)

    async def _lanes(self, name: str, devices: Sequence[str], to: dict[str, str]) -> None:
        ledger, now = self._ledger, time.monotonic()
        # The number is the same in all lanes, because every message to everyone went to all of
        # them.
        numbers = {ledger.sending(LedgerLane(name, device), now) for device in devices}
        body = messages.write(name, max(numbers))
        answer = await self._publish({**to, "body": body})
        for device in devices:
            if answer is None:
                continue
            if "id" in answer:
                ledger.accepted(LedgerLane(name, device), max(numbers), str(answer["id"]))
            else:
                ledger.refused(LedgerLane(name, device), max(numbers))

    async def _publish(self, message: dict[str, object]) -> dict[str, Any] | None:
        """Return the gateway's answer, or None if there was none."""
        return await _answer(
            lambda: self._client.call("POST", "/v1/messages", body=message, accept_refusal=True),
            self._anew,
        )

    def _anew(self) -> None:
        self._client = RestClient(self._url)

    def ended(self, message: str) -> bool:
        """Whether all deliveries of a message have ended, according to the gateway."""
        states = self._client.call("GET", f"/v1/messages/{message}")["summary"]["states"]
        return all(State[name.upper()].final for name in states)


class PapInitiator:
    """A push initiator that pushes over PAP, and records its pushes in the ledger."""

    NAME = "pushes"

    def __init__(self, url: str, ledger: DemoLedger) -> None:
        self._initiator = Initiator(url=f"{url}/pap")
        self._ledger = ledger

    async def push(self, device: str) -> None:
        """Send a push to one device."""
        lane = LedgerLane(self.NAME, device)
        number = self._ledger.sending(lane, time.monotonic())
        push_id = f"{device}.{number}@demo.lasthop"
        message = PushMessage(
            push_id,
            (f"WAPPUSH={device}/TYPE=USER@demo.lasthop",),
            quality=QualityOfService(method=DeliveryMethod.CONFIRMED),
        )
        body = messages.write(self.NAME, number).encode()
        content = Entity((("Content-Type", "text/plain; charset=utf-8"),), body)
        answer = await _answer(lambda: self._initiator.ask(message, content), lambda: None)
        if answer is None:
            return
        said = answer.document.message
        if isinstance(said, PushResponse) and said.result.code == ACCEPTED:
            self._ledger.accepted(lane, number, push_id)
        else:
            self._ledger.refused(lane, number)

    def ended(self, push_id: str) -> bool:
        """Whether the gateway says that a push has ended."""
        said = self._initiator.ask(StatusQueryMessage(push_id)).document.message
        return isinstance(said, StatusQueryResponse) and all(
            result.state is not MessageState.PENDING for result in said.results
        )


async def _answer(ask: Callable[[], T], lost: Callable[[], None]) -> T | None:
    try:
        return await asyncio.to_thread(ask)
    except Failure:
        lost()
        return None
