"""Tagged fields: the extensible part of HELLO, WELCOME and a message's headers.

A field is a tag byte, a length and a value. The tables at the end are those of docs/hop-protocol.md
("Handshake and persistence", "Messages"), row by row; a field at its default is not sent. Unknown
tags below 0x80 are skipped, so that a newer peer can add fields.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lasthop.errors import MalformedFrame, UnsupportedFrame
from lasthop.wire.hop import kinds
from lasthop.wire.hop.frames import DEFAULT_MAX_FRAME, HEADER_TAGS, Headers
from lasthop.wire.hop.kinds import (
    CREDIT,
    FLAG,
    FRAME_SIZE,
    GAPS,
    INCARNATION,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    HopKind,
    absolute_ranges,
    write_ranges,
)
from lasthop.wire.hop.lane_fields import (
    LANE_COUNTS,
    LANE_DROPPED,
    LANE_HELD,
    LANE_IDS,
    LANES_IN_HELLO,
    LANES_IN_WELCOME,
)
from lasthop.wire.varint import encode_varint, read_varint

CRITICAL = 0x80
"""The first critical tag: an unknown tag from here on closes the channel as unsupported."""


class Field(NamedTuple):
    """One row of a table: its tag, the attribute it carries, the type, and the default that its
    absence means."""

    tag: int
    name: str
    kind: HopKind
    default: object = None


class FieldTable:
    """The fields of one type of frame, by tag."""

    __slots__ = ("_by_tag", "fields")

    def __init__(self, *fields: Field) -> None:
        self.fields = fields
        self._by_tag = {field.tag: field for field in fields}

    def write(self, value: Any, *, omit: str = "") -> bytes:
        """Encode every attribute of `value` that is not at its default, except the one named by
        `omit`."""
        out = bytearray()
        for tag, name, kind, default in self.fields:
            item = getattr(value, name)
            if item == default or name == omit:
                continue
            content = write_ranges(value.received, item) if kind is GAPS else kind.write(item)
            out.append(tag)
            out += encode_varint(len(content))
            out += content
        return bytes(out)

    def read(self, data: bytes) -> dict[str, Any]:
        """Decode the fields that fill `data` into attributes by name; raise HopError."""
        found: dict[str, Any] = {}
        seen = 0
        pos = 0
        size = len(data)
        while pos < size:
            tag = data[pos]
            length, start = read_varint(data, pos + 1)
            pos = start + length
            if pos > size:
                raise MalformedFrame("a field is longer than its frame", tag=tag)
            # docs/hop-protocol.md, "Handshake and persistence": each tag comes at most once.
            if seen >> tag & 1:
                raise MalformedFrame("a field comes twice", tag=tag)
            seen |= 1 << tag
            field = self._by_tag.get(tag)
            if field is not None:
                found[field.name] = field.kind.read(data[start:pos])
            elif tag >= CRITICAL:
                raise UnsupportedFrame(
                    "a field that must be understood has an unknown tag", tag=tag
                )
        if "individual" in found:
            # The received count may come after this field, because fields come in any order.
            received = found.get("received", 0)
            found["individual"] = absolute_ranges(received, found["individual"])
        return found


HELLO = FieldTable(
    Field(1, "app", TEXT),
    Field(2, "device", TEXT),
    Field(3, "token", TEXT),
    Field(4, "features", NUMBER, 0),
    Field(5, "incarnation", INCARNATION),
    Field(6, "epoch", NUMBER),
    Field(7, "received", NUMBER, 0),
    Field(8, "delivered", NUMBER, 0),
    Field(9, "individual", GAPS, ()),
    Field(11, "accept", TEXTS, ()),
    Field(12, "time", NUMBER),
    Field(14, "window", CREDIT),
    Field(15, "preserve", NUMBER),
    Field(16, "max_frame", FRAME_SIZE, DEFAULT_MAX_FRAME),
    Field(17, "link", TEXT),
    Field(18, "network", TEXT),
    Field(19, "heartbeat", NUMBER),
    Field(22, "dropped", NUMBERS, ()),
    Field(23, "assigned", NUMBER),
    Field(24, "storage", NUMBER),
    Field(25, "join", FLAG, False),
    Field(26, "lanes", LANES_IN_HELLO),
    Field(27, "lane_dropped", LANE_DROPPED, ()),
    Field(30, "sending", LANE_IDS, ()),
    # Critical: a gateway that ignored this field would take the probe for the device's new channel.
    Field(0x81, "probe", FLAG, False),
)

WELCOME = FieldTable(
    Field(4, "features", NUMBER, 0),
    Field(5, "incarnation", INCARNATION),
    Field(6, "epoch", NUMBER),
    Field(7, "received", NUMBER, 0),
    Field(9, "individual", GAPS, ()),
    Field(10, "closed", NUMBER, 0),
    Field(11, "accept", TEXTS, ()),
    Field(12, "time", NUMBER),
    Field(13, "peer_time", NUMBER),
    Field(14, "window", CREDIT),
    Field(15, "preserve", NUMBER),
    Field(16, "max_frame", FRAME_SIZE, DEFAULT_MAX_FRAME),
    Field(19, "heartbeat", NUMBER),
    Field(20, "resumed", FLAG, False),
    Field(21, "superseded", NUMBER),
    Field(25, "joined", FLAG, False),
    Field(26, "lanes", LANES_IN_WELCOME),
    Field(27, "lane_closed", LANE_COUNTS, ()),
    Field(28, "found", NUMBER),
    Field(30, "sending", LANE_IDS, ()),
    Field(31, "lane_superseded", LANE_HELD, ()),
)

_DEFAULTS = Headers()

HEADERS = FieldTable(
    *(
        Field(tag, name, getattr(kinds, kind), getattr(_DEFAULTS, name))
        for tag, name, kind in HEADER_TAGS
    )
)
