"""Streams that come: kept until the application has had them."""

from __future__ import annotations

from lasthop.device.change import FlowRow, FlowState
from lasthop.device.pieces.flows import Inflow
from lasthop.device.pieces.transfer_book import TransferBook
from lasthop.device.terms import DeviceTerms
from lasthop.errors import Conflict, NotFound
from lasthop.wire.hop.frames import Ending, EndStatus, Piece

UNKNOWN = "this device knows no such stream"


class IncomingStreams:
    """Streams that the application has not had to the end."""

    def __init__(self, terms: DeviceTerms, book: TransferBook) -> None:
        self._terms = terms
        self._book = book
        self._inflows: dict[int, Inflow] = {}

    def all(self) -> list[Inflow]:
        """How far each is."""
        return [*self._inflows.values()]

    def open_keys(self) -> list[int]:
        """The keys of all."""
        return list(self._inflows)

    def get(self, key: int) -> Inflow | None:
        """The stream of this key."""
        return self._inflows.get(key)

    def restore(self, key: int, state: FlowState) -> None:
        """A stream was open in an earlier life."""
        self._inflows[key] = Inflow(key, state, window=self._terms.stream_window)

    def open(self, key: int) -> None:
        """A message has come that opens a stream."""
        if key not in self._inflows:
            self.restore(key, FlowState())
            self._note(self._inflows[key])
            self._book.stirred.append(key)

    def advance(self, key: int, position: int, most: int) -> bytes | None:
        """The application has had what is below `position`; returns what comes next. `None`: there
        is nothing yet. Empty: that was all."""
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
        """The application wants no more of it."""
        inflow = self._inflows.get(key)
        if inflow is not None and not inflow.failed:
            inflow.stop(reason)
            self._book.said.discard(key)
            self._note(inflow)

    def position(self, key: int) -> int:
        """What the application has had of a stream."""
        return self._inflow(key).position

    def _inflow(self, key: int) -> Inflow:
        inflow = self._inflows.get(key)
        if inflow is None:
            raise NotFound("no such stream is open", id=f"{key:016x}")
        return inflow

    def _close(self, inflow: Inflow) -> None:
        """The application knows how it ended. The gateway is told whenever it asks."""
        if inflow.answer is not None and inflow.answer.status == EndStatus.STOPPED:
            return  # Until the gateway has answered.
        self._drop(inflow)

    def _drop(self, inflow: Inflow) -> None:
        if self._inflows.pop(inflow.key, None) is not None:
            self._book.note(FlowRow(inflow.key, True, None))
            self._book.drop(inflow.key, incoming=True, below=inflow.receiving.received + 1)
            if inflow.answer is not None and inflow.key not in self._book.said:
                self._book.words.append(inflow.answer)

    def take(self, piece: Piece, *, known: bool) -> None:
        """Bytes, or a question how far we are. `known`: the message that opened the stream has been
        here."""
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
        """The gateway says how a stream ends."""
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
