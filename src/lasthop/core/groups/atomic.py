"""Atomic messages: all members of a group are shown a message, or none of them.

Members get the message, store it and show nothing. When all of them have it the gateway decides
once to release it; if that has not come about by `deliver_before`, or the message is taken back
earlier, it is aborted for all. Either way a decision follows, which no member misses.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from lasthop.clock import Micros
from lasthop.core.delivery import Delivery, Item
from lasthop.core.envelope import PLAIN_HEADERS
from lasthop.core.groups.decider import (
    WITHDRAWN,
    GroupDecider,
    GroupOperations,
    Standing,
    close_number,
    detach,
    is_under_way,
)
from lasthop.core.lifecycle import DELIVERED, PENDING, State, Step
from lasthop.core.registry import Device
from lasthop.message import Binding
from lasthop.store.groups import GroupChanges, GroupMessageRow
from lasthop.wire.hop.decisions import GroupDecision, GroupVerdict
from lasthop.wire.hop.frames import MessageFrame

HELD = "held until every member has it"
RELEASED = "every member had it"
TOO_LATE = "not every member had it by deliver_before"


class AtomicMessage(GroupDecider):
    """One atomic message, until it is shown everywhere or nowhere."""

    __slots__ = ("_broken", "_groups", "_had", "_size", "before", "standing")

    def __init__(self, groups: GroupOperations, item: Item, members: tuple[int, ...]) -> None:
        super().__init__(groups.deliveries, item)
        self._groups = groups
        self._size = len(members)
        """The number of members, which is fixed: nobody joins, and a member that can no longer have
        the message aborts it."""
        self._had = 0
        """Number of members that have the message."""
        self._broken = ""
        """Why the message must be aborted; empty if it need not be."""
        self.standing = Standing.HELD
        before = item.message.deliver_before
        assert before is not None, "an atomic message has a deadline"
        self.before = before

    @property
    def holds(self) -> bool:
        """Whether members show nothing of the message for now."""
        return self.standing is Standing.HELD

    def begin(self, members: tuple[int, ...], now: Micros) -> None:
        """Store the members of a message that was accepted, and watch the deadline."""
        self._note(now, members)
        self.deliveries.timers.add(self.before, self)

    def _note(self, now: Micros, members: tuple[int, ...] = ()) -> None:
        key = self.item.message.key
        still = self.standing in (Standing.HELD, Standing.RELEASED)
        row = GroupMessageRow(key, self.standing, still, at=now, members=members)
        self.deliveries.commits.open.of(GroupChanges).group_messages[key] = row

    def watch(self, delivery: Delivery, deadline: Micros) -> None:
        """Do nothing: the deadline is that of all members together."""

    def frame(self, delivery: Delivery, frame: MessageFrame) -> MessageFrame:
        if not self.holds:
            return frame  # A released message is shown like any other.
        headers = msgspec.structs.replace(frame.headers or PLAIN_HEADERS, binding=Binding.ATOMIC)
        return msgspec.structs.replace(frame, headers=headers)

    # Reports of members.

    def received(self, delivery: Delivery, now: Micros) -> None:
        if self.standing is not Standing.HELD:
            self.deliveries.step(delivery, Step.RECEIVE, now)
            return
        self.deliveries.step(delivery, Step.RECEIVE, now, HELD)
        detach(delivery)  # The decision's own number tells when the message was shown.
        self._had += 1
        self._consider(now)

    def acknowledged(self, delivery: Delivery, now: Micros) -> None:
        """Take the step for an acknowledged number: after the release it means that the message was
        shown, before only that the device has the message."""
        if self.standing is Standing.RELEASED:
            self.deliveries.step(delivery, Step.DELIVER, now, RELEASED)
        else:
            self.received(delivery, now)

    def forgotten(self, delivery: Delivery, now: Micros) -> None:
        """Send the message again to a device that has lost it, to be shown at once if that is
        decided already."""
        session = delivery.session
        self.deliveries.step(delivery, Step.REQUEUE, now, "lost with the device's memory")
        detach(delivery)
        delivery.redelivered = self.standing is Standing.RELEASED
        if self.standing is Standing.HELD:
            self._had -= 1
        session.enqueue(delivery)
        self.deliveries.touch(session)

    def shown(self, delivery: Delivery, now: Micros) -> None:
        """Note that the application of a member has got the message."""
        if delivery.state < DELIVERED:
            self.deliveries.step(delivery, Step.DELIVER, now, RELEASED)

    def ended(self, delivery: Delivery) -> None:
        # The members were fixed at acceptance: to go on without one would break the promise.
        if self.standing is Standing.HELD and not self._broken:
            name = delivery.session.device.name
            self._broken = f"{name} can no longer have it ({delivery.state.name.lower()})"
            # Not now: the caller is in the middle of ending a delivery.
            self.deliveries.timers.add(delivery.changed_at, self)
        elif self.standing is Standing.RELEASED and not self.item.deliveries:
            key = self.item.message.key
            row = GroupMessageRow(key, self.standing, open=False, at=delivery.changed_at)
            self.deliveries.commits.open.of(GroupChanges).group_messages[key] = row

    # The decision.

    def _consider(self, now: Micros) -> None:
        if self._had == self._size and not self._broken and now < self.before:
            self._release(now)

    def woken(self, now: Micros) -> None:
        """Abort the message if its deadline has come or a member cannot have it."""
        if self.standing is not Standing.HELD:
            return
        if self._broken:
            self._abort(Step.ABORT, now, self._broken)
        elif now >= self.before:
            self._abort(Step.ABORT, now, TOO_LATE)

    def _release(self, now: Micros) -> None:
        self.standing = Standing.RELEASED
        message = self.item.message
        # All members had it in time: it is owed to each now, however long one stays away.
        message.deliver_before = None
        self._note(now)
        self._groups.settled(message, Standing.RELEASED, RELEASED, now, count=self._size)
        self._groups.decisions.tell(
            message.app,
            message.target,
            {d.session.device.number: d.session.device for d in self.item.deliveries},
            message.key,
            GroupDecision(GroupVerdict.RELEASE),
            now,
            priority=message.priority,
            queue=message.queue,
            bind=partial(ReleaseNotice, self),
        )
        self._groups.report(message, GroupDecision(GroupVerdict.RELEASED), now)

    def _abort(self, step: Step, now: Micros, reason: str) -> int:
        self.standing = WITHDRAWN[step]
        message = self.item.message
        self._note(now)
        self._groups.settled(message, self.standing, reason, now, count=self._size)
        never_begun = self._groups.fanouts.stop(message.key, now)
        told: dict[int, Device] = {}
        deliveries = list(self.item.deliveries)
        for delivery in deliveries:
            if delivery.state is not PENDING or is_under_way(delivery):
                told[delivery.session.device.number] = delivery.session.device
            self.deliveries.step(delivery, step, now, reason)
            close_number(self.deliveries, delivery)
        self._groups.decisions.tell(
            message.app,
            message.target,
            told,
            message.key,
            GroupDecision(GroupVerdict.ABORT),
            now,
            priority=message.priority,
            queue=message.queue,
        )
        self._groups.report(message, GroupDecision(GroupVerdict.ABORTED), now)
        return never_begun + len(deliveries)

    def withdraw(self, step: Step, now: Micros, reason: str) -> tuple[int, int]:
        """Take back the message from all members; too late after the decision."""
        if self.standing is not Standing.HELD:
            return 0, len(self.item.deliveries)
        return self._abort(step, now, reason), 0

    def audience(self) -> Mapping[int, Device]:
        if self.standing is not Standing.HELD:
            return {}
        devices = [delivery.session.device for delivery in self.item.deliveries]
        devices += self._groups.fanouts.still_to_come(self.item.message.key)
        return {device.number: device for device in devices}

    # After a restart.

    def resume(self, row: GroupMessageRow) -> None:
        """Restore the state of an atomic message after a restart, before its deliveries are
        restored."""
        self.standing = Standing(row.state)
        if self.standing is Standing.RELEASED:
            self.item.message.deliver_before = None

    def restored(self, now: Micros) -> None:
        if self.standing is not Standing.HELD:
            return
        self._had = sum(d.state is State.RECEIVED for d in self.item.deliveries)
        to_come = len(self._groups.fanouts.still_to_come(self.item.message.key))
        if len(self.item.deliveries) + to_come < self._size:
            self._broken = "a member can no longer have it"
        self.deliveries.timers.add(now if self._broken else self.before, self)
        self._consider(now)


class ReleaseNotice(GroupDecider):
    """The message that tells members to show an atomic message; its acknowledgement ends the
    delivery of the atomic message."""

    __slots__ = ("_atomic_message",)

    def __init__(self, atomic_message: AtomicMessage, item: Item) -> None:
        super().__init__(atomic_message.deliveries, item)
        self._atomic_message = atomic_message

    def _subject(self, delivery: Delivery) -> Delivery | None:
        return delivery.session.mailbox.get(self._atomic_message.item.message.key)

    def acknowledged(self, delivery: Delivery, now: Micros) -> None:
        self.deliveries.step(delivery, Step.DELIVER, now)
        subject = self._subject(delivery)
        if subject is not None:
            self._atomic_message.shown(subject, now)

    def dropped(self, delivery: Delivery, now: Micros) -> None:
        """Send the message once more, to be shown, to a device that no longer has it."""
        self.deliveries.step(delivery, Step.GIVE_UP, now, "the device no longer had the message")
        subject = self._subject(delivery)
        if subject is not None and subject.state is State.RECEIVED:
            self._atomic_message.forgotten(subject, now)
