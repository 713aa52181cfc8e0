"""What all transfers of a device keep together: rows for the next change, what becomes true with
it, and words for the gateway."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from lasthop.device.change import Change, DevicePieceRow, FlowRow
from lasthop.device.change_mark import ChangeMark
from lasthop.wire.hop.frames import Frame


class TransferBook:
    """Collected until the next change, and until the next frames leave."""

    def __init__(self, mark: ChangeMark) -> None:
        self._mark = mark
        self._rows: list[DevicePieceRow] = []
        self._dropped: list[tuple[int, bool, int]] = []
        self._flows: dict[tuple[int, bool], FlowRow] = {}
        self._then: list[Callable[[], None]] = []
        """What becomes true with the next change."""
        self._pending: deque[tuple[int, list[Callable[[], None]]]] = deque()
        self.words: list[Frame] = []
        """For the gateway."""
        self.said: set[int] = set()
        """Keys of transfers about whose end the gateway was told."""
        self.stirred: list[int] = []
        """Keys of streams about which something is different, since the owner last looked."""

    def keep(self, row: DevicePieceRow) -> None:
        """Keep a piece."""
        self._rows.append(row)
        self._mark.dirty = True

    def drop(self, key: int, *, incoming: bool, below: int) -> None:
        """Keep no pieces that begin below."""
        self._dropped.append((key, incoming, below))
        self._mark.dirty = True

    def note(self, row: FlowRow) -> None:
        """Keep how far a stream is, or that it is over."""
        self._flows[row.key, row.incoming] = row
        self._mark.dirty = True

    def then(self, act: Callable[[], None]) -> None:
        """Let this happen when the next change is durable."""
        self._then.append(act)
        self._mark.dirty = True

    def collect(self, change: Change) -> None:
        """Put into `change` what has to survive."""
        change.pieces, self._rows = self._rows, []
        change.dropped_pieces, self._dropped = self._dropped, []
        change.flows, self._flows = list(self._flows.values()), {}
        if self._then:
            self._pending.append((change.n, self._then))
            self._then = []

    def committed(self, n: int) -> None:
        """Change `n`, and all before it, is durable."""
        while self._pending and self._pending[0][0] <= n:
            for then in self._pending.popleft()[1]:
                then()
