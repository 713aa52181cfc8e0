"""The conversation between the gateway and a worker: frames over a socket pair, each a length and
msgpack."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from lasthop.surrogate.mail import Mail, Verdict

MAX_FRAME = 32 << 20
"""Bytes. A verdict has at most the state, a message and what it sends; a worker that says more
is out of order."""

HEAD = 4


class Begin(msgspec.Struct, tag="begin", array_like=True):
    """Take your place, with this state, which may grow to `limit` bytes."""

    entries: dict[str, bytes]
    limit: int


class Work(msgspec.Struct, tag="work", array_like=True):
    """Deal with these one after the other; at the first failure leave the rest."""

    mails: list[Mail]


class Loaded(msgspec.Struct, tag="loaded", array_like=True):
    """The class is there."""


class Begun(msgspec.Struct, tag="begun", array_like=True):
    """The surrogate is at its desk."""


class Unloadable(msgspec.Struct, tag="unloadable", array_like=True):
    """The class cannot be loaded, or does not take its place."""

    reason: str


class Done(msgspec.Struct, tag="done", array_like=True):
    """What came of an input."""

    number: int
    verdict: Verdict


class InputFailed(msgspec.Struct, tag="failed", array_like=True):
    """Nothing came of an input; `detail` is for the developer's eyes."""

    number: int
    reason: str
    detail: str


Order: TypeAlias = Begin | Work
Report: TypeAlias = Loaded | Begun | Unloadable | Done | InputFailed

encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(Order).decode
decode_report = msgspec.msgpack.Decoder(Report).decode


class FrameTooLong(ValueError):
    """A frame is longer than any may be."""


def frame(message: Order | Report) -> bytes:
    """A message as it travels."""
    data = encode(message)
    if len(data) > MAX_FRAME:
        raise FrameTooLong(f"{len(data)} bytes are too much at once; the limit is {MAX_FRAME}")
    return len(data).to_bytes(HEAD) + data


class Frames:
    """Cuts what comes in into messages, still encoded."""

    def __init__(self) -> None:
        self._data = bytearray()

    def receive(self, data: bytes) -> list[bytes]:
        """The messages that are whole by now; raises `FrameTooLong`."""
        self._data += data
        found: list[bytes] = []
        start = 0
        while len(self._data) - start >= HEAD:
            size = int.from_bytes(self._data[start : start + HEAD])
            if size > MAX_FRAME:
                raise FrameTooLong(f"a frame of {size} bytes; the limit is {MAX_FRAME}")
            end = start + HEAD + size
            if end > len(self._data):
                break
            found.append(bytes(self._data[start + HEAD : end]))
            start = end
        del self._data[:start]
        return found
