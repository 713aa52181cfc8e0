"""Grants of bytes to bodies and streams, for devices that have preferences: bytes are reserved
before they leave, and paid for as far as they left.

A body is granted as a whole, so that none is begun that cannot be afforded; a stream, which may
never end, some bytes at a time. Nothing of a grant leaves before it is durable: after a crash all
of it counts as spent.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lasthop.clock import Micros
from lasthop.core.transfer import Transfer
from lasthop.decision.choice import MessageToPlace as Question
from lasthop.decision.decide import Action
from lasthop.decision.grants import STREAM_GRANT, Grant
from lasthop.message import key_time

if TYPE_CHECKING:
    from lasthop.core.deliveries import Deliveries
    from lasthop.core.preferences.device_preferences import DevicePreferences


class Grants:
    """The grants of one device's transfers."""

    __slots__ = ("_device_preferences", "_given", "_paid")

    def __init__(self, device_preferences: DevicePreferences) -> None:
        self._device_preferences = device_preferences
        self._given: dict[Transfer, Grant] = {}
        self._paid: dict[int, int] = {}
        """Money that the bodies of messages have cost, by message key, until `paid` is called."""

    def covers(self, outgoing: Transfer) -> bool:
        """Return whether bytes of a transfer are granted."""
        return outgoing in self._given

    def give(self, deliveries: Deliveries, now: Micros) -> Micros | None:
        """Grant the bytes that may leave now; return when to ask again, or None if that is not
        known."""
        transfers = self._device_preferences.session.transfers
        for outgoing in [o for o in self._given if transfers.get(o.sending.transfer) is not o]:
            self._over(outgoing, now)
        due: Micros | None = None
        for outgoing in sorted(transfers.values(), key=Transfer.place):
            until = None if outgoing in self._given else self.ask(outgoing, deliveries, now)
            if until is not None and (due is None or until < due):
                due = until
        return due

    def ask(self, outgoing: Transfer, deliveries: Deliveries, now: Micros) -> Micros | None:
        """Grant the bytes that a transfer could send now; return when to ask again if it may not,
        or None if that is not known."""
        size = _size_to_ask(outgoing, now)
        if not size:
            return None
        source = outgoing.source
        question = Question(
            size=size,
            since=key_time(outgoing.sending.transfer),
            deliver_before=source.deadline,
            whole=False,
        )
        device_preferences = self._device_preferences
        choice = device_preferences.link_for(question, source.queue, source.quality, now)
        if choice.action is not Action.SEND:
            return choice.until
        device_preferences.ledger.reserve(outgoing, choice, queue=source.queue or "", now=now)
        grant = self._given[outgoing] = Grant(choice.channel, size)
        device_preferences.write()
        deliveries.commits.when_durable(partial(self._durable, grant, deliveries))
        return None

    def _durable(self, grant: Grant, deliveries: Deliveries, now: Micros) -> None:
        grant.durable = True
        deliveries.touch(self._device_preferences.session)

    def allowance(self, outgoing: Transfer) -> tuple[int, int]:
        """Return the channel over which a transfer may continue, and how many bytes; (0, 0) if
        none."""
        grant = self._given.get(outgoing)
        return (0, 0) if grant is None or not grant.durable else (grant.channel, grant.left)

    def leaves(self, outgoing: Transfer, size: int, now: Micros) -> None:
        """Note that `size` bytes of a transfer are handed to their channel."""
        grant = self._given[outgoing]
        grant.leave(size)
        if not grant.left:
            self._over(outgoing, now)

    def revoke(self, now: Micros) -> None:
        """Take back all grants because the links have changed: it is decided again how the
        remaining bytes leave."""
        for outgoing in list(self._given):
            self._over(outgoing, now)

    def paid(self, key: int) -> int:
        """Return what the body of a message has cost since the last call."""
        return self._paid.pop(key, 0)

    def _over(self, outgoing: Transfer, now: Micros) -> None:
        """End a grant, and pay for the bytes of it that left."""
        grant = self._given.pop(outgoing)
        device_preferences = self._device_preferences
        charge = grant.settle(device_preferences.ledger, outgoing, device_preferences.tariff, now)
        if charge is not None and charge.money and not outgoing.sending.stream:
            key = outgoing.sending.transfer
            self._paid[key] = self._paid.get(key, 0) + charge.money


def _size_to_ask(outgoing: Transfer, now: Micros) -> int:
    """Return the bytes to ask for: of a body all that is left, of a stream some."""
    sending, source = outgoing.sending, outgoing.source
    could = sending.room(source.available, STREAM_GRANT)
    if not could or not source.announced() or source.refusal(now) is not None:
        return 0
    return could if sending.stream else source.available - sending.cursor
