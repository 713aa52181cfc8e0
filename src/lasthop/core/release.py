"""The one way in which a delivery leaves the mailbox for a session's numbers."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.core.delivery import Delivery
from lasthop.core.feeds.feeds import Feeds
from lasthop.core.lifecycle import Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.session import Session
from lasthop.events import Event
from lasthop.message import Reliability

RELEASE, BEST_EFFORT = Step.RELEASE, Reliability.BEST_EFFORT


def release(
    room: Mailroom, feeds: Feeds, session: Session, delivery: Delivery, now: Micros, reason: str
) -> Event | None:
    """Count a delivery as under way; from here on it cannot be taken back. Returns the event that
    says so; those of a ranked topic are its feed's."""
    message = delivery.item.message
    event = None
    if delivery.ranked:
        session.depart(delivery, numbered=True)
        feeds.released(delivery, now)
    else:
        session.depart(delivery, numbered=message.reliability is not BEST_EFFORT)
        event = room.step(delivery, RELEASE, now, reason)
    if message.replace_key is not None:
        session.not_replaceable(delivery)
    return event
