"""What an open delivery waits for now, and until when at the latest. A history alone cannot say
that: what waits behind another delivery has no event of its own."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.feature import WaitReason
from lasthop.core.lifecycle import PENDING, SENDING, State
from lasthop.core.session import Session


def waiting(deliveries: Deliveries, message: int, device: int, now: Micros) -> WaitReason | None:
    """Return what the delivery of a message to a device waits for; None if it is not open."""
    session = deliveries.by_number.get(device)
    delivery = None if session is None else session.mailbox.get(message)
    if session is None or delivery is None:
        return None
    found = _waiting(deliveries, session, delivery, now)
    before = delivery.item.message.deliver_before
    if before is not None and (found.until is None or before < found.until):
        found = WaitReason(f"{found.reason}; it expires then", before)
    return found


def _waiting(
    deliveries: Deliveries, session: Session, delivery: Delivery, now: Micros
) -> WaitReason:
    if delivery.state is PENDING:
        return _pending(deliveries, session, delivery, now)
    if delivery.state is State.PARKED:
        return WaitReason("another consumer of its queue has it")
    if delivery.state is not SENDING:
        return WaitReason("the application on the device has yet to process it")
    if delivery.seq < 0 and (told := session.away_sender.waiting(delivery)) is not None:
        return told
    if not session.greeted:
        return WaitReason("it has left, and the device is not in contact to acknowledge it")
    if delivery.sent_in == session.contacts and delivery.attempts:
        return WaitReason("the device has yet to acknowledge it")
    return session.sender.waiting(session, delivery) or WaitReason("it is about to leave")


def _pending(
    deliveries: Deliveries, session: Session, delivery: Delivery, now: Micros
) -> WaitReason:
    message = delivery.item.message
    if message.deliver_after is not None and now < message.deliver_after:
        return WaitReason("its deliver_after has not come", message.deliver_after)
    told = session.away_sender.waiting(delivery) if not session.greeted else None
    told = told or session.sender.waiting(session, delivery)
    if told is not None:
        return told
    if not session.reachable:
        return WaitReason("the device is not in contact")
    if not any(each is delivery for each in session.queued()):
        if delivery.decider is not deliveries.plain:
            return WaitReason("its group, queue or topic has yet to decide about it")
        return WaitReason("its app's surrogate, or its body, is not ready")
    if session.greeted and session.paused:
        return WaitReason("the device's links are full")
    if session.greeted and not session.admits(delivery):
        return WaitReason("the device takes no more before it acknowledges what it was sent")
    head = session.head_of(delivery)
    if head is not None and head is not delivery:
        return WaitReason(f"it is behind message {head.item.message.id}")
    return WaitReason("it is about to leave")
