"""The messages between a gateway and its filter worker: a length of four bytes, then msgpack."""

from __future__ import annotations

from typing import Final

import msgspec

from lasthop_xml.xpath.reading import Reading

HEAD: Final = 4


class Learn(msgspec.Struct, tag="learn", array_like=True):
    """Tells the worker of expressions that were added (True) or removed (False), each with its app.
    The worker sends no answer."""

    changes: list[tuple[str, str, bool]]


class Match(msgspec.Struct, tag="match", array_like=True):
    """Asks the worker to match a body with all expressions of an app. The answer is a `Reading`."""

    app: str
    content_type: str
    body: bytes


encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(Learn | Match).decode
decode_reading = msgspec.msgpack.Decoder(Reading).decode


def frame(message: Learn | Match | Reading) -> bytes:
    """Return a message with its length, as it is sent."""
    data = encode(message)
    return len(data).to_bytes(HEAD) + data
