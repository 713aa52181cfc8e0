"""The protocol between the gateway and a worker: frames over a socket pair, each a length and
msgpack."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from lasthop.surrogate.mail import Mail, Verdict

MAX_FRAME = 32 << 20
"""The largest size of a frame in bytes: a verdict has at most the state, a message and the messages
it sends, so that a longer frame is a fault of the worker."""

HEAD = 4


class Begin(msgspec.Struct, tag="begin", array_like=True):
    """Gateway to worker: create the surrogate with this state, which may grow to `limit` bytes."""

    entries: dict[str, bytes]
    limit: int


class Work(msgspec.Struct, tag="work", array_like=True):
    """Gateway to worker: handle these inputs in order, and stop at the first failure."""

    mails: list[Mail]


class Loaded(msgspec.Struct, tag="loaded", array_like=True):
    """Worker to gateway: the surrogate's class has been imported."""


class Begun(msgspec.Struct, tag="begun", array_like=True):
    """Worker to gateway: the surrogate has been created and is ready for inputs."""


class Unloadable(msgspec.Struct, tag="unloadable", array_like=True):
    """Worker to gateway: the class cannot be imported, or the surrogate cannot be created."""

    reason: str


class Done(msgspec.Struct, tag="done", array_like=True):
    """Worker to gateway: the verdict on an input."""

    number: int
    verdict: Verdict


class InputFailed(msgspec.Struct, tag="failed", array_like=True):
    """Worker to gateway: an input failed without effect; `detail` is for the surrogate's
    developer."""

    number: int
    reason: str
    detail: str


Order: TypeAlias = Begin | Work
Report: TypeAlias = Loaded | Begun | Unloadable | Done | InputFailed

encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(Order).decode
decode_report = msgspec.msgpack.Decoder(Report).decode


class FrameTooLong(ValueError):
    """A frame is longer than the limit."""


def frame(message: Order | Report) -> bytes:
    """Encode a message with its length. Raises FrameTooLong."""
    data = encode(message)
    if len(data) > MAX_FRAME:
        raise FrameTooLong(
            f"{len(data)} bytes are too many for one frame; the limit is {MAX_FRAME}"
        )
    return len(data).to_bytes(HEAD) + data


class Frames:
    """Splits received bytes into messages, which are still encoded."""

    def __init__(self) -> None:
        self._data = bytearray()

    def receive(self, data: bytes) -> list[bytes]:
        """Return the messages that are complete now. Raises FrameTooLong."""
        self._data += data
        found: list[bytes] = []
        start = 0
        while len(self._data) - start >= HEAD:
            size = int.from_bytes(self._data[start : start + HEAD])
            if size > MAX_FRAME:
                raise FrameTooLong(f"a frame has {size} bytes; the limit is {MAX_FRAME}")
            end = start + HEAD + size
            if end > len(self._data):
                break
            found.append(bytes(self._data[start + HEAD : end]))
            start = end
        del self._data[:start]
        return found
