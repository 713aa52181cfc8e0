"""A device in rehearsal: the real session and inbox on virtual time, with an application that keeps
a list of what it has had. It dials, loses its link, dies in the middle of a commit, and comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from lasthop.clock import DAY, MILLISECOND, SECOND, Micros
from lasthop.core.preferences.encoding import encode_preferences
from lasthop.decision.preferences import Preferences
from lasthop.device.change import Change
from lasthop.device.happenings import (
    Answered,
    Decided,
    Fetched,
    LinkSpent,
    Looked as Answer,
    Refused,
)
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.message import Message, Refusal
from lasthop.device.outgoing import ordinary
from lasthop.device.requests.expectation import Expectation
from lasthop.device.session import DeviceSession
from lasthop.device.terms import Terms
from lasthop.errors import HopError
from lasthop.simulation.exchange import Ask, Ending, Made, Talk, answer_to, concerns
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.groups import Claims
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.interconnects import join
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.link import End, Link, Weather
from lasthop.simulation.verdict import Arrival
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.frames import (
    Close,
    CloseCode,
    Frame,
    Headers,
    Hello,
    MessageFrame,
    Operation,
    Piece,
    Welcome,
)
from lasthop.wire.hop.handshake import Dialing
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.hop.services import Service, encode as encode_service

if TYPE_CHECKING:
    from lasthop.simulation.streams import Flows

LINKS = ("sim", "sim1", "sim2")
MOST_WIRES = len(LINKS)
"""Channels that a device has at once."""

LOCAL = 0
"""In place of a look's key: what was there had to do."""

LOG = "log"
"""Under this name a transactional application keeps what it has had."""


class DeviceNode:
    """One device that lives, dies and comes back.

    A `transactional` application's list is part of the inbox; any other's is outside of it, as if
    it were the screen of the device: what was shown before a crash stays shown. With the
    probability `another` it opens one more channel beside the first, and again when one of several
    is lost.
    """

    def __init__(
        self,
        kernel: Kernel,
        random: Random,
        terms: Terms,
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
        self._gateway = gateway
        self._transactional = transactional
        self._weather = weather
        self._crash_at = crash_at
        self._another = another
        self._write_time = write_time
        self._inbox = MemoryInbox()
        self._session: DeviceSession | None = None
        self._screen: list[Arrival] = []
        self._wires: list[_Wire] = []
        """Every channel that is dialled or open; the device speaks over the last that is open."""
        self._dialled = 0
        self._writing = False
        self._batch: list[Arrival] = []
        self._todo: list[Message] = []
        self._attending = False
        self._unsent: list[Letter] = []
        self.talk = Talk()
        """What it has asked others, and how that ended."""
        self._asked_now: list[Made] = []
        self._ended_now: list[Ending] = []
        """Questions and their ends that the next commit makes durable."""
        self.carried: Counter[tuple[str, int]] = Counter()
        """How many messages have come over reliable channels, by link and day."""
        self.sent_over: Counter[tuple[str, int]] = Counter()
        """How many messages for others were handed to channels, by link and day."""
        self._glances: list[tuple[str, int | None]] = []
        """Looks at a ranked topic that the user is about to take."""
        self._asked: dict[int, tuple[str, int | None]] = {}
        """Looks that the gateway has not answered."""
        self._answers: list[Answer] = []
        self._answered: list[Answer] = []
        """The same once they are durable."""
        self.looked: list[Looked] = []
        """What every look has shown, for those who want to know."""
        self.empty_looks = 0
        """Answers of the gateway in a row that had nothing to show."""
        self.claims = Claims(kernel, random, self._say)
        self.seen: set[int] = set()
        """The keys of all messages that came over its channels."""
        self._expires: Micros | None = None
        self._drained = True
        self.flows: Flows | None = None
        """Its application that writes and reads streams, if it has one."""
        self._pulling: dict[int, Message] = {}
        self.refused: list[Refusal] = []
        self.commits = 0
        self.crashes = 0

    def start(self) -> None:
        """Come (back) to life, and dial."""
        self._session = DeviceSession(self._terms, self._inbox.load())
        self._writing = False
        self._batch = []
        self._asked_now, self._ended_now = [], []
        self._todo = []
        self._attending = False
        self._drained = True
        self._pulling = {}
        if self.flows is not None:
            self.flows.restart(self._session)
        self._asked, self._answers, self._answered = {}, [], []
        self._dial()

    def had(self) -> list[Arrival]:
        """What the application has had, as far as it will remember it."""
        if not self._transactional:
            return self._screen
        noted = (self._inbox.note(LOG) or b"").split()
        return [Arrival(*map(int, line.split(b":"))) for line in noted]

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way on this side."""
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
        """Its application has something to do."""
        self._turn()

    def subscribe(self, topic: str, terms: dict[str, object] | None = None) -> None:
        """Ask for a topic."""
        body = b"" if terms is None else msgspec.json.encode(terms)
        self._say(body, topic, Headers(operation=Operation.SUBSCRIBE))

    def unsubscribe(self, topic: str) -> None:
        """Ask for no more of it."""
        self._say(b"", topic, Headers(operation=Operation.UNSUBSCRIBE))

    def move(self, target: str, *, joins: bool) -> None:
        """Join a group or queue, or leave it."""
        operation = Operation.JOIN if joins else Operation.LEAVE
        self._say(b"", None, Headers(operation=operation, to=target))

    def look(self, topic: str, wanted: int | None) -> None:
        """The user looks at a ranked topic: asks the gateway if it is there, reads what is here if
        it is not, or does not answer soon."""
        self._glances.append((topic, wanted))
        self._turn()

    def unread(self, topic: str) -> int:
        """How many messages of a ranked topic the device keeps."""
        return self._session.ranked.unread(topic) if self._session is not None else 0

    @property
    def looking(self) -> bool:
        """Whether the user waits for something."""
        return bool(self._glances or self._asked or self._answers or self._answered)

    def prefer(self, wishes: Preferences) -> None:
        """Say which links to use, for both directions."""
        headers = Headers(operation=Operation.PREFERENCES)
        self._unsent.append(Letter(encode_preferences(wishes), None, headers, wishes=wishes))
        self._turn()

    def send(self, body: bytes, target: str, headers: Headers) -> None:
        """Send a message to others. The application says so again until it is in the outbox."""
        if target.startswith("topic:"):
            self._say(body, target.removeprefix("topic:"), headers)
        else:
            self._say(body, None, headers)

    def offer(self, service: Service) -> None:
        """Do something for others."""
        self._say(encode_service(service), None, Headers(operation=Operation.OFFER))

    def ask(self, ask: Ask) -> None:
        """Ask others something."""
        self._unsent.append(Letter(ask.body, ask.topic, ask.headers, ask.expects))
        self._turn()

    def _say(self, body: bytes, topic: str | None, headers: Headers) -> None:
        self._unsent.append(Letter(body, topic, headers))
        self._turn()

    def _queue(self, session: DeviceSession, letter: Letter) -> None:
        now = self._kernel.now()
        body, topic, headers, expects, wishes = letter
        if wishes is not None:
            session.preferences.prefer(wishes)
        if expects is None:
            key = session.queue(now, topic=topic, headers=headers, body=body)
        else:
            key = session.requests.ask(now, expects, topic=topic, headers=headers, body=body)
        self.claims.queued(key, headers)
        if expects is not None:
            self._asked_now.append(Made(key, body, expects, self.crashes))

    def _dial(self) -> None:
        session = self._session
        if session is None or self._wires:
            return
        if not session.settled:
            # Only what is durable may be claimed: dial when it is. After a restart nothing else may
            # happen that would write it.
            self._turn()
            self._kernel.after(self._write_time, lambda: self._redial(session))
            return
        self._open(session.hello(link="sim"))

    def _dial_another(self) -> None:
        """Open one more channel beside those that are there; the device is to be reached by it."""
        session = self._session
        if session is None or len(self._wires) >= MOST_WIRES:
            return
        # Whoever may send nothing over the links that it has does not open the same once more.
        used = {wire.label for wire in self._wires}
        hello = session.joining(link=next(label for label in LINKS if label not in used))
        if hello is not None:
            self._open(hello)

    def switch(self) -> None:
        """Go over to a new channel; when it is there, the others end."""
        session = self._session
        hello = session.joining(link="sim") if session is not None else None
        if hello is not None and len(self._wires) < MOST_WIRES:
            self._open(hello, instead=True)

    def _leave_others(self, wire: _Wire) -> None:
        now = self._kernel.now()
        for other in self._wires:
            if other is not wire and isinstance(other.phase, Open):
                other.phase.close(Close(CloseCode.BYE, 0, "gone over to another channel"), now)

    def _open(self, hello: Hello, *, instead: bool = False) -> None:
        wire: _Wire
        weather, kind = self._weather()
        link = join(
            self._kernel,
            self._random,
            weather,
            kind,
            arrived=lambda end, data, number=None: self._arrived(wire, end, data, number),
            broken=lambda end: self._broken(wire, end),
        )
        link.channel = self._gateway.dial(link, kind)
        phase = Dialing(hello, mapping=kind.mapping, now=self._kernel.now())
        self._dialled += 1
        label = hello.link or ""
        wire = _Wire(self._dialled, label, link, kind.mapping, phase, instead=instead)
        self._wires.append(wire)
        if not link.channel:
            link.cut()
        self._flush()

    def _arrived(self, wire: _Wire, end: End, data: bytes, number: int | None) -> None:
        if end is End.GATEWAY:
            self._gateway.arrived(wire.link.channel, data, number)
        elif wire in self._wires and self._session is not None:
            self._hear(self._session, wire, data, number)
            self._turn()

    def _broken(self, wire: _Wire, end: End) -> None:
        if end is End.GATEWAY:
            self._gateway.broken(wire.link.channel)
        elif wire in self._wires:
            self._hang_up(wire)

    def _hear(self, session: DeviceSession, wire: _Wire, data: bytes, number: int | None) -> None:
        now = self._kernel.now()
        phase = wire.phase
        try:
            if isinstance(phase, Dialing):
                opened = phase.receive(data, now)
                if opened is not None:
                    if not self._welcomed(session, wire, phase.hello, opened.welcome):
                        self._hang_up(wire)
                        return
                    wire.phase = opened.connection
                    if wire.instead:
                        self._leave_others(wire)
                    self._take(session, wire, opened.frames)
            elif number is None:
                self._take(session, wire, phase.receive(data, now))
            else:
                self._take(session, wire, phase.receive_unit(data, number, now))
        except HopError as error:
            if isinstance(wire.phase, Open):
                wire.phase.close(Close(CloseCode(error.hop_code), 0, str(error)), now)

    def _take(self, session: DeviceSession, wire: _Wire, frames: list[Frame]) -> None:
        now = self._kernel.now()
        self.seen.update(f.key for f in frames if isinstance(f, MessageFrame) and f.key)
        if wire.mapping.ordered:
            # Elsewhere the link itself makes two of one.
            count = sum(isinstance(frame, MessageFrame) for frame in frames)
            self.carried[wire.label, now // DAY] += count
        session.received(frames, now)

    def _welcomed(
        self, session: DeviceSession, wire: _Wire, hello: Hello, welcome: Welcome
    ) -> bool:
        if hello.join:
            if not session.joined(hello, welcome):
                return False
            session.link_up(wire.number, wire.label)
            return True
        if not session.welcomed(hello, welcome, self._kernel.now(), reliable=wire.mapping.ordered):
            return False
        session.link_up(wire.number, wire.label)
        if self._random.random() < self._another:
            delay = self._random.randint(0, 20 * SECOND)
            self._kernel.after(delay, self._dial_another)
        return True

    def _hang_up(self, wire: _Wire) -> None:
        """A channel is gone: go on with the others, or try again before long."""
        wire.link.close(End.DEVICE)
        self._wires.remove(wire)
        session = self._session
        if session is None:
            return
        if any(isinstance(other.phase, Open) for other in self._wires):
            session.rerouted(wire.number)
            if self._random.random() < self._another:
                self._kernel.after(self._random.randint(0, 2 * SECOND), self._dial_another)
            self._kernel.after(0, self._turn)
            return
        session.lost()
        if not self._wires:
            delay = self._random.randint(0, 2 * SECOND)
            self._kernel.after(delay, lambda: self._redial(session))

    def _redial(self, session: DeviceSession) -> None:
        if session is self._session:
            self._dial()

    def _crash(self) -> None:
        self.crashes += 1
        self._session = None
        self._inbox = self._inbox.crash()
        wires, self._wires = self._wires, []
        for wire in wires:
            wire.link.cut()
        self._kernel.after(self._random.randint(0, 5 * SECOND), self.start)

    def _turn(self) -> None:
        """Draw the consequences of what happened."""
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
            for letter in self._unsent:
                self._queue(session, letter)
            self._use_ranked_topics(session)
            if self._transactional:
                for message in session.fresh(now):
                    self._show(message)
                    reply = answer_to(message, now)
                    if reply is not None:
                        self._queue(session, Letter(*reply))
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
                # Best effort is not stored: it leaves now or never.
                self._unsent = []
        if not self._writing or change is not None:
            self._hear_what_happened(session)
        self._watch_expiry(session)
        self._flush()

    def _hear_what_happened(self, session: DeviceSession) -> None:
        for happening in session.happenings():
            self.talk.heard(happening)
            if isinstance(happening, Refused):
                self.refused.append(happening.refusal)
                self._asked.pop(happening.key, None)
            elif isinstance(happening, Decided):
                self.claims.hear(happening)
            elif isinstance(happening, LinkSpent):
                self._close_spent(happening)
            elif isinstance(happening, Answered):
                reply = answer_to(happening.message, self._kernel.now())
                if reply is not None:
                    self._unsent.append(Letter(*reply))
                    self._kernel.after(0, self._turn)
            elif isinstance(happening, Fetched):
                self._fetched(session, happening)
            elif isinstance(happening, Answer):
                # It is shown when it is durable that it may have been.
                self._answers.append(happening)

    def _use_ranked_topics(self, session: DeviceSession) -> None:
        answered, self._answered = self._answered, []
        for answer in answered:
            self._see(session, answer)
        glances, self._glances = self._glances, []
        for topic, wanted in glances:
            self._glance(session, topic, wanted)
        session.expire(self._kernel.now())

    def _glance(self, session: DeviceSession, topic: str, wanted: int | None) -> None:
        now = self._kernel.now()
        if not any(isinstance(wire.phase, Open) for wire in self._wires):
            self._answers.append(Answer(LOCAL, session.ranked.read(topic, wanted, now)))
            return
        key = session.ranked.look(topic, wanted, now)
        self._asked[key] = (topic, wanted)
        patience = self._random.choice((SECOND, 10 * SECOND, 60 * SECOND))
        self._kernel.after(patience, lambda: self._lose_patience(session, key))

    def _lose_patience(self, session: DeviceSession, key: int) -> None:
        if session is not self._session or key not in self._asked:
            return
        if self._writing:
            self._kernel.after(self._write_time, lambda: self._lose_patience(session, key))
            return
        topic, wanted = self._asked[key]
        messages = session.ranked.read_instead(key, topic, wanted, self._kernel.now())
        if messages is not None:
            del self._asked[key]
            self._answers.append(Answer(LOCAL, messages))
            self._turn()

    def _see(self, session: DeviceSession, answer: Answer) -> None:
        """What a look shows; the application is done with it at once."""
        if answer.key != LOCAL:
            self._asked.pop(answer.key, None)
            self.empty_looks = 0 if answer.messages else self.empty_looks + 1
        self.looked.append(Looked(answer.key, [message.key for message in answer.messages]))
        for message in answer.messages:
            self._show(message)
            session.finished(message)

    def _watch_expiry(self, session: DeviceSession) -> None:
        due = session.next_expiry()
        if due is not None and due != self._expires:
            self._expires = due
            self._kernel.at(max(due, self._kernel.now() + 1), self._turn)

    def _attend(self, session: DeviceSession) -> None:
        """A plain application takes its time over one message after the other."""
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
                self._unsent.append(Letter(*reply))
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
        arrival = Arrival(number, message.key, int(message.redelivered))
        if self._transactional:
            self._batch.append(arrival)
        else:
            self._screen.append(arrival)

    def _write(
        self,
        session: DeviceSession,
        change: Change,
        batch: list[Arrival],
        queued: int,
        talked: tuple[list[Made], list[Ending]],
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
        # Now it is in the outbox; had we died before, the application would say it again.
        self._unsent = self._unsent[queued:]
        if dies:
            self._crash()
            return
        self._writing = False
        session.committed(change.n)
        if self.flows is not None:
            self.flows.committed(opening)
        self._answered += self._answers
        self._answers = []
        self._turn()

    def _flush(self) -> None:
        """Say what may be said now; end a channel that has said its last word."""
        session = self._session
        if session is None:
            return
        now = self._kernel.now()
        fed: _Wire | None = None
        open_wires = [wire for wire in self._wires if isinstance(wire.phase, Open)]
        if open_wires:
            frames = session.frames(piece=self._drained)
            speaking, *others = reversed([wire.phase for wire in open_wires])
            assert isinstance(speaking, Open)
            speaking.send(frames, now)
            if frames and isinstance(frames[-1], Piece) and frames[-1].body:
                fed = open_wires[-1]
            for other in others:
                assert isinstance(other, Open)
                other.overheard(frames)
            self._count_sent(open_wires[-1], frames)
            fed = self._send_chosen(session, open_wires) or fed
            if session.stuck:
                # What may not be sent again is taken back in a new contact.
                for wire in open_wires:
                    assert isinstance(wire.phase, Open)
                    wire.phase.close(Close(CloseCode.BYE, 0, "to begin anew"), now)
        for wire in list(self._wires):
            for data in wire.phase.data_to_send():
                wire.link.write(End.DEVICE, data)
            if fed is wire:
                self._drained = False
                drained = partial(self._piece_left, session)
                self._kernel.at(wire.link.drained_at(End.DEVICE), drained)
            if wire.phase.closed is not None:
                self._hang_up(wire)
                continue
            due = wire.phase.next_timeout()
            if due is not None and due != wire.watched:
                wire.watched = due
                self._kernel.at(due, partial(self._timeout, wire))

    def _send_chosen(self, session: DeviceSession, wires: list[_Wire]) -> _Wire | None:
        """Send what goes over particular channels; returns the one that got a piece."""
        fed: _Wire | None = None
        routed = session.routed(piece=self._drained)
        for wire in wires:
            frames = routed.get(wire.number)
            if frames:
                assert isinstance(wire.phase, Open)
                wire.phase.send(frames, self._kernel.now())
                self._count_sent(wire, frames)
                if isinstance(frames[-1], Piece) and frames[-1].body:
                    fed = wire
        return fed

    def _count_sent(self, wire: _Wire, frames: list[Frame]) -> None:
        count = sum(isinstance(frame, MessageFrame) and ordinary(frame) for frame in frames)
        self.sent_over[wire.label, self._kernel.now() // DAY] += count

    def _close_spent(self, spent: LinkSpent) -> None:
        """A link has reached a limit: it ends, unless it is the last one."""
        open_wires = [wire for wire in self._wires if isinstance(wire.phase, Open)]
        for wire in open_wires:
            if wire.number == spent.channel and len(open_wires) > 1:
                assert isinstance(wire.phase, Open)
                close = Close(CloseCode.BYE, 0, "it has reached a limit of the device")
                wire.phase.close(close, self._kernel.now())

    def _piece_left(self, session: DeviceSession) -> None:
        if session is self._session:
            self._drained = True
            self._turn()

    def _timeout(self, wire: _Wire) -> None:
        now = self._kernel.now()
        wire.watched = None
        if wire in self._wires:
            due = wire.phase.next_timeout()
            if due is not None and due <= now:
                wire.phase.timeout(now)
            self._flush()


class Letter(NamedTuple):
    """A message that the application wants sent."""

    body: bytes
    topic: str | None
    headers: Headers
    expects: Expectation | None = None
    wishes: Preferences | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """What one look has shown."""

    asked: int
    """The key of the look, or `LOCAL`."""
    keys: list[int]


class _Wire:
    """One channel, seen from the device."""

    __slots__ = ("instead", "label", "link", "mapping", "number", "phase", "watched")

    def __init__(
        self,
        number: int,
        label: str,
        link: Link,
        mapping: Mapping,
        phase: Dialing,
        *,
        instead: bool,
    ) -> None:
        self.number = number
        self.instead = instead
        """The device goes over to it, and leaves the others."""
        self.label = label
        self.link = link
        self.mapping = mapping
        self.phase: Dialing | Open = phase
        self.watched: Micros | None = None
