"""What holds the deliveries of one message together: the hooks that the rest of core calls.

A message without a bond is the rule, and costs one look at `item.bond`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

from lasthop.clock import Micros
from lasthop.core.effects import Send
from lasthop.core.lifecycle import SENDING, Step
from lasthop.wire.hop.frames import Skip

if TYPE_CHECKING:
    from lasthop.core.delivery import Delivery, Item
    from lasthop.core.mailroom import Mailroom
    from lasthop.core.registry import Device


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


class Bond:
    """A bond that changes nothing: each method does what happens without one."""

    __slots__ = ("item", "room")

    def __init__(self, room: Mailroom, item: Item) -> None:
        self.room = room
        self.item = item
        item.bond = self

    holds = False
    """Whether members show nothing of it for now."""

    def received(self, delivery: Delivery, now: Micros) -> None:
        """The device has it."""
        self.room.step(delivery, Step.RECEIVE, now)

    def acknowledged(self, delivery: Delivery, now: Micros) -> None:
        """Its number is closed: the application has had it."""
        self.room.step(delivery, Step.DELIVER, now)

    def dropped(self, delivery: Delivery, now: Micros) -> None:
        """The device let it go."""
        self.room.step(delivery, Step.EXPIRE, now, "too late when it was to be used")

    def ended(self, delivery: Delivery) -> None:
        """One of its deliveries is over, whoever said so."""

    def withdraw(self, step: Step, now: Micros, reason: str) -> tuple[int, int]:
        """Take it back; how many deliveries were, and for how many it is too late."""
        return 0, len(self.item.deliveries)

    def audience(self) -> Mapping[int, Device]:
        """Those who get what replaces it."""
        return {}

    def restored(self, now: Micros) -> None:
        """All its deliveries are here again after a restart."""


def detach(delivery: Delivery) -> None:
    """Its number, if it has one, stands for it no longer: what the device says of that does not
    concern it, and a device that does not have the number need not wait for it."""
    outbound, seq = delivery.session.outbound, delivery.seq
    if seq >= 0 and outbound.get(seq) is delivery:
        outbound.put(seq, Skip(seq))
    delivery.seq = delivery.epoch = -1


def close_number(room: Mailroom, delivery: Delivery) -> None:
    """It was called back: the device need not wait for its number, should that not have left, as
    soon as it is durable why. One that has it already does not mind."""
    session, seq = delivery.session, delivery.seq
    if seq < 0 or not session.greeted or not session.outbound.awaits(seq):
        return
    contact = session.contacts

    def close(_: Micros) -> None:
        there = session.greeted and session.contacts == contact
        if there and session.outbound.awaits(seq):
            room.effects.append(Send(session.channel, [Skip(seq)]))

    room.journal.when_durable(close)


def is_under_way(delivery: Delivery) -> bool:
    """Whether the device may have some of it."""
    return delivery.state is SENDING or bool(delivery.attempts)
