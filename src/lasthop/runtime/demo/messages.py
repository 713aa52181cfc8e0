"""What the demo's messages say: who sent them, and their number. The rest is filling."""

from __future__ import annotations

import msgspec

SIZE = 256
"""Bytes of a body: a notification with its text."""


class DemoMessage(msgspec.Struct, frozen=True):
    """The content of a message."""

    publisher: str
    number: int
    filling: str = ""


def write(publisher: str, number: int) -> str:
    """A body of `SIZE` bytes."""
    bare = len(msgspec.json.encode(DemoMessage(publisher, number)))
    return msgspec.json.encode(DemoMessage(publisher, number, "." * max(0, SIZE - bare))).decode()


def read(body: bytes) -> DemoMessage | None:
    """What is in a body; None if it is not one of ours."""
    try:
        return msgspec.json.decode(body, type=DemoMessage)
    except msgspec.DecodeError:
        return None
