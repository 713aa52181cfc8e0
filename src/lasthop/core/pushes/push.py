"""A push that is not over: the reports of its addresses so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from lasthop.clock import Micros
from lasthop.core.feature import DeliveryObserver
from lasthop.core.lifecycle import State
from lasthop.core.pushes.report import audience_of, report_of, withdrawn
from lasthop.message import DeliveryMethod
from lasthop.store.pushes import PushRow
from lasthop.wire.pap.codes import MessageState
from lasthop.wire.pap.outcomes import PushReport, combine

if TYPE_CHECKING:
    from lasthop.core.delivery import Delivery, Item
    from lasthop.core.pushes.notification import Notifications
    from lasthop.core.registry import Device, Registry

_PENDING = PushReport(MessageState.PENDING, 1000)


class OpenPushes(Protocol):
    """The interface of the feature that has all pushes which are not over."""

    def closed(self, push: PushInProgress) -> None:
        """Forget a push that is over."""
        ...

    def note(self, row: PushRow) -> None:
        """Write a push with the open commit."""
        ...


class PushInProgress(DeliveryObserver):
    """One push that is not over. `_best` has the report so far of each address: the reports of
    ended deliveries are combined one by one, so that a group costs no memory."""

    __slots__ = (
        "_best",
        "_item",
        "_last_at",
        "_left",
        "_notifications",
        "_pushes",
        "_replies",
        "_told",
        "_where",
        "row",
    )

    def __init__(
        self, row: PushRow, item: Item, notifications: Notifications, pushes: OpenPushes
    ) -> None:
        self.row = row
        self._item = item
        self._pushes = pushes
        self._notifications = notifications
        count = len(row.addresses)
        self._best: list[PushReport | None] = [None] * count
        self._replies = [0] * count
        self._told = [False] * count
        self._last_at = item.message.accepted_at
        self._left: list[int] = []
        """Number of deliveries that have not ended, by address, if the devices are listed."""
        self._where: dict[int, list[int]] = {}
        """The addresses of each device, if the devices are listed."""
        if self.listed:
            for place, addressee in enumerate(row.addresses):
                self._left.append(len(addressee.devices or ()))
                for number in addressee.devices or ():
                    self._where.setdefault(number, []).append(place)

    @property
    def listed(self) -> bool:
        """Whether the devices of each address are listed; otherwise there is one address, and
        every delivery belongs to it."""
        return self.row.addresses[0].devices is not None

    def places(self, number: int) -> Iterable[int]:
        """Return the indexes of the addresses that stand for a device."""
        return self._where[number] if self.listed else (0,)

    def reach(self, registry: Registry) -> dict[int, Device]:
        """Return the listed devices that still exist."""
        found = ((number, registry.numbered(number)) for number in self._where)
        return {number: device for number, device in found if device is not None}

    def ended(self, delivery: Delivery) -> None:
        """Add the report of a delivery that has ended, and settle the addresses that it decides."""
        number = delivery.session.device.number
        at = delivery.changed_at
        for place in self._fold(number, delivery.state, delivery.code, at, delivery.reply):
            best = self._best[place]
            assert best is not None
            self.settle(place, best, at, number)

    def ended_before(self, number: int, state: State, code: int, at: Micros, reply: int) -> None:
        """Add the report of a delivery that ended before a restart; its notifications are stored
        already."""
        for place in self._fold(number, state, code, at, reply):
            self._told[place] = True

    def _fold(self, number: int, state: State, code: int, at: Micros, reply: int) -> Iterable[int]:
        """Combine a delivery's end with the reports so far, and return the addresses that it
        decides."""
        report = report_of(state, code, at, self._item.message.method)
        self._last_at = at
        decided: list[int] = []
        for place in self.places(number):
            self._take(place, report)
            if reply and not self._replies[place]:
                self._replies[place] = reply
            if self.listed:
                self._left[place] -= 1
            last = self.listed and not self._left[place]
            person = not self.row.addresses[place].everyone
            arrived = person and report.state is MessageState.DELIVERED
            if (last or arrived) and not self._told[place]:
                decided.append(place)
        return decided

    def _take(self, place: int, report: PushReport) -> None:
        best = self._best[place]
        known = (report,) if best is None else (best, report)
        self._best[place] = combine(known, audience_of(self.row.addresses[place]))

    def over(self, item: Item) -> None:
        """Close the push, and settle every address that has not been settled."""
        self._pushes.closed(self)
        for place, told in enumerate(self._told):
            if not told:
                best = self._best[place]
                self.settle(place, combine(()) if best is None else best, self._last_at)

    def settle(self, place: int, report: PushReport, at: Micros, device: int = 0) -> None:
        """Make the outcome at an address final, and notify the initiator if it asked for that."""
        self._told[place] = True
        self._best[place] = report
        if not self.row.notify_to:
            return
        method = self._item.message.method
        awaited = (
            method is DeliveryMethod.CONFIRMED_WITH_RESPONSE
            and report.state is MessageState.DELIVERED
        )
        self._notifications.add(
            self.row,
            place,
            report,
            at,
            reply=self._replies[place] if awaited else 0,
            awaited_from=device if awaited else 0,
        )

    def resume(self, place: int, report: PushReport) -> None:
        """Restore the outcome at an address that was known before a restart; if it was final, the
        initiator has been notified."""
        self._take(place, report)
        self._told[place] = bool(self.row.addresses[place].code)

    def report(self, place: int) -> PushReport:
        """Return the present report of an address."""
        addressee = self.row.addresses[place]
        best = self._best[place]
        unfinished = self._left[place] > 0 if self.listed else self._open
        if self._told[place] or not unfinished:
            return combine(()) if best is None else best
        return combine((_PENDING,) if best is None else (best, _PENDING), audience_of(addressee))

    @property
    def _open(self) -> bool:
        return bool(self._item.deliveries) or self._item.spreading

    def cancellable(self, asked: set[int]) -> set[int]:
        """Return those of the given addresses from which the push can be taken back entirely.

        No delivery of it may have left, none may have ended in a way that outweighs cancellation,
        and no device may have another address that keeps the push.
        """
        possible = {place for place in asked if self._might_cancel(place)}
        for delivery in self._item.deliveries:
            # A cancellation at an address succeeds entirely or changes nothing.
            if not delivery.revocable:
                possible.difference_update(self.places(delivery.session.device.number))
        if not self.listed:
            return possible
        still_open = [self._where[d.session.device.number] for d in self._item.deliveries]
        while True:
            kept = {n for places in still_open if not possible.issuperset(places) for n in places}
            if not possible & kept:
                return possible
            possible -= kept

    def _might_cancel(self, place: int) -> bool:
        if self.report(place).state is not MessageState.PENDING:
            return False
        best = self._best[place]
        cancelled = withdrawn(0)
        audience = audience_of(self.row.addresses[place])
        after = combine((cancelled,) if best is None else (best, cancelled), audience)
        return after.state is MessageState.CANCELLED

    def stopped(self, item: Item, now: Micros) -> None:
        """Note the time of the withdrawal in the push's row: deliveries that had not begun leave no
        other trace."""
        self.row = replace(self.row, withdrawn_at=now)
        self._pushes.note(self.row)
        self._last_at = now
        for place, addressee in enumerate(self.row.addresses):
            if not addressee.code:
                self._take(place, withdrawn(now))
