"""The decision about one delivery at one moment: send it, hold it, or let it expire.

`decide` sees a message's constraints and the device's contact as plain values and answers with a
reason. Gateway, simulator and replay call the same function with the same values, so a logged
decision can be taken again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lasthop.clock import Micros


class Action(StrEnum):
    """What is to be done with a delivery now."""

    SEND = "send"
    HOLD = "hold"
    EXPIRE = "expire"


@dataclass(frozen=True, slots=True)
class Decision:
    """An action with its reason, and for a HOLD when to look again (`None`: when something
    changes)."""

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
    """Decide what to do with one delivery now.

    Expiry comes first: a delivery that has expired is never held for anything else. Then comes the
    publisher's `deliver_after`, then what the device can take.
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
