"""Ranked topics in the hop protocol: the bodies of LOOK, REPORT and FEED messages.

They travel as the bodies of numbered messages, so that they come once and in order with the
messages that they are about. The bytes are described in docs/hop-protocol.md, "Ranked topics".
"""

from __future__ import annotations

import math
import struct
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

import msgspec

from lasthop.errors import MalformedFrame
from lasthop.wire.hop.fields import Field, FieldTable
from lasthop.wire.hop.kinds import NUMBER, HopKind, read_numbers, read_text, write_text
from lasthop.wire.varint import encode_varint, read_varint

MAX_KEYS: Final = 2**16
"""The largest number of messages that one body names. A device that keeps more of them unread keeps
too many."""

MAX_READS: Final = 4096
"""The largest number of reads without contact in one report: enough for years."""


class Why(IntEnum):
    """Why a device forgets a message of a ranked topic that it kept."""

    RANK = 0
    """The message's rank fell below what is shown; an application that has shown it may react."""
    ROOM = 1
    """A message of higher rank needs the room; the gateway still has this one for a later read."""
    ENDED = 2
    """The subscription to the ranked topic has ended."""


class Look(msgspec.Struct, frozen=True, gc=False):
    """The body of LOOK: the user asks for the best messages; READ(N, queue_size, client_events) in
    the paper."""

    wanted: int | None = None
    """N, the number of messages wanted; None for as many as Max allows."""
    queue_size: int = 0
    """The number of unread messages of the topic on the device, the N included."""
    held: tuple[int, ...] = ()
    """Keys of the best unread messages on the device, best first."""


class OfflineReading(msgspec.Struct, frozen=True, gc=False):
    """A read of a ranked topic that happened on the device without contact."""

    at: int
    """The time of the read by the device's clock, in milliseconds since 1970."""
    wanted: int | None
    keys: tuple[int, ...]


class HeldItem(NamedTuple):
    """A message of a ranked topic that the device keeps, as the device has it."""

    key: int
    rank: float
    expires_at: int | None
    """The message's deadline in milliseconds since 1970; None without one."""


Inventory: TypeAlias = tuple[tuple[str, tuple[HeldItem, ...]], ...]


class Report(msgspec.Struct, frozen=True, gc=False):
    """The body of REPORT: what became of kept messages on the device."""

    reads: tuple[OfflineReading, ...] = ()
    """Reads without contact, all of the topic that the message names."""
    had: tuple[int, ...] = ()
    """Keys of messages that the application has received."""
    lapsed: tuple[int, ...] = ()
    """Keys of messages whose deadline passed before anybody read them."""
    unread: tuple[int, ...] = ()
    """Keys of messages that were to be shown but stay unread and kept, because the reader no longer
    waited."""
    held: Inventory | None = None
    """Everything that the device keeps, by topic; sent when a new epoch begins."""


class ShowKept(NamedTuple):
    """The instruction of FEED to hand these messages to the application now, best first."""

    keys: tuple[int, ...]


class Forget(NamedTuple):
    """The instruction of FEED to keep these messages no longer."""

    why: int
    keys: tuple[int, ...]


class NewRank(NamedTuple):
    """The instruction of FEED that gives a kept message another rank."""

    key: int
    rank: float


class FeedTerms(NamedTuple):
    """The instruction of FEED that says what reads without contact need: the subscription's Max."""

    max: int | None


class TopicWithdrawn(NamedTuple):
    """The instruction of FEED that says that the publisher has withdrawn the topic."""


class FeedEnded(NamedTuple):
    """The instruction of FEED that says that the subscription has ended: forget what is kept of the
    topic."""


Instruction: TypeAlias = ShowKept | Forget | NewRank | FeedTerms | TopicWithdrawn | FeedEnded


def _write_keys(keys: tuple[int, ...]) -> bytes:
    return b"".join(map(encode_varint, keys))


def _read_keys(data: bytes) -> tuple[int, ...]:
    return tuple(read_numbers(data, MAX_KEYS))


def _write_optional(number: int | None) -> bytes:
    """Encode an optional number: None as 0, every other number as one more."""
    return encode_varint(0 if number is None else number + 1)


def _optional(number: int) -> int | None:
    return number - 1 if number else None


def _write_rank(rank: float) -> bytes:
    if not math.isfinite(rank):
        raise ValueError("a rank must be a finite number")
    return struct.pack(">d", rank)


def _read_rank(data: bytes, pos: int) -> tuple[float, int]:
    if pos + 8 > len(data):
        raise MalformedFrame("a rank must have eight bytes")
    (rank,) = struct.unpack_from(">d", data, pos)
    if not math.isfinite(rank):
        raise MalformedFrame("a rank must be a finite number")
    return float(rank), pos + 8


def _write_reads(reads: tuple[OfflineReading, ...]) -> bytes:
    out = bytearray()
    for reading in reads:
        out += encode_varint(reading.at) + _write_optional(reading.wanted)
        out += encode_varint(len(reading.keys)) + _write_keys(reading.keys)
    return bytes(out)


def _read_reads(data: bytes) -> tuple[OfflineReading, ...]:
    reads: list[OfflineReading] = []
    pos = 0
    while pos < len(data):
        if len(reads) == MAX_READS:
            raise MalformedFrame("a report has too many reads", most=MAX_READS)
        at, pos = read_varint(data, pos)
        wanted, pos = read_varint(data, pos)
        count, pos = read_varint(data, pos)
        keys: list[int] = []
        if count > len(data) - pos:
            raise MalformedFrame("a read announces more keys than its report can hold")
        for _ in range(count):
            key, pos = read_varint(data, pos)
            keys.append(key)
        reads.append(OfflineReading(at, _optional(wanted), tuple(keys)))
    return tuple(reads)


def _write_inventory(inventory: Inventory) -> bytes:
    out = bytearray()
    for topic, items in inventory:
        out += write_text(topic) + encode_varint(len(items))
        for item in items:
            out += encode_varint(item.key) + _write_optional(item.expires_at)
            out += _write_rank(item.rank)
    return bytes(out)


def _read_inventory(data: bytes) -> Inventory:
    topics: list[tuple[str, tuple[HeldItem, ...]]] = []
    pos = 0
    while pos < len(data):
        topic, pos = read_text(data, pos)
        count, pos = read_varint(data, pos)
        if count > len(data) - pos:
            raise MalformedFrame("an inventory announces more messages than its bytes can hold")
        items: list[HeldItem] = []
        for _ in range(count):
            key, pos = read_varint(data, pos)
            expires_at, pos = read_varint(data, pos)
            rank, pos = _read_rank(data, pos)
            items.append(HeldItem(key, rank, _optional(expires_at)))
        topics.append((topic, tuple(items)))
    return tuple(topics)


KEYS = HopKind(_write_keys, _read_keys)

_LOOK = FieldTable(
    Field(1, "wanted", NUMBER), Field(2, "queue_size", NUMBER, 0), Field(3, "held", KEYS, ())
)

_REPORT = FieldTable(
    Field(1, "reads", HopKind(_write_reads, _read_reads), ()),
    Field(2, "had", KEYS, ()),
    Field(3, "lapsed", KEYS, ()),
    Field(4, "unread", KEYS, ()),
    Field(5, "held", HopKind(_write_inventory, _read_inventory)),
)


def encode_look(look: Look) -> bytes:
    """Encode the body of a LOOK message."""
    return _LOOK.write(look)


def decode_look(body: bytes) -> Look:
    """Decode the body of a LOOK message; raise MalformedFrame."""
    return Look(**_LOOK.read(body))


def encode_report(report: Report) -> bytes:
    """Encode the body of a REPORT message."""
    return _REPORT.write(report)


def decode_report(body: bytes) -> Report:
    """Decode the body of a REPORT message; raise MalformedFrame."""
    return Report(**_REPORT.read(body))


_SHOW, _FORGET, _RANK, _TERMS, _WITHDRAWN, _ENDED = range(1, 7)


def encode_instructions(instructions: tuple[Instruction, ...]) -> bytes:
    """Encode the body of a FEED message."""
    out = bytearray()
    for instruction in instructions:
        code, content = _instruction(instruction)
        out.append(code)
        out += encode_varint(len(content)) + content
    return bytes(out)


def _instruction(instruction: Instruction) -> tuple[int, bytes]:
    match instruction:
        case ShowKept(keys):
            return _SHOW, _write_keys(keys)
        case Forget(why, keys):
            return _FORGET, encode_varint(why) + _write_keys(keys)
        case NewRank(key, rank):
            return _RANK, encode_varint(key) + _write_rank(rank)
        case FeedTerms(most):
            return _TERMS, _write_optional(most)
        case TopicWithdrawn():
            return _WITHDRAWN, b""
        case FeedEnded():
            return _ENDED, b""


def decode_instructions(body: bytes) -> tuple[Instruction, ...]:
    """Decode the body of a FEED message, without the instructions that only a newer gateway knows;
    raise MalformedFrame."""
    found: list[Instruction] = []
    pos = 0
    while pos < len(body):
        code = body[pos]
        length, start = read_varint(body, pos + 1)
        pos = start + length
        if pos > len(body):
            raise MalformedFrame("an instruction is longer than its message")
        instruction = _read_instruction(code, body[start:pos])
        # docs/hop-protocol.md, "Ranked topics": an unknown instruction is skipped.
        if instruction is not None:
            found.append(instruction)
    return tuple(found)


def _read_instruction(code: int, content: bytes) -> Instruction | None:
    match code:
        case 1:
            return ShowKept(_read_keys(content))
        case 2:
            why, *keys = read_numbers(content, MAX_KEYS + 1) or [0]
            return Forget(why, tuple(keys))
        case 3:
            key, pos = read_varint(content, 0)
            rank, end = _read_rank(content, pos)
            if end != len(content):
                raise MalformedFrame("bytes follow a rank")
            return NewRank(key, rank)
        case 4:
            numbers = read_numbers(content, 1)
            if len(numbers) != 1:
                raise MalformedFrame("the terms of a feed must be one number")
            return FeedTerms(_optional(numbers[0]))
        case 5:
            return TopicWithdrawn()
        case 6:
            return FeedEnded()
        case _:
            return None
