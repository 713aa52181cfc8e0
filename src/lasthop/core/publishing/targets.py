"""Whom the kinds of target stand for that need no feature: a device, a user, everyone of an app,
and whoever published what is being answered."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Item
from lasthop.core.feature import OrderKey, Selection
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.publishing.objections import check_possible
from lasthop.core.publishing.submission import Submission
from lasthop.core.registry import Device
from lasthop.message import Message, TargetKind


class PlainTarget:
    """A target whose devices the registry knows by name. Features begin with this one."""

    def __init__(self, deliveries: Deliveries, fanouts: Fanouts) -> None:
        self._deliveries = deliveries
        self._fanouts = fanouts

    def keeps(self, devices: Mapping[int, Device]) -> bool:
        """Whether there is anybody whom a message is for."""
        return bool(devices)

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        """Whom a message is for now."""
        return self._deliveries.registry.reach(app, submission.target)

    def select(
        self, app: str, what: Message | Submission, devices: Mapping[int, Device], *, resident: bool
    ) -> Selection | None:
        """Everyone wants it."""
        return None

    def find_out(self, order: OrderKey, item: Item, selection: Selection) -> None:
        """Nobody asks: everyone wants it."""

    def begin(self, item: Item, devices: Mapping[int, Device], now: Micros) -> None:
        """Begin the deliveries of an accepted message."""
        self._fanouts.begin(item, devices, now, None)

    def resume(self, item: Item) -> Mapping[int, Device] | None:
        """Whom a message is for whose deliveries were still being begun at a restart."""
        return self._deliveries.registry.reach(item.message.app, item.message.target)

    def spreading(self, item: Item, members: tuple[int, ...]) -> None:
        """Who a message is for can be found again by its target."""

    def spread(self, item: Item) -> None:
        """There is nothing to forget."""


class Person(PlainTarget):
    """A device, or all devices of a user: their senders hear why they cannot have a message."""

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        deliveries = self._deliveries
        devices = deliveries.registry.reach(app, submission.target)
        for number in devices:
            session = deliveries.by_number.get(number)
            if session is None or session.sender is deliveries.sender:
                return devices  # As most: it takes everything at any time.
        check_possible(deliveries, devices, submission, now)
        return devices


class PublisherTarget(PlainTarget):
    """Whoever published what is being answered: the message is fetched, not delivered."""

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        return {}


def plain_targets(deliveries: Deliveries, fanouts: Fanouts) -> dict[TargetKind, PlainTarget]:
    """The targets that need no feature."""
    person = Person(deliveries, fanouts)
    return {
        TargetKind.DEVICE: person,
        TargetKind.USER: person,
        TargetKind.APP: PlainTarget(deliveries, fanouts),
        TargetKind.PUBLISHER: PublisherTarget(deliveries, fanouts),
    }
