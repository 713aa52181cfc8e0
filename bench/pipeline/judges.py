"""Judges learning on fleets that nobody has looked at while it was made.

Each fleet goes through days under the unified policy; policies are learned from their log, by the
pipeline itself, and are in force on the days after. All ways of deciding go through the same later
days. The seeds of these fleets are kept here, apart from those that learning is developed with, and
are not to be changed after a look at their results.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

from bench.pipeline.loop import WAYS, devices_of
from lasthop.policy import encode
from lasthop.simulation.fleet.log import write_log
from lasthop.simulation.fleet.tally import FleetResult

SEEDS = tuple(range(9001, 9011))
"""The fleets that judge."""

FIRST_DAY = date(2026, 9, 4)
"""The first day of every fleet."""

JUDGED = ("live", "untaught", "predictive", "learned")
"""What is judged: the unified policy of the log, the predictive policy that starts cold at the
switch, the same from the first day on, and what was learned."""

MEASURES: dict[str, tuple[str, str]] = {
    "waste": ("wasted", "forwarded"),
    "loss": ("lost", "read_online"),
    "rank_retained": ("rank", "rank_online"),
    "bytes_per_read_online": ("bytes", "read_online"),
}
"""Ratios of sums over devices."""

LEVEL = 0.95


def judge(
    *,
    seeds: int,
    devices: int,
    days: int,
    switch: int,
    master: str = "local[*]",
    processes: int = 1,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Return what every way of deciding achieves after the switch, over the first `seeds` fleets,
    with intervals over all of their devices."""
    from lasthop.pipeline.jobs import Pipeline  # noqa: PLC0415
    from lasthop.pipeline.lake import Lake  # noqa: PLC0415
    from lasthop.pipeline.learn import DaySpan, learn  # noqa: PLC0415
    from lasthop.pipeline.session import open_session  # noqa: PLC0415

    found: dict[str, list[FleetResult]] = {name: [] for name in JUDGED}
    held_out = {}
    with tempfile.TemporaryDirectory(prefix="lasthop-judges-") as scratch:
        spark = open_session(master=master, scratch=Path(scratch) / "spark")
        try:
            for seed in SEEDS[:seeds]:
                progress(f"seed {seed}: learning from {switch} days of {devices} devices")
                place = Path(scratch) / str(seed)
                write_log(
                    place / "log", devices=devices, days=switch, seed=seed, processes=processes
                )
                pipeline = Pipeline(spark, place / "log", Lake(place / "lake"))
                pipeline.prepare()
                span = DaySpan(FIRST_DAY, FIRST_DAY + timedelta(days=switch - 1))
                policies = learn(pipeline, span, made_at=0)
                held_out[seed] = policies.lineage.held_out
                file = place / "policies.json"
                file.write_bytes(encode(policies))
                progress(f"seed {seed}: judging on {days - switch} days")
                for result in devices_of(
                    file, devices=devices, days=days, switch=switch, seed=seed, processes=processes
                ):
                    for name in JUDGED:
                        found[name].append(result[name])
        finally:
            spark.stop()
    return {
        "seeds": list(SEEDS[:seeds]),
        "devices": devices,
        "days": days,
        "switch": switch,
        "held_out": held_out,
        "ways": {WAYS[name]: measured(results, days - switch) for name, results in found.items()},
    }


def measured(results: Sequence[FleetResult], days: int) -> dict[str, list[float]]:
    """Return every measure as [value, low, high], with devices as the independent units."""
    figures = {
        name: ratio([(getattr(r, above), getattr(r, below)) for r in results])
        for name, (above, below) in MEASURES.items()
    }
    figures["heartbeats_a_day"] = ratio([(r.pings, days) for r in results])
    return figures


def ratio(pairs: Iterable[tuple[float, float]]) -> list[float]:
    """Return a ratio of sums with its confidence interval: its variance follows from how much each
    pair deviates from it."""
    pairs = list(pairs)
    whole = sum(below for _, below in pairs)
    if not whole:
        return [0.0, 0.0, 0.0]
    value = sum(above for above, _ in pairs) / whole
    squares = sum((above - value * below) ** 2 for above, below in pairs)
    correction = len(pairs) / max(1, len(pairs) - 1)
    margin = NormalDist().inv_cdf((1 + LEVEL) / 2) * sqrt(squares * correction) / whole
    return [round(number, 6) for number in (value, value - margin, value + margin)]
