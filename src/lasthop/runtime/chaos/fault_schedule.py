"""Draws faults from a seed: which, when, whom and for how long.

The schedule repeats with its seed. What a live run makes of it does not: processes and networks
have a timing of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from types import MappingProxyType


class FaultKind(StrEnum):
    """What can be done to a process, a link or the disk."""

    KILL = "kill"
    FREEZE = "freeze"
    CUT = "cut"
    DELAY = "delay"
    CORRUPT = "corrupt"
    HALF_CLOSE = "half_close"
    BLACK_HOLE = "black_hole"
    DISK_FULL = "disk_full"
    CLOCK = "clock"

    @property
    def to_links(self) -> bool:
        """Whether a link meets with it; other kinds are for processes or the disk."""
        return self not in (
            FaultKind.KILL,
            FaultKind.FREEZE,
            FaultKind.DISK_FULL,
            FaultKind.CLOCK,
        )


LENGTHS: dict[FaultKind, tuple[float, float]] = {
    # A process is away for so long before it is started again.
    FaultKind.KILL: (0.0, 0.8),
    # From a pause that nobody notices to one in which publishers give up (`publisher.PATIENCE`).
    FaultKind.FREEZE: (0.1, 3.0),
    FaultKind.CUT: (0.0, 0.0),
    FaultKind.DELAY: (0.3, 2.0),
    FaultKind.CORRUPT: (0.2, 1.0),
    FaultKind.HALF_CLOSE: (0.0, 0.0),
    FaultKind.BLACK_HOLE: (0.3, 3.0),
    # The gateway tries again every second when the disk is full.
    FaultKind.DISK_FULL: (0.5, 3.0),
    # A process notices within two seconds that its clock was moved.
    FaultKind.CLOCK: (2.0, 4.0),
}
"""The shortest and the longest duration of each kind, in seconds."""

KILLS_IN_A_ROUND = 3
"""Kills among one fault of every other kind: they are what promises break by most easily."""

PAUSES = (0.2, 1.2)
"""Seconds between two faults: some of them overlap, and between others messages flow."""

GATEWAY = "gateway"

GATEWAY_SHARE = 0.25
"""The share of kills and freezes that the gateway gets; devices and publishers get the rest. While
the gateway starts, nobody has anything to lose."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault: its kind, its time and whom it strikes."""

    at: float
    """The time of the fault, in seconds after the run began."""
    kind: FaultKind
    target: str
    """The name of a process, or of the process whose link it is."""
    seconds: float
    """The duration of the fault, in seconds."""
    coin: bool
    """A choice within the kind: the direction of a half-close or of a clock, whether a black hole
    ends in a reset."""


def draw(
    seed: int,
    seconds: float,
    parties: Sequence[str],
    kinds: Collection[FaultKind],
    *,
    only: Mapping[FaultKind, Sequence[str]] = MappingProxyType({}),
) -> Iterator[PlannedFault]:
    """Yield the faults of so many seconds, in order. Every kind comes once in each round; some
    kinds are for `only` some parties."""
    random = Random(seed)
    at = random.uniform(*PAUSES)
    while True:
        round_ = [kind for kind in FaultKind if kind in kinds]
        round_ += [FaultKind.KILL] * (KILLS_IN_A_ROUND - 1) if FaultKind.KILL in kinds else []
        random.shuffle(round_)
        for kind in round_:
            if at >= seconds:
                return
            target = random.choice(only.get(kind, parties))
            to_gateway = random.random() < GATEWAY_SHARE and not kind.to_links
            if to_gateway or kind is FaultKind.DISK_FULL:
                target = GATEWAY
            yield PlannedFault(
                at, kind, target, random.uniform(*LENGTHS[kind]), random.random() < 0.5
            )
            at += random.uniform(*PAUSES)
