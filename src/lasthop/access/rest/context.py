"""What the operations of the REST door share: the gateway, the limits, and the ways to find
messages, accept submissions and wait."""

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
from lasthop.access.rest.answers import Accepted, AcceptedMany, TopicAnswer
from lasthop.access.rest.policy_manager import PolicyManager
from lasthop.access.rest.requests import Converter
from lasthop.access.rest.settings import RestSettings
from lasthop.access.rest.surrogate_manager import SurrogateManager
from lasthop.clock import SECOND, Micros
from lasthop.core.gateway import Gateway, Idempotency
from lasthop.core.publishing.acceptance import Receipt, own_key
from lasthop.core.publishing.submission import Submission
from lasthop.core.quota import CallerQuota
from lasthop.errors import InvalidRequest, NotFound, OutcomeOpen, Overloaded, QuotaExceeded
from lasthop.message import Message, TargetKind, format_id, parse_id
from lasthop.store.commit import DeliveryRow, KeyRow
from lasthop.wire import tracecontext

T = TypeVar("T")

Explain: TypeAlias = Callable[[int, int], Awaitable[object]]
"""Returns the history of a message (by key) for a device (by number) as a JSON-encodable value;
raises `NotFound` when there is none."""

Erase: TypeAlias = Callable[[int], Awaitable[object]]
"""Deletes what the store holds about a removed device, by number."""

MAX_IDEMPOTENCY_KEY = 200
"""The longest idempotency key, in characters: a UUID has 36, and every key is kept for days."""

RETRY_WAITING = 5.0
"""Seconds after which a refused request may be tried again: by then one of the many waiting
requests has probably ended."""


class OperationContext:
    """The gateway, the limits and the counts that all operations of one REST door work with."""

    def __init__(
        self,
        live: LiveGateway,
        settings: RestSettings,
        *,
        make_token: Callable[[], str],
        explain: Explain | None,
        erase: Erase | None,
        surrogate_manager: SurrogateManager | None = None,
        policy_manager: PolicyManager | None = None,
    ) -> None:
        self.live = live
        self.settings = settings
        self.make_token = make_token
        self.explain = explain
        self.erase = erase
        self.surrogate_manager = surrogate_manager
        self.policy_manager = policy_manager
        self.callers = Callers(live, open_house=settings.open_house)
        self.quota = CallerQuota(settings.messages, settings.bytes)
        self.intake = Intake(max_body=settings.max_body, max_held=settings.max_held)
        self.refused: Counter[str] = Counter()
        self.waiting = 0

    def converter(self, headers: Mapping[bytes, bytes]) -> Converter:
        """Return the converter that turns a request arriving now, with these headers, into
        submissions."""
        return Converter(
            self.live.now(),
            max_message=self.settings.max_message,
            context=tracecontext.of_request(headers) if self.settings.traced else (),
        )

    def charge(self, caller: Caller, *, messages: int, size: int) -> None:
        """Charge a request to the caller's quota before any work is done for it; raise
        `QuotaExceeded` if the quota is used up."""
        wait = self.quota.take(caller.holder, self.live.now(), messages, size)
        if wait:
            raise QuotaExceeded(
                "the quota of this credential is used up", retry_after=wait / SECOND
            )

    async def accept(
        self,
        caller: Caller,
        submissions: Sequence[Submission],
        *,
        key: bytes | None = None,
        digest: Callable[[], bytes],
    ) -> AcceptedMany:
        """Publish submissions, at most once under an idempotency key, and return when they are
        durable. `digest` makes the fingerprint of the request, to detect that a key is used for
        another request."""
        app, source = caller.app, caller.source
        if key is None:
            receipt = await self.change(
                lambda gateway, now: gateway.publish(app, source, submissions, now), ids_of
            )
            return accepted_of(receipt)
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
            return accepted_of(receipt)
        return AcceptedMany(await self._ids(receipt.repeated), repeated=True)

    async def _find_key(self, app: str, source: str, key: str) -> KeyRow | None:
        """Return the stored row of a publisher's idempotency key, or None."""
        own = own_key(source, key)
        found = await self.live.read(lambda reader: reader.find_keys(app, [own, key]))
        row = found.get(key)
        if own in found or row is None:
            return found.get(own)
        # An older gateway stored keys without their publisher; the first message names it, if that
        # message is still stored.
        first = row.first
        kept = await self.live.read(lambda reader: reader.messages([first]))
        return row if first not in kept or kept[first].source == source else None

    def _earlier(self, app: str, source: str, once: Idempotency, refusal: Overloaded) -> Receipt:
        """Return the receipt of an earlier request with this idempotency key after the gateway
        refused the present one as overloaded. Raise `OutcomeOpen` if the earlier request is not
        written yet, and the refusal if there is none."""
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
        """Change the gateway by `act`, which makes messages, and return when the change is durable.
        If the outcome stays open, the error names the ids that `made` finds in the result."""
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
        """Return the ids of messages by their keys; the short form for messages that are no longer
        stored."""
        kept = await self.live.read(lambda reader: reader.messages(keys))
        return [format_id(k, kept[k].salt) if k in kept else short_id(k) for k in keys]

    async def find(self, caller: Caller, text: str, *, received: bool = False) -> Message:
        """Return the message with this id, if the caller sent it or, with `received`, if a device
        sent it to the caller. Raise `NotFound` for any other caller, so that an id reveals
        nothing."""
        try:
            key, salt = parse_id(text)
        except ValueError as error:
            raise NotFound(str(error), id=text) from None
        message = await self._stored(key)
        if message is None:
            # The message may be in a commit that is not written yet, so look again before saying it
            # does not exist.
            await self.live.durable()
            message = await self._stored(key)
        if message is None or message.app != caller.app or salt not in (None, message.salt):
            raise NotFound("no such message", id=text)
        if caller.owns(message.source) or (received and await self._has_received(caller, message)):
            return message
        raise NotFound("no such message", id=text)

    async def _has_received(self, caller: Caller, message: Message) -> bool:
        """Whether a device sent this message to the caller: as a reply to a message of the caller,
        or as a stream to any publisher of the app."""
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
        """Return the stored deliveries of a message."""
        return await self.live.read(lambda reader: reader.deliveries(key))

    async def wait(
        self,
        receive: Receive,
        key: int,
        ready: Callable[[list[DeliveryRow]], bool],
        seconds: float,
    ) -> list[DeliveryRow]:
        """Wait until `ready` holds for a message's deliveries, `seconds` have passed or the client
        has disconnected. Refused as overloaded when too many requests wait already."""
        if not 0 <= seconds <= self.settings.max_wait:
            limit = self.settings.max_wait
            raise InvalidRequest(f"timeout: must be between 0 and {limit} seconds", field="timeout")
        if self.waiting >= self.settings.max_waiting:
            raise Overloaded("too many requests are waiting", retry_after=RETRY_WAITING)
        self.waiting += 1
        try:
            return await _unless_gone(receive, self.live.wait(key, ready, seconds))
        finally:
            self.waiting -= 1


def short_id(key: int) -> str:
    """Return a message's id without the salt that makes it hard to guess; requests may use this
    form too."""
    return f"{key:016x}"


def ids_of(receipt: Receipt) -> list[str]:
    """Return the ids of the messages that a receipt is for, whether they are new or repeated."""
    return receipt.ids or [short_id(key) for key in receipt.repeated or ()]


def accepted_of(receipt: Receipt) -> AcceptedMany:
    """Return the answer for messages that are new."""
    if not any(receipt.outcomes):
        return AcceptedMany(receipt.ids)
    topics = [None if o is None else TopicAnswer(*o) for o in receipt.outcomes]
    return AcceptedMany(receipt.ids, topics=topics)


def one_of(accepted: AcceptedMany) -> Accepted:
    """Return the answer for a single message, made from the answer for a batch that has only this
    message."""
    outcome = accepted.topics[0] if accepted.topics else None
    if outcome is None:
        return Accepted(accepted.ids[0], accepted.repeated)
    return Accepted(accepted.ids[0], accepted.repeated, outcome.subscriptions, outcome.kept)


def checked_key(key: bytes) -> str:
    """Return an idempotency key as text; raise `InvalidRequest` if it is too long or not
    printable."""
    text = key.decode("latin-1")
    if not 0 < len(text) <= MAX_IDEMPOTENCY_KEY or not text.isprintable():
        raise InvalidRequest(
            f"an idempotency key must have 1 to {MAX_IDEMPOTENCY_KEY} printable characters",
            field="Idempotency-Key",
        )
    return text


async def _unless_gone(receive: Receive, answer: Awaitable[list[DeliveryRow]]) -> list[DeliveryRow]:
    """Wait for an answer; raise `ClientDisconnect` if the client disconnects before it is there."""
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
