"""One channel of a session: octets counted in both directions, messages put together.

Flow control is RFC 3081's: each side says how much of the channel it has and how much more it
takes, in octets; nobody sends beyond that. Replies come in the order of their messages.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from lasthop.wire.beep.errors import BeepError
from lasthop.wire.beep.frames import MAX_31, WRAP, BeepData, BeepKind, Seq

FIRST_WINDOW = 4096
"""Octets that either side may send on a new channel (RFC 3081, 3.1.4)."""

MOST_UNANSWERED = 4096
"""Messages of the peer that we have not answered: what is remembered for them is bounded."""

PIECE = 16 * 1024
"""Octets of one frame: other channels have their turn in between."""


class BeepMessage(NamedTuple):
    """A whole message, with its MIME headers."""

    channel: int
    kind: BeepKind
    number: int
    payload: bytes
    answer: int | None = None


class BeepChannel:
    """Both directions of one channel."""

    __slots__ = (
        "_expected",
        "_last_number",
        "_least",
        "_offered",
        "_partial",
        "_parts",
        "_pending",
        "_received",
        "_sent",
        "_sent_limit",
        "_told",
        "_unanswered",
        "max_message",
        "number",
        "profile",
        "unsent",
        "window",
    )

    def __init__(self, number: int, profile: str, *, window: int, max_message: int) -> None:
        self.number = number
        self.profile = profile
        self.window = window
        """How much we take at a time, from the first SEQ on."""
        self.max_message = max_message
        """Octets of a message that we put together."""
        self._received = 0
        self._told = 0
        self._offered = FIRST_WINDOW
        """How far the peer may go; both count octets from the start, without wrapping."""
        self._sent = 0
        self._sent_limit = FIRST_WINDOW
        self._pending: deque[BeepMessage] = deque()
        self._partial = 0
        """Octets of the first pending message that have left."""
        self.unsent = 0
        self._parts: dict[int | None, bytearray] = {}
        """Incomplete messages: one, or several answers to one message."""
        self._least: tuple[BeepKind, int] | None = None
        self._last_number = -1
        self._expected: deque[int] = deque()
        """Messages of ours that the peer has not answered."""
        self._unanswered: deque[int] = deque()

    # Out.

    def message(self, payload: bytes) -> int:
        """Send a message that the peer has to answer; returns its number."""
        self._last_number = (self._last_number + 1) % (MAX_31 + 1)
        self._expected.append(self._last_number)
        self._queue(BeepMessage(self.number, BeepKind.MSG, self._last_number, payload))
        return self._last_number

    def reply(self, kind: BeepKind, number: int, payload: bytes, answer: int | None = None) -> None:
        """Answer a message of the peer, or with several ANS and a NUL."""
        if kind is not BeepKind.ANS and number in self._unanswered:
            self._unanswered.remove(number)
        self._queue(BeepMessage(self.number, kind, number, payload, answer))

    def greet(self, payload: bytes) -> None:
        """On channel 0: the reply that answers nothing."""
        self._last_number = 0
        self._queue(BeepMessage(self.number, BeepKind.RPY, 0, payload))

    def expect_greeting(self) -> None:
        """On channel 0: the peer's first word answers nothing as well."""
        self._expected.append(0)

    def next_frame(self) -> BeepData | None:
        """The next piece that the peer's window allows."""
        if not self._pending:
            return None
        message = self._pending[0]
        rest = len(message.payload) - self._partial
        size = min(rest, PIECE, self._sent_limit - self._sent)
        if size <= 0 < rest:
            return None
        piece = message.payload[self._partial : self._partial + size]
        more = size < rest
        frame = BeepData(
            message.kind,
            self.number,
            message.number,
            more,
            self._sent % WRAP,
            piece,
            message.answer,
        )
        self._sent += size
        self.unsent -= size
        self._partial = self._partial + size if more else 0
        if not more:
            self._pending.popleft()
        return frame

    def allow(self, seq: Seq) -> None:
        """The peer takes more. Raises BeepError for what cannot be."""
        behind = (self._sent - seq.ack) % WRAP
        if behind > self._sent:
            raise BeepError("octets are acknowledged that were never sent", channel=self.number)
        # A smaller window does not take back what was granted (RFC 3081, 3.1.4).
        self._sent_limit = max(self._sent_limit, self._sent - behind + seq.window)

    def _queue(self, message: BeepMessage) -> None:
        self._pending.append(message)
        self.unsent += len(message.payload)

    @property
    def backlog(self) -> int:
        """What waits to leave, in octets; a short message counts for what it takes in memory."""
        return self.unsent + 64 * len(self._pending)

    # In.

    def take(self, frame: BeepData) -> BeepMessage | None:
        """A piece of a message; the message, if it is complete. Raises BeepError (2.2.1.1)."""
        if frame.seq != self._received % WRAP:
            raise BeepError("octets are missing", channel=self.number, expected=self._received)
        if self._received + len(frame.payload) > self._offered:
            raise BeepError("a frame is beyond the window", channel=self.number)
        self._received += len(frame.payload)
        if self._least is not None and self._least != (frame.kind, frame.number):
            raise BeepError("a message is interrupted by another", channel=self.number)
        if frame.answer not in self._parts:
            self._check(frame)
        parts = self._parts.setdefault(frame.answer, bytearray())
        parts += frame.payload
        if sum(map(len, self._parts.values())) > self.max_message:
            raise BeepError("a message is too large", channel=self.number, most=self.max_message)
        if frame.more:
            self._least = (frame.kind, frame.number)
            return None
        del self._parts[frame.answer]
        if not self._parts:
            self._least = None
        self._done(frame)
        return BeepMessage(self.number, frame.kind, frame.number, bytes(parts), frame.answer)

    def _check(self, frame: BeepData) -> None:
        """Whether a message may begin like this."""
        if frame.kind is BeepKind.MSG:
            if frame.number in self._unanswered:
                raise BeepError("a number is used twice", channel=self.number, number=frame.number)
            if len(self._unanswered) >= MOST_UNANSWERED:
                raise BeepError("too many messages are unanswered", channel=self.number)
        elif not self._expected or self._expected[0] != frame.number:
            raise BeepError("a reply answers nothing", channel=self.number, number=frame.number)

    def _done(self, frame: BeepData) -> None:
        if frame.kind is BeepKind.MSG:
            self._unanswered.append(frame.number)
        elif frame.kind is not BeepKind.ANS:
            self._expected.popleft()

    def next_seq(self) -> Seq | None:
        """What to tell the peer of its octets, once half of the window is used or it may grow."""
        limit = self._received + self.window
        if limit - self._offered < self.window // 2:
            return None
        self._offered = max(self._offered, limit)
        return Seq(self.number, self._received % WRAP, self.window)

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way in either direction."""
        return not (self._pending or self._parts or self._expected)
