"""One message of a shared queue: one consumer has it at a time, and none while it waits.

A message that a consumer has got and not finished goes to another one, marked as redelivered. The
delivery to the first is parked meanwhile, and ends when the queue entry ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.clock import SECOND, Micros
from lasthop.core.groups.decider import (
    WITHDRAWN,
    GroupDecider,
    Standing,
    close_number,
    detach,
    is_under_way,
)
from lasthop.core.lifecycle import DELIVERED, PENDING, SENDING, State, Step
from lasthop.store.commit import FanoutRow
from lasthop.store.groups import GroupChanges, GroupMessageRow

if TYPE_CHECKING:
    from lasthop.core.delivery import Delivery, Item
    from lasthop.core.groups.queue import SharedQueue
    from lasthop.core.session import Session

PARKED = State.PARKED


class QueueEntry(GroupDecider):
    """A message in a queue that one consumer is to have."""

    __slots__ = ("_queue", "active", "left", "over", "parked", "spent", "until", "waiting")

    def __init__(self, queue: SharedQueue, item: Item) -> None:
        super().__init__(queue.deliveries, item)
        self._queue = queue
        item.spreading = True  # More deliveries may begin until the entry is over.
        self.active: Delivery | None = None
        """The delivery to the consumer that has the message now; None while it waits."""
        self.parked: dict[int, Delivery] = {}
        """Deliveries to consumers that the message was taken from, by device number."""
        self.spent: set[int] | None = None
        """The numbers of consumers that cannot have the message; None if there are none."""
        self.left = False
        """Whether a consumer may have got the message."""
        self.until: Micros = 0
        """The time by which the present consumer has to finish; later the message may go to another
        one."""
        self.waiting = False
        """Whether the entry is among those that wait for a consumer."""
        self.over = False

    def begin(self, now: Micros) -> None:
        """Store the entry of a message that was accepted, and let it wait."""
        key = self.item.message.key
        self.deliveries.commits.open.fanouts[key] = FanoutRow(key, 0, 0, done=False)
        self._watch(now)
        self.wait(now)

    def _watch(self, now: Micros) -> None:
        message = self.item.message
        if message.deliver_before is not None:
            self.deliveries.timers.add(message.deliver_before, self)
        if message.deliver_after is not None and message.deliver_after > now:
            self.deliveries.timers.add(message.deliver_after, self)

    def wait(self, now: Micros) -> None:
        """Let the entry wait for a consumer, if the message's delay is over."""
        after = self.item.message.deliver_after
        if not (self.over or self.waiting) and (after is None or now >= after):
            self._queue.add(self)

    # With a consumer.

    def give(self, session: Session, now: Micros) -> None:
        """Give the message to a consumer."""
        number = session.device.number
        delivery = self.parked.pop(number, None)
        if delivery is None:
            self._queue.fanouts.deliver(self.item, session.device, now)
            delivery = session.mailbox[self.item.message.key]
        else:
            self.deliveries.step(delivery, Step.REQUEUE, now, "given to it once more")
            session.enqueue(delivery)
            self.deliveries.touch(session)
        delivery.redelivered = self.left
        self.active = delivery
        self._allow(now)

    def take_back(self, reason: str, now: Micros) -> None:
        """Park the delivery to the present consumer, and let the entry wait for another one."""
        delivery = self.active
        assert delivery is not None
        self._let_go(delivery)
        self.left = self.left or is_under_way(delivery)
        self.deliveries.step(delivery, Step.PARK, now, reason)
        close_number(self.deliveries, delivery)
        detach(delivery)
        self.parked[delivery.session.device.number] = delivery
        self.wait(now)

    def _let_go(self, delivery: Delivery) -> None:
        self.active = None
        self._queue.returned(delivery.session, self)

    def woken(self, now: Micros) -> None:
        """Act on the end of a delay, on the deadline, or on a consumer that takes too long."""
        before = self.item.message.deliver_before
        if self.over:
            return
        if before is not None and now >= before:
            if self.active is None:
                self._expire(now)
            return  # An active delivery has a timer for its own deadline.
        delivery = self.active
        if delivery is None:
            self.wait(now)
        elif now >= self.until:
            if self._is_leaving(delivery) or not self._queue.another(self, delivery.session):
                # No other consumer could have it: then the present one may as well go on.
                self._allow(now)
            else:
                seconds = self._queue.record.patience / SECOND
                self.take_back(f"not done within {seconds:g} s", now)

    def _allow(self, now: Micros) -> None:
        self.until = now + self._queue.record.patience
        self.deliveries.timers.add(self.until, self)

    def _is_leaving(self, delivery: Delivery) -> bool:
        """Return whether the delivery's number is about to leave over the open channel, and cannot
        be called back."""
        session = delivery.session
        unsent = not delivery.attempts or delivery.sent_in != session.contacts
        return delivery.state is SENDING and unsent and session.channel != 0

    # The end.

    def ended(self, delivery: Delivery) -> None:
        now = delivery.changed_at
        number = delivery.session.device.number
        self.parked.pop(number, None)
        was_active = delivery is self.active
        if was_active:
            self._let_go(delivery)
        if self.over:
            return
        if delivery.state is DELIVERED:
            self._finish(Step.REASSIGN, now, f"{delivery.session.device.name} has done it")
        elif not was_active:
            return
        elif delivery.state in (State.EXPIRED, State.TIMED_OUT) and self._is_late(now):
            self._finish(Step.EXPIRE, now, "deliver_before has passed")
        else:
            # This consumer cannot have it, for whatever reason; another one may.
            self.spent = (self.spent or set()) | {number}
            self.left = self.left or is_under_way(delivery)
            self.wait(now)

    def _is_late(self, now: Micros) -> bool:
        before = self.item.message.deliver_before
        return before is not None and now >= before

    def _expire(self, now: Micros) -> None:
        reason = "deliver_before has passed in the queue"
        told = bool(self.item.deliveries)
        self._finish(Step.EXPIRE, now, reason)
        if not told:
            self._stand(Standing.EXPIRED, reason, now)

    def _finish(self, step: Step, now: Micros, reason: str) -> None:
        """End the entry, and the deliveries to all consumers that do not have the message."""
        self.over = True
        key = self.item.message.key
        self._queue.gone(self)
        self.deliveries.commits.open.fanouts[key] = FanoutRow(key, 0, 0, done=True)
        self.deliveries.commits.hurry()
        others = [*self.parked.values()]
        if self.active is not None and self.active.state is PENDING:
            others.append(self.active)
        self.parked = {}
        for delivery in others:
            if step is Step.EXPIRE:
                self.deliveries.give_up(delivery, step, now, reason)
            else:
                self.deliveries.step(delivery, step, now, reason)
        self.item.spreading = False
        self.deliveries.release(self.item)

    def _stand(self, standing: Standing, reason: str, now: Micros) -> None:
        """Store the outcome of an entry without deliveries, of which no delivery tells the end."""
        message = self.item.message
        row = GroupMessageRow(message.key, standing, open=False, at=now)
        self.deliveries.commits.open.of(GroupChanges).group_messages[message.key] = row
        self._queue.settled(message, standing, reason, now, count=0)

    def withdraw(self, step: Step, now: Micros, reason: str) -> tuple[int, int]:
        """Take the message back, unless a consumer may have got it."""
        active = self.active
        # A consumer that may have got it may have acted on it.
        if self.over or self.left or (active is not None and not active.revocable):
            return 0, max(1, len(self.item.deliveries))
        told = bool(self.item.deliveries)
        self._finish(step, now, reason)
        if not told:
            self._stand(WITHDRAWN[step], reason, now)
        return 1, 0

    # After a restart.

    def resume(self, *, over: bool) -> None:
        """Restore the entry before its deliveries are restored."""
        self.over = over
        self.item.spreading = not over

    def restored(self, now: Micros) -> None:
        self.left = any(map(is_under_way, self.item.deliveries))
        if self.over:
            return
        for delivery in self.item.deliveries:
            if delivery.state is PARKED:
                self.parked[delivery.session.device.number] = delivery
            else:
                self.active = delivery
        self._watch(now)
        if self.active is None:
            self.wait(now)
            return
        self._queue.took(self.active.session, self)
        if self.active.state is PENDING:
            self.take_back("the gateway was restarted before it left", now)
        else:
            self._allow(now)
