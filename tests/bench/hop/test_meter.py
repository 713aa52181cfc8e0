"""What a device of a benchmark is said to have seen."""

from __future__ import annotations

from bench.hop.meter import Meter
from bench.hop.payload import SIZE, number_of, stamp, time_of


def test_a_payload_says_which_one_it_is_and_when_it_was_due() -> None:
    payload = stamp(41, 1234.5)
    assert len(payload) == SIZE
    assert number_of(payload) == 41
    assert time_of(payload) == 1234.5
    assert payload.isascii()
    assert b"\n" not in payload


async def test_everything_once_and_in_order_is_no_fault() -> None:
    meter = Meter()
    here = meter.start(10, 4)
    meter.take([stamp(10), stamp(11)])
    assert not here.done()
    meter.take([stamp(12), stamp(13)])
    await here
    seen = meter.seen()
    assert (seen.received, seen.missing, seen.duplicates, seen.disordered) == (4, 0, 0, 0)


async def test_faults_are_told_apart() -> None:
    meter = Meter()
    here = meter.start(0, 4)
    meter.take([stamp(n) for n in (0, 2, 1, 2)])
    await here
    seen = meter.seen()
    assert (seen.missing, seen.duplicates, seen.disordered) == (1, 1, 1)


async def test_order_is_checked_within_a_lane() -> None:
    meter = Meter()
    here = meter.start(0, 8)
    meter.take([stamp(n) for n in (2, 3, 0, 1, 6, 7, 4, 5)])
    await here
    assert meter.seen(batch=2, lanes=2).disordered == 0
    assert meter.seen().disordered == 4


async def test_delays_are_those_of_the_arrival() -> None:
    meter = Meter()
    here = meter.start(0, 1)
    meter.take([stamp(0, 0.0)])
    await here
    seen = meter.seen(delays=True)
    assert seen.delays == [seen.last]
