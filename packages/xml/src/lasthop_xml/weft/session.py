"""The two ends of a session: documents to messages, and messages to documents.

    byte 0      level (0 fast, 1 deflate, 2 max); 4 if a new epoch begins
    [byte]      the number of the new epoch
    2 bytes     check
    the rest    the body, in the form of its level

What an end has learned depends only on the profile that it started from and on the messages since.
So the check is a chain (`engine/chain.py`) that starts from the profile's check. A lost, repeated,
reordered or damaged message, or a state from elsewhere, breaks the chain before anything is
decoded. Every 64th check also covers the values of the document, to find an end that does not learn
as it should.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from enum import IntEnum
from typing import Any, Final, NoReturn

from lasthop_xml.errors import XmlError
from lasthop_xml.weft.dense.coder import RangeDecoder, RangeEncoder
from lasthop_xml.weft.dense.walk import Walker
from lasthop_xml.weft.engine.chain import Chain
from lasthop_xml.weft.engine.memory import LONGEST_KEPT, MAX_SIZE
from lasthop_xml.weft.engines import BEST, Engine
from lasthop_xml.weft.errors import WeftFormatError, WeftLimitError, WeftStateError
from lasthop_xml.weft.learned import Learned
from lasthop_xml.weft.profile import NO_PROFILE, Profile
from lasthop_xml.weft.runs import MAX_RUN, RunSequence
from lasthop_xml.weft.split import Splitter
from lasthop_xml.xas.errors import InvalidValue, MalformedEvents, UnknownType
from lasthop_xml.xas.limits import DEFAULT_LIMITS, Limits
from lasthop_xml.xas.sequence import EventList, EventSequence

MAX_MESSAGE: Final = 2**20
"""The largest number of bytes of a message, unless both ends agree on more."""
FRESH: Final = 4
WINDOW: Final = 2**15
"""The number of earlier bytes that deflate can refer to."""
_TAIL: Final = b"\0\0\xff\xff"
"""The last bytes of every flushed deflate block, which are not sent."""


class Level(IntEnum):
    """The effort to make messages small. Each message names its level, so a session may change it
    at any time."""

    FAST = 0
    """Bytes for what was not guessed."""
    DEFLATE = 1
    """The bytes of FAST, through one deflate stream for the connection."""
    MAX = 2
    """Every choice is coded by its probability: the fewest bytes, at the cost of a millisecond or
    two."""


_FAST: Final = Level.FAST
_HEADS: Final = tuple(bytes((level,)) for level in Level)


class End:
    """The state that an encoder and a decoder of a session have in common."""

    __slots__ = (
        "_chain",
        "_history",
        "_history_size",
        "_limits",
        "_max_message",
        "_stream",
        "engine",
        "epoch",
        "learned",
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
        self._limits = limits
        self._max_message = max_message
        self._start_again()

    def _start_again(self) -> None:
        """Forget everything but the profile."""
        self._chain: Chain = self.engine.chain.Chain(self.profile.check, 0)
        self.learned: Learned = self.profile.learned(self.engine, self._limits)
        self._stream: Any = None
        self._history: deque[bytes] = deque()
        self._history_size = 0

    @property
    def chain(self) -> int:
        """Return the check that the next message's check continues."""
        return self._chain.link

    @property
    def messages(self) -> int:
        """Return the number of messages of this epoch."""
        return self._chain.messages

    def _remember(self, body: bytes) -> None:
        """Keep the bytes that deflate can refer to, for a snapshot."""
        self._history.append(body)
        self._history_size += len(body)
        while self._history_size - len(self._history[0]) >= WINDOW:
            self._history_size -= len(self._history.popleft())

    def window(self) -> bytes:
        """Return the bodies that deflate can still refer to."""
        return b"".join(self._history)[-WINDOW:]

    def resume(
        self, epoch: int, messages: int, chain: int, learned: Learned, window: bytes
    ) -> None:
        """Continue where a snapshot was taken."""
        self.epoch = epoch
        self._chain = self.engine.chain.Chain(chain, messages)
        self.learned = learned
        self._stream = None
        self._history = deque([window] if window else [])
        self._history_size = len(window)

    def _forget(self) -> None:
        """Forget all but the profile within the epoch, since the memory is full; the other end does
        the same."""
        self.learned = self.profile.learned(self.engine, self._limits)


class WeftEncoder(End):
    """An encoder for the documents of one direction of a session; its messages must be decoded in
    order."""

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
        """Whether each message begins a new epoch: for connections that lose or reorder
        messages."""
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
        """Encode one document and return its message. After an error the session is as before, or
        begins a new epoch."""
        return self.encode_runs(self._splitter.split(events))

    def encode_runs(self, document: RunSequence) -> bytes:
        """Encode a document given as runs and values, without looking at events; return its
        message."""
        if self.forgetful and not self._fresh:
            self.reset()
        learned = self.learned
        level = self.level
        try:
            if level is _FAST:
                body: bytes = learned.writer.body(document.runs, document.values)
            elif level is Level.DEFLATE:
                body = self._deflated(learned.writer.body(document.runs, document.values))
            else:
                body = self._dense(document)
            if len(body) > self._max_message - 4:
                raise WeftLimitError("a message is too large", most=self._max_message)
            head = bytes((level | FRESH, self.epoch)) if self._fresh else _HEADS[level]
            message = self._chain.sealed(head, body, document)
        except BaseException:
            # The end may have learned half of the document.
            self.reset()
            raise
        self._fresh = False
        if learned.memory.size > MAX_SIZE:
            self._forget()
        return message

    def _deflated(self, body: bytes) -> bytes:
        stream = self._stream
        if stream is None:
            stream = self._stream = zlib.compressobj(
                9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, self.window()
            )
        if len(body) > self._max_message:
            raise WeftLimitError("a message is too large", most=self._max_message)
        self._remember(body)
        data: bytes = stream.compress(body) + stream.flush(zlib.Z_SYNC_FLUSH)
        return data[: -len(_TAIL)]

    def _dense(self, document: RunSequence) -> bytes:
        learned = self.learned
        coder = RangeEncoder()
        least = Walker(learned, coder, self._limits).write(document)
        return coder.finish().ljust(least, b"\0")


def level_of(data: bytes) -> Level | None:
    """Return the level of a message; None if the bytes do not begin like a message."""
    level = data[0] & 3 if data else len(Level)
    return Level(level) if level < len(Level) else None


class WeftDecoder(End):
    """A decoder for the messages of one direction of a session, which must come in order."""

    __slots__ = ("_few", "_started", "poisoned")

    def __init__(
        self,
        *,
        profile: Profile | None = None,
        limits: Limits = DEFAULT_LIMITS,
        max_message: int = MAX_MESSAGE,
        engine: Engine = BEST,
    ) -> None:
        super().__init__(profile, limits, max_message, engine)
        # So few runs that their events and values cannot exceed a limit.
        self._few = min(limits.events // (MAX_RUN + 1) - 1, limits.size // (2 * LONGEST_KEPT))
        self.poisoned = False
        """Whether an earlier message failed; only a message that begins a new epoch can then be
        decoded."""
        self._started = False

    def resume(
        self, epoch: int, messages: int, chain: int, learned: Learned, window: bytes
    ) -> None:
        super().resume(epoch, messages, chain, learned, window)
        self._started = messages > 0

    def decode(self, data: bytes) -> EventList:
        """Decode the next message and return the events of its document; any error poisons the
        decoder."""
        return self.decode_runs(data).events()

    def decode_runs(self, data: bytes) -> RunSequence:
        """Decode the next message and return its document as runs and values, without making
        events."""
        if len(data) > self._max_message:
            self._poison()
            raise WeftLimitError("a message is too large", size=len(data), most=self._max_message)
        try:
            return self._decode(data)
        except XmlError as error:
            self._poison()
            if isinstance(error, (MalformedEvents, InvalidValue, UnknownType)):
                raise WeftFormatError(error.detail, **error.fields) from None
            raise
        except IndexError:
            self._fail("a message ends early, or uses an unknown number")
        except (ValueError, OverflowError, struct.error, zlib.error) as error:
            self._fail(str(error))

    def _poison(self) -> None:
        self.poisoned = self._started = True

    def _fail(self, detail: str) -> NoReturn:
        self._poison()
        raise WeftFormatError(detail) from None

    def _decode(self, data: bytes) -> RunSequence:
        flags = data[0]
        if flags & FRESH:
            self._begin(data[1])
            size = 2
        else:
            if self.poisoned:
                raise WeftStateError(
                    "an earlier message failed; reset the encoder", epoch=self.epoch
                )
            size = 1
        if flags & ~FRESH > Level.MAX:
            raise WeftFormatError("a message has an unknown form", offset=0)
        chain = self._chain
        body = chain.opened(data, size)
        if body is None or not self._started:
            raise WeftStateError(
                "this message does not continue the session; reset the encoder", epoch=self.epoch
            )
        learned = self.learned
        if flags & 3 == 0:
            document: RunSequence = learned.reader.document(body, 0)
        else:
            document = self._packed(flags & 3, body)
        if len(document.runs) > self._few:
            _check_limits(document, learned, self._limits)
        if not chain.accepted(document):
            raise WeftStateError(
                "this message does not continue the session; reset the encoder", epoch=self.epoch
            )
        if learned.memory.size > MAX_SIZE:
            self._forget()
        return document

    def _begin(self, epoch: int) -> None:
        if self.poisoned and epoch == self.epoch:
            raise WeftStateError(
                "an earlier message of this epoch failed; reset the encoder", epoch=epoch
            )
        if self._started:
            self._start_again()
        self.epoch = epoch
        self.poisoned = False
        self._started = True

    def _packed(self, level: int, body: bytes) -> RunSequence:
        learned = self.learned
        if level == Level.MAX:
            walker = Walker(learned, RangeDecoder(body, 0), self._limits)
            return walker.read(len(body), self._limits.events)
        document: RunSequence = learned.reader.document(self._inflated(body), 0)
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


def _check_limits(document: RunSequence, learned: Learned, limits: Limits) -> None:
    """Check the limits that are cheaper to check afterwards."""
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
