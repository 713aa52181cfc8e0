"""Decoding of control frames: the part of the decoder that needs no memory of the channel. The
payloads are those of the table in docs/hop-protocol.md, "Frames and mappings"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lasthop.errors import DamagedWrite, MalformedFrame, UnsupportedFrame
from lasthop.wire.hop import checksums, fields, layout
from lasthop.wire.hop.frames import (
    MAX_RANGES,
    MAX_WAY,
    MAX_WAYS,
    VERSION,
    Ack,
    Close,
    CloseCode,
    Credit,
    Dropped,
    Ending,
    EndStatus,
    Feature,
    Frame,
    Hello,
    LaneFrame,
    Last,
    OtherWays,
    Piece,
    Ping,
    Pong,
    Skip,
    Taken,
    Time,
    Wanted,
    Welcome,
)
from lasthop.wire.hop.kinds import TEXTS, absolute_ranges, decode_text, read_numbers, split_finished
from lasthop.wire.varint import MAX_VALUE, read_varint

MAX_OFFSET = MAX_VALUE >> 1
"""The largest offset in a transfer: PIECE carries it with one more bit in a number of 63 bits."""

MAX_CHECKSUM = 2**32 - 1


def read(kind: int, payload: bytes) -> Frame | None:
    """Decode the payload of a frame of type `kind`; return None when the type is unknown and
    ignorable. Raise HopError."""
    reader = _READERS.get(kind)
    if reader is not None:
        return reader(payload)
    # docs/hop-protocol.md, "Frames and mappings": the mark of a bundle is no type of a frame.
    if kind == layout.BUNDLE:
        raise MalformedFrame("a bundle is inside of a stream or of another bundle")
    # docs/hop-protocol.md, "Frames and mappings": an unknown frame is ignored below 0x40 only.
    if kind >= layout.CRITICAL:
        raise UnsupportedFrame("a frame that must be understood has an unknown type", type=kind)
    return None


def read_advance(payload: bytes) -> int:
    """Return by how much an ADVANCE frame moves the counts of both directions; raise MalformedFrame
    if it does not advance."""
    if not payload:
        return 1
    (count,) = _exactly(1, "ADVANCE", payload)
    if count == 0:
        raise MalformedFrame("an ADVANCE does not advance")
    return count


def _hello(payload: bytes) -> Hello:
    if len(payload) < 2:
        raise MalformedFrame("a HELLO has no versions")
    lowest, highest = payload[0], payload[1]
    if not lowest <= VERSION <= highest:
        # The fields may follow the rules of another version, so they are not read.
        raise UnsupportedFrame("no common version", lowest=lowest, highest=highest)
    checked = checksums.check_seal(payload)
    found = fields.HELLO.read(payload[2:])
    _insist_on_seal(found, checked)
    if "app" not in found or "device" not in found:
        raise MalformedFrame("a HELLO does not say which app and device it is from")
    named = "incarnation" in found
    # docs/hop-protocol.md, "Handshake and persistence": counts belong to an epoch, and an epoch to
    # an incarnation.
    if named != ("epoch" in found):
        raise MalformedFrame("an incarnation and an epoch must come together or not at all")
    if not named and not found.keys().isdisjoint(
        {"received", "delivered", "individual", "dropped", "lanes", "lane_dropped"}
    ):
        raise MalformedFrame("a HELLO has counts but names no epoch")
    return Hello(**found, lowest=lowest, highest=highest)


def _welcome(payload: bytes) -> Welcome:
    if not payload:
        raise MalformedFrame("a WELCOME has no version")
    if payload[0] != VERSION:
        raise UnsupportedFrame("no common version", version=payload[0])
    checked = checksums.check_seal(payload)
    found = fields.WELCOME.read(payload[1:])
    _insist_on_seal(found, checked)
    if "incarnation" not in found or "epoch" not in found:
        raise MalformedFrame("a WELCOME does not say which incarnation and epoch hold")
    return Welcome(**found, version=payload[0])


def _insist_on_seal(found: dict[str, Any], checked: bool) -> None:
    # Whoever has the feature adds the checksum: if there is none, its tag was damaged.
    if found.get("features", 0) & Feature.CHECKSUMS and not checked:
        raise DamagedWrite(checksums.CHANGED)


def _close(payload: bytes) -> Close:
    code, pos = read_varint(payload, 0)
    retry_after, pos = read_varint(payload, pos)
    known = CloseCode(code) if code in _CLOSE_CODES else code
    return Close(known, retry_after, decode_text(payload[pos:]))


def _ack(payload: bytes) -> Ack:
    numbers = read_numbers(payload, 2 + 2 * MAX_RANGES)
    if len(numbers) < 2:
        raise MalformedFrame("an ACK must have a received and a delivered count")
    received, delivered = numbers[:2]
    return Ack(received, delivered, absolute_ranges(received, numbers[2:]))


def read_lane_frame(lane: int, kind: int, payload: bytes) -> LaneFrame:
    """Decode a frame inside LANE, but for an ADVANCE, which takes the counts of the channel; raise
    HopError."""
    if kind == layout.LAST:
        (number,) = _exactly(1, "LAST", payload)
        return LaneFrame(lane, Last(number))
    if kind == layout.ACK and lane & 1:
        return LaneFrame(lane, _unordered_ack(payload))
    reader = _IN_LANES.get(kind)
    if reader is None:
        raise MalformedFrame("a frame of this type is never about a lane", type=kind)
    return LaneFrame(lane, reader(payload))


def _unordered_ack(payload: bytes) -> Ack:
    numbers = read_numbers(payload, 3 + 4 * MAX_RANGES)
    if len(numbers) < 2:
        raise MalformedFrame("an ACK must have a received and a delivered count")
    received, delivered = numbers[:2]
    individual, rest = split_finished(received, numbers[2:])
    finished = absolute_ranges(delivered, rest)
    if max(len(individual), len(finished)) > MAX_RANGES:
        raise MalformedFrame("there are more numbers than a list may have", most=MAX_RANGES)
    return Ack(received, delivered, individual, finished)


def _skip(payload: bytes) -> Skip:
    numbers = read_numbers(payload, 2)
    if not numbers:
        raise MalformedFrame("a SKIP has no number")
    first = numbers[0]
    count = numbers[1] + 1 if len(numbers) > 1 else 1
    if first + count > MAX_VALUE:
        raise MalformedFrame("the numbers in a SKIP exceed 63 bits")
    return Skip(first, count)


def _dropped(payload: bytes) -> Dropped:
    ranges = absolute_ranges(-1, read_numbers(payload, 2 * MAX_RANGES))
    if not ranges:
        raise MalformedFrame("a DROPPED has no number")
    return Dropped(ranges)


def _credit(payload: bytes) -> Credit:
    return Credit(*_exactly(2, "CREDIT", payload))


def _time(payload: bytes) -> Time:
    return Time(*_exactly(2, "TIME", payload))


def _wanted(payload: bytes) -> Wanted:
    links = TEXTS.read(payload)
    if not links:
        raise MalformedFrame("a WANTED names no link")
    return Wanted(links)


def _ways(payload: bytes) -> OtherWays:
    texts = TEXTS.read(payload)
    ways = tuple(zip(texts[::2], texts[1::2], strict=False))
    if len(texts) % 2 or len(ways) > MAX_WAYS:
        raise MalformedFrame("a WAYS has a link and a URL for each of at most 16 ways")
    if any(not url or len(url.encode()) > MAX_WAY for _, url in ways):
        raise MalformedFrame("a WAYS has a URL that is empty or too long")
    return OtherWays(ways)


def _piece(payload: bytes) -> Piece:
    transfer, pos = read_varint(payload, 0)
    place, pos = read_varint(payload, pos)
    offset, stream = place >> 1, bool(place & 1)
    return Piece(transfer, offset, payload[pos:], stream)


def _taken(payload: bytes) -> Taken:
    transfer, offset, more = _exactly(3, "TAKEN", payload)
    if offset + more > MAX_OFFSET:
        raise MalformedFrame("the offsets in a TAKEN exceed 62 bits")
    return Taken(transfer, offset, offset + more)


def _ending(payload: bytes) -> Ending:
    transfer, pos = read_varint(payload, 0)
    how, pos = read_varint(payload, pos)
    status, stream = how >> 1, bool(how & 1)
    size, pos = read_varint(payload, pos)
    checksum, pos = read_varint(payload, pos)
    if status not in _END_STATUSES:
        raise MalformedFrame("the end of a transfer has an unknown status", status=status)
    if size > MAX_OFFSET or checksum > MAX_CHECKSUM:
        raise MalformedFrame("the size or the checksum of a transfer is too large")
    reason = decode_text(payload[pos:])
    return Ending(transfer, EndStatus(status), size, checksum, reason, stream)


def _ping(payload: bytes) -> Ping:
    _exactly(0, "PING", payload)
    return Ping()


def _pong(payload: bytes) -> Pong:
    _exactly(0, "PONG", payload)
    return Pong()


def _exactly(count: int, name: str, payload: bytes) -> list[int]:
    numbers = []
    pos = 0
    for _ in range(count):
        number, pos = read_varint(payload, pos)
        numbers.append(number)
    if pos != len(payload):
        raise MalformedFrame(f"bytes follow the end of a {name}")
    return numbers


_CLOSE_CODES = frozenset(CloseCode)
_END_STATUSES = frozenset(EndStatus)

_IN_LANES: dict[int, Callable[[bytes], Ack | Skip | Credit | Dropped]] = {
    layout.ACK: _ack,
    layout.SKIP: _skip,
    layout.CREDIT: _credit,
    layout.DROPPED: _dropped,
}
_READERS: dict[int, Callable[[bytes], Frame]] = {
    layout.PING: _ping,
    layout.PONG: _pong,
    layout.TIME: _time,
    layout.WANTED: _wanted,
    layout.WAYS: _ways,
    layout.HELLO: _hello,
    layout.WELCOME: _welcome,
    layout.CLOSE: _close,
    layout.ACK: _ack,
    layout.SKIP: _skip,
    layout.CREDIT: _credit,
    layout.DROPPED: _dropped,
    layout.PIECE: _piece,
    layout.TAKEN: _taken,
    layout.ENDING: _ending,
}
