"""Runs `lasthop bench stream`: how long an event takes from the gateway to the tables.

A gateway runs as users start it, with a publisher, a device, and `lasthop pipeline stream`. When
the stream prints that its tables are up to date, the tables contain all events so far: silver, and
the operational tables of gold. The clock stops for an event when that line has been read.
"""

from __future__ import annotations

import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from queue import Empty, Queue
from subprocess import PIPE, Popen
from threading import Thread

import duckdb
import msgspec
from rich.console import Console

from bench.hop.gateway import gateway, ours
from bench.hop.pair import paired
from bench.hop.processes import ROOT, Failed, end, heed_termination
from bench.hop.results import percentile

GOAL = 30.0
"""The goal in seconds, for 95 of 100 events."""

PATIENCE = 300.0

WARM = 3
"""Batches that are not counted: a Java machine is fast only after it has warmed up."""


class Heard(msgspec.Struct):
    """The line that the stream prints after a batch, with the fields that are needed here."""

    events: int
    seconds: float
    at: float = 0.0


class Followed(msgspec.Struct, kw_only=True):
    """The results of the benchmark; times are in seconds."""

    events: int
    rate: float
    """Events per second, while messages were published."""
    batches: int
    batch_median: float
    """The median time that a batch took to update the tables."""
    p50: float
    p95: float
    longest: float


@dataclass(slots=True)
class Stream:
    """A running `lasthop pipeline stream`, and the lines that it has printed."""

    lines: Queue[Heard]
    heard: list[Heard] = field(default_factory=list)

    def hear(self, *, seconds: float = PATIENCE) -> Heard:
        """Return the next line of the stream."""
        try:
            self.heard.append(self.lines.get(timeout=seconds))
        except Empty:
            raise Failed(f"the stream has printed nothing for {seconds:g} s") from None
        return self.heard[-1]

    def catch_up(self) -> None:
        """Read the lines that were printed in the meantime."""
        while not self.lines.empty():
            self.hear()


@contextmanager
def streaming(data: Path, *, log: Path) -> Iterator[Stream]:
    """Run a stream that follows the log of a gateway."""
    command = [sys.executable, "-m", "lasthop", "pipeline", "stream", "--data", str(data), "--json"]
    lines: Queue[Heard] = Queue()
    with (
        log.open("wb") as errors,
        Popen(command, stdout=PIPE, stderr=errors, cwd=ROOT, start_new_session=True) as process,
    ):
        out = process.stdout
        assert out is not None

        def listen() -> None:
            for line in out:
                heard = msgspec.json.decode(line, type=Heard)
                heard.at = time.time()
                lines.put(heard)

        listener = Thread(target=listen, daemon=True)
        listener.start()
        try:
            yield Stream(lines)
        finally:
            end(process)
            listener.join()


def waits(times: list[int], heard: list[Heard]) -> list[float]:
    """Return how long each event took, from its time to the first line that counts it.

    Events are read in the order of their numbers, so that a count says which events were read.

    >>> waits([0, 1_000_000, 2_000_000], [Heard(2, 0, at=5.0), Heard(3, 0, at=9.0)])
    [5.0, 4.0, 7.0]
    """
    counts = [line.events for line in heard]
    found = []
    for number, t in enumerate(times):
        line = bisect_right(counts, number)
        if line < len(heard):
            found.append(heard[line].at - t / 1e6)
    return found


def measure(place: Path, *, rate: float, seconds: float, console: Console) -> Followed:
    """Publish messages for some seconds, and measure when their events reach the tables."""
    with (
        gateway(place / "gateway") as running,
        paired(ours(running, inbox=None), "busy", directory=place) as pair,
        streaming(running.data, log=place / "stream.log") as stream,
    ):
        console.print("starting Spark")
        for _ in range(WARM):
            # A segment is sealed only when further events follow, so messages are published here
            # too.
            pair.run(max(1, round(rate)), rate=rate)
            warm = stream.hear()
            console.print(f"{warm.events} events, tables made in {warm.seconds:.1f} s")
        stream.catch_up()
        began, first = time.time(), len(stream.heard)
        pair.run(max(1, round(rate * seconds)), rate=rate)
        ended = time.time()
        while True:
            line = stream.hear()
            console.print(f"{line.events} events, tables made in {line.seconds:.1f} s")
            times = _times(running.data)
            if line.events >= bisect_right(times, int(ended * 1e6)):
                break
    counted = waits(times, stream.heard)
    since, until = bisect_right(times, int(began * 1e6)), bisect_right(times, int(ended * 1e6))
    ours_alone = sorted(counted[since:until])
    made = [line.seconds for line in stream.heard[first:]]
    if not ours_alone or any(b.events < a.events for a, b in pairwise(stream.heard)):
        raise Failed("the counts that the stream printed do not add up")
    return Followed(
        events=len(ours_alone),
        rate=len(ours_alone) / (ended - began),
        batches=len(made),
        batch_median=percentile(sorted(made), 50),
        p50=percentile(ours_alone, 50),
        p95=percentile(ours_alone, 95),
        longest=ours_alone[-1],
    )


def _times(data: Path) -> list[int]:
    """Return the times of all events in silver, in the order of their numbers."""
    with duckdb.connect(config={"threads": 1}) as sql:
        files = f"{data}/lake/silver/events/date=*/*.parquet"
        rows = sql.execute(f"select t from read_parquet('{files}') order by n").fetchall()
    return [int(t) for (t,) in rows]


def run(*, rate: float, seconds: float, directory: Path | None, as_json: bool) -> int:
    """Measure and print; return 0 if the goal is reached."""
    said = Console(stderr=True, highlight=False)
    heed_termination()
    with tempfile.TemporaryDirectory(prefix="lasthop-bench-", dir=directory) as place:
        try:
            found = measure(Path(place), rate=rate, seconds=seconds, console=said)
        except Failed as error:
            said.print(f"lasthop bench: {error}")
            return 1
    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        print(
            f"{found.events:,} events at {found.rate:,.0f} a second in {found.batches} batches, "
            f"{found.batch_median:.1f} s each\n"
            f"from event to table: median {found.p50:.1f} s, p95 {found.p95:.1f} s (at most "
            f"{GOAL:g}), longest {found.longest:.1f} s"
        )
    return 0 if found.p95 <= GOAL else 1
