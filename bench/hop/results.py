"""The results of a comparison, in a form that can be printed or written as JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from statistics import median, quantiles

import msgspec

from bench.hop.pair import Run
from bench.hop.payload import SIZE
from bench.hop.systems import System


class Spread(msgspec.Struct, frozen=True):
    """The median of some rounds, with the lowest and the highest."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the median, lowest and highest of some values.

        >>> Spread.of([3, 1, 2])
        Spread(median=2, lowest=1, highest=3)
        """
        return cls(median(values), min(values), max(values))

    def text(self, digits: int = 0) -> str:
        """Format the spread with `digits` digits after the point.

        >>> Spread.of([3, 1000, 2]).text(1)
        '3.0 (2.0 to 1,000.0)'
        """
        low, high = f"{self.lowest:,.{digits}f}", f"{self.highest:,.{digits}f}"
        return f"{self.median:,.{digits}f} ({low} to {high})"


class Latency(msgspec.Struct, frozen=True):
    """Latency from publisher to device at a constant rate, in microseconds."""

    rate: float
    median: Spread
    p99: Spread
    late_p99: float
    """How late the publisher itself was: a high value means that the machine was busy with other
    work."""

    @classmethod
    def of(cls, rate: float, runs: Sequence[Run]) -> Latency:
        """Summarise runs at one rate."""
        return cls(
            rate=rate,
            median=Spread.of([median(run.delays) * 1e6 for run in runs]),
            p99=Spread.of([percentile(run.delays, 99) * 1e6 for run in runs]),
            late_p99=median(percentile(run.late, 99) * 1e6 for run in runs),
        )


class Wire(msgspec.Struct, frozen=True):
    """Bytes of protocol for a delivered message, acknowledgements included."""

    alone: float
    """Bytes a message at twenty messages per second, when each travels by itself."""
    bulk: float
    """Bytes a message when they are sent as fast as they are accepted."""


class Row(msgspec.Struct):
    """All results of one system."""

    key: str
    label: str
    promise: str
    settings: str
    version: str
    ours: bool
    throughput: Spread | None = None
    broker_cpu: Spread | None = None
    """Microseconds of CPU a message, in the gateway or broker."""
    clients_cpu: Spread | None = None
    """Microseconds of CPU a message, in publisher and device together."""
    latency: list[Latency] = []
    wire: Wire | None = None
    idle_bytes: float | None = None
    c_clients: list[float] = []
    """Messages per second with the broker's own clients; empty if there are none."""
    clients: str = "Python"
    failure: str = ""

    @classmethod
    def of(cls, system: System) -> Row:
        """Return a row without results for a system."""
        return cls(
            key=system.key,
            label=system.label,
            promise=system.promise,
            settings=system.settings,
            version=f"{system.broker.name} {system.broker.version}",
            ours=system.ours,
        )

    def add_throughput(self, runs: Sequence[Run]) -> None:
        """Add the throughput of some rounds: that of our clients, or of the broker's own if it is
        better."""
        self.throughput = Spread.of([run.rate for run in runs])
        self.broker_cpu = Spread.of([run.broker_cpu / run.count * 1e6 for run in runs])
        self.clients_cpu = Spread.of(
            [(run.publisher_cpu + run.device_cpu) / run.count * 1e6 for run in runs]
        )
        if self.c_clients and median(self.c_clients) > self.throughput.median:
            self.throughput = Spread.of(self.c_clients)
            self.clients = "C"


class Report(msgspec.Struct):
    """All results of one comparison."""

    rows: list[Row]
    payload: int
    cores: int
    python: str
    kernel: str
    load_before: float
    load_after: float

    @classmethod
    def of(cls, rows: list[Row], *, load_before: float, load_after: float) -> Report:
        """Return a report of the rows, with the properties of the machine."""
        return cls(
            rows=rows,
            payload=SIZE,
            cores=os.cpu_count() or 1,
            python=platform.python_version(),
            kernel=platform.release(),
            load_before=load_before,
            load_after=load_after,
        )

    def row(self, key: str) -> Row | None:
        """Return the row with a key, or None if there is none or its system failed."""
        return next((row for row in self.rows if row.key == key and not row.failure), None)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that `percent` of 100 values do not exceed.

    >>> percentile(range(101), 99)
    99.0
    """
    return quantiles(values, n=100, method="inclusive")[percent - 1]
