"""Frames of BEEP: data frames with a header, a payload and a trailer (RFC 3080, 2.2.1), and SEQ
frames (RFC 3081, 3.1.3)."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple, TypeAlias

from lasthop.wire.beep.errors import BeepError

TRAILER = b"END\r\n"
MAX_31 = 2**31 - 1
MAX_32 = 2**32 - 1
WRAP = 2**32
"""Sequence numbers count octets and start over here (RFC 3080, 2.2.1)."""

MAX_HEADER = 64
"""The largest number of octets in a header: the longest, an ANS with the largest numbers, has
62."""

_NUMBER = rb"(0|[1-9][0-9]{0,9})"
_DATA = re.compile(
    rb"(MSG|RPY|ERR|ANS|NUL) "
    + _NUMBER
    + b" "
    + _NUMBER
    + rb" ([.*]) "
    + _NUMBER
    + b" "
    + _NUMBER
    + rb"(?: "
    + _NUMBER
    + rb")?"
)
_SEQ = re.compile(rb"SEQ " + _NUMBER + b" " + _NUMBER + b" " + _NUMBER)


class BeepKind(Enum):
    """The kind of message that a data frame belongs to (RFC 3080, 2.2.1.1)."""

    MSG = "MSG"
    RPY = "RPY"
    ERR = "ERR"
    ANS = "ANS"
    NUL = "NUL"


class BeepData(NamedTuple):
    """A data frame: a whole message, or a part of one."""

    kind: BeepKind
    channel: int
    number: int
    more: bool
    seq: int
    payload: bytes
    answer: int | None = None


class Seq(NamedTuple):
    """A SEQ frame: the octets of a channel received so far, and how many more are accepted."""

    channel: int
    ack: int
    window: int


Frame: TypeAlias = BeepData | Seq


def encode(frame: Frame) -> bytes:
    """Encode a frame as octets of the TCP stream."""
    if isinstance(frame, Seq):
        return b"SEQ %d %d %d\r\n" % frame
    answer = b"" if frame.answer is None else b" %d" % frame.answer
    head = b"%s %d %d %s %d %d%s\r\n" % (
        frame.kind.value.encode(),
        frame.channel,
        frame.number,
        b"*" if frame.more else b".",
        frame.seq,
        len(frame.payload),
        answer,
    )
    return head + frame.payload + TRAILER


class FrameReader:
    """Cuts frames out of a byte stream, wherever the network cut the stream."""

    __slots__ = ("_buffer", "_most")

    def __init__(self, most: int) -> None:
        """Start with an empty buffer; `most` is the largest window that we offer, so no frame may
        be larger."""
        self._buffer = bytearray()
        self._most = most

    @property
    def buffered(self) -> int:
        """Octets of an incomplete frame that wait for the rest."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Frame]:
        """Handle received octets; return the frames that are complete now. Raise BeepError."""
        self._buffer += data
        frames: list[Frame] = []
        pos = 0
        while True:
            end = self._buffer.find(b"\r\n", pos, pos + MAX_HEADER + 2)
            if end < 0:
                if len(self._buffer) - pos > MAX_HEADER:
                    raise BeepError("a header is too long")
                break
            head = bytes(self._buffer[pos:end])
            if head.startswith(b"SEQ"):
                frames.append(_seq(head))
                pos = end + 2
                continue
            size = _size(head)
            if size > self._most:
                raise BeepError("a frame is larger than any window", size=size, most=self._most)
            start = end + 2
            stop = start + size + len(TRAILER)
            if len(self._buffer) < stop:
                break
            # RFC 3080, 2.2.1.3: a frame without its trailer ends the session.
            if self._buffer[start + size : stop] != TRAILER:
                raise BeepError("a frame has no trailer")
            frames.append(_data(head, bytes(self._buffer[start : start + size])))
            pos = stop
        del self._buffer[:pos]
        return frames


def _match(head: bytes) -> re.Match[bytes]:
    match = _DATA.fullmatch(head)
    if match is None:
        raise BeepError("the header of a frame is malformed", header=head.decode("latin-1"))
    return match


def _size(head: bytes) -> int:
    size = int(_match(head)[6])
    if size > MAX_31:
        raise BeepError("a number is out of range", header=head.decode("latin-1"))
    return size


def _data(head: bytes, payload: bytes) -> BeepData:
    match = _match(head)
    kind = BeepKind(match[1].decode())
    channel, number, seq = int(match[2]), int(match[3]), int(match[5])
    answer = None if match[7] is None else int(match[7])
    more = match[4] == b"*"
    # RFC 3080, 2.2.1.1: channel and message numbers have 31 bits, sequence numbers 32. Answer
    # numbers could have 32, but no profile here numbers that many answers.
    if max(channel, number, answer or 0) > MAX_31 or seq > MAX_32:
        raise BeepError("a number is out of range", header=head.decode("latin-1"))
    # RFC 3080, 2.2.1: only the header of an ANS has an answer number, and it always has.
    if (answer is not None) is not (kind is BeepKind.ANS):
        raise BeepError(
            "an ANS frame must have an answer number, and no other frame may",
            header=head.decode("latin-1"),
        )
    # RFC 3080, 2.2.1.1: a NUL that is intermediate or has a payload is poorly formed.
    if kind is BeepKind.NUL and (more or payload):
        raise BeepError("a NUL frame must be complete and empty", header=head.decode("latin-1"))
    return BeepData(kind, channel, number, more, seq, payload, answer)


def _seq(head: bytes) -> Seq:
    match = _SEQ.fullmatch(head)
    if match is None:
        raise BeepError("the header of a frame is malformed", header=head.decode("latin-1"))
    channel, ack, window = (int(number) for number in match.groups())
    if max(channel, window) > MAX_31 or ack > MAX_32:
        raise BeepError("a number is out of range", header=head.decode("latin-1"))
    return Seq(channel, ack, window)
