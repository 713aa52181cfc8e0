"""Links do to bytes what they were told to do, and nothing else."""

from __future__ import annotations

from random import Random

from lasthop.clock import MILLISECOND, SECOND
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.link import LinkEnd, RehearsedLink, Weather


class Ends:
    """Both ends of a link, and what they saw."""

    def __init__(self, weather: Weather, *, stream: bool = True, seed: int = 1) -> None:
        self.kernel = Kernel()
        self.arrived: dict[LinkEnd, list[bytes]] = {LinkEnd.DEVICE: [], LinkEnd.GATEWAY: []}
        self.broken: list[LinkEnd] = []
        self.link = RehearsedLink(
            self.kernel,
            Random(seed),
            weather,
            stream=stream,
            arrived=lambda end, data: self.arrived[end].append(data),
            broken=self.broken.append,
        )

    def settle(self) -> None:
        self.kernel.run(until=lambda: False, limit=60 * SECOND)


def test_a_stream_keeps_every_byte_in_order() -> None:
    ends = Ends(Weather(jitter=100 * MILLISECOND))
    for n in range(50):
        ends.link.write(LinkEnd.DEVICE, bytes([n]) * 20)
    ends.settle()
    assert b"".join(ends.arrived[LinkEnd.GATEWAY]) == b"".join(bytes([n]) * 20 for n in range(50))
    assert len(ends.arrived[LinkEnd.GATEWAY]) > 50


def test_a_reset_falls_after_exactly_the_byte_it_was_put() -> None:
    for limit in range(1, 30):
        ends = Ends(Weather(reset_after=limit))
        ends.link.write(LinkEnd.DEVICE, b"0123456789")
        ends.link.write(LinkEnd.GATEWAY, b"abcdefghij")
        ends.link.write(LinkEnd.DEVICE, b"KLMNOPQRST")
        ends.settle()
        passed = sum(len(b"".join(pieces)) for pieces in ends.arrived.values())
        assert passed == limit
        assert sorted(ends.broken, key=lambda end: end.value) == [LinkEnd.DEVICE, LinkEnd.GATEWAY]


def test_a_cut_loses_what_is_under_way() -> None:
    ends = Ends(Weather())
    ends.link.write(LinkEnd.DEVICE, b"gone")
    ends.link.cut()
    ends.settle()
    assert ends.arrived[LinkEnd.GATEWAY] == []


def test_hanging_up_lets_the_last_words_arrive_first() -> None:
    ends = Ends(Weather(jitter=0))
    ends.link.write(LinkEnd.GATEWAY, b"bye")
    ends.link.close(LinkEnd.GATEWAY)
    ends.settle()
    assert ends.arrived[LinkEnd.DEVICE] == [b"bye"]
    assert ends.broken == [LinkEnd.DEVICE]


def test_datagrams_are_lost_doubled_and_overtaken() -> None:
    weather = Weather(loss=0.3, duplication=0.3, reorder=0.3)
    ends = Ends(weather, stream=False)
    sent = [bytes([n]) for n in range(200)]
    for unit in sent:
        ends.link.write(LinkEnd.DEVICE, unit)
    ends.settle()
    got = ends.arrived[LinkEnd.GATEWAY]
    assert set(got) < set(sent)
    assert len(got) > len(set(got))
    assert got != sorted(got)


def test_after_its_life_a_link_is_broken_at_both_ends() -> None:
    ends = Ends(Weather(lives=SECOND, silent=SECOND))
    ends.settle()
    assert set(ends.broken) == {LinkEnd.DEVICE, LinkEnd.GATEWAY}
