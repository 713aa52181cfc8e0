"""What the operations of the REST door have in common: the desk, the limits, and the ways to find,
accept and wait."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from lasthop.access.callers import Caller, Callers
from lasthop.access.intake import Intake
from lasthop.access.live_gateway import LiveGateway
from lasthop.access.quota import CallerQuota
from lasthop.access.rest.answers import Accepted, AcceptedMany
from lasthop.access.rest.requests import Converter
from lasthop.access.rest.settings import RestSettings
from lasthop.access.rest.surrogate_manager import SurrogateManager
from lasthop.clock import SECOND, Micros
from lasthop.core.gateway import Gateway, Idempotency
from lasthop.core.publishing.acceptance import Receipt, own_key
from lasthop.core.publishing.submission import Submission
from lasthop.errors import InvalidRequest, NotFound, OutcomeOpen, Overloaded, QuotaExceeded
from lasthop.message import Message, TargetKind, format_id, parse_id
from lasthop.store.commit import DeliveryRow, KeyRow
from lasthop.wire import tracecontext

T = TypeVar("T")

Explain: TypeAlias = Callable[[int, int], Awaitable[object]]
"""Tells the story of a message (by key) and a device (by number), as something that JSON can hold;
raises `NotFound` when there is none."""

Erase: TypeAlias = Callable[[int], Awaitable[object]]
"""Makes the store forget a removed device, by number."""

MAX_IDEMPOTENCY_KEY = 200
"""Characters: a UUID has 36, and every key is kept for days."""

RETRY_WAITING = 5.0
"""Seconds after which one of many waiting requests is likely to have ended."""


class OperationContext:
    """Serves callers at the desk."""

    def __init__(
        self,
        live: LiveGateway,
        settings: RestSettings,
        *,
        make_token: Callable[[], str],
        explain: Explain | None,
        erase: Erase | None,
        surrogate_manager: SurrogateManager | None = None,
    ) -> None:
        self.live = live
        self.settings = settings
        self.make_token = make_token
        self.explain = explain
        self.erase = erase
        self.surrogate_manager = surrogate_manager
        self.callers = Callers(live, open_house=settings.open_house)
        self.quota = CallerQuota(settings.messages, settings.bytes)
        self.intake = Intake(max_body=settings.max_body, max_held=settings.max_held)
        self.refused: Counter[str] = Counter()
        self.waiting = 0

    def converter(self, headers: Mapping[bytes, bytes]) -> Converter:
        """What turns a request that came in now, with these headers, into submissions."""
        return Converter(
            self.live.now(),
            max_message=self.settings.max_message,
            context=tracecontext.of_request(headers) if self.settings.traced else (),
        )

    def charge(self, caller: Caller, *, messages: int, size: int) -> None:
        """Take a request out of the caller's quota, before anything is done for it."""
        wait = self.quota.take(caller.holder, self.live.now(), messages, size)
        if wait:
            raise QuotaExceeded("you are sending too much", retry_after=wait / SECOND)

    async def accept(
        self,
        caller: Caller,
        submissions: Sequence[Submission],
        *,
        key: bytes | None = None,
        digest: Callable[[], bytes],
    ) -> AcceptedMany:
        """Publish, once under a key; returns when it is durable."""
        app, source = caller.app, caller.source
        if key is None:
            receipt = await self.change(
                lambda gateway, now: gateway.publish(app, source, submissions, now), ids_of
            )
            return AcceptedMany(receipt.ids)
        text = checked_key(key)
        once = Idempotency(text, digest(), await self._find_key(app, source, text))
        try:
            receipt = await self.change(
                lambda gateway, now: gateway.publish(app, source, submissions, now, once=once),
                ids_of,
            )
        except OutcomeOpen as error:
            raise error.of(error.ids, repeatable=True) from None
        except Overloaded as error:
            receipt = self._earlier(app, source, once, error)
        if receipt.repeated is None:
            return AcceptedMany(receipt.ids)
        return AcceptedMany(await self._ids(receipt.repeated), repeated=True)

    async def _find_key(self, app: str, source: str, key: str) -> KeyRow | None:
        """What the store knows of a publisher's idempotency key."""
        own = own_key(source, key)
        found = await self.live.read(lambda reader: reader.find_keys(app, [own, key]))
        row = found.get(key)
        if own in found or row is None:
            return found.get(own)
        # An older gateway kept keys without whose they are: the message tells, while there is one.
        first = row.first
        kept = await self.live.read(lambda reader: reader.messages([first]))
        return row if first not in kept or kept[first].source == source else None

    def _earlier(self, app: str, source: str, once: Idempotency, refusal: Overloaded) -> Receipt:
        """What is known of an idempotency key when nothing could be done for a request: an earlier
        one may have been accepted, or be open still. Otherwise the refusal stands."""
        keys = self.live.look(lambda gateway: gateway.repeated(app, source, once))
        if keys is None:
            raise refusal
        receipt = Receipt([], keys)
        if once.found is None:
            raise OutcomeOpen(
                "an earlier request with this key is not written yet; the outcome is open",
                retry_after=refusal.retry_after,
                ids=ids_of(receipt),
                repeatable=True,
            )
        return receipt

    async def change(
        self, act: Callable[[Gateway, Micros], T], made: Callable[[T], Sequence[str]]
    ) -> T:
        """Let `act` make messages; should it stay open whether they are accepted, the error names
        those that were `made`."""
        ids: list[str] = []

        def noted(gateway: Gateway, now: Micros) -> T:
            result = act(gateway, now)
            ids.extend(made(result))
            return result

        try:
            return await self.live.call(noted)
        except OutcomeOpen as error:
            raise error.of(ids) from None

    async def _ids(self, keys: list[int]) -> list[str]:
        """The ids of messages; the short form for those that are older than what is retained."""
        kept = await self.live.read(lambda reader: reader.messages(keys))
        return [format_id(k, kept[k].salt) if k in kept else short_id(k) for k in keys]

    async def find(self, caller: Caller, text: str, *, received: bool = False) -> Message:
        """The message with this id, if the caller has sent it or, with `received`, was sent it by a
        device. For everybody else there is none: an id tells nobody what others send."""
        try:
            key, salt = parse_id(text)
        except ValueError as error:
            raise NotFound(str(error), id=text) from None
        message = await self._stored(key)
        if message is None:
            # Nobody may conclude that it does not exist from a commit that is still to be written.
            await self.live.durable()
            message = await self._stored(key)
        if message is None or message.app != caller.app or salt not in (None, message.salt):
            raise NotFound("no such message", id=text)
        if caller.owns(message.source) or (received and await self._has_received(caller, message)):
            return message
        raise NotFound("no such message", id=text)

    async def _has_received(self, caller: Caller, message: Message) -> bool:
        """Whether a device sent this to the caller: it answers what the caller sent, or opened a
        stream to any publisher of the app."""
        if message.target.kind is not TargetKind.PUBLISHER:
            return False
        key = message.in_reply_to
        if key is None:
            return message.stream
        found = await self._stored(key)
        return found is not None and found.app == caller.app and caller.owns(found.source)

    async def _stored(self, key: int) -> Message | None:
        return (await self.live.read(lambda reader: reader.messages([key]))).get(key)

    async def deliveries(self, key: int) -> list[DeliveryRow]:
        """A message's deliveries as they stand."""
        return await self.live.read(lambda reader: reader.deliveries(key))

    async def wait(
        self,
        receive: Receive,
        key: int,
        ready: Callable[[list[DeliveryRow]], bool],
        seconds: float,
    ) -> list[DeliveryRow]:
        """Wait for a message's deliveries, as long as the caller is there and others may wait
        too."""
        if not 0 <= seconds <= self.settings.max_wait:
            limit = self.settings.max_wait
            raise InvalidRequest(f"timeout: wait between 0 and {limit} seconds", field="timeout")
        if self.waiting >= self.settings.max_waiting:
            raise Overloaded("too many requests are waiting", retry_after=RETRY_WAITING)
        self.waiting += 1
        try:
            return await _unless_gone(receive, self.live.wait(key, ready, seconds))
        finally:
            self.waiting -= 1


def short_id(key: int) -> str:
    """An id without what makes it hard to guess; it is understood all the same."""
    return f"{key:016x}"


def ids_of(receipt: Receipt) -> list[str]:
    """The ids of the messages that a receipt is for, new or not."""
    return receipt.ids or [short_id(key) for key in receipt.repeated or ()]


def one_of(accepted: AcceptedMany) -> Accepted:
    """The answer for a single message."""
    return Accepted(accepted.ids[0], accepted.repeated)


def checked_key(key: bytes) -> str:
    """An idempotency key."""
    text = key.decode("latin-1")
    if not 0 < len(text) <= MAX_IDEMPOTENCY_KEY or not text.isprintable():
        raise InvalidRequest(
            f"an idempotency key has 1 to {MAX_IDEMPOTENCY_KEY} printable characters",
            field="Idempotency-Key",
        )
    return text


async def _unless_gone(receive: Receive, answer: Awaitable[list[DeliveryRow]]) -> list[DeliveryRow]:
    """Wait for an answer, and give up when nobody is there to hear it."""
    answering = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise ClientDisconnect
        return answering.result()
    finally:
        answering.cancel()
        leaving.cancel()
        await asyncio.gather(answering, leaving, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
