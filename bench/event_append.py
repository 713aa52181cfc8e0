"""Measures what an event costs where it is made: the limit is 2 µs.

    python -m bench.event_append --events 200000

Deliveries of a real gateway get events as `core.deliveries` and `core.dispatch` make them: begun,
filled with facts, and encoded when the commit is taken. The same lines are written by the standard
library for comparison, and the share of encoding alone is shown. Figures are microseconds an event:
the median of all commits, and the best, since other work on the machine only ever adds. The other
costs of taking a commit (the rows of deliveries) are not counted.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import msgspec

from lasthop.core.commits import Commits
from lasthop.core.delivery import Delivery, Item
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.registry import DeviceRecord
from lasthop.events import Event, Kind
from lasthop.message import Message, Target, TargetKind
from lasthop.store.commit import Commit as StoreCommit
from lasthop.store.memory import MemoryStore

NOW = 1_794_744_000_000_000
COMMIT = 500
"""The number of events in one commit, as under load."""
LIMIT = 2.0
"""The most microseconds that an event may cost to make."""

MakeEvent = Callable[[Commits, Delivery], None]


def released(journal: Commits, delivery: Delivery) -> None:
    event = journal.record_step(delivery, Kind.RELEASED, NOW, "in contact")
    event.epoch = 1
    event.seq = 4711
    event.link = "wifi"


def transmitted(journal: Commits, delivery: Delivery) -> None:
    event = journal.record_step(delivery, Kind.TRANSMITTED, NOW, "")
    event.bytes = 256
    event.attempt = 1
    event.link = "wifi"
    event.channel = 12
    event.seq = 4711
    event.epoch = 1


def accepted(journal: Commits, delivery: Delivery) -> None:
    event = journal.record_step(delivery, Kind.ACCEPTED, NOW, "no contact")
    event.source = "publisher:shop"
    event.target = "topic:news"
    event.size = 256
    event.rank = 1.5
    event.priority = 4
    event.after = 0
    event.before = NOW + 1
    event.reliability = 3


class Result(NamedTuple):
    """The measured cost of one kind of event, in microseconds an event."""

    ours: float
    best: float
    encoding: float
    standard: float
    size: int


def measure(make_event: MakeEvent, events: int) -> Result:
    """Measure one kind of event, and the same line written by the standard library, in one run."""
    gateway = Gateway(Identity(), MemoryStore().open(), random64=lambda: 7, now=NOW)
    journal = gateway.deliveries.commits
    deliveries = [_delivery(gateway, i) for i in range(COMMIT)]
    rounds = range(max(1, events // COMMIT))
    commits = [_commit(journal, make_event, deliveries) for _ in rounds]
    making = [commit.making for commit in commits]
    lines = commits[0].lines
    parsed = [msgspec.json.decode(line, type=Event) for line in lines.splitlines()]
    encode_lines = msgspec.json.Encoder().encode_lines
    encoding = [_timed(lambda: encode_lines(parsed)) for _ in rounds]
    fields = [json.loads(line) for line in lines.splitlines()]
    standard = [_timed(lambda: [json.dumps(one) for one in fields]) for _ in rounds]
    return Result(
        median(making) + median(encoding),
        min(making) + min(encoding),
        median(encoding),
        median(standard),
        len(lines) // COMMIT,
    )


class Commit(NamedTuple):
    """The time that making the events of one commit took, and their lines."""

    making: float
    lines: bytes


def _delivery(gateway: Gateway, i: int) -> Delivery:
    device = gateway.admin.register("news", f"phone-{i}", DeviceRecord(), NOW)
    target = Target(TargetKind.DEVICE, device.name)
    message = Message((1 << 57) + i, i, "news", "publisher:shop", target, NOW, b"x" * 256)
    item = Item(message, gateway.deliveries.plain)
    return Delivery(item, gateway.deliveries.session(device), NOW)


def _commit(journal: Commits, make_event: MakeEvent, deliveries: list[Delivery]) -> Commit:
    _take(journal)

    def make() -> None:
        for delivery in deliveries:
            make_event(journal, delivery)

    making = _timed(make)
    commit = _take(journal)
    assert commit is not None
    return Commit(making, bytes(commit.events))


def _take(journal: Commits) -> StoreCommit | None:
    """Take the open commit as if it were written at once; None if there is nothing in it."""
    commit = journal.take(NOW, flush=True)
    if commit is not None:
        journal.written(commit.n)
    return commit


def _timed(work: Callable[[], object]) -> float:
    """Return the microseconds an event that work for a whole commit takes."""
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) / 1000 / COMMIT


def main() -> None:
    """Measure every kind of event, and print one line for each."""
    parser = argparse.ArgumentParser(description="Measure what an event costs where it is made.")
    parser.add_argument("--events", type=int, default=200_000)
    events = parser.parse_args().events
    print(
        f"{'event':12} {'bytes':>6} {'µs':>6} {'best':>6} {'encoding':>9} {'json':>6} {'ratio':>6}"
    )
    for make_event in (released, transmitted, accepted):
        result = measure(make_event, events)
        verdict = "" if result.ours <= LIMIT else f"  above {LIMIT} µs"
        print(
            f"{make_event.__name__:12} {result.size:6} {result.ours:6.2f} {result.best:6.2f}"
            f" {result.encoding:9.2f}"
            f" {result.standard:6.2f} {result.standard / result.ours:6.1f}{verdict}"
        )


if __name__ == "__main__":
    main()
