"""A set of ranges behaves like a set of numbers."""

from hypothesis import given, strategies as st

from lasthop.wire.hop.frames import Ranges
from lasthop.wire.hop.ranges import RangeSet

steps = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=12)


def numbers(ranges: Ranges) -> set[int]:
    return {number for start, stop in ranges for number in range(start, stop)}


def as_ranges(found: set[int]) -> Ranges:
    starts = sorted(number for number in found if number - 1 not in found)
    stops = sorted(number + 1 for number in found if number + 1 not in found)
    return tuple(zip(starts, stops, strict=True))


@given(steps)
def test_adding_says_what_is_new(pairs: list[tuple[int, int]]) -> None:
    ranges = RangeSet()
    model: set[int] = set()
    for start, size in pairs:
        added = set(range(start, start + size))
        assert numbers(ranges.add(start, start + size)) == added - model
        model |= added
        assert ranges.ranges() == as_ranges(model)
        assert ranges.stop == max(model) + 1
    assert bool(ranges) == bool(model)
    assert all((number in ranges) == (number in model) for number in range(60))
    assert RangeSet(ranges.ranges()).ranges() == ranges.ranges()
    assert ranges.ranges(2) == ranges.ranges()[:2]


@given(steps, st.integers(0, 50))
def test_gaps_are_what_is_missing(pairs: list[tuple[int, int]], first: int) -> None:
    ranges = RangeSet()
    for start, size in pairs:
        ranges.add(start, start + size)
    ranges.drop_below(first)
    model = {number for number in numbers(ranges.ranges()) if number >= first}
    assert numbers(ranges.ranges()) == model
    assert numbers(ranges.gaps(first)) == set(range(first, ranges.stop)) - model


@given(steps, st.integers(0, 50))
def test_taking_runs_to_the_first_gap(pairs: list[tuple[int, int]], first: int) -> None:
    ranges = RangeSet()
    for start, size in pairs:
        ranges.add(start, start + size)
    model = numbers(ranges.ranges())
    expected = first
    while expected in model:
        expected += 1
    assert ranges.take_from(first) == expected
    assert numbers(ranges.ranges()) == {number for number in model if number >= expected}
