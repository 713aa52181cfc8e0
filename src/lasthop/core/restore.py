"""Coming back after a stop or a crash: everything as the store has it, nothing else.

What was under way is still under way: the device will say how much of it arrived.
"""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.core.acceptance import Acceptance
from lasthop.core.delivery import Delivery, Item
from lasthop.core.fanout import Fanouts
from lasthop.core.feeds.feeds import Feeds
from lasthop.core.feeds.restoring import FeedsRestored
from lasthop.core.groups.bonds import Bonds
from lasthop.core.lifecycle import State, Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.pushes import Pushes
from lasthop.core.session import Session
from lasthop.core.wishes import restore_wishes
from lasthop.errors import StoreBroken
from lasthop.message import Binding, Reliability, TargetKind
from lasthop.store.commit import DeliveryRow, Restored, SessionRow
from lasthop.wire.hop.frames import Skip
from lasthop.wire.hop.persistence import Numbering


def restore(
    restored: Restored,
    room: Mailroom,
    acceptance: Acceptance,
    fanouts: Fanouts,
    pushes: Pushes,
    feeds: Feeds,
    bonds: Bonds,
    now: Micros,
) -> None:
    """Fill an empty gateway from what its store knows."""
    room.registry.restore(restored.devices, restored.next_device)
    for row in restored.sessions:
        device = room.registry.numbered(row.device)
        if device is not None:
            _resume(room.session(device), row, now)
    restore_wishes(room, restored.memories, now)
    for key_row in restored.keys:
        acceptance.remember(key_row)
    pushes.restore(restored)
    bonds.restore(restored.bonds)
    ranked = FeedsRestored(room, feeds, restored.ranked, now)
    spreading = {row.message: row for row in restored.fanouts}
    for opened in restored.open:
        item = room.own(opened.message)
        pushes.attach(item)
        bonds.attach(item, spreading=opened.message.key in spreading)
        item.spreading = True
        for delivery_row in opened.deliveries:
            _reopen(room, item, delivery_row, ranked, now)
        item.spreading = opened.message.key in spreading
        room.release(item)
        room.evict()
    pushes.restored()
    for fanout_row in spreading.values():
        if room.items[fanout_row.message].message.target.kind is not TargetKind.QUEUE:
            fanouts.resume(fanout_row)
    bonds.finish(now)
    ranked.finish(now)
    if room.surrogates is not None:
        room.surrogates.finish(restored.surrogates.held, now)


def _reopen(
    room: Mailroom, item: Item, row: DeliveryRow, ranked: FeedsRestored, now: Micros
) -> None:
    device = room.registry.numbered(row.device)
    if device is None:
        return
    session = room.session(device)
    feed_delivery = ranked.open(item, session, now)
    delivery = feed_delivery or room.open_delivery(item, session, now)
    delivery.state = State(row.state)
    delivery.epoch = row.epoch
    delivery.seq = row.seq
    delivery.attempts = row.attempts
    delivery.last_event = row.last_event
    delivery.redelivered = row.redelivered
    delivery.reply = row.reply
    delivery.code = row.code
    delivery.ahead = row.ahead
    delivery.changed_at = row.changed_at
    if room.surrogates is not None:
        room.surrogates.revise_again(delivery)
    if feed_delivery is not None and delivery.state is State.PENDING:
        ranked.waits(feed_delivery, now)
    elif feed_delivery is not None and delivery.state is State.RECEIVED and delivery.keep:
        _watch_deadline(room, delivery, now)
    elif delivery.state is State.PENDING:
        _wait_again(room, delivery, now)
    elif delivery.seq < 0 and item.bond is not None:
        pass  # The device holds it, or it was taken from it: no number is under way.
    elif item.message.reliability is Reliability.BEST_EFFORT and delivery.seq < 0:
        # It left, or was lost with the gateway: sending it again could show it twice.
        session.depart(delivery, numbered=False)
        room.step(delivery, Step.HAND_OVER, now, "the gateway stopped while it was being sent")
    elif delivery.seq < 0:
        _carried_before(room, delivery, now)
    else:
        _under_way_again(room, delivery, now)


def _carried_before(room: Mailroom, delivery: Delivery, now: Micros) -> None:
    """It was with a carrier, whose word was lost: the client may have it."""
    delivery.session.depart(delivery, numbered=False)
    delivery.attempts = max(1, delivery.attempts)
    delivery.redelivered = True
    room.step(delivery, Step.REQUEUE, now, "the gateway stopped while it was being carried")
    _wait_again(room, delivery, now)


def _under_way_again(room: Mailroom, delivery: Delivery, now: Micros) -> None:
    session = delivery.session
    if not isinstance(session.outbound.get(delivery.seq), Skip):
        raise StoreBroken(
            "an open delivery has a number that is not under way",
            message=delivery.item.message.key,
            device=session.device.number,
            seq=delivery.seq,
        )
    session.outbound.put(delivery.seq, delivery)
    if delivery.state is State.SENDING:
        session.flight_bytes += delivery.item.size
    # Transmissions are noted when there is time: it may have left without a trace.
    delivery.attempts = max(1, delivery.attempts)
    _watch_deadline(room, delivery, now)


def _watch_deadline(room: Mailroom, delivery: Delivery, now: Micros) -> None:
    message = delivery.item.message
    if message.deliver_before is not None and message.binding is not Binding.ATOMIC:
        room.timers.add(max(message.deliver_before, now), delivery)


def _resume(session: Session, row: SessionRow, now: Micros) -> None:
    session.epoch = row.epoch
    session.events = row.events
    session.incarnation = row.incarnation.to_bytes(8)
    session.previous = tuple(
        Numbering(incarnation.to_bytes(8), epoch, received)
        for incarnation, epoch, received in row.previous
    )
    session.sendable = row.assigned
    session.lost_at = now
    # Until its delivery is found a number stands for a skip: those that ended stay so.
    session.outbound.restore(
        assigned=row.assigned,
        received=row.received,
        delivered=row.delivered,
        items=((seq, Skip(seq)) for seq in range(row.delivered, row.assigned)),
    )
    session.inbound.restore(received=row.inbound, delivered=row.inbound)


def _wait_again(room: Mailroom, delivery: Delivery, now: Micros) -> None:
    message = delivery.item.message
    session = delivery.session
    if message.replace_key is not None and delivery.revocable and delivery.item.bond is None:
        session.replace(message.replace_key, delivery)
    waits = room.surrogates is not None and room.surrogates.wait_again(delivery, now)
    if message.deliver_after is not None and message.deliver_after > now:
        room.timers.add(message.deliver_after, delivery)
    elif not waits:
        session.enqueue(delivery)
        if session.device.record.routes:
            room.touch(session)
    if message.deliver_before is not None and message.binding is not Binding.ATOMIC:
        room.timers.add(message.deliver_before, delivery)
