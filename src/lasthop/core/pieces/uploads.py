"""Large bodies from devices, which come in pieces ahead of their messages.

Every piece is durable before it is acknowledged, so that neither a break nor a crash costs more
than what was under way. The bodies are in memory while they grow; how many at a time is limited,
and of those whose device is not in contact the oldest is dropped to make room for others.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial

import msgspec

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.pieces.pump import PiecePump
from lasthop.core.session import Session
from lasthop.errors import InvalidRequest
from lasthop.store.streams import PieceRow, StreamChanges, StreamRow
from lasthop.wire.hop.frames import Ending, EndStatus, Piece
from lasthop.wire.hop.transfer import FIRST_LIMIT, Receiving

MOST_CLAIMED = 256
"""The largest number of completed bodies that are remembered, so that late copies of their pieces
are recognised on channels that duplicate frames."""


class UploadRecord(msgspec.Struct, array_like=True, frozen=True, tag="body"):
    """What the store keeps of a body that is coming in, besides its pieces."""

    device: int
    theirs: int
    """The key that the device gave the message."""


class Upload:
    """One body that is coming in from a device."""

    stream = False

    def __init__(self, uploads: Uploads, session: Session, theirs: int, key: int) -> None:
        self._uploads = uploads
        self.session = session
        self.theirs = theirs
        self.key = key
        self.receiving = Receiving(limit=FIRST_LIMIT)
        self.parts: list[bytes] = []
        self.over = False
        """Whether the upload has ended, so that the store has nothing of it."""
        self._most = uploads.most(session.device.app)
        self._checksum = 0
        self._answer: Ending | None = None
        self._end: Ending | None = None
        """The device's ENDING, if it has overtaken some of the pieces."""

    def add(self, body: bytes) -> None:
        """Add the next bytes of the body."""
        self.parts.append(body)
        self._checksum = zlib.crc32(body, self._checksum)

    def piece(self, piece: Piece, now: Micros) -> None:
        offset = self.receiving.received
        body = self.receiving.take(piece)
        if not body:
            return
        # The limit granted is one byte above the largest body, so that a larger one shows.
        if self.receiving.received > self._most:
            self._stop(f"a body has at most {self._most} bytes here")
            return
        self.add(body)
        self._uploads.keep(self, offset, body)
        if self._end is not None:
            self.ending(self._end, now)

    def durable(self, offset: int, now: Micros) -> None:
        """Note that all bytes below `offset` are durable."""
        self.receiving.durable = max(self.receiving.durable, offset)
        self.grow()

    def grow(self) -> None:
        """Raise the limit up to which the device may send, and let it be told."""
        window = self._uploads.window
        self.receiving.grant(min(self.receiving.durable + window, self._most + 1))
        self._uploads.touch(self.session)

    def ending(self, ending: Ending, now: Micros) -> None:
        if ending.status == EndStatus.ABORTED:
            self._uploads.forget(self)
            self._answer = Ending(self.theirs, EndStatus.CONFIRMED)
        elif self.receiving.received < ending.size:
            self._end = ending
            self.receiving.again()
        elif (self.receiving.received, self._checksum) != (ending.size, ending.checksum):
            self._stop("the checksum is another one")
        else:
            self._uploads.when_durable(self._complete)

    def _complete(self, now: Micros) -> None:
        self._answer = Ending(self.theirs, EndStatus.CONFIRMED)
        self._uploads.touch(self.session)

    @property
    def complete(self) -> bool:
        """Whether the device has been told that the gateway has the whole body."""
        return self._answer is not None and self._answer.status == EndStatus.CONFIRMED

    def _stop(self, reason: str) -> None:
        self._uploads.forget(self)
        self._answer = Ending(self.theirs, EndStatus.STOPPED, reason=reason)

    def answer(self) -> Ending | None:
        return self._answer


class Uploads:
    """Every body that is coming in from a device."""

    def __init__(self, deliveries: Deliveries, pump: PiecePump) -> None:
        self._deliveries = deliveries
        self._pump = pump
        pump.begin_upload = self.begin
        self.window = deliveries.limits.stream_window
        self._last = 0
        self._open: dict[int, Upload] = {}
        """The open uploads by the gateway's own key, oldest first."""
        self._waiting: dict[tuple[Session, int], None] = {}
        """The uploads for which there was no room, in the order in which they came."""

    def begin(self, session: Session, theirs: int) -> Upload | None:
        """Begin an upload for a device; return None while there is no room for it."""
        transfers = self._pump.transfers(session)
        if theirs in transfers.claimed:
            return None  # A late copy of a piece of a body that was claimed.
        limits = self._deliveries.limits
        # Complete uploads do not count: each waits for its message, which may wait for this upload.
        growing = [upload for upload in self._open.values() if not upload.complete]
        theirs_growing = sum(upload.session is session for upload in growing)
        full = len(growing) >= limits.uploads and not self._make_room()
        if full or theirs_growing >= limits.uploads_per_device or self._hoards(session):
            if len(self._waiting) < limits.uploads * limits.uploads_per_device:
                self._waiting[session, theirs] = None
            return None
        # The upload may have waited for room.
        self._waiting.pop((session, theirs), None)
        # Negative, so that no message ever has the same key.
        self._last += 1
        upload = Upload(self, session, theirs, -self._last)
        self._add(upload)
        return upload

    def _hoards(self, session: Session) -> bool:
        """Return whether a device has too many bytes here without sending the messages for them."""
        theirs = [upload for upload in self._open.values() if upload.session is session]
        size = sum(upload.receiving.received for upload in theirs)
        return size > self._deliveries.limits.uploads_per_device * self.most(session.device.app)

    def most(self, app: str) -> int:
        """Return the largest number of bytes that a body of an app can have."""
        limits = self._deliveries.limits
        behaviour = self._deliveries.behaviours.get(app)
        return limits.body if behaviour is None else behaviour.most(limits.body)

    def _add(self, upload: Upload) -> None:
        self._open[upload.key] = upload
        self._pump.transfers(upload.session).incoming[upload.theirs] = upload
        upload.grow()

    def _make_room(self) -> bool:
        """Drop an upload whose device is not in contact; return False if there is none. The device
        would have to send the rest anyway."""
        for upload in self._open.values():
            if not upload.session.greeted and not upload.complete:
                self.forget(upload)
                self._pump.transfers(upload.session).incoming.pop(upload.theirs, None)
                return True
        return False

    def keep(self, upload: Upload, offset: int, body: bytes) -> None:
        """Make bytes of an upload durable, and acknowledge them after that."""
        changes = self._deliveries.commits.open.of(StreamChanges)
        if not offset:
            record = UploadRecord(upload.session.device.number, upload.theirs)
            changes.rows[upload.key] = StreamRow(upload.key, True, msgspec.json.encode(record))
        changes.pieces.append(PieceRow(upload.key, offset, body))
        self.when_durable(partial(upload.durable, offset + len(body)))

    def when_durable(self, action: Callable[[Micros], None]) -> None:
        """Call `action` once everything so far is durable."""
        self._deliveries.commits.when_durable(action)

    def touch(self, session: Session) -> None:
        """Let the session send the reports that are due to the device."""
        self._deliveries.touch(session)

    def forget(self, upload: Upload) -> None:
        """End an upload, because its message has the body or it was given up; begin uploads that
        wait for room."""
        if self._open.pop(upload.key, None) is None:
            return
        upload.over = True
        changes = self._deliveries.commits.open.of(StreamChanges)
        changes.rows[upload.key] = StreamRow(upload.key, False, b"")
        waiting, self._waiting = self._waiting, {}
        for session, theirs in waiting:
            if session.greeted:
                self.begin(session, theirs)

    def removed(self, session: Session) -> None:
        """Drop the uploads of a device that is removed."""
        for upload in [upload for upload in self._open.values() if upload.session is session]:
            self.forget(upload)

    def claim(self, session: Session, theirs: int | None, size: int) -> bytes:
        """Return the body that came ahead of a message, and end its upload."""
        transfers = self._pump.transfers(session)
        upload = transfers.incoming.get(theirs or 0)
        if not isinstance(upload, Upload) or upload.over or upload.receiving.received != size:
            raise InvalidRequest("the body of this message has not come ahead of it", size=size)
        self.forget(upload)
        del transfers.incoming[upload.theirs]
        transfers.claimed[upload.theirs] = None
        if len(transfers.claimed) > MOST_CLAIMED:
            del transfers.claimed[next(iter(transfers.claimed))]
        return b"".join(upload.parts)

    def restore(self, key: int, record: UploadRecord, pieces: list[PieceRow]) -> None:
        """Restore an upload that was open when the gateway stopped."""
        self._last = max(self._last, -key)
        device = self._deliveries.registry.numbered(record.device)
        if device is None:
            self._deliveries.commits.open.of(StreamChanges).rows[key] = StreamRow(key, False, b"")
            return
        upload = Upload(self, self._deliveries.session(device), record.theirs, key)
        for piece in pieces:
            upload.add(piece.body)
        upload.receiving.received = upload.receiving.durable = sum(map(len, upload.parts))
        self._add(upload)
