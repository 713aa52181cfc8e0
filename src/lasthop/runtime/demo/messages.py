"""The bodies of the demo's messages: the sender's name, a number, and padding."""

from __future__ import annotations

import msgspec

SIZE = 256
"""The size of a body in bytes: that of a notification with its text."""


class DemoMessage(msgspec.Struct, frozen=True):
    """The content of a demo message."""

    publisher: str
    number: int
    filling: str = ""


def write(publisher: str, number: int) -> str:
    """Return a body of `SIZE` bytes with this content."""
    bare = len(msgspec.json.encode(DemoMessage(publisher, number)))
    return msgspec.json.encode(DemoMessage(publisher, number, "." * max(0, SIZE - bare))).decode()


def read(body: bytes) -> DemoMessage | None:
    """Return the content of a body, or None if it is not a message of the demo."""
    try:
        return msgspec.json.decode(body, type=DemoMessage)
    except msgspec.DecodeError:
        return None
