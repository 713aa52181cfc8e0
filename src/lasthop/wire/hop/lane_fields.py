"""The fields of a handshake that name lanes (docs/hop-protocol.md, "Lanes").

Encoders raise ValueError to their caller; decoders raise MalformedFrame, which is the peer's error.
"""

from __future__ import annotations

from collections.abc import Iterator

from lasthop.errors import MalformedFrame
from lasthop.wire.hop.frames import MAX_LANES, MAX_RANGES, LaneClaim, LaneClaims, Ranges
from lasthop.wire.hop.kinds import HopKind, absolute_ranges, read_numbers, write_ranges
from lasthop.wire.hop.layout import FIRST_LANE
from lasthop.wire.varint import encode_varint

_MOST_NUMBERS = 1 + 5 * MAX_LANES + 4 * MAX_RANGES
"""The largest number of numbers in one field: all lanes, and as many pairs as all of them may
have together."""


class _LaneNumbers:
    """The numbers of a field, taken one after the other."""

    def __init__(self, data: bytes) -> None:
        self._left = iter(read_numbers(data, _MOST_NUMBERS))
        self._pairs = 0

    def more(self) -> Iterator[int]:
        """Return what is left, to begin the next lane with."""
        return self._left

    def take(self) -> int:
        number = next(self._left, None)
        if number is None:
            raise MalformedFrame("a field ends inside a lane")
        return number

    def ranges(self, base: int) -> Ranges:
        count = self.take()
        self._pairs += count
        # docs/hop-protocol.md, "Lanes": the limit holds for all lanes of a field together.
        if self._pairs > 2 * MAX_RANGES or count > MAX_RANGES:
            raise MalformedFrame("there are more ranges of lanes than a field may have")
        return absolute_ranges(base, [self.take() for _ in range(2 * count)])


class _LaneOrder:
    """Lanes ascend by their numbers, and there are not too many of them."""

    def __init__(self) -> None:
        self._last = 0
        self._count = 0

    def check(self, lane: int) -> int:
        self._count += 1
        if lane >> 1 <= self._last or lane < FIRST_LANE or self._count > MAX_LANES:
            raise MalformedFrame("lanes must ascend, and there may be 64 of them", lane=lane)
        self._last = lane >> 1
        return lane


def _write_numbers(*numbers: int) -> bytes:
    return b"".join(map(encode_varint, numbers))


def _write_pairs(base: int, ranges: Ranges) -> bytes:
    return encode_varint(len(ranges)) + write_ranges(base, ranges)


def _write_claims(claims: LaneClaims, *, delivered: bool) -> bytes:
    out = [encode_varint(claims.seen)]
    for claim in claims.lanes:
        out.append(_write_numbers(claim.lane, claim.received))
        if delivered:
            out.append(encode_varint(claim.received - claim.delivered))
        out.append(_write_pairs(claim.received, claim.individual))
        if claim.lane & 1:
            done = claim.delivered if delivered else claim.received
            out.append(_write_pairs(done, claim.finished))
        elif claim.finished:
            raise ValueError("only a lane without order has numbers finished beyond a gap")
    return b"".join(out)


def _read_claims(data: bytes, *, delivered: bool) -> LaneClaims:
    numbers, order = _LaneNumbers(data), _LaneOrder()
    seen = numbers.take()
    claims = []
    for lane in numbers.more():
        order.check(lane)
        if lane >> 1 >= seen:
            raise MalformedFrame("a lane is named that was not seen", lane=lane)
        received = numbers.take()
        behind = numbers.take() if delivered else 0
        if behind > received:
            raise MalformedFrame("a lane has less than nothing delivered", lane=lane)
        individual = numbers.ranges(received)
        finished: Ranges = ()
        if lane & 1:
            finished = numbers.ranges(received - behind)
        claims.append(
            LaneClaim(lane, received, received - behind if delivered else 0, individual, finished)
        )
    return LaneClaims(seen, tuple(claims))


def _write_dropped(lanes: tuple[tuple[int, Ranges], ...]) -> bytes:
    return b"".join(encode_varint(lane) + _write_pairs(-1, ranges) for lane, ranges in lanes)


def _read_dropped(data: bytes) -> tuple[tuple[int, Ranges], ...]:
    numbers, order = _LaneNumbers(data), _LaneOrder()
    return tuple((order.check(lane), numbers.ranges(-1)) for lane in numbers.more())


def _write_counts(lanes: tuple[tuple[int, int], ...]) -> bytes:
    return b"".join(_write_numbers(lane, count) for lane, count in lanes)


def _read_counts(data: bytes) -> tuple[tuple[int, int], ...]:
    numbers, order = _LaneNumbers(data), _LaneOrder()
    return tuple((order.check(lane), numbers.take()) for lane in numbers.more())


def _write_held(lanes: tuple[tuple[int, int, Ranges], ...]) -> bytes:
    out = []
    for lane, count, ranges in lanes:
        out.append(_write_numbers(lane, count))
        if lane & 1:
            out.append(_write_pairs(count, ranges))
        elif ranges:
            raise ValueError("only a lane without order has numbers finished beyond a gap")
    return b"".join(out)


def _read_held(data: bytes) -> tuple[tuple[int, int, Ranges], ...]:
    numbers, order = _LaneNumbers(data), _LaneOrder()
    held: list[tuple[int, int, Ranges]] = []
    for lane in numbers.more():
        order.check(lane)
        count = numbers.take()
        held.append((lane, count, numbers.ranges(count) if lane & 1 else ()))
    return tuple(held)


def _write_ids(lanes: tuple[int, ...]) -> bytes:
    return _write_numbers(*lanes)


def _read_ids(data: bytes) -> tuple[int, ...]:
    order = _LaneOrder()
    return tuple(order.check(lane) for lane in _LaneNumbers(data).more())


LANES_IN_HELLO = HopKind(
    lambda claims: _write_claims(claims, delivered=True),
    lambda data: _read_claims(data, delivered=True),
)
LANES_IN_WELCOME = HopKind(
    lambda claims: _write_claims(claims, delivered=False),
    lambda data: _read_claims(data, delivered=False),
)
LANE_DROPPED = HopKind(_write_dropped, _read_dropped)
LANE_COUNTS = HopKind(_write_counts, _read_counts)
LANE_HELD = HopKind(_write_held, _read_held)
LANE_IDS = HopKind(_write_ids, _read_ids)
