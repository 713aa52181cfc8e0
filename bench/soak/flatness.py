"""Decides whether what was measured over a long time is flat after a warm-up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bench.soak.watching import Sample

WARM_UP = 0.3
"""The share of the time that is not judged: caches fill, and the first messages reach the end of
their retention."""

CONCLUSIVE = 600.0
"""Seconds below which nothing is concluded: what grows slowly is not seen, and housekeeping comes
every five minutes."""

ALLOWED: dict[str, tuple[float, float]] = {
    # A share of the mean, and an absolute amount: the larger one counts.
    "memory_mb": (0.05, 8.0),
    "descriptors": (0.0, 5.0),
    "threads": (0.0, 2.0),
    "delay_ms": (0.5, 5.0),
    # SQLite's file grows by pieces, and its write-ahead log comes and goes.
    "store_mb": (0.15, 32.0),
}
"""By how much a measure may grow over the judged time."""


class Flatness(msgspec.Struct, kw_only=True):
    """One measure over the judged time."""

    mean: float
    highest: float
    slope_per_hour: float
    growth: float
    """What the slope makes of the judged time."""
    allowed: float
    verdict: str
    """`flat`, `grows`, or `unclear` after a short run."""


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the line with the least squares.

    >>> slope([(0, 1), (1, 3), (2, 5)])
    2.0
    """
    count = len(points)
    middle_x = sum(x for x, _ in points) / count
    middle_y = sum(y for _, y in points) / count
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    if not spread:
        return 0.0
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread


def judge(samples: Sequence[Sample]) -> Iterator[tuple[str, Flatness]]:
    """Yield every measure with its verdict."""
    end = samples[-1].at
    judged = [sample for sample in samples if sample.at >= end * WARM_UP]
    for name, (share, amount) in ALLOWED.items():
        points = [(sample.at, float(getattr(sample, name))) for sample in judged]
        values = [value for _, value in points]
        mean = sum(values) / len(values)
        per_second = slope(points)
        growth = per_second * (points[-1][0] - points[0][0])
        allowed = max(share * mean, amount)
        verdict = "flat" if growth <= allowed else "grows"
        yield (
            name,
            Flatness(
                mean=round(mean, 2),
                highest=round(max(values), 2),
                slope_per_hour=round(per_second * 3600, 3),
                growth=round(growth, 3),
                allowed=round(allowed, 2),
                verdict=verdict if end >= CONCLUSIVE else "unclear",
            ),
        )
