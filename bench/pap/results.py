"""The results of a comparison of Push Proxy Gateways."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

DOCUMENTS_A_SECOND = 20_000
"""The goal for the encoder of binary XML, in documents per second on one core."""


class Run(msgspec.Struct):
    """The throughput of one gateway in one round."""

    submissions: float
    """Submissions accepted per second."""
    pushes: float
    """Pushes sent per second, from the first submission to the last datagram."""
    cpu: float
    """Microseconds of CPU a push, in all processes of the gateway."""
    missing: int
    duplicates: int
    refused: int


class Latency(msgspec.Struct):
    """The latency of one gateway at a steady rate, in milliseconds."""

    rate: float
    answer_median: float
    answer_99: float
    air_median: float
    air_99: float
    missing: int


class Row(msgspec.Struct):
    """All results of one gateway."""

    label: str
    promise: str
    runs: list[Run] = []
    latencies: list[Latency] = []

    @property
    def submissions(self) -> float:
        return median(run.submissions for run in self.runs)

    @property
    def pushes(self) -> float:
        return median(run.pushes for run in self.runs)

    @property
    def cpu(self) -> float:
        return median(run.cpu for run in self.runs)

    @property
    def lost(self) -> int:
        """Return the number of pushes that were refused, or accepted and never sent."""
        return sum(run.missing + run.refused for run in self.runs)


class Encoding(msgspec.Struct):
    """Documents encoded per second on one core: from XML text, and from a parsed document."""

    from_text: float
    from_document: float


class Report(msgspec.Struct):
    """All results of the comparison."""

    python: str
    pushes: int
    connections: int
    one_core: bool
    rows: list[Row]
    encoding: Encoding

    @property
    def ratio(self) -> float | None:
        """Return our pushes per second as a multiple of Kannel's; None if one was not measured."""
        if len(self.rows) < 2:
            return None
        return self.rows[0].pushes / self.rows[1].pushes

    @property
    def met(self) -> bool:
        """Whether the goals are met: faster while durable, no push lost, and the encoder fast
        enough."""
        faster = self.ratio is None or self.ratio > 1
        return faster and self.rows[0].lost == 0 and self.encoding.from_text >= DOCUMENTS_A_SECOND


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
