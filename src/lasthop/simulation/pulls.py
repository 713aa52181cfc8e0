"""Pokes in a fault schedule: messages whose bodies wait at the gateway until the device asks.

They are drawn by themselves, so that the rest of a schedule is what it was without them.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from lasthop.simulation.schedule import Batch, Schedule, Wish


def add_pulls(schedule: Schedule) -> None:
    """Leave some bodies to be pulled: those of messages to one device whose application takes its
    time over each. One that commits with its inbox has no time to ask in between."""
    random = Random(schedule.seed ^ 0x9011)
    targets = {f"device:{name}" for name in schedule.plain}

    def drawn(wish: Wish) -> Wish:
        if wish.target in targets and wish.source.startswith("publisher:"):
            return replace(wish, pull=random.random() < 0.3)
        return wish

    if targets:
        schedule.batches = [
            Batch(at=batch.at, wishes=[drawn(wish) for wish in batch.wishes])
            for batch in schedule.batches
        ]
