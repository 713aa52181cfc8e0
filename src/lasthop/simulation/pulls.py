"""Pokes in a fault schedule: messages whose bodies wait at the gateway until the device asks.

They are drawn with a random generator of their own, so that the rest of a schedule does not change.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from lasthop.simulation.schedule import Batch, PlannedMessage, Schedule


def add_pulls(schedule: Schedule) -> None:
    """Leave some bodies to be pulled: those of messages to one device whose application takes its
    time over each. An application that commits with its inbox has no time to ask in between."""
    random = Random(schedule.seed ^ 0x9011)
    targets = {f"device:{name}" for name in schedule.plain}

    def drawn(plan: PlannedMessage) -> PlannedMessage:
        if plan.target in targets and plan.source.startswith("publisher:"):
            return replace(plan, pull=random.random() < 0.3)
        return plan

    if targets:
        schedule.batches = [
            Batch(at=batch.at, plans=[drawn(plan) for plan in batch.plans])
            for batch in schedule.batches
        ]
