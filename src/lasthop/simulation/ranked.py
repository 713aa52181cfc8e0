"""The ranked topic of a fault schedule: who subscribes with which terms, what is published, how
ranks change, and when users look.

It is drawn with a random generator of its own, so that the rest of a schedule does not change.
"""

from __future__ import annotations

from random import Random

from lasthop.clock import SECOND, Micros
from lasthop.message import Reliability
from lasthop.simulation.schedule import LANES, Batch, PlannedLook, PlannedMessage, Schedule

RANKED = "ranked"
"""The name of the ranked topic in every schedule."""

THRESHOLD = 3.0

DRAWN = ("on-demand", "on-line", "buffer", "unified", "rate")
"""The policies that schedules draw from. The list must not change, so that a seed stays the same
schedule."""


def add_ranked(schedule: Schedule) -> None:
    """Let some devices subscribe to a ranked topic, in every other schedule, since reading to the
    end takes about as long as all the rest."""
    if schedule.seed % 2 == 0:
        return
    random = Random(schedule.seed ^ 0x4A4E)
    for name in schedule.devices:
        if random.random() < 0.5:
            schedule.ranked[name] = _terms(random)
            if random.random() < 0.3:
                schedule.storage[name] = random.choice((1, 2, 4))
    if not schedule.ranked:
        return
    number = schedule.messages
    end = schedule.batches[-1].at
    for _ in range(random.choice((2, 4, 8))):
        plans: list[PlannedMessage] = []
        source = random.choice(("publisher:p", "publisher:q"))
        for _ in range(random.choice((1, 1, 2, 4))):
            plans.append(_plan(random, number, source))
            number += 1
        schedule.batches.append(Batch(at=random.randint(0, end), plans=plans))
    schedule.batches.sort(key=lambda batch: batch.at)
    for name in schedule.ranked:
        for _ in range(random.choice((0, 2, 5))):
            wanted = random.choice((None, 1, 2, 5))
            at = random.randint(0, end + 20 * SECOND)
            schedule.looks.append(PlannedLook(at=at, device=name, wanted=wanted))


def _terms(random: Random) -> dict[str, object]:
    terms: dict[str, object] = {"threshold": THRESHOLD, "policy": random.choice(DRAWN)}
    if random.random() < 0.5:
        terms["max"] = random.choice((1, 2, 5))
    if random.random() < 0.3:
        terms["prefetch_limit"] = random.choice((1, 3))
    if random.random() < 0.2:
        terms["mode"] = "on-line"
    if random.random() < 0.3:
        terms["interrupt"] = 9.0
    return terms


def _plan(random: Random, number: int, source: str) -> PlannedMessage:
    reranks: list[tuple[Micros, float]] = []
    while random.random() < 0.35 and len(reranks) < 3:
        reranks.append((random.randint(0, 5 * SECOND), float(random.randrange(11))))
    return PlannedMessage(
        number=number,
        source=source,
        target=f"topic:{RANKED}",
        priority=random.choice(LANES),
        reliability=random.choice((Reliability.EXACTLY_ONCE,) * 5 + tuple(Reliability)),
        ttl=random.randint(SECOND, 40 * SECOND) if random.random() < 0.2 else None,
        rank=float(random.randrange(11)),
        reranks=tuple(reranks),
        size=random.choice((20, 20, 300)),
    )
