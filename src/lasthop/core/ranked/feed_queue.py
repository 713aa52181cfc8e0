"""From a feed's lane to the session's queue: messages and instructions, in the order in which the
feed decided."""

from __future__ import annotations

from itertools import count

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.lifecycle import PENDING, State, Step
from lasthop.core.ranked.ranked_delivery import RankedDelivery, RankedSteps
from lasthop.core.ranked.subscription import QueuedSend, RankedSubscription
from lasthop.events import Kind
from lasthop.message import GATEWAY, Message, Target, TargetKind
from lasthop.wire.hop.feeds import Forget, Instruction, ShowKept, Why, encode_instructions
from lasthop.wire.hop.frames import FEED_TYPE

TAKEN_BACK = {Why.RANK: "its rank fell", Why.ROOM: "the device needed the room"}


class FeedQueue:
    """Queues the messages and instructions of feeds for their devices."""

    def __init__(self, deliveries: Deliveries, common: RankedSteps) -> None:
        self._deliveries = deliveries
        self._common = common
        self._turns = count(1)

    def flush(self, subscription: RankedSubscription, now: Micros) -> None:
        """Queue the steps that can be queued now. A message that is to be sent again waits until
        the device has acknowledged it once."""
        lane = subscription.lane
        said: list[Instruction] = []
        forgotten: set[int] = set()
        subscription.note()
        while lane:
            step = lane[0]
            if isinstance(step, QueuedSend):
                ranked = subscription.delivery(step.key)
                if ranked is not None and ranked.delivery.state is not PENDING:
                    break
                if step.key in forgotten:
                    self._instruct(subscription, said, None, now)
                    said, forgotten = [], set()
                if ranked is not None:
                    ranked.keep = step.keep
                    self.queue(ranked, self._deliveries.keys.last)
                    subscription.note(step.key)
            else:
                instruction = step.instruction
                if isinstance(instruction, Forget):
                    if not self._forget(subscription, instruction, now):
                        lane.popleft()
                        continue
                    forgotten.update(instruction.keys)
                said.append(instruction)
                if step.reply_to is not None:
                    self._instruct(subscription, said, step.reply_to, now)
                    said, forgotten = [], set()
            lane.popleft()
        if said:
            self._instruct(subscription, said, None, now)

    def queue(self, ranked: RankedDelivery, stamp: int) -> None:
        """Queue a delivery after everything that was queued before it."""
        delivery = ranked.delivery
        ranked.stamp = stamp
        ranked.turn = next(self._turns)
        delivery.session.enqueue(delivery)
        self._deliveries.touch(delivery.session)

    def _forget(self, subscription: RankedSubscription, forget: Forget, now: Micros) -> bool:
        """Prepare a message to be forgotten; return False if it never left, so that the device need
        not be told."""
        (key,) = forget.keys
        ranked = subscription.delivery(key)
        if ranked is None:
            return True
        delivery = ranked.delivery
        subscription.note(key)
        if delivery.state is PENDING and ranked.stamp:
            delivery.session.dequeue(delivery)
            ranked.stamp = 0
            return bool(delivery.attempts)
        if delivery.state is State.RECEIVED:
            self.take_back(ranked, TAKEN_BACK.get(Why(forget.why), "taken back"), now)
        elif delivery.state is not PENDING:
            ranked.forget = True
        return True

    def take_back(self, ranked: RankedDelivery, reason: str, now: Micros) -> None:
        """Requeue a delivery that the device no longer has, or will drop soon."""
        assert ranked.feed is not None
        delivery = ranked.delivery
        ranked.forget = False
        self._deliveries.step(delivery, Step.REQUEUE, now, reason)
        delivery.seq = delivery.epoch = -1
        delivery.ahead = False
        ranked.stamp = 0
        ranked.feed.note(ranked.key)

    def _instruct(
        self,
        subscription: RankedSubscription,
        said: list[Instruction],
        reply_to: int | None,
        now: Micros,
    ) -> None:
        """Send these instructions in one message for the device itself."""
        if not said and reply_to is None:
            return
        deliveries = self._deliveries
        device = subscription.session.device
        message = Message(
            key=deliveries.keys.key(now),
            salt=deliveries.keys.salt(),
            app=device.app,
            source=GATEWAY,
            target=Target(TargetKind.DEVICE, device.name),
            accepted_at=now,
            body=encode_instructions(tuple(said)),
            content_type=FEED_TYPE,
            queue=subscription.topic,
            in_reply_to=reply_to,
        )
        deliveries.commits.add_message(message)
        delivery = deliveries.open_delivery(deliveries.own(message), subscription.session, now)
        ranked = RankedDelivery(deliveries, self._common, delivery, subscription)
        ranked.shown = shown_by(said)
        event = deliveries.commits.record_step(delivery, Kind.ACCEPTED, now, "what the feed says")
        event.source = message.source
        event.size = len(message.body)
        subscription.mark(event)
        self.queue(ranked, message.key)
        deliveries.commits.hurry()


def shown_by(said: list[Instruction] | tuple[Instruction, ...]) -> tuple[int, ...]:
    """Return the keys of the messages that the application will have got after these instructions
    were followed."""
    return tuple(key for one in said if isinstance(one, ShowKept) for key in one.keys)
