"""The decision about one delivery at one moment: send it, hold it, or let it go.

`decide` sees a message's constraints and the device's contact as plain values and answers with a
reason. Gateway, simulator and replay call the same function with the same values, so a logged
decision can be taken again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lasthop.clock import Micros


class Action(StrEnum):
    """What a decision says to do."""

    SEND = "send"
    HOLD = "hold"
    EXPIRE = "expire"


@dataclass(frozen=True, slots=True)
class Decision:
    """An action, why, and for a hold when to look again (`None`: when something changes)."""

    action: Action
    reason: str
    until: Micros | None = None


SEND = Decision(Action.SEND, "in contact")
EXPIRE = Decision(Action.EXPIRE, "deliver_before has passed")
NO_CONTACT = Decision(Action.HOLD, "no contact")
NO_CREDIT = Decision(Action.HOLD, "waiting for credit")


def decide(
    *,
    deliver_after: Micros | None,
    deliver_before: Micros | None,
    in_contact: bool,
    has_credit: bool,
    now: Micros,
) -> Decision:
    """Decide about one delivery now.

    Expiry comes first: what has expired is never held for anything else. Then the publisher's own
    delay, then what the device can take.
    """
    if deliver_before is not None and now >= deliver_before:
        return EXPIRE
    if deliver_after is not None and now < deliver_after:
        return Decision(Action.HOLD, "deliver_after lies ahead", deliver_after)
    if not in_contact:
        return NO_CONTACT
    if not has_credit:
        return NO_CREDIT
    return SEND
