"""Question and answer of the transmission algorithm, as values that can be logged and replayed.

The terms of a queue come from the device's preferences, the message from the side that sends it.
The answer names a link, or says what the message waits for. The algorithm itself is in
`transmission`.
"""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros
from lasthop.decision.budgets import Closure
from lasthop.decision.cost import BALANCED, Weights
from lasthop.decision.decide import Action
from lasthop.decision.delay import check_delay
from lasthop.decision.links import Charge
from lasthop.decision.reasons import Reason
from lasthop.errors import InvalidRequest


class QueueTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the messages of one queue are to be sent. If `max_delay` is 0, they never wait for a
    better link."""

    name: str
    weights: Weights = BALANCED
    max_delay: Micros = 0
    links: tuple[str, ...] | None = None
    """Labels of the links that the queue's messages may use; `None`: any link."""

    def __post_init__(self) -> None:
        check_delay(self.max_delay)
        if self.links is not None and not self.links:
            raise InvalidRequest(
                "a queue must have at least one link: leave links out for all", queue=self.name
            )


class Attempt(msgspec.Struct, frozen=True, array_like=True):
    """One earlier transmission of a message, and the time by which the device's receipt was due."""

    link: str
    channel: int
    sent_at: Micros
    receipt_by: Micros


class MessageToPlace(msgspec.Struct, frozen=True):
    """A message for which a link is to be chosen: the values that the algorithm looks at."""

    size: int
    """Bytes of the message as they go onto the link."""
    since: Micros
    """When the message could first have been sent; its delay is counted from here."""
    deliver_before: Micros | None = None
    delay_tolerance: Micros | None = None
    """The longest wait that the publisher accepts; the queue's `max_delay` applies if it is
    shorter."""
    attempts: tuple[Attempt, ...] = ()
    whole: bool = True
    """Whether this is a whole message, which counts towards limits of messages; False for a piece
    of a stream or body, of which only the bytes count."""

    def __post_init__(self) -> None:
        if self.size < 0:
            raise InvalidRequest("a size cannot be negative", size=self.size)
        if self.delay_tolerance is not None:
            check_delay(self.delay_tolerance)


class Choice(msgspec.Struct, frozen=True):
    """The answer of the transmission algorithm, with its reasons; it is logged and compared in a
    replay."""

    action: Action
    reasons: tuple[Reason, ...]
    link: str | None = None
    channel: int = 0
    charge: Charge | None = None
    """What to reserve in the budgets for a SEND, and to commit when the message leaves."""
    receipt_by: Micros | None = None
    until: Micros | None = None
    """When to ask again after a HOLD; `None`: only when links, limits or receipts change. Such a
    change is also a reason to ask again before `until`."""
    wanted: tuple[str, ...] = ()
    """Labels of links that the device should open, the best first (McGill thesis, section
    3.5.4)."""
    close: tuple[Closure, ...] = ()
    """Links that are up but have reached their limits: the caller closes them and tells the
    device."""
