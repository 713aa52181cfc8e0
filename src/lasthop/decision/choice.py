"""Question and answer of the transmission algorithm, as values to log and to ask again.

A queue's terms come from the device, the outgoing message from whoever holds it; the answer names a
link or says what to wait for. The algorithm itself is in `transmission`.
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
    """How a queue wants its messages sent. `max_delay` 0 makes it intolerant of delay."""

    name: str
    weights: Weights = BALANCED
    max_delay: Micros = 0
    links: tuple[str, ...] | None = None
    """The links it may use; `None`: any."""

    def __post_init__(self) -> None:
        check_delay(self.max_delay)
        if self.links is not None and not self.links:
            raise InvalidRequest("a queue that may use no link sends nothing", queue=self.name)


class Attempt(msgspec.Struct, frozen=True, array_like=True):
    """A transmission that was made, and by when the device's receipt was to come."""

    link: str
    channel: int
    sent_at: Micros
    receipt_by: Micros


class MessageToPlace(msgspec.Struct, frozen=True):
    """What the algorithm has to know of a message."""

    size: int
    """Bytes as they go onto the link."""
    since: Micros
    """When it could first have been sent: from here its delay counts."""
    deliver_before: Micros | None = None
    delay_tolerance: Micros | None = None
    """The publisher's own bound on the wait; the shorter of it and the queue's holds."""
    attempts: tuple[Attempt, ...] = ()
    whole: bool = True
    """Not so: pieces of a message that is counted by itself, or of a stream."""

    def __post_init__(self) -> None:
        if self.size < 0:
            raise InvalidRequest("a size cannot be negative", size=self.size)
        if self.delay_tolerance is not None:
            check_delay(self.delay_tolerance)


class Choice(msgspec.Struct, frozen=True):
    """The answer, with its reasons; a value to log and to compare in a replay."""

    action: Action
    reasons: tuple[Reason, ...]
    link: str | None = None
    channel: int = 0
    charge: Charge | None = None
    """What to reserve and commit for a SEND."""
    receipt_by: Micros | None = None
    until: Micros | None = None
    """For a HOLD: when to ask again; `None`: when links, limits or receipts change. They are always
    worth asking again."""
    wanted: tuple[str, ...] = ()
    """Links the device would do well to open, the best first (section 3.5.4)."""
    close: tuple[Closure, ...] = ()
    """Links that are up and have reached their limits: close them and tell the device."""
