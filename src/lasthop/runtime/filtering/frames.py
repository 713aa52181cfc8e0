"""What a gateway and its filter worker say to each other: a length of four bytes, and msgpack."""

from __future__ import annotations

from typing import Final

import msgspec

from lasthop_xml.xpath.reading import Reading

HEAD: Final = 4


class Learn(msgspec.Struct, tag="learn", array_like=True):
    """Expressions that have come (or else gone), each with its app. Nothing is answered."""

    changes: list[tuple[str, str, bool]]


class Match(msgspec.Struct, tag="match", array_like=True):
    """Match this body with all expressions of an app. The answer is a `Reading`."""

    app: str
    content_type: str
    body: bytes


encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(Learn | Match).decode
decode_reading = msgspec.msgpack.Decoder(Reading).decode


def frame(message: Learn | Match | Reading) -> bytes:
    """A message as it travels."""
    data = encode(message)
    return len(data).to_bytes(HEAD) + data
