"""The handles of the messages that this device sent, and the calls that wait for an answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Literal
from weakref import WeakValueDictionary

import msgspec

from lasthop.device.handle import MessageHandle, MessageRefused, Settlement, Status
from lasthop.device.message import Message, Refusal
from lasthop.device.session_events import (
    Decided,
    Fetched,
    Gathered,
    Lapsed,
    LinkSpent,
    LinksWanted,
    Looked,
    MessageAccepted,
    MessageSent,
    Refused,
    RequestAnswered,
    Retracted,
    SessionEvent,
    StreamStirred,
    TimedOut,
    Withdrawn,
)
from lasthop.errors import Conflict
from lasthop.wire.hop.decisions import GroupDecision, GroupVerdict

log = logging.getLogger("lasthop.device")


class Claim(msgspec.Struct, frozen=True):
    """The answer to a claim; as a condition it is true if the claim was `granted`."""

    granted: bool
    by: str
    """The device that has claimed the message; empty if that device was removed, or if no device
    can claim the message any more."""

    def __bool__(self) -> bool:
        return self.granted


_OUTCOMES: dict[GroupVerdict, Literal["released", "aborted", "claimed", "unclaimed"]] = {
    GroupVerdict.RELEASED: "released",
    GroupVerdict.ABORTED: "aborted",
    GroupVerdict.CLAIMED: "claimed",
    GroupVerdict.UNCLAIMED: "unclaimed",
}


class HandleTable:
    """Passes the events of the session on to handles and to calls that wait for an answer. Only
    weak references to handles are held, so that a handle that the application drops is
    forgotten."""

    def __init__(self) -> None:
        self._handles: WeakValueDictionary[int, MessageHandle] = WeakValueDictionary()
        self._answers: dict[int, asyncio.Future[Any]] = {}
        """Futures of a `Message`, or of `Gathered` answers, by the key of the request."""
        self._looks: dict[int, asyncio.Future[list[Message]]] = {}
        self._claims: dict[int, asyncio.Future[Claim]] = {}
        self._streams: dict[int, list[asyncio.Event]] = {}
        self._pulls: dict[int, list[asyncio.Future[bytes]]] = {}
        self.on_stream: Callable[[int], None] | None = None
        self.unclaimed: list[Message] = []
        """Messages that came as the answer to a read after its caller had stopped waiting."""
        self.on_refused: Callable[[str, Refusal], None] | None = None
        self.on_link_spent: Callable[[LinkSpent], None] | None = None
        self.on_links_wanted: Callable[[tuple[str, ...]], None] | None = None
        self.on_retracted: Callable[[str, bool], None] | None = None
        self.on_withdrawn: Callable[[str], None] | None = None
        self.on_settled: Callable[[str, Settlement], None] | None = None

    def queued(self, key: int, answer: asyncio.Future[Any] | None = None) -> MessageHandle:
        """Return the handle of a message that was queued; `answer` is the future of its answer."""
        handle = self._handles[key] = MessageHandle(key)
        if answer is not None:
            self._answers[key] = answer
        return handle

    def claiming(self, key: int, answer: asyncio.Future[Claim]) -> int:
        """Register the future for the answer to a claim; return the claim's key."""
        self._claims[key] = answer
        return key

    def stop_claiming(self, key: int) -> None:
        """Forget the future for the answer to a claim."""
        self._claims.pop(key, None)

    def _decided(self, key: int, decision: GroupDecision) -> None:
        if decision.verdict in (GroupVerdict.GRANT, GroupVerdict.DENY):
            claim = self._claims.pop(key, None)
            if claim is not None and not claim.done():
                claim.set_result(Claim(decision.verdict is GroupVerdict.GRANT, decision.by))
            return
        outcome = _OUTCOMES.get(decision.verdict)
        if outcome is None:
            return  # A verdict of a newer gateway, which this SDK does not know.
        settlement = Settlement(outcome, decision.by)
        handle = self._handles.get(key)
        if handle is not None:
            handle.settle(settlement)
        elif self.on_settled is not None:
            self.on_settled(f"{key:016x}", settlement)

    def looking(self, key: int, answer: asyncio.Future[list[Message]]) -> int:
        """Register the future for the gateway's answer to a question for the best messages of a
        ranked topic; return the question's key."""
        self._looks[key] = answer
        return key

    def stop_looking(self, key: int) -> None:
        """Forget the future for the answer to a question for the best messages of a topic."""
        self._looks.pop(key, None)

    def _looked(self, key: int, messages: list[Message]) -> None:
        answer = self._looks.pop(key, None)
        if answer is not None and not answer.done():
            answer.set_result(messages)
        else:
            self.unclaimed += messages

    def watch_stream(self, key: int, stirred: asyncio.Event) -> None:
        """Set this event whenever the stream of this key changes."""
        self._streams.setdefault(key, []).append(stirred)

    def unwatch_stream(self, key: int, stirred: asyncio.Event) -> None:
        """Stop setting this event when the stream of this key changes."""
        watching = self._streams.get(key, [])
        if stirred in watching:
            watching.remove(stirred)
        if not watching:
            self._streams.pop(key, None)

    def pulling(self, key: int, body: asyncio.Future[bytes]) -> None:
        """Register the future for the body of a message that is being fetched."""
        self._pulls.setdefault(key, []).append(body)

    def _fetched(self, fetched: Fetched) -> None:
        for waiting in self._pulls.pop(fetched.key, ()):
            if waiting.done():
                continue
            if fetched.body is not None:
                waiting.set_result(fetched.body)
            else:
                waiting.set_exception(
                    Conflict("the body is no longer available", reason=fetched.reason)
                )

    def forget_answer(self, key: int) -> None:
        """Forget the future for the answer to a request."""
        self._answers.pop(key, None)

    def tell(self, session_event: SessionEvent) -> None:
        """Pass an event of the session on to the handle, future or callback that it concerns."""
        match session_event:
            case MessageSent(key):
                self._move(key, Status.SENT)
            case MessageAccepted(key):
                self._move(key, Status.ACCEPTED)
            case Refused(key, refusal):
                self._refuse(key, refusal)
            case RequestAnswered(key, message):
                self._answer(key, message)
            case Gathered(key):
                self._answer(key, session_event)
            case TimedOut(key):
                answer = self._answers.pop(key, None)
                if answer is not None and not answer.done():
                    answer.set_exception(TimeoutError("no answer came in time"))
            case LinksWanted(links):
                if self.on_links_wanted is not None:
                    self.on_links_wanted(links)
            case LinkSpent(_, link):
                log.info("link %s has reached a limit of what this device sends", link)
                if self.on_link_spent is not None:
                    self.on_link_spent(session_event)
            case Lapsed(message):
                log.info("message %s expired before the application got it", message.id)
            case Looked(key, messages):
                self._looked(key, messages)
            case Retracted(key, had):
                if self.on_retracted is not None:
                    self.on_retracted(f"{key:016x}", had)
            case Withdrawn(topic):
                log.info("topic %s was withdrawn", topic)
                if self.on_withdrawn is not None:
                    self.on_withdrawn(topic)
            case Decided(key, decision):
                self._decided(key, decision)
            case StreamStirred(key):
                for stirred in self._streams.get(key, ()):
                    stirred.set()
                if self.on_stream is not None:
                    self.on_stream(key)
            case Fetched():
                self._fetched(session_event)

    def give_up(self, error: BaseException) -> None:
        """Fail all handles and futures with the error that ended the device."""
        for handle in list(self._handles.values()):
            handle.fail(error)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(error)
        for look in self._looks.values():
            if not look.done():
                look.set_exception(error)
        for claim in self._claims.values():
            if not claim.done():
                claim.set_exception(error)
        for pulls in self._pulls.values():
            for pull in pulls:
                if not pull.done():
                    pull.set_exception(error)
        for watching in self._streams.values():
            for stirred in watching:
                stirred.set()

    def _answer(self, key: int, outcome: Message | Gathered) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None and not answer.done():
            answer.set_result(outcome)

    def _move(self, key: int, status: Status) -> None:
        handle = self._handles.get(key)
        if handle is not None:
            handle.move(status)

    def _refuse(self, key: int, refusal: Refusal) -> None:
        handle, answer = self._handles.get(key), self._answers.pop(key, None)
        if handle is not None:
            handle.move(Status.REFUSED, refusal)
        if answer is not None and not answer.done():
            answer.set_exception(MessageRefused(refusal, f"{key:016x}"))
        look = self._looks.pop(key, None)
        if look is not None and not look.done():
            look.set_exception(MessageRefused(refusal, f"{key:016x}"))
        claim = self._claims.pop(key, None)
        if claim is not None and not claim.done():
            claim.set_exception(MessageRefused(refusal, f"{key:016x}"))
        if handle is None and answer is None and look is None and claim is None:
            log.warning("the gateway refused message %016x: %s", key, refusal.detail)
            if self.on_refused is not None:
                self.on_refused(f"{key:016x}", refusal)
