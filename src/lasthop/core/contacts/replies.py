"""A device's answer to a message: which answer counts, and who is told of it."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.effects import Changed
from lasthop.core.session import Session
from lasthop.events import Kind
from lasthop.message import Message, TargetKind
from lasthop.store.commit import ReplyRow


def answered(
    deliveries: Deliveries, session: Session, request: int, reply: Message, now: Micros
) -> None:
    """Record that a device, or its surrogate, has answered a message."""
    if reply.target.kind is TargetKind.PUBLISHER:
        note_reply(deliveries, session, request, reply.key)
    deliveries.commits.record(Kind.REPLIED, now, session, msg=request, other=reply.key)


def note_reply(deliveries: Deliveries, session: Session, message: int, reply: int) -> None:
    """Store the answer that a publisher waits for with the delivery that it answers."""
    number = session.device.number
    deliveries.commits.open.replies.append(ReplyRow(message, number, reply))
    delivery = session.mailbox.get(message)
    if delivery is not None and not delivery.reply:
        delivery.reply = reply  # Later rows of the delivery are written with it.
    for replied in deliveries.moments.replied:
        replied(message, number, reply)
    if message in deliveries.watched:
        change = Changed(message, number, None, reply)
        deliveries.commits.when_durable(lambda _: deliveries.effects.append(change))
