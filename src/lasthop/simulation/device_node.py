"""A device in rehearsal: the real session and inbox on virtual time, with an application that keeps
a list of what it has had. It dials, loses its link, dies in the middle of a commit, and comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.device.change import Change
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.message import Message, Refusal
from lasthop.device.session import DeviceSession, Refused
from lasthop.device.terms import Terms
from lasthop.errors import HopError
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.link import End, Link, Weather
from lasthop.simulation.verdict import Arrival
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.frames import Close, CloseCode, Headers, Operation
from lasthop.wire.hop.handshake import Dialing
from lasthop.wire.hop.mapping import Mapping

LOG = "log"
"""Under this name a transactional application keeps what it has had."""


class DeviceNode:
    """One device that lives, dies and comes back.

    A `transactional` application's list is part of the inbox; any other's is outside of it, as if
    it were the screen of the device: what was shown before a crash stays shown.
    """

    def __init__(
        self,
        kernel: Kernel,
        random: Random,
        terms: Terms,
        gateway: GatewayNode,
        *,
        transactional: bool,
        weather: Callable[[], tuple[Weather, bool]],
        crash_at: set[int],
        write_time: Micros = 2 * MILLISECOND,
    ) -> None:
        self._kernel = kernel
        self._random = random
        self._terms = terms
        self._gateway = gateway
        self._transactional = transactional
        self._weather = weather
        self._crash_at = crash_at
        self._write_time = write_time
        self._inbox = MemoryInbox()
        self._session: DeviceSession | None = None
        self._screen: list[Arrival] = []
        self._phase: Dialing | Open | None = None
        self._link: Link | None = None
        self._channel = 0
        self._mapping = Mapping.STREAM
        self._writing = False
        self._batch: list[Arrival] = []
        self._todo: list[Message] = []
        self._attending = False
        self._unsent: list[tuple[bytes, str | None, Headers]] = []
        self.refused: list[Refusal] = []
        self.commits = 0
        self.crashes = 0

    def start(self) -> None:
        """Come (back) to life, and dial."""
        self._session = DeviceSession(self._terms, self._inbox.load())
        self._writing = False
        self._batch = []
        self._todo = []
        self._attending = False
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
        )

    def subscribe(self, topic: str) -> None:
        """Ask for a topic."""
        self._say(b"", topic, Headers(operation=Operation.SUBSCRIBE))

    def send(self, body: bytes, target: str, headers: Headers) -> None:
        """Send a message to others. The application says so again until it is in the outbox."""
        if target.startswith("topic:"):
            self._say(body, target.removeprefix("topic:"), headers)
        else:
            self._say(body, None, headers)

    def _say(self, body: bytes, topic: str | None, headers: Headers) -> None:
        self._unsent.append((body, topic, headers))
        self._turn()

    def _dial(self) -> None:
        session = self._session
        if session is None or self._phase is not None:
            return
        if not session.settled:
            # Only what is durable may be claimed: dial when it is.
            self._kernel.after(self._write_time, lambda: self._redial(session))
            return
        weather, stream = self._weather()
        self._mapping = mapping = Mapping.STREAM if stream else Mapping.UNORDERED
        link = Link(
            self._kernel,
            self._random,
            weather,
            stream=stream,
            arrived=lambda end, data: self._arrived(link, end, data),
            broken=lambda end: self._broken(link, end),
        )
        self._channel = self._gateway.dial(link, mapping)
        link.channel = self._channel
        self._link = link
        self._phase = Dialing(session.hello(link="sim"), mapping=mapping, now=self._kernel.now())
        if not self._channel:
            link.cut()
        self._flush()

    def _arrived(self, link: Link, end: End, data: bytes) -> None:
        if end is End.GATEWAY:
            self._gateway.arrived(link.channel, data)
        elif link is self._link and self._session is not None:
            self._hear(self._session, data)
            self._turn()

    def _broken(self, link: Link, end: End) -> None:
        if end is End.GATEWAY:
            self._gateway.broken(link.channel)
        elif link is self._link:
            self._hang_up()

    def _hear(self, session: DeviceSession, data: bytes) -> None:
        now = self._kernel.now()
        phase = self._phase
        try:
            if isinstance(phase, Dialing):
                opened = phase.receive(data, now)
                if opened is not None:
                    reliable = self._mapping.ordered
                    if not session.welcomed(phase.hello, opened.welcome, now, reliable=reliable):
                        self._hang_up()
                        return
                    self._phase = opened.connection
                    session.received(opened.frames, now)
            elif phase is not None:
                session.received(phase.receive(data, now), now)
        except HopError as error:
            if isinstance(self._phase, Open):
                self._phase.close(Close(CloseCode(error.hop_code), 0, str(error)), now)

    def _hang_up(self) -> None:
        """The channel is gone: try again before long."""
        if self._link is not None:
            self._link.close(End.DEVICE)
        self._link = None
        self._phase = None
        if self._session is not None:
            self._session.lost()
            session = self._session
            delay = self._random.randint(0, 2 * SECOND)
            self._kernel.after(delay, lambda: self._redial(session))

    def _redial(self, session: DeviceSession) -> None:
        if session is self._session:
            self._dial()

    def _crash(self) -> None:
        self.crashes += 1
        self._session = None
        self._inbox = self._inbox.crash()
        if self._link is not None:
            self._link.cut()
        self._link = None
        self._phase = None
        self._kernel.after(self._random.randint(0, 5 * SECOND), self.start)

    def _turn(self) -> None:
        """Draw the consequences of what happened."""
        session = self._session
        if session is None:
            return
        now = self._kernel.now()
        if not self._transactional:
            self._todo += session.ready(now)
            self._attend(session)
        if not self._writing:
            queued = len(self._unsent)
            for body, topic, headers in self._unsent:
                session.queue(now, topic=topic, headers=headers, body=body)
            if self._transactional:
                for message in session.fresh(now):
                    self._show(message)
                    session.finished(message)
            change = session.change()
            if change is not None:
                self._writing = True
                batch, self._batch = self._batch, []
                delay = self._random.randint(0, self._write_time)
                self._kernel.after(delay, lambda: self._write(session, change, batch, queued))
            else:
                # Best effort is not stored: it leaves now or never.
                self._unsent = []
        self.refused += [
            happening.refusal
            for happening in session.happenings()
            if isinstance(happening, Refused)
        ]
        self._flush()

    def _attend(self, session: DeviceSession) -> None:
        """A plain application takes its time over one message after the other."""
        if self._attending or not self._todo:
            return
        self._attending = True
        message = self._todo.pop(0)
        if message.deadline is not None and message.deadline <= self._kernel.now():
            session.lapsed(message)
            taken = 0
        else:
            self._show(message)
            taken = self._random.choice((0, 0, 10 * MILLISECOND, SECOND // 2))
        self._kernel.after(taken, lambda: self._done(session, message))

    def _done(self, session: DeviceSession, message: Message) -> None:
        if session is self._session:
            self._attending = False
            session.finished(message)
            self._turn()

    def _show(self, message: Message) -> None:
        number = int(message.body.rstrip(b"."))
        arrival = Arrival(number, message.key, int(message.redelivered))
        if self._transactional:
            self._batch.append(arrival)
        else:
            self._screen.append(arrival)

    def _write(
        self, session: DeviceSession, change: Change, batch: list[Arrival], queued: int
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
        # Now it is in the outbox; had we died before, the application would say it again.
        self._unsent = self._unsent[queued:]
        if dies:
            self._crash()
            return
        self._writing = False
        session.committed(change.n)
        self._turn()

    def _flush(self) -> None:
        """Say what may be said now; end a channel that has said its last word."""
        session, phase, link = self._session, self._phase, self._link
        if session is None or phase is None or link is None:
            return
        now = self._kernel.now()
        if isinstance(phase, Open):
            phase.send(session.frames(), now)
        for data in phase.data_to_send():
            link.write(End.DEVICE, data)
        if phase.closed is not None:
            self._hang_up()
            return
        due = phase.next_timeout()
        if due is not None:
            self._kernel.at(due, lambda: self._timeout(phase))

    def _timeout(self, phase: Dialing | Open) -> None:
        now = self._kernel.now()
        if phase is self._phase:
            due = phase.next_timeout()
            if due is not None and due <= now:
                phase.timeout(now)
                self._flush()
