"""The decider of all deliveries of one message to a group or queue."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Protocol

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery, Item
from lasthop.core.effects import Send
from lasthop.core.feature import Decider
from lasthop.core.groups.notices import DecisionNotices
from lasthop.core.lifecycle import SENDING, State, Step
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.registry import Device
from lasthop.message import Message
from lasthop.wire.hop.decisions import GroupDecision
from lasthop.wire.hop.frames import Skip


class Standing(IntEnum):
    """The state of a group message as a whole. The numbers are stored: never reuse one."""

    SPREADING = 1
    """A plain message for a group, whose deliveries are being begun."""
    SPREAD = 2
    HELD = 3
    """An atomic message that members have or get, and do not show yet."""
    RELEASED = 4
    ABORTED = 5
    CLAIMABLE = 6
    CLAIMED = 7
    UNCLAIMED = 8
    """A claimable message that no member claimed in time."""
    CANCELLED = 9
    REPLACED = 10
    EXPIRED = 11
    """A queue entry that no consumer took in time."""


WITHDRAWN: dict[Step, Standing] = {
    Step.CANCEL: Standing.CANCELLED,
    Step.REPLACE: Standing.REPLACED,
    Step.ABORT: Standing.ABORTED,
}


class Settled(Protocol):
    """Records the decision about a message as a whole in the log."""

    def __call__(
        self, message: Message, standing: Standing, reason: str, now: Micros, *, count: int
    ) -> None: ...


class GroupOperations(Protocol):
    """The interface of the feature that has the messages of all groups."""

    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def fanouts(self) -> Fanouts: ...
    @property
    def decisions(self) -> DecisionNotices: ...
    @property
    def settled(self) -> Settled: ...

    def report(self, message: Message, decision: GroupDecision, now: Micros) -> None:
        """Send the decision about a message to the device that sent it."""
        ...


class GroupDecider(Decider):
    """Decides the steps of all deliveries of one message."""

    __slots__ = ("deliveries", "item")

    carried = False
    any_order = False

    def __init__(self, deliveries: Deliveries, item: Item) -> None:
        super().__init__(deliveries)
        self.deliveries = deliveries
        self.item = item
        item.decider = self

    def supersede(self, delivery: Delivery, replace_key: str) -> None:
        """Do nothing: the message as a whole is registered under its replace key, not each
        delivery."""

    def skip(self, delivery: Delivery) -> None:
        """Return None: the decision that took the delivery back has told the device already."""

    def withdraw(self, step: Step, now: Micros, reason: str) -> tuple[int, int]:
        return 0, len(self.item.deliveries)

    def audience(self) -> Mapping[int, Device]:
        return {}

    def restored(self, now: Micros) -> None:
        """Resume after a restart, when all deliveries of the message are restored."""

    def reopened(self, delivery: Delivery, now: Micros) -> bool:
        # The device holds it, or a queue has taken it back: no number of it is under way.
        return delivery.seq < 0 and delivery.state is not State.PENDING


def detach(delivery: Delivery) -> None:
    """Separate a delivery from its sequence number, which becomes a skip: later reports about the
    number do not concern the delivery, and a device that lacks the number need not wait for it."""
    outbound, seq = delivery.lane.outbound, delivery.seq
    if seq >= 0 and outbound.get(seq) is delivery:
        outbound.put(seq, Skip(seq))
    delivery.seq = delivery.epoch = -1


def close_number(deliveries: Deliveries, delivery: Delivery) -> None:
    """Tell the device, as soon as the reason is durable, not to wait for the number of a delivery
    that was taken back. A device that has received the number already ignores this."""
    session, lane, seq = delivery.session, delivery.lane, delivery.seq
    if seq < 0 or not session.greeted or not lane.outbound.awaits(seq):
        return
    contact = session.contacts

    def close(_: Micros) -> None:
        there = session.greeted and session.contacts == contact
        if there and lane.outbound.awaits(seq):
            deliveries.effects.append(Send(session.channel, [lane.about(Skip(seq))]))

    deliveries.commits.when_durable(close)


def is_under_way(delivery: Delivery) -> bool:
    """Return whether the device may have some of the delivery."""
    return delivery.state is SENDING or bool(delivery.attempts)
