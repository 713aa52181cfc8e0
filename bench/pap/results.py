"""What a run has found, as values."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import msgspec

DOCUMENTS_A_SECOND = 20_000
"""The goal for the encoder of binary XML, on one core."""


class Run(msgspec.Struct):
    """One gateway, one round."""

    submissions: float
    """Accepted a second."""
    pushes: float
    """On the air a second, from the first submission to the last datagram."""
    cpu: float
    """Microseconds of all processes of the gateway for a push."""
    missing: int
    duplicates: int
    refused: int


class Latency(msgspec.Struct):
    """One gateway at a steady rate: milliseconds."""

    rate: float
    answer_median: float
    answer_99: float
    air_median: float
    air_99: float
    missing: int


class Row(msgspec.Struct):
    """One gateway."""

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
        """Accepted and never on the air, or refused."""
        return sum(run.missing + run.refused for run in self.runs)


class Encoding(msgspec.Struct):
    """Documents a second on one core: from XML text to octets, and from a document to octets."""

    from_text: float
    from_document: float


class Report(msgspec.Struct):
    """Everything."""

    python: str
    pushes: int
    connections: int
    one_core: bool
    rows: list[Row]
    encoding: Encoding

    @property
    def ratio(self) -> float | None:
        """Ours against Kannel's, in pushes a second."""
        if len(self.rows) < 2:
            return None
        return self.rows[0].pushes / self.rows[1].pushes

    @property
    def met(self) -> bool:
        """Faster while durable, without losing any, and the encoder fast enough."""
        faster = self.ratio is None or self.ratio > 1
        return faster and self.rows[0].lost == 0 and self.encoding.from_text >= DOCUMENTS_A_SECOND


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which so large a share of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
