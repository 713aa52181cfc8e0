"""The kinds of channels in rehearsal: they are all used, and bugs planted in them are caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from lasthop.clock import HOUR, MILLISECOND, SECOND, Micros
from lasthop.core.feature import Sender
from lasthop.core.registry import Device, DeviceRecord
from lasthop.core.session import Session
from lasthop.device.session import DeviceSession
from lasthop.simulation.campaign import run_some
from lasthop.simulation.device_links import DeviceLinks
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.interconnects import Thrift, add_interconnects, join
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.link import LinkEnd, Weather
from lasthop.simulation.schedule import draw
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.frames import Credit, Frame, MessageFrame
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.requests.answering import Answering
from lasthop.wire.requests.asking import RequestClient

Patch = pytest.MonkeyPatch

SCHEDULES = 600
"""How many schedules a bug may survive. Most are caught by the first fifty."""


class Ends:
    """Both ends of a link of some kind, and what they saw."""

    def __init__(self, kind: Interconnect, weather: Weather, seed: int = 1) -> None:
        self.kernel = Kernel()
        self.arrived: dict[LinkEnd, list[bytes]] = {LinkEnd.DEVICE: [], LinkEnd.GATEWAY: []}
        self.broken: list[LinkEnd] = []
        self.link = join(
            self.kernel,
            Random(seed),
            weather,
            kind,
            arrived=self._arrived,
            broken=self._broken,
        )
        if kind in (Interconnect.HELD, Interconnect.POLLED):
            self.link.write(LinkEnd.DEVICE, b"hello")
            self.link.write(LinkEnd.GATEWAY, b"welcome")
            self.kernel.run(until=lambda: bool(self.arrived[LinkEnd.DEVICE]), limit=SECOND)
            self.arrived = {LinkEnd.DEVICE: [], LinkEnd.GATEWAY: []}

    def _arrived(self, end: LinkEnd, data: bytes, number: int | None = None) -> None:
        self.arrived[end].append(data)

    def _broken(self, end: LinkEnd) -> None:
        self.broken.append(end)

    def talk(self, units: list[bytes]) -> None:
        """Say this from both ends, a little at a time, and let two minutes pass."""
        now = self.kernel.now()
        for n, unit in enumerate(units):
            for end in LinkEnd:
                when = now + n * 20 * MILLISECOND
                self.kernel.at(when, partial(self.link.write, end, unit))
        self.kernel.run(until=lambda: bool(self.broken), limit=120 * SECOND)


LOSSLESS = [kind for kind in Interconnect if kind.lossless]


@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_what_is_lossless_loses_and_doubles_nothing(kind: Interconnect, loss: float) -> None:
    weather = Weather(jitter=100 * MILLISECOND, loss=loss)
    overtaken = 0
    for seed in range(20):
        ends = Ends(kind, Weather(jitter=100 * MILLISECOND), seed)
        ends.link._weather = weather
        units = [b"%03d" % n for n in range(60)]
        ends.talk(units)
        assert not ends.broken
        for got in ends.arrived.values():
            if kind is Interconnect.STREAM:
                assert b"".join(got) == b"".join(units)
                continue
            assert sorted(got) == units
            overtaken += got != units
    assert (overtaken > 0) is (kind is Interconnect.HELD)


def test_a_connection_that_nobody_uses_ends_at_the_gateway() -> None:
    ends = Ends(Interconnect.HELD, Weather())
    ends.link.close(LinkEnd.DEVICE)
    ends.kernel.run(until=lambda: bool(ends.broken), limit=300 * SECOND)
    assert ends.broken == [LinkEnd.GATEWAY]


def test_a_connection_that_the_gateway_ended_is_not_there_for_the_device() -> None:
    ends = Ends(Interconnect.POLLED, Weather())
    ends.link.close(LinkEnd.GATEWAY)
    ends.kernel.run(until=lambda: bool(ends.broken), limit=300 * SECOND)
    assert ends.broken == [LinkEnd.DEVICE]


def test_schedules_use_every_kind_and_switch(monkeypatch: Patch) -> None:
    dialled: Counter[Interconnect] = Counter()
    switched: Counter[str] = Counter()
    opening, leaving = DeviceLinks._open, DeviceLinks._leave_others
    windows: Counter[int] = Counter()
    receive = Open.receive_unit

    def leave(self: Any, wire: Any) -> None:
        switched["granted"] += 1
        leaving(self, wire)

    def open_one(self: Any, hello: Any, *, instead: bool = False) -> None:
        switched["tried"] += instead
        opening(self, hello, instead=instead)
        dialled[_kind_of(self._wires[-1].link)] += 1 if self._wires else 0

    def unit(self: Open, data: bytes, number: int, now: Micros) -> list[Frame]:
        frames = receive(self, data, number, now)
        windows.update(frame.messages for frame in frames if isinstance(frame, Credit))
        return frames

    monkeypatch.setattr(DeviceLinks, "_open", open_one)
    monkeypatch.setattr(DeviceLinks, "_leave_others", leave)
    monkeypatch.setattr(Open, "receive_unit", unit)
    assert run_some(0, 40, 50, 0).good
    assert all(dialled[kind] > 5 for kind in Interconnect), dialled
    assert switched["granted"] > 10, switched
    assert windows[0] > 0, "nobody asked for a pause over requests"


def _kind_of(link: Any) -> Interconnect:
    asking = getattr(link, "_asking", None)
    if asking is not None:
        polls = type(asking).__name__ == "Polling"
        return Interconnect.POLLED if polls else Interconnect.HELD
    if type(link).__name__ == "OrderedLink":
        return Interconnect.DATAGRAM
    return Interconnect.STREAM if link._stream else Interconnect.LOSSY


def test_a_schedule_is_the_same_again() -> None:
    drawn = []
    for _ in range(2):
        schedule = draw(7)
        add_interconnects(schedule)
        drawn.append((schedule.kinds, schedule.switches, schedule.tight))
    assert drawn[0] == drawn[1]


# Bugs that people make.


def take_units_twice(patch: Patch) -> None:
    """A request that comes again is taken for a new one, and answered with something new."""
    ask = Answering.ask

    def forgetful(self: Any, number: int, *, seen: int, wait: Micros, now: Micros) -> bool:
        self._kept.pop(number, None)
        self._left.discard(number)
        ask(self, number, seen=seen, wait=wait, now=now)
        return True

    patch.setattr(Answering, "ask", forgetful)


def do_not_ask_again(patch: Patch) -> None:
    """A request whose answer got lost is taken for answered."""

    def careless(self: Any, number: int, now: Micros, *, pause: Micros = 0) -> bool:
        self._open.pop(number, None)
        return True

    patch.setattr(RequestClient, "failed", careless)


def count_on_order(patch: Patch) -> None:
    """Numbers and keys are left out where units overtake one another."""
    patch.setattr(Mapping, "ordered", property(lambda self: True))


def leave_without_a_word(patch: Patch) -> None:
    """What left over the channel that a device goes away from is not sent again."""
    patch.setattr(DeviceSession, "rerouted", lambda self, channel=0: None)


MUTATIONS: list[Callable[[Patch], None]] = [
    take_units_twice,
    do_not_ask_again,
    count_on_order,
    leave_without_a_word,
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_caught(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    for seed in range(0, SCHEDULES, 5):
        if not run_some(seed, 5, 50, 0).good:
            return
    pytest.fail(f"{SCHEDULES} schedules found nothing wrong with {mutation.__name__}")


def test_sending_again_what_was_acknowledged_is_noticed() -> None:
    device = Device(1, "app", "phone", DeviceRecord())
    nobody: Any = None
    session = Session(device, preserve=HOUR, sender=Sender(), away_sender=nobody)
    session.lane.outbound.restore(assigned=5, received=3, delivered=3, items=[])
    thrift = Thrift()
    thrift.sent(None, [MessageFrame(0, 1)])
    thrift.sent(session, [MessageFrame(3, 1), MessageFrame(None, 2)])
    assert thrift.problems == []
    thrift.sent(session, [MessageFrame(2, 1)])
    assert thrift.problems == ["phone was sent 2 again, which it acknowledged"]
