"""The streams that a device receives: kept until the application has read them."""

from __future__ import annotations

from lasthop.device.change import FlowRow, FlowState
from lasthop.device.pieces.flows import Inflow
from lasthop.device.pieces.transfer_book import TransferBook
from lasthop.device.terms import DeviceTerms
from lasthop.errors import Conflict, NotFound
from lasthop.wire.hop.frames import Ending, EndStatus, Piece

UNKNOWN = "this device knows no such stream"


class IncomingStreams:
    """The streams that the application has not read to the end."""

    def __init__(self, terms: DeviceTerms, book: TransferBook) -> None:
        self._terms = terms
        self._book = book
        self._inflows: dict[int, Inflow] = {}

    def all(self) -> list[Inflow]:
        """Return all incoming streams with their progress."""
        return [*self._inflows.values()]

    def open_keys(self) -> list[int]:
        """Return the keys of all incoming streams."""
        return list(self._inflows)

    def get(self, key: int) -> Inflow | None:
        """Return the incoming stream of this key; None if there is none."""
        return self._inflows.get(key)

    def restore(self, key: int, state: FlowState) -> None:
        """Restore a stream that was open before a restart."""
        self._inflows[key] = Inflow(key, state, window=self._terms.stream_window)

    def open(self, key: int) -> None:
        """Open the stream that a message announces, unless it is open already."""
        if key not in self._inflows:
            self.restore(key, FlowState())
            self._note(self._inflows[key])
            self._book.stirred.append(key)

    def advance(self, key: int, position: int, most: int) -> bytes | None:
        """Note that the application has read everything below `position`, and return the next
        bytes: None if no more have come yet, empty bytes at the end of the stream. Raises Conflict
        if the stream was broken off."""
        inflow = self._inflow(key)
        before = inflow.position
        kept_from = inflow.consume(position)
        if kept_from is not None:
            self._book.drop(key, incoming=True, below=kept_from)
        if inflow.failed and inflow.answer is not None:
            self._close(inflow)
            raise Conflict("the stream has been given up", reason=inflow.reason)
        if inflow.at_end:
            self._close(inflow)
            return b""
        if inflow.position > before:
            self._note(inflow)
        return inflow.read(most) or None

    def stop(self, key: int, reason: str) -> None:
        """Stop a stream of which the application wants no more."""
        inflow = self._inflows.get(key)
        if inflow is not None and not inflow.failed:
            inflow.stop(reason)
            self._book.said.discard(key)
            self._note(inflow)

    def position(self, key: int) -> int:
        """Return how many bytes of a stream the application has read. Raises NotFound if it is not
        open."""
        return self._inflow(key).position

    def _inflow(self, key: int) -> Inflow:
        inflow = self._inflows.get(key)
        if inflow is None:
            raise NotFound("no such stream is open", id=f"{key:016x}")
        return inflow

    def _close(self, inflow: Inflow) -> None:
        """Forget a stream whose end the application knows; the gateway is answered whenever it
        asks."""
        if inflow.answer is not None and inflow.answer.status == EndStatus.STOPPED:
            return  # Keep the stream until the gateway has confirmed that it stopped sending.
        self._drop(inflow)

    def _drop(self, inflow: Inflow) -> None:
        if self._inflows.pop(inflow.key, None) is not None:
            self._book.note(FlowRow(inflow.key, True, None))
            self._book.drop(inflow.key, incoming=True, below=inflow.receiving.received + 1)
            if inflow.answer is not None and inflow.key not in self._book.said:
                self._book.words.append(inflow.answer)

    def take(self, piece: Piece, *, known: bool) -> None:
        """Handle a piece of a stream, or a question about this device's progress, that the gateway
        sends. `known`: the message that opened the stream has already arrived."""
        key = piece.transfer
        inflow = self._inflows.get(key)
        if inflow is None:
            status = EndStatus.CONFIRMED if known else EndStatus.STOPPED
            reason = "" if known else UNKNOWN
            self._book.words.append(Ending(key, status, reason=reason, stream=True))
        elif inflow.answer is not None:
            self._book.said.discard(key)
        elif (row := inflow.take(piece)) is not None:
            self._book.keep(row)
            self._note(inflow)
            end = row.offset + len(row.body)

            def durable() -> None:
                inflow.durable(end)
                self._book.stirred.append(key)

            self._book.then(durable)
            if inflow.early is not None:
                self._end(inflow, inflow.early)

    def end(self, inflow: Inflow, ending: Ending) -> None:
        """Handle the frame with which the gateway ends a stream."""
        if inflow.answer is None or inflow.answer.status != EndStatus.STOPPED:
            self._end(inflow, ending)
        elif ending.status == EndStatus.ABORTED:
            inflow.answer = Ending(inflow.key, EndStatus.CONFIRMED, stream=True)
            self._drop(inflow)

    def _end(self, inflow: Inflow, ending: Ending) -> None:
        if inflow.end(ending):
            self._note(inflow)
            self._book.then(inflow.settle)
            self._book.then(lambda: self._book.stirred.append(inflow.key))

    def _note(self, inflow: Inflow) -> None:
        self._book.note(FlowRow(inflow.key, True, inflow.state()))
