"""Every kind of channel in rehearsal, and the change from one to another while messages are in
flight.

The kinds are a stream, ordered units, units that get lost, and HTTP requests, held or polling. The
last two use the product's own `wire.requests` between two ends, each of which may miss any request
or answer. They are drawn with a random generator of their own, so that the rest of a schedule does
not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Protocol

from lasthop.clock import SECOND, Micros
from lasthop.core.session import Session
from lasthop.errors import LasthopError
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.link import LinkEnd, RehearsedLink, Weather
from lasthop.simulation.schedule import Schedule, weather
from lasthop.wire.hop.frames import Frame, MessageFrame
from lasthop.wire.requests.answering import Answering
from lasthop.wire.requests.asking import HeldRequests, Polling, RequestClient, RequestToMake
from lasthop.wire.requests.bodies import unpack

MIXTURES = (
    (Interconnect.STREAM,),
    (Interconnect.STREAM, Interconnect.DATAGRAM),
    (Interconnect.STREAM, Interconnect.LOSSY),
    (Interconnect.LOSSY,),
    (Interconnect.HELD,),
    (Interconnect.HELD, Interconnect.POLLED, Interconnect.STREAM),
    tuple(Interconnect),
)
"""Combinations of the kinds of channels that the devices of one schedule dial."""

OPENING: Micros = 20 * SECOND
"""How long the gateway may hold the request that opens a connection, in microseconds."""


def add_interconnects(schedule: Schedule) -> None:
    """Let the devices of a schedule dial all kinds of channels, and change them."""
    random = Random(schedule.seed ^ 0x1C0)
    schedule.kinds = random.choice(MIXTURES)
    # A window update that gets lost is not repeated, so devices never pause on a lossy link.
    schedule.tight = random.random() < 0.4 and all(kind.lossless for kind in schedule.kinds)
    end = schedule.batches[-1].at
    for name in schedule.devices:
        for _ in range(random.choice((0, 0, 1, 3))):
            schedule.switches.append((random.randint(0, end + 5 * SECOND), name))


def climate(random: Random, kind: Interconnect) -> Weather:
    """Draw the weather of the next channel of this kind. An ordered channel loses nothing before it
    breaks; any HTTP request or answer may get lost, which its sender notices."""
    drawn = weather(random, stream=kind.ordered)
    if kind in (Interconnect.HELD, Interconnect.POLLED):
        lost = random.choice((0.0, 0.05, 0.2))
        return replace(drawn, loss=lost, duplication=0.0, reorder=0.0)
    return drawn


class ArrivalListener(Protocol):
    """A callback for data that arrives at an end, with the unit's number on unordered links."""

    def __call__(self, end: LinkEnd, data: bytes, number: int | None = None) -> None: ...


class Broken(Protocol):
    """A callback for an end that has lost the link."""

    def __call__(self, end: LinkEnd) -> None: ...


def join(
    kernel: Kernel,
    random: Random,
    weather: Weather,
    kind: Interconnect,
    *,
    arrived: ArrivalListener,
    broken: Broken,
) -> RehearsedLink:
    """Return a new link of this kind between a device and the gateway."""
    if kind in (Interconnect.HELD, Interconnect.POLLED):
        every = random.choice((1, 5)) * SECOND if kind is Interconnect.POLLED else None
        return RehearsedRequests(
            kernel, random, weather, every=every, arrived=arrived, broken=broken
        )
    make = OrderedLink if kind is Interconnect.DATAGRAM else RehearsedLink
    return make(
        kernel, random, weather, stream=kind is Interconnect.STREAM, arrived=arrived, broken=broken
    )


class OrderedLink(RehearsedLink):
    """A link that carries whole units in order until it breaks."""

    def _write_datagram(self, end: LinkEnd, data: bytes) -> None:
        self._deliver(end.other, data, max(self._earliest[end.other], self._due()))


class RehearsedRequests(RehearsedLink):
    """A connection over HTTP requests, each of which may be lost or delayed independently."""

    def __init__(
        self,
        kernel: Kernel,
        random: Random,
        weather: Weather,
        *,
        every: Micros | None,
        arrived: ArrivalListener,
        broken: Broken,
    ) -> None:
        super().__init__(kernel, random, weather, stream=False, arrived=arrived, broken=broken)
        self._told: ArrivalListener = arrived
        now = kernel.now()
        self._asking: RequestClient = HeldRequests() if every is None else Polling(now, every=every)
        self._answering = Answering(now, every=every or 0)
        self._opening = True
        self._planned: dict[LinkEnd, Micros | None] = {LinkEnd.DEVICE: None, LinkEnd.GATEWAY: None}

    def write(self, end: LinkEnd, data: bytes) -> None:
        if self._cut or self._ended[end]:
            return
        if end is LinkEnd.GATEWAY:
            self._answering.write([data])
            self._answer()
        elif self._opening:
            opening = HeldRequests()
            opening.write([data])
            (ask,) = (ask for ask in opening.requests(self._kernel.now()) if ask.body)
            self._opening = False
            self._travel(partial(self._asked, ask._replace(number=0, seen=0, wait=OPENING)), 0)
        else:
            self._asking.write([data])
            self._pump()

    def close(self, end: LinkEnd) -> None:
        if self._ended[end] or self._cut:
            self._ended[end] = True
            return
        if end is LinkEnd.DEVICE:
            self._asking.finish()
            self._pump()
        else:
            self._answering.ending = True
            self._answer()
            # Later requests are answered that there is no such connection.
        self._ended[end] = True

    # The device's side of the connection.

    def _pump(self) -> None:
        if self._cut:
            return
        now = self._kernel.now()
        for ask in self._asking.requests(now):
            self._travel(partial(self._asked, ask), ask.number)
        self._plan(LinkEnd.DEVICE, self._asking.next_timeout(), self._pump)

    def _answered(self, number: int, body: bytes) -> None:
        opened = number == 0
        first = opened or self._asking.answered(number, self._kernel.now(), brought=bool(body))
        if first and not self._ended[LinkEnd.DEVICE]:
            for unit in unpack(body):
                self._told(LinkEnd.DEVICE, unit, number)
        self._pump()

    def _refused(self) -> None:
        if not self._cut:
            self._end(LinkEnd.DEVICE)

    def _failed(self, number: int) -> None:
        """Let the device notice that a request had no answer."""
        if self._cut:
            return
        if number == 0 or not self._asking.failed(number, self._kernel.now()):
            self._end(LinkEnd.DEVICE)
        else:
            self._pump()

    # The gateway's side of the connection.

    def _asked(self, ask: RequestToMake) -> None:
        now = self._kernel.now()
        if self._ended[LinkEnd.GATEWAY]:
            self._travel(self._refused, ask.number)
            return
        try:
            new = self._answering.ask(ask.number, seen=ask.seen, wait=ask.wait, now=now)
        except LasthopError:
            self._failed(ask.number)
            return
        for unit in unpack(ask.body) if new else ():
            self._told(LinkEnd.GATEWAY, unit, ask.number)
        self._answer()

    def _answer(self) -> None:
        if self._cut:
            return
        now = self._kernel.now()
        if self._answering.gone(now):
            self._end(LinkEnd.GATEWAY)
            return
        for number, body in self._answering.answers(now):
            self._travel(partial(self._answered, number, body), number)
        self._plan(LinkEnd.GATEWAY, self._answering.next_timeout(), self._answer)

    # The network between both sides.

    def _travel(self, happen: partial[None] | object, number: int) -> None:
        lost = self._random.random() < self._weather.loss
        action = partial(self._failed, number) if lost else happen
        assert callable(action)

        def arrive() -> None:
            if not self._cut:
                action()

        self._kernel.at(self._due(), arrive)

    def _plan(self, end: LinkEnd, due: Micros | None, action: object) -> None:
        """Plan one wake-up of this end for when there may be more to do."""
        assert callable(action)
        planned = self._planned[end]
        if due is None or (planned is not None and planned <= due):
            return
        self._planned[end] = due

        def again() -> None:
            self._planned[end] = None
            if not (self._cut or self._ended[end]):
                action()

        self._kernel.at(due, again)


class Thrift:
    """Checks that the gateway sends nothing again that it knows to have arrived."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def sent(self, session: Session | None, frames: Sequence[Frame]) -> None:
        """Check the frames of a session that the gateway hands to a channel."""
        if session is None:
            return
        lanes = {lane.id: lane.outbound.received for lane in session.every_lane()}
        for frame in frames:
            if type(frame) is not MessageFrame or frame.seq is None:
                continue
            # Of a lane that has closed everything was acknowledged.
            if frame.lane not in lanes or frame.seq < lanes[frame.lane]:
                told = f"{session.device.name} was sent {frame.seq} again, which it acknowledged"
                self.problems.append(told)
