"""The schedule of a delivery: the first moment that every constraint allows, or a smallest set of
constraints that allows none.

Each constraint moves a candidate moment forward to the next instant that it allows; when none of
them moves it any more, it is the answer. Conflicts are found by leaving out constraints one by one
for as long as the rest still contradict each other: what remains is needed, every part of it. If
more than a few remain, small subsets are tried as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Protocol

import msgspec

from lasthop.clock import DAY, Micros
from lasthop.decision.constraints import (
    Before,
    Constraint,
    FrequencyCap,
    NotBefore,
    QuietHours,
    Tolerance,
)
from lasthop.decision.localtime import LAST_INSTANT, Period, check_instant, period_at, zone
from lasthop.decision.reasons import Code, Reason, because
from lasthop.errors import Contradiction, InvalidRequest, TooLarge

MAX_CONSTRAINTS = 16
"""The largest number of constraints of one message. To prove that no moment fits, a year of days is
looked at for each of them."""

FEW = 2
"""All subsets up to this size are tried for a smaller conflict than the one that was found: of
sixteen constraints there are 120 pairs. A larger conflict may not be the smallest, but none of its
parts can be spared."""

HORIZON: Micros = 400 * DAY
"""How far ahead a moment is looked for. Quiet hours repeat weekly, and zones change their clocks
yearly: constraints that leave no moment in a year and a month leave none at all."""

HORIZON_OF_ONE_ZONE: Micros = 15 * DAY
"""How far ahead a moment is looked for in a single zone. A free moment comes weekly there, and a
change of the clock can hide one of them."""


class Slot(msgspec.Struct, frozen=True):
    """The first moment that all constraints allow, with the constraints that moved it there from
    `now`."""

    at: Micros
    reasons: tuple[Reason, ...] = ()


class Unsatisfiable(msgspec.Struct, frozen=True):
    """The answer that no moment meets all constraints. If any one constraint of `conflict` is left
    out, some moment meets the rest of `conflict`."""

    conflict: tuple[Constraint, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(constraint.name for constraint in self.conflict)

    def reason(self) -> Reason:
        return because(Code.CONFLICT, names="; ".join(self.names))

    def error(self) -> Contradiction:
        """Return the conflict as the error that the publisher gets."""
        return Contradiction("no moment satisfies all constraints", conflict=self.names)


def earliest(
    constraints: Sequence[Constraint], now: Micros, *, rank: float = 0.0
) -> Slot | Unsatisfiable:
    """Return the first moment from `now` on at which a message of this rank may be delivered."""
    check_instant("now", now)
    if len(constraints) > MAX_CONSTRAINTS:
        raise TooLarge("too many constraints", constraints=len(constraints), most=MAX_CONSTRAINTS)
    moved: dict[int, Micros] = {}
    at = first_moment(constraints, now, rank=rank, moved=moved)
    if at is None:
        return Unsatisfiable(tuple(conflict(constraints, now, rank=rank)))
    return Slot(at, tuple(constraints[index].reason(until) for index, until in moved.items()))


def first_moment(
    constraints: Sequence[Constraint],
    now: Micros,
    *,
    rank: float,
    moved: dict[int, Micros] | None = None,
) -> Micros | None:
    """Return the first moment that all constraints allow, or `None`. `moved` gets the index of each
    constraint that moved the moment, with the instant to which it moved it."""
    at = _pass(constraints, now, rank, moved)
    if at is None:
        return None
    # Constraints that hold from some instant on have been applied now: only quiet hours come again.
    zones = {c.zone for c in constraints if isinstance(c, QuietHours)}
    end = min(at + (HORIZON if len(zones) > 1 else HORIZON_OF_ONE_ZONE), LAST_INSTANT)
    while at <= end:
        later = _pass(constraints, at, rank, moved)
        if later == at or later is None:
            return later
        at = later
    return None


def _pass(
    constraints: Iterable[Constraint], at: Micros, rank: float, moved: dict[int, Micros] | None
) -> Micros | None:
    """Let each constraint move the moment forward once; return None if a constraint allows no later
    one."""
    for index, constraint in enumerate(constraints):
        later = constraint.next(at, rank)
        if later is None:
            return None
        if later > at and moved is not None:
            moved[index] = later
        at = later
    return at


def conflict(constraints: Sequence[Constraint], now: Micros, *, rank: float) -> list[Constraint]:
    """Return a smallest subset of the constraints that allows no moment. If it has more than `FEW`
    members there may be a smaller one, but every member of it is needed."""
    needed = _needed(constraints, now, rank)
    for size in range(1, min(len(needed), FEW + 1)):
        for some in combinations(constraints, size):
            if first_moment(some, now, rank=rank) is None:
                return list(some)
    return needed


def _needed(constraints: Sequence[Constraint], now: Micros, rank: float) -> list[Constraint]:
    """Return the constraints that remain after leaving out every one that the conflict does not
    need."""
    needed = list(constraints)
    index = 0
    while index < len(needed):
        without = needed[:index] + needed[index + 1 :]
        if first_moment(without, now, rank=rank) is None:
            needed = without
        else:
            index += 1
    return needed


class Timed(Protocol):
    """A message or a submission, as far as its publisher says something about its time."""

    @property
    def deliver_after(self) -> Micros | None: ...
    @property
    def deliver_before(self) -> Micros | None: ...
    @property
    def delay_tolerance(self) -> Micros | None: ...
    @property
    def queue(self) -> str | None: ...


def constraints_of(message: Timed, *, since: Micros, now: Micros) -> list[Constraint]:
    """Return the publisher's constraints on a message; the device's own are added by its
    preferences.

    A delay tolerance that is over was used up by the device's absence, which nobody chose: now is
    still a good moment, and no later one is.
    """
    asked: list[Constraint] = []
    if message.deliver_after is not None:
        asked.append(NotBefore(message.deliver_after))
    if message.deliver_before is not None:
        asked.append(Before(message.deliver_before))
    if message.delay_tolerance is not None:
        start, delay = max(since, message.deliver_after or 0), message.delay_tolerance
        asked.append(Tolerance(start, delay) if now <= start + delay else Tolerance(now, 0))
    return asked


class CapCounter(msgspec.Struct):
    """Counts the messages sent under a cap in the present period; waiting messages go by rank."""

    limit: int
    period: Period
    zone: str
    sent: int = 0
    ends: Micros = 0

    def __post_init__(self) -> None:
        zone(self.zone)
        if self.limit < 0:
            raise InvalidRequest("a cap cannot be negative", limit=self.limit)

    def record(self, now: Micros) -> None:
        """Count a message that was sent under the cap."""
        self._turn(now)
        self.sent += 1

    def withdraw(self, now: Micros) -> None:
        """Take back the count of a message that did not leave after all; a new period has forgotten
        it."""
        self._turn(now)
        self.sent = max(0, self.sent - 1)

    def constraint(self, now: Micros) -> FrequencyCap:
        """Return the constraint for the next message under the cap."""
        self._turn(now)
        return FrequencyCap(self.limit, self.period, self.zone, now, self.sent)

    def _turn(self, now: Micros) -> None:
        if now >= self.ends:
            self.sent = 0
            self.ends = period_at(now, self.period, zone(self.zone))[1]
