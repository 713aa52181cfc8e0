"""A delivery of a ranked topic, or an instruction of its feed to the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.envelope import PLAIN_HEADERS
from lasthop.core.feature import Decider, OrderKey
from lasthop.core.lane import LaneName
from lasthop.core.lifecycle import PENDING, State, Step
from lasthop.events import Event
from lasthop.message import DEFAULT_PRIORITY, TargetKind
from lasthop.wire.hop.frames import MessageFrame

if TYPE_CHECKING:
    from lasthop.core.ranked.subscription import RankedSubscription


class RankedSteps(Protocol):
    """The interface of the feature that handles all ranked deliveries."""

    def acknowledged(self, ranked: RankedDelivery, now: Micros) -> None:
        """Take the step for a ranked delivery whose number the device has acknowledged."""
        ...

    def wait_again(self, ranked: RankedDelivery, now: Micros) -> None:
        """Let a ranked delivery that has not left wait again after a restart."""
        ...


class RankedDelivery(Decider):
    """Decides one delivery of a ranked topic: it waits until its feed lets it go. An acknowledged
    number only says that the device has the message: one that is kept on the device has not been
    shown yet."""

    __slots__ = (
        "_common",
        "_deliveries",
        "arrived",
        "delivery",
        "feed",
        "followed",
        "forget",
        "keep",
        "shown",
        "turn",
    )

    carried = False
    pulled = False
    any_order = False

    def __init__(
        self,
        deliveries: Deliveries,
        common: RankedSteps,
        delivery: Delivery,
        subscription: RankedSubscription | None,
    ) -> None:
        super().__init__(deliveries)
        self._deliveries = deliveries
        self._common = common
        self.delivery = delivery
        delivery.decider = self
        delivery.priority = DEFAULT_PRIORITY
        delivery.place = 0
        self.turn = 0
        self.feed = subscription
        """The feed that decides about the delivery; None when the subscription has ended."""
        self.arrived = False
        """Whether the feed has been told of the message, which happens at its `deliver_after` if it
        has one."""
        self.keep = False
        """Whether the device keeps the message in its own queue until it is read."""
        self.forget = False
        """Whether the device will be told to forget the message as soon as it has it."""
        self.shown: tuple[int, ...] | None = None
        """The keys of the messages that the application gets by an instruction; None if the
        delivery is a message."""
        self.followed = True
        """False once the device has reported that it did not follow the instruction."""

    @property
    def stamp(self) -> int:
        """The delivery's turn to leave, compared with the keys of messages; 0 while it must not
        leave."""
        return self.delivery.place

    @stamp.setter
    def stamp(self, stamp: int) -> None:
        self.delivery.place = stamp

    @property
    def key(self) -> int:
        """The key of the delivery's message."""
        return self.delivery.item.message.key

    @property
    def instructs(self) -> bool:
        """Whether this is an instruction of the feed and not a message of the topic."""
        return self.shown is not None

    @property
    def on_device(self) -> bool:
        """Whether the device keeps the message until it is read."""
        return self.keep and self.delivery.state is State.RECEIVED

    def began(self, delivery: Delivery, event: Event, until: Micros | None, now: Micros) -> bool:
        assert self.feed is not None, "a feed has just let it be opened"
        self.feed.begin(self, event, until, now)
        return True

    def due(self, delivery: Delivery, now: Micros) -> bool:
        if self.feed is not None:
            return self.feed.due(self, now)
        if not self.stamp:
            self.stamp = self.key  # Without a feed it leaves in the order of its key.
        return False

    def numbers(self, delivery: Delivery) -> bool:
        """Return True: the device uses the number to report what became of the delivery, whatever
        its publisher asked for."""
        return True

    def released(self, delivery: Delivery, now: Micros, reason: str) -> Event:
        if self.feed is None:
            return self.steps.step(delivery, Step.RELEASE, now, "in contact")
        event = self.steps.step(delivery, Step.RELEASE, now, self.feed.why(self))
        self.feed.mark(event)
        return event

    def received(self, delivery: Delivery, now: Micros) -> None:
        """Do nothing: for a ranked delivery only the acknowledgement of its number counts."""

    def acknowledged(self, delivery: Delivery, now: Micros) -> None:
        self._common.acknowledged(self, now)

    def dropped(self, delivery: Delivery, now: Micros) -> None:
        """Note that the device could not follow an instruction, for a reason that its report gives;
        or that a message came too late."""
        if not self.instructs:
            super().dropped(delivery, now)
            return
        self.followed = False
        if self.feed is not None:
            self.feed.note(self.key)

    def ended(self, delivery: Delivery) -> None:
        if self.feed is not None:
            self.feed.ended(self)

    def frame(self, delivery: Delivery, frame: MessageFrame) -> MessageFrame:
        if not self.keep:
            return frame
        headers = msgspec.structs.replace(frame.headers or PLAIN_HEADERS, keep=True)
        return msgspec.structs.replace(frame, headers=headers)

    def lane(self, delivery: Delivery) -> LaneName | None:
        """Return the lane of the topic: instructions follow the messages that they are about."""
        topic = self.order(delivery)[2] if self.stamp else None
        return super().lane(delivery) if topic is None else (topic, None, DEFAULT_PRIORITY, False)

    def order(self, delivery: Delivery) -> OrderKey:
        """Return one order key for everything that the feed of a ranked topic sends, whatever its
        source."""
        message = delivery.item.message
        if not self.stamp:
            return super().order(delivery)
        topic = message.target.name if message.target.kind is TargetKind.TOPIC else message.queue
        return message.app, "feed:", topic, DEFAULT_PRIORITY

    def rank(self, delivery: Delivery) -> float:
        """Return 0 for a queued delivery: the feed has put it in order."""
        return 0.0 if self.stamp else super().rank(delivery)

    def reopened(self, delivery: Delivery, now: Micros) -> bool:
        if delivery.state is PENDING:
            self._common.wait_again(self, now)
            return True
        if not self.on_device:
            return False
        before = delivery.item.message.deliver_before
        if before is not None:
            self._deliveries.timers.add(max(before, now), delivery)
        return True


def ranked_of(delivery: Delivery | None) -> RankedDelivery | None:
    """Return the decider of a delivery of a ranked topic; None for any other delivery."""
    decider = None if delivery is None else delivery.decider
    return decider if isinstance(decider, RankedDelivery) else None
