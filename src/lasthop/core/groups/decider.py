"""What holds the deliveries of one message together: it decides their steps."""

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
    """How a bond stands. The numbers are stored: never reuse one."""

    SPREADING = 1
    """A plain message for a group, whose deliveries are being begun."""
    SPREAD = 2
    HELD = 3
    """Atomic: members have it or get it, and show nothing."""
    RELEASED = 4
    ABORTED = 5
    CLAIMABLE = 6
    CLAIMED = 7
    UNCLAIMED = 8
    """Nobody claimed it in time."""
    CANCELLED = 9
    REPLACED = 10
    EXPIRED = 11
    """Of a queue: nobody came for it."""


WITHDRAWN: dict[Step, Standing] = {
    Step.CANCEL: Standing.CANCELLED,
    Step.REPLACE: Standing.REPLACED,
    Step.ABORT: Standing.ABORTED,
}


class Settled(Protocol):
    """Puts down in the log what was decided about a message as a whole."""

    def __call__(
        self, message: Message, standing: Standing, reason: str, now: Micros, *, count: int
    ) -> None: ...


class GroupBook(Protocol):
    """What the messages of all groups have in common."""

    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def fanouts(self) -> Fanouts: ...
    @property
    def decisions(self) -> DecisionNotices: ...
    @property
    def settled(self) -> Settled: ...

    def report(self, message: Message, decision: GroupDecision, now: Micros) -> None:
        """Tell the device that sent a message what was decided about it."""
        ...


class GroupDecider(Decider):
    """Decides the steps of all deliveries of one message."""

    __slots__ = ("deliveries", "item")

    carried = False

    def __init__(self, deliveries: Deliveries, item: Item) -> None:
        super().__init__(deliveries)
        self.deliveries = deliveries
        self.item = item
        item.decider = self

    def supersede(self, delivery: Delivery, replace_key: str) -> None:
        """The message as a whole stands under its replace key, not each delivery."""

    def skip(self, delivery: Delivery) -> None:
        """Whoever took it back has told the device already."""

    def withdraw(self, step: Step, now: Micros, reason: str) -> tuple[int, int]:
        return 0, len(self.item.deliveries)

    def audience(self) -> Mapping[int, Device]:
        return {}

    def restored(self, now: Micros) -> None:
        """All deliveries are back after a restart."""

    def reopened(self, delivery: Delivery, now: Micros) -> bool:
        # The device holds it, or it was taken from it: no number is under way.
        return delivery.seq < 0 and delivery.state is not State.PENDING


def detach(delivery: Delivery) -> None:
    """Its number, if it has one, stands for it no longer: what the device says of that does not
    concern it, and a device that does not have the number need not wait for it."""
    outbound, seq = delivery.session.lane.outbound, delivery.seq
    if seq >= 0 and outbound.get(seq) is delivery:
        outbound.put(seq, Skip(seq))
    delivery.seq = delivery.epoch = -1


def close_number(deliveries: Deliveries, delivery: Delivery) -> None:
    """It was called back: the device need not wait for its number, should that not have left, as
    soon as it is durable why. One that has it already does not mind."""
    session, seq = delivery.session, delivery.seq
    if seq < 0 or not session.greeted or not session.lane.outbound.awaits(seq):
        return
    contact = session.contacts

    def close(_: Micros) -> None:
        there = session.greeted and session.contacts == contact
        if there and session.lane.outbound.awaits(seq):
            deliveries.effects.append(Send(session.channel, [Skip(seq)]))

    deliveries.commits.when_durable(close)


def is_under_way(delivery: Delivery) -> bool:
    """Whether the device may have some of it."""
    return delivery.state is SENDING or bool(delivery.attempts)
