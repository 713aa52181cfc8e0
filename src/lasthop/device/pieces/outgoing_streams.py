"""The streams that a device sends: kept until the gateway has them."""

from __future__ import annotations

from collections.abc import Iterable

from lasthop.device.change import FlowRow, FlowState
from lasthop.device.pieces.flows import OutgoingFlow
from lasthop.device.pieces.transfer_book import TransferBook
from lasthop.device.terms import DeviceTerms
from lasthop.errors import Conflict, NotFound
from lasthop.wire.hop.frames import Ending, EndStatus, Taken


class OutgoingStreams:
    """The streams of this device that the gateway may not have received completely."""

    def __init__(self, terms: DeviceTerms, book: TransferBook) -> None:
        self._terms = terms
        self._book = book
        self._outgoing_streams: dict[int, OutgoingFlow] = {}
        self.alone = False
        """Whether this contact has had only one channel, so that the gateway's first report of its
        progress cannot be outdated."""

    def all(self) -> list[OutgoingFlow]:
        """Return all outgoing streams with their progress."""
        return [*self._outgoing_streams.values()]

    def announced(self) -> list[OutgoingFlow]:
        """Return the streams whose opening message the gateway has."""
        return [
            outgoing_stream
            for outgoing_stream in self._outgoing_streams.values()
            if outgoing_stream.announced
        ]

    def get(self, key: int) -> OutgoingFlow | None:
        """Return the outgoing stream of this key; None if there is none."""
        return self._outgoing_streams.get(key)

    def __contains__(self, key: int) -> bool:
        return key in self._outgoing_streams

    def restore(self, key: int, state: FlowState, *, announced: bool) -> None:
        """Restore a stream that was open before a restart."""
        window = self._terms.stream_window
        self._outgoing_streams[key] = OutgoingFlow(key, state, window=window, announced=announced)

    def open(self, key: int, state: FlowState) -> None:
        """Open a stream for the message of this key."""
        self.restore(key, state, announced=False)
        self._note(self._outgoing_streams[key])

    def states(self) -> list[tuple[int, FlowState]]:
        """Return the progress of all streams by key, for the inbox."""
        return [
            (key, outgoing_stream.state())
            for key, outgoing_stream in self._outgoing_streams.items()
        ]

    def write(self, key: int, body: bytes) -> int:
        """Accept as many bytes from the application as fit; return their number. The bytes are
        durable with the next change."""
        outgoing_stream = self._outgoing_stream(key)
        row = outgoing_stream.write(body)
        if row is None:
            return 0
        self._book.keep(row)
        self._note(outgoing_stream)
        written = outgoing_stream.written

        def durable() -> None:
            outgoing_stream.available = max(outgoing_stream.available, written)

        self._book.then(durable)
        return len(row.body)

    def end(self, key: int) -> None:
        """End a stream after everything that was written to it. Raises Conflict if the stream was
        aborted or refused."""
        outgoing_stream = self._outgoing_stream(key)
        if outgoing_stream.failed:
            raise Conflict("the stream has been given up", reason=outgoing_stream.reason)
        outgoing_stream.size = outgoing_stream.written
        self._end(outgoing_stream)

    def abort(self, key: int, reason: str) -> None:
        """Break a stream off: nothing more of it will be written."""
        outgoing_stream = self._outgoing_streams.get(key)
        if outgoing_stream is not None and not outgoing_stream.failed:
            outgoing_stream.failed, outgoing_stream.reason = True, reason
            self._end(outgoing_stream)

    def _end(self, outgoing_stream: OutgoingFlow) -> None:
        self._note(outgoing_stream)

        def durable() -> None:
            outgoing_stream.ended = True
            outgoing_stream.sending.said_end = False

        self._book.then(durable)

    def _outgoing_stream(self, key: int) -> OutgoingFlow:
        outgoing_stream = self._outgoing_streams.get(key)
        if outgoing_stream is None:
            raise NotFound("no such stream is open", id=f"{key:016x}")
        return outgoing_stream

    def announce(self, keys: Iterable[int]) -> None:
        """Note that the gateway has these messages; some may open streams."""
        if self._outgoing_streams:
            for key in keys:
                outgoing_stream = self._outgoing_streams.get(key)
                if outgoing_stream is not None:
                    outgoing_stream.announced = True

    def refuse(self, key: int) -> None:
        """Drop the stream whose opening message the gateway refused."""
        outgoing_stream = self._outgoing_streams.get(key)
        if outgoing_stream is not None:
            outgoing_stream.failed, outgoing_stream.reason = True, "the gateway refused the stream"
            self._drop(outgoing_stream)

    def _drop(self, outgoing_stream: OutgoingFlow) -> None:
        del self._outgoing_streams[outgoing_stream.key]
        self._book.note(FlowRow(outgoing_stream.key, False, None))
        self._book.drop(outgoing_stream.key, incoming=False, below=outgoing_stream.written + 1)
        self._book.stirred.append(outgoing_stream.key)

    def heard(self, outgoing_stream: OutgoingFlow, taken: Taken) -> None:
        """Handle the gateway's report of how much it has received of a stream."""
        key = outgoing_stream.key
        if taken.offset > outgoing_stream.available:
            self.abort(key, "this device has lost what it had written")
            return
        if taken.offset < outgoing_stream.sending.taken and not outgoing_stream.chunks.read(
            taken.offset, 1
        ):
            # With several channels the report may only be late; on the first one it is the truth.
            if self.alone and not outgoing_stream.sending.known:
                self.abort(key, "the gateway has lost what it had of it")
            return
        outgoing_stream.sending.heard(taken, outgoing_stream.available)
        kept_from = outgoing_stream.chunks.drop_below(taken.offset)
        if kept_from is not None:
            self._book.drop(key, incoming=False, below=kept_from)
        self._book.stirred.append(key)

    def ended(self, outgoing_stream: OutgoingFlow, ending: Ending) -> None:
        """Handle the gateway's answer that it has received a whole stream, or wants no more of
        it."""
        if ending.status != EndStatus.CONFIRMED:
            self.abort(outgoing_stream.key, ending.reason or "the receiver wants no more")
            outgoing_stream.sending.said_end = False
            self._book.stirred.append(outgoing_stream.key)
        elif outgoing_stream.ended:
            self._drop(outgoing_stream)

    def _note(self, outgoing_stream: OutgoingFlow) -> None:
        self._book.note(FlowRow(outgoing_stream.key, False, outgoing_stream.state()))
