"""The gateway's metrics, in the text format of Prometheus.

The engine feeds the counters; gauges ask the gateway at the moment of the scrape.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from lasthop.core.lifecycle import State
from lasthop.delivery.carrier import Outcome
from lasthop.runtime.engine import Observer
from lasthop.store.commit import Commit
from lasthop.wire.hop.frames import CloseCode

# Otherwise every counter has a second series with its time of creation.
disable_created_metrics()  # type: ignore[no-untyped-call]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

COMMIT_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)
"""The buckets of commit times in seconds: from a fast disk without load to one that makes
publishers wait."""


Counts: TypeAlias = Mapping[tuple[str, ...], int]
"""Counts, each under the values of its labels."""


class Metrics(Observer):
    """One gateway's metrics, in a registry of their own."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._accepted = Counter(
            "lasthop_messages_accepted", "Messages made durable.", registry=registry
        )
        self._ended = Counter(
            "lasthop_deliveries",
            "Deliveries that have ended, by final state.",
            ["state"],
            registry=registry,
        )
        for state in State:
            if state.final:
                self._ended.labels(state.name.lower())
        self._events = Counter("lasthop_events", "Events recorded.", registry=registry)
        self._commits = Counter("lasthop_commits", "Durable commits.", registry=registry)
        self._commit_seconds = Histogram(
            "lasthop_commit_seconds",
            "From handing a commit to the store until it is durable.",
            registry=registry,
            buckets=COMMIT_SECONDS,
        )
        self._disconnected = Counter(
            "lasthop_disconnects",
            "Channels that the gateway closed, by reason.",
            ["reason"],
            registry=registry,
        )

        self._carried = Counter(
            "lasthop_carried",
            "Attempts over the air, by variant and outcome.",
            ["variant", "outcome"],
            registry=registry,
        )
        self._carried_as: dict[tuple[str, type[Outcome]], Counter] = {}
        """The counters of carried parcels with their labels, which take longer to look up than to
        count."""

        self.tally = Tally[str]()
        """The counts that the dashboard reads every second, as plain numbers: `accepted`,
        `commits`, and one for each final state."""
        self.commit_seconds = 0.0
        self.also: Callable[[Commit], None] | None = None
        """A further function that is called with every commit."""

    def gauge(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Add a gauge whose value is asked for at every scrape."""
        Gauge(name, about, registry=self._registry).set_function(value)

    def counts(
        self, name: str, about: str, labels: Sequence[str], values: Callable[[], Counts]
    ) -> None:
        """Add counters by labels whose values are asked for at every scrape."""
        self._registry.register(_Counts(name, about, labels, values))

    def committed(self, commit: Commit, seconds: float) -> None:
        self._commits.inc()
        self._commit_seconds.observe(seconds)
        self.tally["commits"] += 1
        self.commit_seconds += seconds
        self._events.inc(commit.event_count)
        if commit.messages:
            self._accepted.inc(len(commit.messages))
            self.tally["accepted"] += len(commit.messages)
        ended = Tally([row.state for row in commit.deliveries if not row.open])
        for state, count in ended.items():
            name = State(state).name.lower()
            self._ended.labels(name).inc(count)
            self.tally[name] += count
        if self.also is not None:
            self.also(commit)

    def disconnected(self, code: CloseCode) -> None:
        self._disconnected.labels(code.name.lower()).inc()

    def carried(self, variant: str, outcome: Outcome) -> None:
        counter = self._carried_as.get((variant, type(outcome)))
        if counter is None:
            counter = self._carried.labels(str(variant), type(outcome).__name__.lower())
            self._carried_as[variant, type(outcome)] = counter
        counter.inc()

    def render(self) -> bytes:
        """Return all metrics as a page for Prometheus."""
        return generate_latest(self._registry)


class _Counts(Collector):
    def __init__(
        self, name: str, about: str, labels: Sequence[str], values: Callable[[], Counts]
    ) -> None:
        self._name = name
        self._about = about
        self._labels = labels
        self._values = values

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(self._name, self._about, labels=self._labels)
        for labels, count in sorted(self._values().items()):
            family.add_metric(labels, count)
        yield family
