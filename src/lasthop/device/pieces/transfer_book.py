"""What all transfers of a device share: rows for the next change, actions that follow it, and
frames for the gateway."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from lasthop.device.change import Change, DevicePieceRow, FlowRow
from lasthop.device.change_mark import ChangeMark
from lasthop.wire.hop.frames import Frame


class TransferBook:
    """Collects the rows and frames of all transfers until the next change, or until the next frames
    leave."""

    def __init__(self, mark: ChangeMark) -> None:
        self._mark = mark
        self._rows: list[DevicePieceRow] = []
        self._dropped: list[tuple[int, bool, int]] = []
        self._flows: dict[tuple[int, bool], FlowRow] = {}
        self._then: list[Callable[[], None]] = []
        """The actions that follow when the next change is durable."""
        self._pending: deque[tuple[int, list[Callable[[], None]]]] = deque()
        self.words: list[Frame] = []
        """Frames for the gateway that are not pieces."""
        self.said: set[int] = set()
        """Keys of transfers of which the gateway was told that they have ended."""
        self.stirred: list[int] = []
        """Keys of streams that have changed; the owner collects them."""

    def keep(self, row: DevicePieceRow) -> None:
        """Store a piece with the next change."""
        self._rows.append(row)
        self._mark.dirty = True

    def drop(self, key: int, *, incoming: bool, below: int) -> None:
        """Delete the stored pieces that begin below an offset."""
        self._dropped.append((key, incoming, below))
        self._mark.dirty = True

    def note(self, row: FlowRow) -> None:
        """Store the progress of a stream, or that it is over, with the next change."""
        self._flows[row.key, row.incoming] = row
        self._mark.dirty = True

    def then(self, act: Callable[[], None]) -> None:
        """Call `act` when the next change is durable."""
        self._then.append(act)
        self._mark.dirty = True

    def collect(self, change: Change) -> None:
        """Put the transfers' durable data into `change`."""
        change.pieces, self._rows = self._rows, []
        change.dropped_pieces, self._dropped = self._dropped, []
        change.flows, self._flows = list(self._flows.values()), {}
        if self._then:
            self._pending.append((change.n, self._then))
            self._then = []

    def committed(self, n: int) -> None:
        """Note that change `n`, and all before it, is durable."""
        while self._pending and self._pending[0][0] <= n:
            for then in self._pending.popleft()[1]:
                then()
