"""Runs a session with its inbox, turn by turn: a turn handles everything that happened, commits
once or twice, and returns what the event loop has to do.

A turn may block on the disk, so the asyncio client runs it in a thread of its own, and only that
thread touches the session and the inbox. A transactional handler is called here, in the transaction
that makes the arrival durable.
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
"""A function that changes the session at a time; a turn runs several of them."""


class TurnOutcome(msgspec.Struct, kw_only=True):
    """The results of a turn that the event loop has to carry out."""

    results: list[object] = []
    """The results of the acts, in order; an exception that an act raised is its result."""
    frames: list[Frame] = []
    routed: dict[int, list[Frame]] = {}
    """The frames that leave over particular channels, by channel number."""
    stuck: bool = False
    """Whether nothing more can leave until the device connects again."""
    next_expiry: Micros | None = None
    """The time of the next deadline of an unread or waiting message; None if there is none."""
    more: bool = False
    """Whether more frames could leave once these have been sent."""
    ready: list[Message] = []
    session_events: list[SessionEvent] = []
    fault: HopError | None = None
    """The gateway's violation of the protocol, because of which the channel is to be closed."""
    failure: HandlerFailed | None = None


class HandlerFailed(Exception):
    """A handler raised an exception: its message is not done, and comes again when the device
    restarts."""

    def __init__(self, message: Message, error: Exception) -> None:
        super().__init__(f"the handler failed for message {message.id}: {error!r}")
        self.message = message
        self.__cause__ = error


class HandlerTransaction:
    """The transaction that a transactional handler works in: all of it becomes durable with the
    message, or none of it.

    It offers what the inbox's own transaction offers: `get` and `put`, and with SQLite `execute`
    and `executemany` on the application's tables.
    """

    __slots__ = ("_drafts", "_transaction")

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._drafts: list[Draft] = []

    def get(self, name: str) -> bytes | None:
        """Return the value that was put under this name; None if there is none."""
        return self._transaction.get(name)

    def put(self, name: str, value: bytes) -> None:
        """Keep a value under a name, in the inbox."""
        self._transaction.put(name, value)

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        """Run one SQL statement on the application's tables in the inbox's file. Raises TypeError
        if the inbox is not an SQLite file."""
        return self._sql("execute")(sql, parameters)

    def executemany(self, sql: str, parameters: Any) -> Any:
        """Run one SQL statement once for each set of parameters, as `sqlite3` does."""
        return self._sql("executemany")(sql, parameters)

    def send(self, draft: Draft) -> None:
        """Queue a message made by `compose`: the message is sent if and only if the handler's work
        is committed."""
        self._drafts.append(draft)

    def _sql(self, name: str) -> Callable[..., Any]:
        method = getattr(self._transaction, name, None)
        if method is None:
            raise TypeError("only an inbox in a SQLite file takes SQL")
        return method  # type: ignore[no-any-return]

    def take_drafts(self) -> list[Draft]:
        """Return the messages that the handler queued, and forget them."""
        drafts, self._drafts = self._drafts, []
        return drafts


Transactional: TypeAlias = Callable[[Message, HandlerTransaction], None]


class SessionRunner:
    """Runs a session's turns against its inbox, with the handler that works in the inbox's
    transactions."""

    def __init__(self, session: DeviceSession, inbox: Inbox) -> None:
        self.session = session
        self._inbox = inbox
        self.handler: Transactional | None = None
        self._whole = True
        """Whether every change so far was made durable. After a failed one the session is ahead of
        the inbox, so that no later change may be written."""

    def turn(
        self, acts: list[Act], now: Micros, *, room: bool = True, piece: bool = True
    ) -> TurnOutcome:
        """Run the acts, make their changes durable, and return what follows. `room` is False while
        the channel's buffer is full; `piece` allows the pieces of bodies and streams."""
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
        # `ready` drops messages whose deadline has passed, which changes what is durable.
        self.commit()
        outcome.frames = self.session.frames(room=room, budget=FLUSH_SIZE, piece=piece)
        outcome.routed = self.session.routed(piece=piece)
        outcome.stuck = self.session.stuck
        outcome.more = self.session.more
        outcome.next_expiry = self.session.next_expiry()
        outcome.session_events = self.session.session_events()
        return outcome

    def hello(self, link: str | None, network: str | None) -> Hello:
        """Return the HELLO to dial with, after ending the last channel if there was one."""
        self.session.lost()
        self.commit()
        return self.session.hello(link=link, network=network)

    def commit(self, *, flush: bool = False) -> None:
        """Write the session's pending changes to the inbox; with `flush`, also the changes that may
        be put off."""
        if not self._whole:
            # A later change would rest on the missing one, and acknowledge messages that were lost.
            raise StoreBroken("an earlier change is missing in the inbox")
        change = self.session.change(flush=flush)
        if change is not None:
            self._whole = False
            self._inbox.apply(change)
            self._whole = True
            self.session.committed(change.n)

    def kept(self, name: str) -> bytes | None:
        """Return the value that `keep` stored under this name; None if there is none."""
        with self._inbox.transaction() as transaction:
            return transaction.get(name)

    def keep(self, name: str, value: bytes) -> None:
        """Store a value that is not a message under a name, for the time after a restart."""
        with self._inbox.transaction() as transaction:
            transaction.put(name, value)

    def close(self) -> None:
        """Write the changes that were put off, and close the inbox."""
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
                    # Only the work of a failing message is undone; that of those before it is kept.
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
    """Return the act for the gateway's WELCOME; its result is False if the channel is of no use."""

    def act(session: DeviceSession, now: Micros) -> bool:
        if not session.welcomed(said, welcome, now, reliable=ordered):
            return False
        session.received(frames, now)
        return True

    return act


def joined(said: Hello, welcome: Welcome, frames: list[Frame]) -> Act:
    """Return the act for the WELCOME on an additional channel; its result is False if the gateway
    does not grant the channel."""

    def act(session: DeviceSession, now: Micros) -> bool:
        if not session.joined(said, welcome):
            return False
        session.received(frames, now)
        return True

    return act
