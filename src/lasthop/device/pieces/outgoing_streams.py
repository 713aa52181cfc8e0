"""Streams that go: kept until the gateway has them."""

from __future__ import annotations

from collections.abc import Iterable

from lasthop.device.change import FlowRow, FlowState
from lasthop.device.pieces.flows import Outflow
from lasthop.device.pieces.transfer_book import TransferBook
from lasthop.device.terms import DeviceTerms
from lasthop.errors import Conflict, NotFound
from lasthop.wire.hop.frames import Ending, EndStatus, Taken


class OutgoingStreams:
    """Streams of ours that the gateway may not have to the end."""

    def __init__(self, terms: DeviceTerms, book: TransferBook) -> None:
        self._terms = terms
        self._book = book
        self._outflows: dict[int, Outflow] = {}
        self.alone = False
        """Whether this contact has had one channel only: then its first word is no late one."""

    def all(self) -> list[Outflow]:
        """How far each is."""
        return [*self._outflows.values()]

    def announced(self) -> list[Outflow]:
        """Those whose message the gateway has."""
        return [outflow for outflow in self._outflows.values() if outflow.announced]

    def get(self, key: int) -> Outflow | None:
        """The stream of this key."""
        return self._outflows.get(key)

    def __contains__(self, key: int) -> bool:
        return key in self._outflows

    def restore(self, key: int, state: FlowState, *, announced: bool) -> None:
        """A stream was open in an earlier life."""
        window = self._terms.stream_window
        self._outflows[key] = Outflow(key, state, window=window, announced=announced)

    def open(self, key: int, state: FlowState) -> None:
        """The application opens one, with the message that has this key."""
        self.restore(key, state, announced=False)
        self._note(self._outflows[key])

    def states(self) -> list[tuple[int, FlowState]]:
        """All of them by key, as the inbox keeps them."""
        return [(key, outflow.state()) for key, outflow in self._outflows.items()]

    def write(self, key: int, body: bytes) -> int:
        """Take what fits; returns how many bytes that were, durable with the next change."""
        outflow = self._outflow(key)
        row = outflow.write(body)
        if row is None:
            return 0
        self._book.keep(row)
        self._note(outflow)
        written = outflow.written

        def durable() -> None:
            outflow.available = max(outflow.available, written)

        self._book.then(durable)
        return len(row.body)

    def end(self, key: int) -> None:
        """Everything was written."""
        outflow = self._outflow(key)
        if outflow.failed:
            raise Conflict("the stream has been given up", reason=outflow.reason)
        outflow.size = outflow.written
        self._end(outflow)

    def abort(self, key: int, reason: str) -> None:
        """There will be no more."""
        outflow = self._outflows.get(key)
        if outflow is not None and not outflow.failed:
            outflow.failed, outflow.reason = True, reason
            self._end(outflow)

    def _end(self, outflow: Outflow) -> None:
        self._note(outflow)

        def durable() -> None:
            outflow.ended = True
            outflow.sending.said_end = False

        self._book.then(durable)

    def _outflow(self, key: int) -> Outflow:
        outflow = self._outflows.get(key)
        if outflow is None:
            raise NotFound("no such stream is open", id=f"{key:016x}")
        return outflow

    def announce(self, keys: Iterable[int]) -> None:
        """The gateway has these messages of ours."""
        if self._outflows:
            for key in keys:
                outflow = self._outflows.get(key)
                if outflow is not None:
                    outflow.announced = True

    def refuse(self, key: int) -> None:
        """The gateway does not want the stream that this message opened."""
        outflow = self._outflows.get(key)
        if outflow is not None:
            outflow.failed, outflow.reason = True, "the gateway refused it"
            self._drop(outflow)

    def _drop(self, outflow: Outflow) -> None:
        del self._outflows[outflow.key]
        self._book.note(FlowRow(outflow.key, False, None))
        self._book.drop(outflow.key, incoming=False, below=outflow.written + 1)
        self._book.stirred.append(outflow.key)

    def heard(self, outflow: Outflow, taken: Taken) -> None:
        """The gateway says how far it is with a stream."""
        key = outflow.key
        if taken.offset > outflow.available:
            self.abort(key, "this device has lost what it had written")
            return
        if taken.offset < outflow.sending.taken and not outflow.chunks.read(taken.offset, 1):
            if self.alone and not outflow.sending.known:
                self.abort(key, "the gateway has lost what it had of it")
            return
        outflow.sending.heard(taken, outflow.available)
        kept_from = outflow.chunks.drop_below(taken.offset)
        if kept_from is not None:
            self._book.drop(key, incoming=False, below=kept_from)
        self._book.stirred.append(key)

    def ended(self, outflow: Outflow, ending: Ending) -> None:
        """The gateway has all of a stream, or wants no more of it."""
        if ending.status != EndStatus.CONFIRMED:
            self.abort(outflow.key, ending.reason or "the receiver wants no more")
            outflow.sending.said_end = False
            self._book.stirred.append(outflow.key)
        elif outflow.ended:
            self._drop(outflow)

    def _note(self, outflow: Outflow) -> None:
        self._book.note(FlowRow(outflow.key, False, outflow.state()))
