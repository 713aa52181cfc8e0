"""The kinds of target that need no feature: a device, a user, all devices of an app, and the
publisher of a message that is being answered."""

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
    """A target whose devices the registry knows by name; the base of the features' targets."""

    def __init__(self, deliveries: Deliveries, fanouts: Fanouts) -> None:
        self._deliveries = deliveries
        self._fanouts = fanouts

    def keeps(self, devices: Mapping[int, Device]) -> bool:
        """Return whether there is any device that a message is for."""
        return bool(devices)

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        """Return the devices that a message is for now."""
        return self._deliveries.registry.reach(app, submission.target)

    def select(
        self, app: str, what: Message | Submission, devices: Mapping[int, Device], *, resident: bool
    ) -> Selection | None:
        """Return None: all devices of the target want the message."""
        return None

    def find_out(self, order: OrderKey, item: Item, selection: Selection) -> None:
        """Do nothing: all devices of the target want the message."""

    def begin(self, item: Item, devices: Mapping[int, Device], now: Micros) -> None:
        """Begin the deliveries of an accepted message."""
        self._fanouts.begin(item, devices, now, None)

    def resume(self, item: Item) -> Mapping[int, Device] | None:
        """Return the devices of a message whose deliveries were still being begun at a restart."""
        return self._deliveries.registry.reach(item.message.app, item.message.target)

    def spreading(self, item: Item, members: tuple[int, ...]) -> None:
        """Store nothing: the devices can be found again by the target."""

    def spread(self, item: Item) -> None:
        """Do nothing: `spreading` has stored nothing."""


class Person(PlainTarget):
    """A device, or all devices of a user: the publisher is told at once if none of them can ever
    get a message, and why."""

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        deliveries = self._deliveries
        devices = deliveries.registry.reach(app, submission.target)
        for number in devices:
            session = deliveries.by_number.get(number)
            if session is None or session.sender is deliveries.sender:
                return devices  # Like most devices, it accepts everything at any time.
        check_possible(deliveries, devices, submission, now)
        return devices


class PublisherTarget(PlainTarget):
    """The publisher of a message that is being answered: the publisher fetches the answer, and
    nothing is delivered."""

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        return {}


def plain_targets(deliveries: Deliveries, fanouts: Fanouts) -> dict[TargetKind, PlainTarget]:
    """Return the rules of the targets that need no feature."""
    person = Person(deliveries, fanouts)
    return {
        TargetKind.DEVICE: person,
        TargetKind.USER: person,
        TargetKind.APP: PlainTarget(deliveries, fanouts),
        TargetKind.PUBLISHER: PublisherTarget(deliveries, fanouts),
    }
