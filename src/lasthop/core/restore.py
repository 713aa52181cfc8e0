"""Restoring the core after a stop or a crash, from the store and nothing else.

What was under way is still under way: the device will say how much of it arrived.
"""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.core.deliveries import NOBODY_THERE, Deliveries
from lasthop.core.delivery import Delivery, Item
from lasthop.core.lane_set import Lanes
from lasthop.core.lifecycle import State, Step
from lasthop.core.publishing.acceptance import Acceptance
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.session import Session
from lasthop.errors import StoreBroken
from lasthop.message import Reliability
from lasthop.store.commit import DeliveryRow, Restored, SessionRow
from lasthop.store.lanes import LanesRestored, SessionLaneRow
from lasthop.wire.hop.frames import Skip
from lasthop.wire.hop.persistence import Numbering


def restore(
    restored: Restored,
    deliveries: Deliveries,
    acceptance: Acceptance,
    fanouts: Fanouts,
    now: Micros,
) -> None:
    """Fill an empty gateway from what its store knows."""
    moments = deliveries.moments
    deliveries.registry.restore(restored.devices, restored.next_device)
    for row in restored.sessions:
        device = deliveries.registry.numbered(row.device)
        if device is not None:
            _resume(deliveries.session(device), row, now)
    for lane_row in restored.of(LanesRestored).lanes:
        device = deliveries.registry.numbered(lane_row.device)
        if device is not None:
            _restore_lane(deliveries, deliveries.session(device), lane_row)
    for key_row in restored.keys:
        acceptance.remember(key_row)
    for restore_feature in moments.restore:
        restore_feature(restored, now)
    spreading = {row.message: row for row in restored.fanouts}
    for opened in restored.open:
        item = deliveries.own(opened.message)
        for attach in moments.attach:
            attach(item, spreading=opened.message.key in spreading)
        # Deliveries may end while they are restored: the message must not be forgotten before the
        # last.
        item.spreading = True
        for delivery_row in opened.deliveries:
            _reopen(deliveries, item, delivery_row, now)
        item.spreading = opened.message.key in spreading
        deliveries.release(item)
        deliveries.evict()
    for fanout_row in spreading.values():
        fanouts.resume(fanout_row)
    for finish in moments.finish:
        finish(now)


def _reopen(deliveries: Deliveries, item: Item, row: DeliveryRow, now: Micros) -> None:
    device = deliveries.registry.numbered(row.device)
    if device is None:
        return
    session = deliveries.session(device)
    delivery = deliveries.open_delivery(item, session, now)
    delivery.state = State(row.state)
    delivery.epoch = row.epoch
    delivery.seq = row.seq
    if row.lane and session.lanes is not None:
        delivery.lane = session.lanes.out.open.get(row.lane, session.lane)
    delivery.attempts = row.attempts
    delivery.last_event = row.last_event
    delivery.redelivered = row.redelivered
    delivery.reply = row.reply
    delivery.code = row.code
    delivery.ahead = row.ahead
    delivery.changed_at = row.changed_at
    for reopening in deliveries.moments.reopening:
        reopening(delivery, row)
    if delivery.decider.reopened(delivery, now):
        return
    if delivery.state is State.PENDING:
        _wait_again(deliveries, delivery, now)
    elif item.message.reliability is Reliability.BEST_EFFORT and delivery.seq < 0:
        # It left, or was lost with the gateway: sending it again could show it twice.
        session.depart(delivery, numbered=False)
        deliveries.step(
            delivery, Step.HAND_OVER, now, "the gateway stopped while it was being sent"
        )
    elif delivery.seq < 0:
        _carried_before(deliveries, delivery, now)
    else:
        _under_way_again(deliveries, delivery, now)


def _carried_before(deliveries: Deliveries, delivery: Delivery, now: Micros) -> None:
    """Requeue a delivery that was with a carrier whose report was lost: the client may have the
    message."""
    delivery.session.depart(delivery, numbered=False)
    delivery.attempts = max(1, delivery.attempts)
    delivery.redelivered = True
    deliveries.step(delivery, Step.REQUEUE, now, "the gateway stopped while it was being carried")
    _wait_again(deliveries, delivery, now)


def _under_way_again(deliveries: Deliveries, delivery: Delivery, now: Micros) -> None:
    session = delivery.session
    # Every number under way was restored as a skip: anything else is a damaged store.
    numbers = delivery.lane.outbound
    if not isinstance(numbers.get(delivery.seq), Skip):
        raise StoreBroken(
            "the store is inconsistent: an open delivery has a number that is not under way",
            message=delivery.item.message.key,
            device=session.device.number,
            seq=delivery.seq,
        )
    numbers.put(delivery.seq, delivery)
    if delivery.state is State.SENDING:
        delivery.lane.flight_bytes += delivery.item.size
    # Transmissions are logged late (see `Commits.departed`): it may have left without a trace.
    delivery.attempts = max(1, delivery.attempts)
    _watch_deadline(deliveries, delivery, now)


def _watch_deadline(deliveries: Deliveries, delivery: Delivery, now: Micros) -> None:
    before = delivery.item.message.deliver_before
    if before is not None:
        delivery.decider.watch(delivery, max(before, now))


def _resume(session: Session, row: SessionRow, now: Micros) -> None:
    session.epoch = row.epoch
    session.events = row.events
    session.incarnation = row.incarnation.to_bytes(8)
    session.previous = tuple(
        Numbering(incarnation.to_bytes(8), epoch, received)
        for incarnation, epoch, received in row.previous
    )
    session.lane.sendable = row.assigned
    session.lost_at = now
    # Until its delivery is found a number stands for a skip: the numbers of ended ones stay so.
    session.lane.outbound.restore(
        assigned=row.assigned,
        received=row.received,
        delivered=row.delivered,
        items=((seq, Skip(seq)) for seq in range(row.delivered, row.assigned)),
    )
    session.lane.inbound.restore(received=row.inbound, delivered=row.inbound)


def _restore_lane(deliveries: Deliveries, session: Session, row: SessionLaneRow) -> None:
    if session.lanes is None:
        session.lanes = Lanes(session, deliveries, deliveries.unordered)
    lanes = session.lanes.inbound if row.inbound else session.lanes.out
    lanes.restore(row.lane, row.record)


def _wait_again(deliveries: Deliveries, delivery: Delivery, now: Micros) -> None:
    message = delivery.item.message
    session = delivery.session
    if message.immediate and not session.reachable:
        deliveries.give_up(delivery, Step.GIVE_UP, now, NOBODY_THERE)
        return
    if message.replace_key is not None and delivery.revocable:
        delivery.decider.supersede(delivery, message.replace_key)
    waits = any(gate.reopened(delivery, now) for gate in delivery.item.gates)
    if message.deliver_after is not None and message.deliver_after > now:
        deliveries.timers.add(message.deliver_after, delivery)
    elif not waits:
        session.enqueue(delivery)
        if session.reachable:
            deliveries.touch(session)
    if message.deliver_before is not None:
        delivery.decider.watch(delivery, message.deliver_before)
