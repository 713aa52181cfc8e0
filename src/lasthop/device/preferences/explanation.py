"""Explanations why a message of this device went over a link, or waits."""

from __future__ import annotations

from typing import Literal

import msgspec

from lasthop.clock import Micros
from lasthop.decision.choice import Choice
from lasthop.decision.decide import Action
from lasthop.decision.reasons import Reason

REMEMBERED = 1024
"""The number of sent messages whose last decision is remembered; a decision takes about a
kilobyte."""

Outlook = Literal["sent", "waiting", "expired"]

_OUTLOOKS: dict[Action, Outlook] = {
    Action.SEND: "sent",
    Action.HOLD: "waiting",
    Action.EXPIRE: "expired",
}


class Explanation(msgspec.Struct, frozen=True):
    """The last decision about one message of this device; `str()` gives its reasons in one line.

    `id` is the id of the message's handle; `outlook` says whether the message was sent, waits or
    expired.
    """

    id: str
    outlook: Outlook
    at: Micros
    """The time of the decision, in microseconds of UTC."""
    reasons: tuple[Reason, ...]
    link: str | None = None
    """The link that the message went over; None if it has not left."""
    until: Micros | None = None
    """The time of the next decision, unless something changes before; None if no decision is
    planned."""
    wanted: tuple[str, ...] = ()
    """The links that, if opened, would let the message leave; the best is first."""

    def __str__(self) -> str:
        return "; ".join(map(str, self.reasons))


class ChoiceLog:
    """The last decisions about messages, by key."""

    def __init__(self) -> None:
        self._decisions: dict[int, tuple[Choice, Micros]] = {}

    def note(self, key: int, choice: Choice, now: Micros) -> None:
        """Remember the decision about a message."""
        decisions = self._decisions
        decisions.pop(key, None)
        decisions[key] = choice, now
        if len(decisions) > REMEMBERED:
            del decisions[next(iter(decisions))]

    def explain(self, key: int) -> Explanation | None:
        """Return the last decision about a message; None if it is not remembered."""
        found = self._decisions.get(key)
        if found is None:
            return None
        choice, at = found
        return Explanation(
            f"{key:016x}",
            _OUTLOOKS[choice.action],
            at,
            choice.reasons,
            choice.link,
            choice.until,
            choice.wanted,
        )
