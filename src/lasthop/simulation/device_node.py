"""A device in rehearsal: the real session and inbox on virtual time, with an application that keeps
a list of the messages it was given. The device dials, loses its link, dies in the middle of a
commit, and comes back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.core.preferences.encoding import encode_preferences
from lasthop.decision.preferences import Preferences
from lasthop.device.change import Change
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.message import Message, Refusal
from lasthop.device.requests.expectation import Expectation
from lasthop.device.session import DeviceSession
from lasthop.device.session_events import (
    Decided,
    Fetched,
    LinkSpent,
    Looked,
    Refused,
    RequestAnswered,
)
from lasthop.device.terms import DeviceTerms
from lasthop.simulation.device_links import DeviceLinks
from lasthop.simulation.exchange import (
    Made,
    PlannedQuestion,
    QuestionEnding,
    Talk,
    answer_to,
    concerns,
)
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.groups import Claims
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.link import Weather
from lasthop.simulation.ranked_reader import RankedReader
from lasthop.simulation.verdict import ArrivedMessage
from lasthop.wire.hop.frames import (
    Headers,
    Operation,
)
from lasthop.wire.hop.services import Service, encode as encode_service

if TYPE_CHECKING:
    from lasthop.simulation.streams import Flows

LOG = "log"
"""The name of the note in which a transactional application keeps the messages it was given."""


class DeviceNode:
    """One device that starts, crashes and starts again.

    The list of a `transactional` application is part of the inbox. The list of any other
    application is outside of it, like the screen of a device: what was shown before a crash stays
    shown.
    """

    def __init__(
        self,
        kernel: Kernel,
        random: Random,
        terms: DeviceTerms,
        gateway: GatewayNode,
        *,
        transactional: bool,
        weather: Callable[[], tuple[Weather, Interconnect]],
        crash_at: set[int],
        another: float = 0.0,
        write_time: Micros = 2 * MILLISECOND,
    ) -> None:
        self._kernel = kernel
        self._random = random
        self._terms = terms
        self._transactional = transactional
        self._crash_at = crash_at
        self._write_time = write_time
        self._inbox = MemoryInbox()
        self._screen: list[ArrivedMessage] = []
        self._writing = False
        self._batch: list[ArrivedMessage] = []
        self._todo: list[Message] = []
        self._attending = False
        self._unsent: list[UnsentMessage] = []
        self.talk = Talk()
        """The questions that this device has asked others, and how they ended."""
        self._asked_now: list[Made] = []
        self._ended_now: list[QuestionEnding] = []
        """Ends of questions that the next commit makes durable."""
        self.links = DeviceLinks(
            kernel,
            random,
            gateway,
            weather=weather,
            another=another,
            write_time=write_time,
            turn=self._turn,
            redial=self._redial,
        )
        self.reader = RankedReader(
            kernel,
            random,
            self.links,
            write_time=write_time,
            busy=lambda: self._writing,
            show=self._show,
            turn=self._turn,
        )
        self.claims = Claims(kernel, random, self._say)
        self._expires: Micros | None = None
        self.flows: Flows | None = None
        """The application that writes and reads streams, if the device has one."""
        self._pulling: dict[int, Message] = {}
        self.refused: list[Refusal] = []
        self.commits = 0
        self.crashes = 0

    def start(self) -> None:
        """Start the device, or restart it after a crash, and dial."""
        session = DeviceSession(self._terms, self._inbox.load())
        self.links.begin(session)
        self._writing = False
        self._batch = []
        self._asked_now, self._ended_now = [], []
        self._todo = []
        self._attending = False
        self._pulling = {}
        if self.flows is not None:
            self.flows.restart(session)
        self.reader.restart()
        self.links.dial()

    @property
    def _session(self) -> DeviceSession | None:
        return self.links.session

    def had(self) -> list[ArrivedMessage]:
        """Return the messages that the application was given and would remember after a crash."""
        if not self._transactional:
            return self._screen
        noted = (self._inbox.note(LOG) or b"").split()
        return [ArrivedMessage(*map(int, line.split(b":"))) for line in noted]

    @property
    def quiet(self) -> bool:
        """Whether this device has nothing under way."""
        session = self._session
        return (
            session is not None
            and not self._unsent
            and session.settled
            and not session.waiting
            and not session.held
            and not session.requests.waiting
        )

    def stir(self) -> None:
        """Let the device act, because its application has something to do."""
        self._turn()

    def subscribe(self, topic: str, terms: dict[str, object] | None = None) -> None:
        """Subscribe to a topic, with terms if it is ranked."""
        body = b"" if terms is None else msgspec.json.encode(terms)
        self._say(body, topic, Headers(operation=Operation.SUBSCRIBE))

    def unsubscribe(self, topic: str) -> None:
        """End the subscription to a topic."""
        self._say(b"", topic, Headers(operation=Operation.UNSUBSCRIBE))

    def move(self, target: str, *, joins: bool) -> None:
        """Join a group or queue, or leave it."""
        operation = Operation.JOIN if joins else Operation.LEAVE
        self._say(b"", None, Headers(operation=operation, to=target))

    def prefer(self, options: Preferences) -> None:
        """Set the preferences of the device, for both directions."""
        headers = Headers(operation=Operation.PREFERENCES)
        self._unsent.append(
            UnsentMessage(encode_preferences(options), None, headers, options=options)
        )
        self._turn()

    def send(self, body: bytes, target: str, headers: Headers) -> None:
        """Send a message to others. The application repeats the request until the message is in the
        outbox."""
        if target.startswith("topic:"):
            self._say(body, target.removeprefix("topic:"), headers)
        else:
            self._say(body, None, headers)

    def offer(self, service: Service) -> None:
        """Offer a service to other devices."""
        self._say(encode_service(service), None, Headers(operation=Operation.OFFER))

    def ask(self, ask: PlannedQuestion) -> None:
        """Ask other devices the planned question."""
        self._unsent.append(UnsentMessage(ask.body, ask.topic, ask.headers, ask.expects))
        self._turn()

    def _say(self, body: bytes, topic: str | None, headers: Headers) -> None:
        self._unsent.append(UnsentMessage(body, topic, headers))
        self._turn()

    def _queue(self, session: DeviceSession, unsent: UnsentMessage) -> None:
        now = self._kernel.now()
        body, topic, headers, expects, options = unsent
        if options is not None:
            session.preferences.prefer(options)
        if expects is None:
            key = session.queue(now, topic=topic, headers=headers, body=body)
        else:
            key = session.requests.ask(now, expects, topic=topic, headers=headers, body=body)
        self.claims.queued(key, headers)
        if expects is not None:
            self._asked_now.append(Made(key, body, expects, self.crashes))

    def _redial(self, session: DeviceSession) -> None:
        if session is self._session:
            self.links.dial()

    def _crash(self) -> None:
        self.crashes += 1
        self._inbox = self._inbox.crash()
        self.links.cut()
        self._kernel.after(self._random.randint(0, 5 * SECOND), self.start)

    def _turn(self) -> None:
        """Act on what has happened: show messages, commit, and send."""
        session = self._session
        if session is None:
            return
        now = self._kernel.now()
        change: Change | None = None
        if not self._transactional:
            self._todo += session.ready(now)
            self._attend(session)
        if not self._writing:
            queued = len(self._unsent)
            for unsent in self._unsent:
                self._queue(session, unsent)
            self.reader.work(session)
            session.expire(now)
            if self._transactional:
                for message in session.fresh(now):
                    self._show(message)
                    reply = answer_to(message, now)
                    if reply is not None:
                        self._queue(session, UnsentMessage(*reply))
                    session.finished(message)
            if self.flows is not None and self.flows.work(session, now):
                self._kernel.after(self._random.randint(0, 20 * MILLISECOND), self._turn)
            opening = [] if self.flows is None else self.flows.opening()
            session.decide(now)
            change = session.change()
            if change is not None:
                self._writing = True
                batch, self._batch = self._batch, []
                talked = self._asked_now, self._ended_now
                self._asked_now, self._ended_now = [], []
                delay = self._random.randint(0, self._write_time)
                write = partial(self._write, session, change, batch, queued, talked, opening)
                self._kernel.after(delay, write)
            else:
                # Best-effort messages are not stored: they leave now or never.
                self._unsent = []
        if not self._writing or change is not None:
            self._hear_what_happened(session)
        self._watch_expiry(session)
        self.links.flush()

    def _hear_what_happened(self, session: DeviceSession) -> None:
        for session_event in session.session_events():
            self.talk.heard(session_event)
            match session_event:
                case Refused(key, refusal):
                    self.refused.append(refusal)
                    self.reader.refused(key)
                case Decided():
                    self.claims.hear(session_event)
                case LinkSpent():
                    self.links.close_spent(session_event)
                case RequestAnswered(_, message):
                    reply = answer_to(message, self._kernel.now())
                    if reply is not None:
                        self._unsent.append(UnsentMessage(*reply))
                        self._kernel.after(0, self._turn)
                case Fetched():
                    self._fetched(session, session_event)
                case Looked():
                    self.reader.hear(session_event)
                case _:
                    pass

    def _watch_expiry(self, session: DeviceSession) -> None:
        due = session.next_expiry()
        if due is not None and due != self._expires:
            self._expires = due
            self._kernel.at(max(due, self._kernel.now() + 1), self._turn)

    def _attend(self, session: DeviceSession) -> None:
        """Let a plain application work on one message after the other, each for some time."""
        if self._attending or not self._todo:
            return
        self._attending = True
        message = self._todo.pop(0)
        if message.deadline is not None and message.deadline <= self._kernel.now():
            session.lapsed(message)
            taken = 0
        elif message.pull_size is not None:
            body = session.pieces.pull(message.key, self._kernel.now())
            if body is None:
                self._pulling[message.key] = message
                return
            self._show(message, body)
            taken = 0
        else:
            self._show(message)
            taken = self._random.choice((0, 0, 10 * MILLISECOND, SECOND // 2))
        self._kernel.after(taken, lambda: self._done(session, message))

    def _fetched(self, session: DeviceSession, fetched: Fetched) -> None:
        message = self._pulling.pop(fetched.key, None)
        if message is None:
            return
        if fetched.body is not None:
            self._show(message, fetched.body)
            self._kernel.after(0, lambda: self._done(session, message))
        else:
            session.lapsed(message)
            self._kernel.after(0, lambda: self._done(session, message))

    def _done(self, session: DeviceSession, message: Message) -> None:
        if session is self._session:
            self._attending = False
            session.finished(message)
            reply = answer_to(message, self._kernel.now())
            if reply is not None:
                self._unsent.append(UnsentMessage(*reply))
            self._turn()

    def _show(self, message: Message, body: bytes | None = None) -> None:
        if concerns(message):
            ending = self.talk.show(message)
            if ending is not None:
                (self._ended_now if self._transactional else self.talk.endings).append(ending)
            return
        self.claims.see(message)
        if message.opens_stream:
            assert self.flows is not None
            self.flows.opened(message)
            return
        number = int((message.body if body is None else body).rstrip(b"."))
        arrival = ArrivedMessage(number, message.key, int(message.redelivered))
        if self._transactional:
            self._batch.append(arrival)
        else:
            self._screen.append(arrival)

    def _write(
        self,
        session: DeviceSession,
        change: Change,
        batch: list[ArrivedMessage],
        queued: int,
        talked: tuple[list[Made], list[QuestionEnding]],
        opening: list[Any],
    ) -> None:
        if session is not self._session:
            return
        self.commits += 1
        dies = self.commits in self._crash_at
        if dies and self.commits % 2 == 0:
            self._crash()
            return
        with self._inbox.transaction() as transaction:
            if batch:
                lines = "".join(f"{a.number}:{a.key}:{a.redelivered}\n" for a in batch)
                transaction.put(LOG, (transaction.get(LOG) or b"") + lines.encode())
            transaction.apply(change)
        self.talk.note(talked[0])
        self.talk.endings += talked[1]
        # The messages are in the outbox now; had the device died before, its application would
        # repeat them.
        self._unsent = self._unsent[queued:]
        if dies:
            self._crash()
            return
        self._writing = False
        session.committed(change.n)
        if self.flows is not None:
            self.flows.committed(opening)
        self.reader.committed()
        self._turn()


class UnsentMessage(NamedTuple):
    """A message that the application wants to send and that is not in the outbox yet."""

    body: bytes
    topic: str | None
    headers: Headers
    expects: Expectation | None = None
    options: Preferences | None = None
