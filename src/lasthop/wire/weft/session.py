"""The two ends of a session: documents to messages, and messages to documents.

    byte 0      level (0 fast, 1 deflate, 2 max); 4 if a new epoch begins
    [byte]      the number of the new epoch
    2 bytes     check
    the rest    the body, in the form of its level

What an end has learned depends on what it started from and on the messages since, and on nothing
else. So the check is a chain: the CRC-32 of a message, continued from the one before it, and at
first from the profile's. A lost, repeated, reordered or damaged message, or a state from somewhere
else, breaks the chain before anything is decoded. Every 64th check also covers the values of the
document, to find an end that does not learn as it should.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from enum import IntEnum
from typing import Any, Final, NoReturn

from lasthop.errors import LasthopError
from lasthop.wire.weft.dense.coder import RangeDecoder, RangeEncoder
from lasthop.wire.weft.dense.walk import Walker
from lasthop.wire.weft.engine.memory import LONGEST_KEPT
from lasthop.wire.weft.engines import BEST, Engine
from lasthop.wire.weft.errors import WeftFormatError, WeftLimitError, WeftStateError
from lasthop.wire.weft.learned import Learned
from lasthop.wire.weft.profile import NO_PROFILE, Profile
from lasthop.wire.weft.runs import RunSequence
from lasthop.wire.weft.split import Splitter
from lasthop.wire.xas.errors import InvalidValue, MalformedEvents, UnknownType
from lasthop.wire.xas.events import TYPED_CONTENT
from lasthop.wire.xas.limits import DEFAULT_LIMITS, Limits
from lasthop.wire.xas.sequence import EventList, EventSequence
from lasthop.wire.xas.types.table import lexical

MAX_MESSAGE: Final = 2**20
"""Bytes of a message, unless both ends agree on more."""
FRESH: Final = 4
CHECKED: Final = 64
"""Messages from one check of values to the next. It costs as much as encoding a few of them."""
WINDOW: Final = 2**15
"""Bytes that deflate looks back."""
_TAIL: Final = b"\0\0\xff\xff"
"""What every flushed block of deflate ends with; not sent."""


class Level(IntEnum):
    """How hard to try. Each message names its own, so a session may change it at any time."""

    FAST = 0
    """What was not guessed, in bytes."""
    DEFLATE = 1
    """The same, through one deflate stream for the connection."""
    MAX = 2
    """Every choice by its probability: the least bytes, for a millisecond or two."""


class End:
    """What both ends of a session have in common."""

    __slots__ = (
        "_history",
        "_history_size",
        "_limits",
        "_max_message",
        "_stream",
        "chain",
        "engine",
        "epoch",
        "learned",
        "messages",
        "profile",
    )

    def __init__(
        self,
        profile: Profile | None,
        limits: Limits,
        max_message: int,
        engine: Engine,
    ) -> None:
        self.profile = profile or NO_PROFILE
        self.engine = engine
        self.epoch = 0
        self.messages = 0
        self._limits = limits
        self._max_message = max_message
        self._start_again()

    def _start_again(self) -> None:
        """Know what the profile says, and no more."""
        self.messages = 0
        self.chain = self.profile.check
        self.learned: Learned = self.profile.learned(self.engine, self._limits)
        self._stream: Any = None
        self._history: deque[bytes] = deque()
        self._history_size = 0

    def _remember(self, body: bytes) -> None:
        """Keep what deflate can refer to, for a snapshot."""
        self._history.append(body)
        self._history_size += len(body)
        while self._history_size - len(self._history[0]) >= WINDOW:
            self._history_size -= len(self._history.popleft())

    def window(self) -> bytes:
        """The bodies that deflate can still refer to."""
        return b"".join(self._history)[-WINDOW:]

    def resume(
        self, epoch: int, messages: int, chain: int, learned: Learned, window: bytes
    ) -> None:
        """Go on where a snapshot was taken."""
        self.epoch, self.messages, self.chain = epoch, messages, chain
        self.learned = learned
        self._stream = None
        self._history = deque([window] if window else [])
        self._history_size = len(window)

    def _next(self, data: bytes | bytearray, start: int) -> int:
        """The chain, one message further."""
        return zlib.crc32(memoryview(data)[start:], self.chain)

    def _counted(self, chain: int) -> None:
        """One message has been dealt with."""
        self.chain = chain
        self.messages += 1
        if self.learned.memory.full():
            self.learned = self.profile.learned(self.engine, self._limits)

    def _checks_values(self) -> bool:
        return self.messages % CHECKED == CHECKED - 1


class Encoder(End):
    """Encodes the documents of one direction, in order."""

    __slots__ = ("_fresh", "_splitter", "forgetful", "level")

    def __init__(
        self,
        level: Level = Level.FAST,
        *,
        profile: Profile | None = None,
        forgetful: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        max_message: int = MAX_MESSAGE,
        engine: Engine = BEST,
    ) -> None:
        super().__init__(profile, limits, max_message, engine)
        self.level = level
        self.forgetful = forgetful
        """Begin each message anew: for pipes that lose or reorder them."""
        self._fresh = True
        self._splitter = Splitter(limits)

    def reset(self) -> None:
        """Begin a new epoch with the next message, which any decoder with the profile can read."""
        self.epoch = self.epoch + 1 & 0xFF
        self._fresh = True
        self._start_again()

    def resume(
        self, epoch: int, messages: int, chain: int, learned: Learned, window: bytes
    ) -> None:
        super().resume(epoch, messages, chain, learned, window)
        self._fresh = messages == 0

    def encode(self, events: EventSequence) -> bytes:
        """One document. If it cannot be encoded, the session is as before, or begins anew."""
        return self.encode_runs(self._splitter.split(events))

    def encode_runs(self, document: RunSequence) -> bytes:
        """The same from runs and values, without a look at events."""
        if self.forgetful and not self._fresh:
            self.reset()
        try:
            return self._encode(document)
        except BaseException:
            # It may have learned half of it.
            self.reset()
            raise

    def _encode(self, document: RunSequence) -> bytes:
        learned = self.learned
        learned.memory.message += 1
        level = self.level
        if level is Level.MAX:
            body = self._dense(document)
        else:
            body = learned.writer.body(document.runs, document.values)
            if level is Level.DEFLATE:
                body = self._deflated(body)
        head = bytes((level | FRESH, self.epoch)) if self._fresh else bytes((level,))
        chain = zlib.crc32(body, zlib.crc32(head, self.chain))
        check = chain
        if self._checks_values():
            check ^= values_check(document)
        size = len(head) + 2 + len(body)
        if size > self._max_message:
            raise WeftLimitError("a message is too large", size=size, most=self._max_message)
        self._fresh = False
        self._counted(chain)
        return head + (check & 0xFFFF).to_bytes(2, "big") + body

    def _deflated(self, body: bytes) -> bytes:
        stream = self._stream
        if stream is None:
            stream = self._stream = zlib.compressobj(
                9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, self.window()
            )
        self._remember(body)
        data: bytes = stream.compress(body) + stream.flush(zlib.Z_SYNC_FLUSH)
        return data[: -len(_TAIL)]

    def _dense(self, document: RunSequence) -> bytes:
        learned = self.learned
        coder = RangeEncoder()
        walker = Walker(learned, coder, self._limits)
        least = walker.write(document)
        return coder.finish().ljust(least, b"\0")


class Decoder(End):
    """Decodes the messages of one direction, in order."""

    __slots__ = ("_started", "poisoned")

    def __init__(
        self,
        *,
        profile: Profile | None = None,
        limits: Limits = DEFAULT_LIMITS,
        max_message: int = MAX_MESSAGE,
        engine: Engine = BEST,
    ) -> None:
        super().__init__(profile, limits, max_message, engine)
        self.poisoned = False
        """Whether an earlier message was not understood; only a new epoch helps."""
        self._started = False

    def resume(
        self, epoch: int, messages: int, chain: int, learned: Learned, window: bytes
    ) -> None:
        super().resume(epoch, messages, chain, learned, window)
        self._started = messages > 0

    def decode(self, data: bytes) -> EventList:
        """The events of one document."""
        return self.decode_runs(data).events()

    def decode_runs(self, data: bytes) -> RunSequence:
        """The same as runs and values, without making events."""
        if len(data) > self._max_message:
            self._poison()
            raise WeftLimitError("a message is too large", size=len(data), most=self._max_message)
        try:
            return self._decode(data)
        except LasthopError as error:
            self._poison()
            if isinstance(error, (MalformedEvents, InvalidValue, UnknownType)):
                raise WeftFormatError(error.detail, **error.fields) from None
            raise
        except IndexError:
            self._fail("a message ends early, or uses a number that nothing has")
        except (ValueError, OverflowError, struct.error, zlib.error) as error:
            self._fail(str(error))

    def _poison(self) -> None:
        self.poisoned = self._started = True

    def _fail(self, detail: str) -> NoReturn:
        self._poison()
        raise WeftFormatError(detail) from None

    def _decode(self, data: bytes) -> RunSequence:
        flags = data[0]
        if flags & ~(FRESH | 3) or flags & 3 > Level.MAX:
            raise WeftFormatError("a message has an unknown form", offset=0)
        start = 1
        if flags & FRESH:
            self._begin(data[1])
            start = 2
        elif self.poisoned:
            raise WeftStateError("an earlier message was not understood; reset", epoch=self.epoch)
        body = data[start + 2 :]
        chain = zlib.crc32(body, zlib.crc32(data[:start], self.chain))
        check = int.from_bytes(data[start : start + 2], "big")
        checks_values = self._checks_values()
        if check != chain & 0xFFFF and not checks_values:
            raise WeftStateError("this message does not continue what we know", epoch=self.epoch)
        document = self._body(flags & 3, body)
        _check_limits(document, self.learned, self._limits)
        if checks_values and check != (chain ^ values_check(document)) & 0xFFFF:
            raise WeftStateError("this message does not continue what we know", epoch=self.epoch)
        self._counted(chain)
        return document

    def _begin(self, epoch: int) -> None:
        if self.poisoned and epoch == self.epoch:
            raise WeftStateError("this epoch has failed; reset", epoch=epoch)
        if self._started:
            self._start_again()
        self.epoch = epoch
        self.poisoned = False
        self._started = True

    def _body(self, level: int, body: bytes) -> RunSequence:
        learned = self.learned
        learned.memory.message += 1
        if level == Level.MAX:
            coder = RangeDecoder(body, 0)
            walker = Walker(learned, coder, self._limits)
            return walker.read(len(body), self._limits.events)
        if level == Level.DEFLATE:
            body = self._inflated(body)
        document: RunSequence = learned.reader.document(body, 0)
        return document

    def _inflated(self, data: bytes) -> bytes:
        stream = self._stream
        if stream is None:
            window = self.window()
            stream = self._stream = (
                zlib.decompressobj(-15, zdict=window) if window else zlib.decompressobj(-15)
            )
        body: bytes = stream.decompress(data + _TAIL, self._max_message + 1)
        if len(body) > self._max_message:
            raise WeftLimitError("a message expands to too much", most=self._max_message)
        if stream.eof:
            raise WeftFormatError("a deflate stream has ended")
        self._remember(body)
        return body


def values_check(document: RunSequence) -> int:
    """The CRC-32 of all values: the UTF-8 of their lexical forms, a zero byte behind each."""
    texts = []
    for run, value in zip(document.runs, document.values, strict=False):
        if type(value) is str or run.slot is not TYPED_CONTENT:
            texts.append(value)
        else:
            texts.append(value if isinstance(value, str) else lexical(run.name, value))
    return zlib.crc32("".join([f"{text}\0" for text in texts]).encode())


def _check_limits(document: RunSequence, learned: Learned, limits: Limits) -> None:
    """Exactly only if a message could be too large at all: that takes many steps."""
    steps = len(document.runs)
    if steps * learned.memory.longest > limits.events:
        events = 1 + steps + sum(len(run.events) for run in document.runs)
        if events > limits.events:
            raise WeftLimitError("a message has too many events", most=limits.events)
    # New texts have been counted already, and others are no longer than what is kept.
    if steps * LONGEST_KEPT > limits.size // 2:
        size = sum(len(value) for value in document.values if isinstance(value, (str, bytes)))
        if size > limits.size:
            raise WeftLimitError("a message expands to too much text", most=limits.size)
