"""The channels of a device in rehearsal: they are dialled, joined, lost and dialled again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

from lasthop.clock import DAY, SECOND, Micros
from lasthop.device.outgoing import ordinary
from lasthop.device.session import DeviceSession
from lasthop.device.session_events import LinkSpent
from lasthop.errors import HopError
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.interconnects import join
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.link import LinkEnd, RehearsedLink, Weather
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.frames import Close, CloseCode, Frame, Hello, MessageFrame, Piece, Welcome
from lasthop.wire.hop.handshake import Dialing
from lasthop.wire.hop.mapping import Mapping

LINKS = ("sim", "sim1", "sim2")
MOST_WIRES = len(LINKS)
"""The largest number of channels that a device has at once."""


class DeviceLinks:
    """All channels of one device. With the probability `another` the device opens one more channel
    beside the first, and again when one of several is lost."""

    def __init__(
        self,
        kernel: Kernel,
        random: Random,
        gateway: GatewayNode,
        *,
        weather: Callable[[], tuple[Weather, Interconnect]],
        another: float,
        write_time: Micros,
        turn: Callable[[], None],
        redial: Callable[[DeviceSession], None],
    ) -> None:
        """`turn` lets the device act on what came in; `redial` is called when the last channel is
        lost."""
        self._kernel = kernel
        self._random = random
        self._gateway = gateway
        self._weather = weather
        self._another = another
        self._write_time = write_time
        self._turn = turn
        self._redial = redial
        self.session: DeviceSession | None = None
        """The session since the last start of the device; None while the device is down."""
        self._wires: list[DeviceChannel] = []
        """Every channel that is dialled or open; the device sends over the last one that is
        open."""
        self._dialled = 0
        self._drained = True
        self.carried: Counter[tuple[str, int]] = Counter()
        """How many messages have come over reliable channels, by link and day."""
        self.sent_over: Counter[tuple[str, int]] = Counter()
        """How many messages from the device were handed to channels, by link and day."""
        self.seen: set[int] = set()
        """The keys of all messages that came over the device's channels."""

    def begin(self, session: DeviceSession) -> None:
        """Begin with the session of a device that has just started."""
        self.session = session
        self._drained = True

    def cut(self) -> None:
        """Cut all channels, because the device has crashed."""
        self.session = None
        wires, self._wires = self._wires, []
        for wire in wires:
            wire.link.cut()

    @property
    def open(self) -> bool:
        """Whether at least one channel is open."""
        return any(isinstance(wire.phase, Open) for wire in self._wires)

    def dial(self) -> None:
        """Open the first channel, unless there is one already."""
        session = self.session
        if session is None or self._wires:
            return
        if not session.settled:
            # The HELLO may only claim what is durable, so dial when it is. After a restart nothing
            # else may happen that would write it.
            self._turn()
            self._kernel.after(self._write_time, lambda: self._redial(session))
            return
        self._open(session.hello(link="sim"))

    def _dial_another(self) -> None:
        """Open one more channel beside the present ones, so that the device can be reached by it,
        too."""
        session = self.session
        if session is None or len(self._wires) >= MOST_WIRES:
            return
        # A device that may send nothing over the links that it has must not open the same link
        # again.
        used = {wire.label for wire in self._wires}
        hello = session.joining(link=next(label for label in LINKS if label not in used))
        if hello is not None:
            self._open(hello)

    def switch(self) -> None:
        """Change to a new channel; when it is open, the other channels are closed."""
        session = self.session
        hello = session.joining(link="sim") if session is not None else None
        if hello is not None and len(self._wires) < MOST_WIRES:
            self._open(hello, instead=True)

    def _leave_others(self, wire: DeviceChannel) -> None:
        now = self._kernel.now()
        for other in self._wires:
            if other is not wire and isinstance(other.phase, Open):
                other.phase.close(Close(CloseCode.BYE, 0, "gone over to another channel"), now)

    def _open(self, hello: Hello, *, instead: bool = False) -> None:
        wire: DeviceChannel
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
        wire = DeviceChannel(self._dialled, label, link, kind.mapping, phase, instead=instead)
        self._wires.append(wire)
        if not link.channel:
            link.cut()
        self.flush()

    def _arrived(self, wire: DeviceChannel, end: LinkEnd, data: bytes, number: int | None) -> None:
        if end is LinkEnd.GATEWAY:
            self._gateway.arrived(wire.link.channel, data, number)
        elif wire in self._wires and self.session is not None:
            self._hear(self.session, wire, data, number)
            self._turn()

    def _broken(self, wire: DeviceChannel, end: LinkEnd) -> None:
        if end is LinkEnd.GATEWAY:
            self._gateway.broken(wire.link.channel)
        elif wire in self._wires:
            self._hang_up(wire)

    def _hear(
        self, session: DeviceSession, wire: DeviceChannel, data: bytes, number: int | None
    ) -> None:
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

    def _take(self, session: DeviceSession, wire: DeviceChannel, frames: list[Frame]) -> None:
        now = self._kernel.now()
        self.seen.update(f.key for f in frames if isinstance(f, MessageFrame) and f.key)
        if wire.mapping.ordered:
            # On an unordered link, the link itself may duplicate a message.
            count = sum(isinstance(frame, MessageFrame) for frame in frames)
            self.carried[wire.label, now // DAY] += count
        session.received(frames, now)

    def _welcomed(
        self, session: DeviceSession, wire: DeviceChannel, hello: Hello, welcome: Welcome
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

    def _hang_up(self, wire: DeviceChannel) -> None:
        """Drop a channel that is gone: continue with the others, or dial again soon."""
        wire.link.close(LinkEnd.DEVICE)
        self._wires.remove(wire)
        session = self.session
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

    def flush(self) -> None:
        """Send what may be sent now; close a channel that has sent its last frame."""
        session = self.session
        if session is None:
            return
        now = self._kernel.now()
        fed: DeviceChannel | None = None
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
                other.sent_elsewhere(frames)
            self._count_sent(open_wires[-1], frames)
            fed = self._send_chosen(session, open_wires) or fed
            if session.stuck:
                # Messages that may not be sent again are taken back in a new contact.
                for wire in open_wires:
                    assert isinstance(wire.phase, Open)
                    wire.phase.close(Close(CloseCode.BYE, 0, "to begin anew"), now)
        for wire in list(self._wires):
            for data in wire.phase.data_to_send():
                wire.link.write(LinkEnd.DEVICE, data)
            if fed is wire:
                self._drained = False
                drained = partial(self._piece_left, session)
                self._kernel.at(wire.link.drained_at(LinkEnd.DEVICE), drained)
            if wire.phase.closed is not None:
                self._hang_up(wire)
                continue
            due = wire.phase.next_timeout()
            if due is not None and due != wire.watched:
                wire.watched = due
                self._kernel.at(due, partial(self._timeout, wire))

    def _send_chosen(
        self, session: DeviceSession, wires: list[DeviceChannel]
    ) -> DeviceChannel | None:
        """Send the frames that go over particular channels; return the channel that got a piece."""
        fed: DeviceChannel | None = None
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

    def _count_sent(self, wire: DeviceChannel, frames: list[Frame]) -> None:
        count = sum(isinstance(frame, MessageFrame) and ordinary(frame) for frame in frames)
        self.sent_over[wire.label, self._kernel.now() // DAY] += count

    def close_spent(self, spent: LinkSpent) -> None:
        """Close a link that has reached a limit, unless it is the last one."""
        open_wires = [wire for wire in self._wires if isinstance(wire.phase, Open)]
        for wire in open_wires:
            if wire.number == spent.channel and len(open_wires) > 1:
                assert isinstance(wire.phase, Open)
                close = Close(CloseCode.BYE, 0, "it has reached a limit of the device")
                wire.phase.close(close, self._kernel.now())

    def _piece_left(self, session: DeviceSession) -> None:
        if session is self.session:
            self._drained = True
            self._turn()

    def _timeout(self, wire: DeviceChannel) -> None:
        now = self._kernel.now()
        wire.watched = None
        if wire in self._wires:
            due = wire.phase.next_timeout()
            if due is not None and due <= now:
                wire.phase.timeout(now)
            self.flush()


class DeviceChannel:
    """One channel of a rehearsed device, as the device sees it."""

    __slots__ = ("instead", "label", "link", "mapping", "number", "phase", "watched")

    def __init__(
        self,
        number: int,
        label: str,
        link: RehearsedLink,
        mapping: Mapping,
        phase: Dialing,
        *,
        instead: bool,
    ) -> None:
        self.number = number
        self.instead = instead
        """Whether the device changes to this channel and leaves the others."""
        self.label = label
        self.link = link
        self.mapping = mapping
        self.phase: Dialing | Open = phase
        self.watched: Micros | None = None
