"""Where a session and its inbox meet: one turn takes everything that happened, commits once or
twice, and says what to do.

A turn may block on the disk, so the asyncio client runs it in a thread of its own. Nobody else
touches the session or the inbox. A transactional handler is called here, in the transaction that
makes the arrival durable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from lasthop.clock import Micros
from lasthop.device.compose import Draft
from lasthop.device.inbox import Inbox, Transaction
from lasthop.device.message import Message
from lasthop.device.session import DeviceSession
from lasthop.device.session_events import SessionEvent
from lasthop.errors import HopError, StoreBroken
from lasthop.wire.hop.bundling import FLUSH_SIZE
from lasthop.wire.hop.frames import Frame, Hello, Welcome

Act: TypeAlias = Callable[[DeviceSession, Micros], Any]
"""Something that happened to the session."""


class TurnOutcome(msgspec.Struct, kw_only=True):
    """What a turn leaves to be done on the event loop."""

    results: list[object] = []
    """Of the acts, in order; an exception stands for itself."""
    frames: list[Frame] = []
    routed: dict[int, list[Frame]] = {}
    """What leaves over particular channels."""
    stuck: bool = False
    """Only a new contact lets anything more through."""
    next_expiry: Micros | None = None
    """When something that is kept unread has to go."""
    more: bool = False
    """More could leave when these have been taken."""
    ready: list[Message] = []
    session_events: list[SessionEvent] = []
    fault: HopError | None = None
    """What the gateway did wrong: close the channel."""
    failure: HandlerFailed | None = None


class HandlerFailed(Exception):
    """A handler raised: its message is not finished and comes again when the device runs again."""

    def __init__(self, message: Message, error: Exception) -> None:
        super().__init__(f"the handler failed for message {message.id}: {error!r}")
        self.message = message
        self.__cause__ = error


class HandlerTransaction:
    """What a transactional handler works in: all of it becomes durable with its message, or none.

    It offers what the inbox's own transaction offers: `get` and `put`, and with SQLite `execute`
    and `executemany` on the application's tables.
    """

    __slots__ = ("_drafts", "_transaction")

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._drafts: list[Draft] = []

    def get(self, name: str) -> bytes | None:
        """What was put under this name."""
        return self._transaction.get(name)

    def put(self, name: str, value: bytes) -> None:
        """Keep a value under a name."""
        self._transaction.put(name, value)

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        """Run one statement on the application's tables in the inbox's file."""
        return self._sql("execute")(sql, parameters)

    def executemany(self, sql: str, parameters: Any) -> Any:
        """Run one statement many times."""
        return self._sql("executemany")(sql, parameters)

    def send(self, draft: Draft) -> None:
        """Queue a message (see `compose`): it leaves exactly if the handler's work is committed."""
        self._drafts.append(draft)

    def _sql(self, name: str) -> Callable[..., Any]:
        method = getattr(self._transaction, name, None)
        if method is None:
            raise TypeError("only an inbox in a SQLite file takes SQL")
        return method  # type: ignore[no-any-return]

    def take_drafts(self) -> list[Draft]:
        """What the handler queued."""
        drafts, self._drafts = self._drafts, []
        return drafts


Transactional: TypeAlias = Callable[[Message, HandlerTransaction], None]


class SessionRunner:
    """A session, its inbox, and the handler that works in the inbox's transactions."""

    def __init__(self, session: DeviceSession, inbox: Inbox) -> None:
        self.session = session
        self._inbox = inbox
        self.handler: Transactional | None = None
        self._whole = True
        """Whether every change so far was made durable. After one that was not, the session is
        ahead of the inbox, and no later one may be."""

    def turn(
        self, acts: list[Act], now: Micros, *, room: bool = True, piece: bool = True
    ) -> TurnOutcome:
        """Let these things happen, make them durable, and say what follows."""
        outcome = TurnOutcome()
        for act in acts:
            try:
                outcome.results.append(act(self.session, now))
            except HopError as error:
                outcome.fault = error
                outcome.results.append(error)
            except Exception as error:
                outcome.results.append(error)
        if self.handler is not None:
            self._handle(self.handler, outcome, now)
        self.session.decide(now, budget=FLUSH_SIZE)
        self.commit()
        outcome.ready = self.session.ready(now) if self.handler is None else []
        # What was too late when its turn came has changed the counts.
        self.commit()
        outcome.frames = self.session.frames(room=room, budget=FLUSH_SIZE, piece=piece)
        outcome.routed = self.session.routed(piece=piece)
        outcome.stuck = self.session.stuck
        outcome.more = self.session.more
        outcome.next_expiry = self.session.next_expiry()
        outcome.session_events = self.session.session_events()
        return outcome

    def hello(self, link: str | None, network: str | None) -> Hello:
        """What to dial with, after the end of the last channel if there was one."""
        self.session.lost()
        self.commit()
        return self.session.hello(link=link, network=network)

    def commit(self, *, flush: bool = False) -> None:
        """Make durable whatever waits for it."""
        if not self._whole:
            raise StoreBroken("the inbox has missed a change")
        change = self.session.change(flush=flush)
        if change is not None:
            self._whole = False
            self._inbox.apply(change)
            self._whole = True
            self.session.committed(change.n)

    def kept(self, name: str) -> bytes | None:
        """What `keep` has kept."""
        with self._inbox.transaction() as transaction:
            return transaction.get(name)

    def keep(self, name: str, value: bytes) -> None:
        """Keep something that is no message, for the device's next life."""
        with self._inbox.transaction() as transaction:
            transaction.put(name, value)

    def close(self) -> None:
        """Write what was put off, and let go of the inbox."""
        try:
            if self._whole:
                self.commit(flush=True)
        finally:
            self._inbox.close()

    def _handle(self, handler: Transactional, outcome: TurnOutcome, now: Micros) -> None:
        session = self.session
        fresh = session.fresh(now)
        if not fresh:
            return
        self._whole = False
        with self._inbox.transaction() as transaction:
            work = HandlerTransaction(transaction)
            for index, message in enumerate(fresh):
                try:
                    with transaction.attempt():
                        handler(message, work)
                        drafts = work.take_drafts()
                        if drafts:
                            session.check(draft.frame() for draft in drafts)
                except Exception as error:
                    outcome.failure = HandlerFailed(message, error)
                    session.put_back(fresh[index:])
                    break
                for draft in drafts:
                    draft.queue(session, now)
                session.finished(message)
            change = session.change()
            if change is not None:
                transaction.apply(change)
        self._whole = True
        if change is not None:
            session.committed(change.n)


def welcomed(said: Hello, welcome: Welcome, frames: list[Frame], *, ordered: bool = True) -> Act:
    """The gateway answered; the result says whether the channel is of use."""

    def act(session: DeviceSession, now: Micros) -> bool:
        if not session.welcomed(said, welcome, now, reliable=ordered):
            return False
        session.received(frames, now)
        return True

    return act


def joined(said: Hello, welcome: Welcome, frames: list[Frame]) -> Act:
    """The gateway answered one more channel; the result says whether it is granted."""

    def act(session: DeviceSession, now: Micros) -> bool:
        if not session.joined(said, welcome):
            return False
        session.received(frames, now)
        return True

    return act
