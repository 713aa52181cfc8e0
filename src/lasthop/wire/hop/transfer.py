"""Bodies and streams in pieces: how far a transfer is, on the sender's and the receiver's side.

A transfer is known by a message's key and counts bytes from 0. Pieces are neither numbered nor
acknowledged by the session: the receiver says TAKEN with what it has durably and how far the sender
may go. After every break the sender asks with an empty piece and continues from the answer, so
nothing that was taken travels again. Both sides use this module over all mappings
(docs/hop-protocol.md, "Bodies and streams in pieces").
"""

from __future__ import annotations

from typing import Final

from lasthop.errors import CreditExceeded, OutOfOrder
from lasthop.wire.hop.frames import Piece, Taken

SMALLEST_PIECE: Final = 2**12
LARGEST_PIECE: Final = 2**14
"""The sizes of pieces in bytes. A message of higher priority may have to wait for one piece: 4 KiB
take 0.3 s at 100 kbit/s, and the head of a piece of 16 KiB is a thousandth of it."""

CORRUPT: Final = "the checksum is another one"
"""The reason with which a receiver stops a body whose checksum is wrong: the sender begins
again."""

FIRST_LIMIT: Final = 2**16
"""Bytes of a body that may be sent before the receiver has said TAKEN: saves the round trip."""


class Pace:
    """The size of the next piece, adapted to how long the last pieces took to leave."""

    __slots__ = ("_size",)

    QUICK = 20_000
    SLOW = 200_000
    """Microseconds for a piece to leave: above SLOW pieces get smaller, below QUICK larger."""

    def __init__(self) -> None:
        self._size = LARGEST_PIECE

    @property
    def size(self) -> int:
        """The size of the next piece, in bytes."""
        return self._size

    def left(self, elapsed: int) -> None:
        """Note that the last piece left the unsent buffer, `elapsed` microseconds after it got
        there."""
        if elapsed > self.SLOW:
            self._size = max(SMALLEST_PIECE, self._size // 2)
        elif elapsed < self.QUICK:
            self._size = min(LARGEST_PIECE, self._size * 2)


class Sending:
    """The sender's side of one transfer."""

    __slots__ = (
        "_asked",
        "_known",
        "cursor",
        "limit",
        "said_end",
        "stream",
        "taken",
        "transfer",
        "turn",
    )

    def __init__(
        self, transfer: int, *, stream: bool, taken: int = 0, limit: int = 0, ask: bool = True
    ) -> None:
        """Start the transfer; without `ask` the first bytes may be sent at once, up to `limit`."""
        self.transfer = transfer
        self.stream = stream
        self.taken = taken
        """The receiver has every byte below this offset."""
        self.limit = limit
        self.cursor = taken
        """Every byte below this offset was sent in this contact."""
        self.said_end = False
        self.turn = 0
        """When the transfer had its last turn: transfers of one priority take turns."""
        self._known = not ask
        self._asked = False

    def again(self) -> None:
        """Ask again how far the receiver is, because frames may be lost with a channel or on it."""
        self._known = self._asked = self.said_end = False

    @property
    def known(self) -> bool:
        """Whether the receiver has said how far it is."""
        return self._known

    def heard(self, taken: Taken, available: int) -> None:
        """Apply a TAKEN of the receiver, which may be behind an earlier one; raise OutOfOrder."""
        if taken.offset > available:
            raise OutOfOrder(
                "a TAKEN is for bytes that were never sent",
                offset=taken.offset,
                available=available,
            )
        if taken.offset >= available:
            self.said_end = False  # It has all bytes, but did not get the end.
        if self.said_end and not self.stream and taken.offset < self.taken:
            # The TAKEN believed before was about an earlier attempt: told of the end, the receiver
            # asks for what it lacks. If this TAKEN is merely late, some bytes are sent in vain.
            self._known = self.said_end = False
        if self._known:
            self.taken = max(self.taken, taken.offset)
            self.limit = max(self.limit, taken.limit)
            self.cursor = max(self.cursor, taken.offset)
            return
        self._known = True
        self.taken = self.cursor = taken.offset
        self.limit = taken.limit

    def question(self) -> Piece | None:
        """Return the empty piece that asks how far the receiver is; None if it was asked
        already."""
        if self._known or self._asked:
            return None
        self._asked = True
        return Piece(self.transfer, 0, b"", self.stream)

    def room(self, available: int, most: int) -> int:
        """Return how many bytes may be sent now, from `cursor` on."""
        if not self._known:
            return 0
        return max(0, min(most, available - self.cursor, self.limit - self.cursor))

    def piece(self, body: bytes) -> Piece:
        """Return the next piece with these bytes, and move the cursor behind it."""
        piece = Piece(self.transfer, self.cursor, body, self.stream)
        self.cursor += len(body)
        return piece

    def waits(self, available: int) -> bool:
        """Whether an answer of the receiver is due, so that a lost frame would have to be
        repeated."""
        return not self._known or self.taken < available or self.said_end


class Receiving:
    """The receiver's side of one transfer."""

    __slots__ = ("_beyond", "_beyond_bytes", "_repeat", "_told", "durable", "limit", "received")

    def __init__(self, *, received: int = 0, limit: int = 0) -> None:
        self.received = received
        """Every byte below this offset has arrived."""
        self.durable = received
        self.limit = limit
        self._beyond: dict[int, bytes] | None = None
        self._beyond_bytes = 0
        self._told: tuple[int, int] | None = None
        self._repeat = False

    def again(self) -> None:
        """Report again how far the receiver is, on a new channel."""
        self._told = None

    def take(self, piece: Piece) -> bytes:
        """Handle a received piece; return the bytes that are new and in order. Raise
        CreditExceeded."""
        stop = piece.offset + len(piece.body)
        if stop > self.limit:
            raise CreditExceeded(
                "a piece is beyond what was granted", offset=stop, limit=self.limit
            )
        if stop <= self.received:
            self._repeat = True  # A question, or a piece that came before.
            return b""
        if piece.offset > self.received:
            self._put_aside(piece)
            return b""
        found = [piece.body[self.received - piece.offset :]]
        self.received = stop
        while self._beyond:
            offset = min(self._beyond)
            if offset > self.received:
                break
            body = self._beyond.pop(offset)
            self._beyond_bytes -= len(body)
            if offset + len(body) > self.received:
                found.append(body[self.received - offset :])
                self.received = offset + len(body)
        return found[0] if len(found) == 1 else b"".join(found)

    def _put_aside(self, piece: Piece) -> None:
        """Keep a piece that overtook others; one that comes twice, cut differently, is counted
        once."""
        if self._beyond is None:
            self._beyond = {}
        known = self._beyond.get(piece.offset, b"")
        more = len(piece.body) - len(known)
        if more > 0 and self._beyond_bytes + more <= self.limit - self.received:
            self._beyond[piece.offset] = piece.body
            self._beyond_bytes += more

    def grant(self, limit: int) -> None:
        """Accept bytes below `limit`; a limit that was granted is never taken back."""
        self.limit = max(self.limit, limit)

    def report(self, transfer: int, *, step: int) -> Taken | None:
        """Return the TAKEN to send if more bytes are durable or `step` more are granted; otherwise
        None, since it is not worth a frame."""
        told = self._told
        if told is not None and not self._repeat:
            durable, limit = told
            # A limit that the sender may have reached is worth a frame, however small the step.
            if self.durable == durable and self.limit - limit < step and limit - durable > step:
                return None
            if told == (self.durable, self.limit):
                return None
        self._repeat = False
        self._told = (self.durable, self.limit)
        return Taken(transfer, self.durable, self.limit)
