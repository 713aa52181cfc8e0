"""Bodies and streams in pieces: how far a transfer has come, on either side of it.

A transfer is known by a message's key and counts bytes from 0. Pieces are neither numbered nor
acknowledged by the session: the receiver says TAKEN with what it has durably and how far it may be
sent more. After every break the sender asks with an empty piece and goes on from the answer, so
nothing that was taken travels again. Both sides use this, and so do all mappings.
"""

from __future__ import annotations

from typing import Final

from lasthop.errors import CreditExceeded, OutOfOrder
from lasthop.wire.hop.frames import Piece, Taken

SMALLEST_PIECE: Final = 2**12
LARGEST_PIECE: Final = 2**14
"""Bytes. What a message of higher priority may have to wait for: 4 KiB take 0.3 s at 100 kbit/s,
and the head of a piece of 16 KiB is a thousandth of it."""

CORRUPT: Final = "the checksum is another one"
"""Why a receiver stops a body that is not what it was told: the sender begins again."""

FIRST_LIMIT: Final = 2**16
"""Of a body, what may be sent before the receiver has said anything: it saves the round trip."""


class Pace:
    """How large the next piece may be, by the time that the last ones took to leave."""

    __slots__ = ("_size",)

    QUICK = 20_000
    SLOW = 200_000
    """Microseconds."""

    def __init__(self) -> None:
        self._size = LARGEST_PIECE

    @property
    def size(self) -> int:
        """Bytes of the next piece."""
        return self._size

    def left(self, elapsed: int) -> None:
        """The last piece has left the unsent buffer, that many microseconds after it got there."""
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
        """Without `ask` the first bytes may leave at once, up to `limit`."""
        self.transfer = transfer
        self.stream = stream
        self.taken = taken
        """The receiver has what is below."""
        self.limit = limit
        self.cursor = taken
        """What is below has left in this contact."""
        self.said_end = False
        self.turn = 0
        """When it had its last turn: those of one priority take turns."""
        self._known = not ask
        self._asked = False

    def again(self) -> None:
        """What was said may be lost, with a channel or on it: ask where the receiver is."""
        self._known = self._asked = self.said_end = False

    @property
    def known(self) -> bool:
        """Whether the receiver has told how far it is."""
        return self._known

    def heard(self, taken: Taken, available: int) -> None:
        """The receiver says how far it is; it may be behind what it once had."""
        if taken.offset > available:
            raise OutOfOrder(
                "bytes are taken that were never sent", offset=taken.offset, available=available
            )
        if taken.offset >= available:
            self.said_end = False  # It has everything, and has not heard so.
        if self.said_end and not self.stream and taken.offset < self.taken:
            # What we took for its answer was about an earlier attempt: hearing of the end, it asks
            # for what it lacks. If this is a late word, some bytes leave in vain.
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
        """Ask how far the receiver is, once."""
        if self._known or self._asked:
            return None
        self._asked = True
        return Piece(self.transfer, 0, b"", self.stream)

    def room(self, available: int, most: int) -> int:
        """How many bytes may leave now, from `cursor` on."""
        if not self._known:
            return 0
        return max(0, min(most, available - self.cursor, self.limit - self.cursor))

    def piece(self, body: bytes) -> Piece:
        """The next bytes leave."""
        piece = Piece(self.transfer, self.cursor, body, self.stream)
        self.cursor += len(body)
        return piece

    def waits(self, available: int) -> bool:
        """Whether something is owed, so that a frame that was lost would be missed."""
        return not self._known or self.taken < available or self.said_end


class Receiving:
    """The receiver's side of one transfer."""

    __slots__ = ("_beyond", "_beyond_bytes", "_repeat", "_told", "durable", "limit", "received")

    def __init__(self, *, received: int = 0, limit: int = 0) -> None:
        self.received = received
        """What is below has come, without a gap."""
        self.durable = received
        self.limit = limit
        self._beyond: dict[int, bytes] | None = None
        self._beyond_bytes = 0
        self._told: tuple[int, int] | None = None
        self._repeat = False

    def again(self) -> None:
        """On a new channel: say how far we are."""
        self._told = None

    def take(self, piece: Piece) -> bytes:
        """The bytes that are new, and in order, with this piece."""
        stop = piece.offset + len(piece.body)
        if stop > self.limit:
            raise CreditExceeded(
                "a piece is beyond what was granted", offset=stop, limit=self.limit
            )
        if stop <= self.received:
            self._repeat = True  # A question, or it has come before.
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
        """It has overtaken others. What comes twice, cut in another way, must not add up."""
        if self._beyond is None:
            self._beyond = {}
        known = self._beyond.get(piece.offset, b"")
        more = len(piece.body) - len(known)
        if more > 0 and self._beyond_bytes + more <= self.limit - self.received:
            self._beyond[piece.offset] = piece.body
            self._beyond_bytes += more

    def grant(self, limit: int) -> None:
        """Take what is below `limit`; what was granted stays granted."""
        self.limit = max(self.limit, limit)

    def report(self, transfer: int, *, step: int) -> Taken | None:
        """What to tell the sender, if it is worth a frame: more is durable, or `step` bytes more
        are granted."""
        told = self._told
        if told is not None and not self._repeat:
            durable, limit = told
            # A limit that the sender may have reached is worth a frame however small the step.
            if self.durable == durable and self.limit - limit < step and limit - durable > step:
                return None
            if told == (self.durable, self.limit):
                return None
        self._repeat = False
        self._told = (self.durable, self.limit)
        return Taken(transfer, self.durable, self.limit)
