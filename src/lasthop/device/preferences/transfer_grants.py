"""Decides which bytes of bodies and streams may leave over which link. Bytes are granted before
they leave; only the bytes that left are paid for.

A body is granted as a whole, so that no body is started that cannot be paid for; a stream, which
may never end, is granted some bytes at a time.
"""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.decision.choice import MessageToPlace as Question
from lasthop.decision.decide import Action
from lasthop.decision.grants import STREAM_GRANT, Grant
from lasthop.device.change_mark import ChangeMark
from lasthop.device.outbox_order import PieceSource
from lasthop.device.preferences.explanation import ChoiceLog
from lasthop.device.preferences.sending_preferences import SendingPreferences
from lasthop.message import key_time
from lasthop.wire.hop.frames import Piece


class TransferGrants:
    """The grants of all transfers of a device that has preferences."""

    def __init__(
        self, preferences: SendingPreferences, source: PieceSource, mark: ChangeMark
    ) -> None:
        self._preferences = preferences
        self._source = source
        self._mark = mark
        self._grants: dict[int, Grant] = {}
        self._new: list[Grant] = []
        self._pending: list[tuple[int, Grant]] = []

    def give(self, log: ChoiceLog, now: Micros) -> tuple[Micros | None, tuple[str, ...]]:
        """Grant bytes to the transfers that may send; return the time to try again, and the links
        that would let the others send."""
        due: Micros | None = None
        wanted: tuple[str, ...] = ()
        for key in [key for key in self._grants if not self._source.sends(key)]:
            self.over(key, now)
        for transfer in self._source.transferable(STREAM_GRANT):
            key = transfer.key
            if key in self._grants:
                continue
            question = Question(
                size=transfer.size,
                since=key_time(key),
                deliver_before=transfer.deadline,
                whole=False,
            )
            choice = self._preferences.choice(question, transfer.queue, now)
            log.note(key, choice, now)
            if choice.action is Action.SEND:
                ledger = self._preferences.ledger
                ledger.reserve(-key, choice, queue=transfer.queue or "", now=now)
                grant = self._grants[key] = Grant(choice.channel, transfer.size)
                self._new.append(grant)
                self._mark.dirty = True
            else:
                wanted = choice.wanted or wanted
                if choice.until is not None and (due is None or choice.until < due):
                    due = choice.until
        return due, wanted

    def next_piece(self, now: Micros) -> tuple[int, Piece] | None:
        """Return the next piece and the channel it leaves over; None if there is none."""
        piece = self._source.next_piece(allow=self._allowance)
        if piece is None:
            return None
        grant = self._grants[piece.transfer]
        grant.leave(len(piece.body))
        channel = grant.channel
        if not grant.left:
            self.over(piece.transfer, now)
        return channel, piece

    def _allowance(self, key: int) -> int:
        grant = self._grants.get(key)
        if grant is None or not grant.durable:
            return 0
        line = self._preferences.lines.get(grant.channel)
        return 0 if line is None or line.paused else grant.left

    def over(self, key: int, now: Micros) -> None:
        """End a grant: the bytes that left are paid for, the rest is refunded."""
        grant = self._grants.pop(key, None)
        if grant is None:
            return
        preferences = self._preferences
        declared = preferences.declared
        grant.settle(preferences.ledger, -key, lambda link: declared(link).tariff, now)

    def lost(self, channel: int, now: Micros) -> None:
        """End the grants on a channel that has ended; their transfers need new grants."""
        for key in [key for key, grant in self._grants.items() if grant.channel == channel]:
            self.over(key, now)

    def lost_all(self, now: Micros) -> None:
        """End all grants, because all channels are gone."""
        for key in list(self._grants):
            self.over(key, now)

    def collect(self, n: int) -> None:
        """Note that change `n` makes the new grants durable."""
        self._pending += [(n, grant) for grant in self._new]
        self._new = []

    def committed(self, n: int) -> None:
        """Note that change `n`, and all before it, is durable."""
        for _, grant in (pair for pair in self._pending if pair[0] <= n):
            grant.durable = True
        self._pending = [pair for pair in self._pending if pair[0] > n]
