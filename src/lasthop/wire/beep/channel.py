"""One channel of a BEEP session: it counts octets in both directions and joins frames into
messages.

Flow control is that of RFC 3081: each side states how many octets of the channel it has received
and how many more it accepts, and the other side sends none beyond that. Replies come in the order
of their messages (RFC 3080, 2.6.1).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from lasthop.wire.beep.errors import BeepError
from lasthop.wire.beep.frames import MAX_31, WRAP, BeepData, BeepKind, Seq

FIRST_WINDOW = 4096
"""Octets that either side may send on a new channel (RFC 3081, 3.1.4)."""

MOST_UNANSWERED = 4096
"""The largest number of messages of the peer that may be unanswered; bounds what is remembered for
them."""

PIECE = 16 * 1024
"""The largest number of octets in one frame, so that other channels get their turn in between."""


class BeepMessage(NamedTuple):
    """A whole message of a channel, with its MIME headers still in the payload."""

    channel: int
    kind: BeepKind
    number: int
    payload: bytes
    answer: int | None = None


class BeepChannel:
    """Both directions of one channel: octets sent and received, messages complete and
    incomplete."""

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
        """Octets that we accept at a time, from the first SEQ frame on."""
        self.max_message = max_message
        """The largest number of octets in a message that is joined from frames."""
        self._received = 0
        self._told = 0
        self._offered = FIRST_WINDOW
        """The octet up to which the peer may send; all counts run from the channel's start without
        wrapping."""
        self._sent = 0
        self._sent_limit = FIRST_WINDOW
        self._pending: deque[BeepMessage] = deque()
        self._partial = 0
        """Octets of the first pending message that were sent already."""
        self.unsent = 0
        self._parts: dict[int | None, bytearray] = {}
        """Incomplete messages: a single one, or several answers (ANS) to the same message."""
        self._least: tuple[BeepKind, int] | None = None
        self._last_number = -1
        self._expected: deque[int] = deque()
        """Numbers of our messages that the peer has not answered, oldest first."""
        self._unanswered: deque[int] = deque()

    # Sending.

    def message(self, payload: bytes) -> int:
        """Queue a message that the peer has to answer; return its number."""
        self._last_number = (self._last_number + 1) % (MAX_31 + 1)
        self._expected.append(self._last_number)
        self._queue(BeepMessage(self.number, BeepKind.MSG, self._last_number, payload))
        return self._last_number

    def reply(self, kind: BeepKind, number: int, payload: bytes, answer: int | None = None) -> None:
        """Queue an answer to a message of the peer: one RPY or ERR, or several ANS and then a
        NUL."""
        if kind is not BeepKind.ANS and number in self._unanswered:
            self._unanswered.remove(number)
        self._queue(BeepMessage(self.number, kind, number, payload, answer))

    def greet(self, payload: bytes) -> None:
        """Queue the greeting on channel 0: a RPY that answers no message (RFC 3080, 2.4)."""
        self._last_number = 0
        self._queue(BeepMessage(self.number, BeepKind.RPY, 0, payload))

    def expect_greeting(self) -> None:
        """Accept the peer's greeting on channel 0, which is a reply although we have sent no
        message."""
        self._expected.append(0)

    def next_frame(self) -> BeepData | None:
        """Return the next frame to send; None when nothing waits or the peer's window is used
        up."""
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
        """Apply the peer's SEQ, which may widen its window; raise BeepError if it is impossible."""
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
        """Octets that wait to be sent, plus 64 for each message, for its share of memory."""
        return self.unsent + 64 * len(self._pending)

    # Receiving.

    def take(self, frame: BeepData) -> BeepMessage | None:
        """Handle a received frame; return the message if it is complete now. Raise BeepError for a
        frame that is poorly formed (RFC 3080, 2.2.1.1)."""
        if frame.seq != self._received % WRAP:
            raise BeepError("octets are missing", channel=self.number, expected=self._received)
        # RFC 3081, 3.1.4: a peer never sends beyond the window that it was offered.
        if self._received + len(frame.payload) > self._offered:
            raise BeepError("a frame is beyond the window", channel=self.number)
        self._received += len(frame.payload)
        # RFC 3080, 2.2.1.1: nothing comes between the frames of a message, except other answers
        # (ANS) to the same message.
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
        """Check that a message may begin with this frame: its number is new, or a reply is
        expected."""
        if frame.kind is BeepKind.MSG:
            # RFC 3080, 2.2.1.1: a number is free again only when its reply was sent completely.
            if frame.number in self._unanswered:
                raise BeepError(
                    "a message number is used twice", channel=self.number, number=frame.number
                )
            if len(self._unanswered) >= MOST_UNANSWERED:
                raise BeepError("too many messages are unanswered", channel=self.number)
        # RFC 3080, 2.6.1: replies come in the order of the messages that they answer.
        elif not self._expected or self._expected[0] != frame.number:
            raise BeepError(
                "a reply belongs to no message", channel=self.number, number=frame.number
            )

    def _done(self, frame: BeepData) -> None:
        if frame.kind is BeepKind.MSG:
            self._unanswered.append(frame.number)
        elif frame.kind is not BeepKind.ANS:
            self._expected.popleft()

    def next_seq(self) -> Seq | None:
        """Return the SEQ to send, once half of the window is used or the window grew; otherwise
        None."""
        limit = self._received + self.window
        if limit - self._offered < self.window // 2:
            return None
        self._offered = max(self._offered, limit)
        return Seq(self.number, self._received % WRAP, self.window)

    @property
    def quiet(self) -> bool:
        """Whether no message is incomplete, waiting to be sent or unanswered in either
        direction."""
        return not (self._pending or self._parts or self._expected)
