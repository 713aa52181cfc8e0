"""Receipts of networks: which delivery a receipt is about, and what it says.

A receipt says that a handset has a message that was sent, or that it will not get it. It comes
after the delivery has ended, perhaps after a restart, so what is expected is stored. It changes no
state: a network's word is no confirmation of the client (PPG service, 5.1.2.2.5.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from lasthop.clock import DAY, Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.lifecycle import STATE_NAMES, State
from lasthop.events import Kind
from lasthop.store.commit import Commit, DeliveryRow, MemoryRow
from lasthop.wire.smpp.commands import FINAL, SmsState

MEMORY = "receipt:"
"""The prefix of a receipt's name in the store's table of memories."""

WAIT: Micros = 3 * DAY
"""How long a receipt is expected: networks keep a message for a day or two."""

MAX_EXPECTED = 1_000_000
"""The most receipts that are expected at a time; the oldest are forgotten. Some 400 bytes each."""

SAYS = {
    SmsState.DELIVERED: "the network says that the handset has it",
    SmsState.EXPIRED: "the network says that it expired before the handset could get it",
    SmsState.DELETED: "the network says that it was deleted",
    SmsState.UNDELIVERABLE: "the network says that it cannot be delivered",
    SmsState.UNKNOWN: "the network does not know what became of it",
    SmsState.REJECTED: "the network says that it was rejected",
}
"""What each final state of a receipt means, for people."""


class _Expected(msgspec.Struct, array_like=True):
    """A delivery that has been sent, and the receipts that have not come."""

    row: DeliveryRow
    names: tuple[str, ...]
    at: Micros


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Expected).decode


class _Row:
    """A row of an ended delivery, for the commit in which its receipt is noted."""

    def __init__(self, row: DeliveryRow) -> None:
        self._row = row

    def write(self, commit: Commit) -> None:
        commit.deliveries.append(self._row)


class ExpectedReceipts:
    """The receipts that networks have promised, by name."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._expected: dict[str, _Expected] = {}
        """By name, oldest first; the parts of one push share an object."""

    def __len__(self) -> int:
        """Return the number of receipts that have not come."""
        return len(self._expected)

    def restore(self, memories: Iterable[MemoryRow]) -> None:
        """Restore what was expected before a restart."""
        found = [
            (row.name.removeprefix(MEMORY), _decode(row.state))
            for row in memories
            if row.device == 0 and row.name.startswith(MEMORY)
        ]
        of_push: dict[tuple[int, int], _Expected] = {}
        for name, expected in sorted(found, key=lambda pair: pair[1].at):
            shared = of_push.setdefault((expected.row.message, expected.row.device), expected)
            self._expected[name] = shared
        for shared in of_push.values():
            # A part whose receipt has come is not remembered any more.
            shared.names = tuple(n for n in shared.names if self._expected.get(n) is shared)

    def expect(self, delivery: Delivery, names: Sequence[str], now: Micros) -> None:
        """Expect the receipts with these names for a delivery that has just been sent."""
        self._forget_late(now)
        expected = _Expected(delivery.row(), tuple(names), now)
        state = _encode(expected)
        commits = self._deliveries.commits
        for name in names:
            self._expected.pop(name, None)
            self._expected[name] = expected
            commits.open.remember(0, MEMORY + name, state)

    def noted(self, names: Iterable[str], state: SmsState, error: str, now: Micros) -> bool:
        """Note a receipt that has one of these names; return whether it is about a known
        delivery."""
        name = next((name for name in names if name in self._expected), None)
        if name is None:
            return False
        if state not in FINAL:
            return True
        expected = self._expected[name]
        if state is SmsState.DELIVERED:
            # A long message is with the handset when all of its parts are.
            self._forget([name])
            expected.names = tuple(each for each in expected.names if each != name)
            if expected.names:
                return True
        else:
            self._forget(expected.names)
        self._record(expected.row, state, error, now)
        return True

    def removed(self, device: int) -> None:
        """Expect nothing more for a device that is being removed."""
        self._forget([n for n, each in self._expected.items() if each.row.device == device])

    def _record(self, row: DeliveryRow, state: SmsState, error: str, now: Micros) -> None:
        device = self._deliveries.registry.numbered(row.device)
        if device is None:
            return
        reason = SAYS[state] + (f" (error {error})" if error.strip("0") else "")
        commits = self._deliveries.commits
        row.last_event = commits.record(
            Kind.RECEIPTED,
            now,
            self._deliveries.session(device),
            msg=row.message,
            prev=row.last_event,
            state=STATE_NAMES[State(row.state)],
            reason=reason,
        )
        row.receipt = state
        commits.note(_Row(row))
        commits.hurry()
        self._deliveries.announce_message(row.message)

    def _forget_late(self, now: Micros) -> None:
        late: list[str] = []
        for name, expected in self._expected.items():
            few = len(self._expected) - len(late) < MAX_EXPECTED
            if few and now < expected.at + WAIT:
                break
            late.append(name)
        self._forget(late)

    def _forget(self, names: Iterable[str]) -> None:
        for name in list(names):
            if self._expected.pop(name, None) is not None:
                self._deliveries.commits.open.remember(0, MEMORY + name, b"")
