"""Runs the pipeline once in a process of its own, and prints what every stage took as JSON.

A Java machine is started once in a process and keeps what it has compiled; separate processes keep
runs comparable.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import ClassVar

import msgspec

from bench.hop.processes import memory, tree
from bench.pipeline.questions import ask_spark
from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.lake import Lake
from lasthop.pipeline.session import open_session


@contextmanager
def watched() -> Iterator[list[int]]:
    """Yield the most bytes that this process and its descendants have taken together, sampled every
    few seconds."""
    most = [0]
    over = Event()

    def look() -> None:
        while not over.wait(2.0):
            most[0] = max(most[0], memory(os.getpid()))

    watcher = Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()


def used() -> float:
    """Return the processor seconds of this process and its descendants, also of those that
    ended."""
    total = 0
    for member in tree(os.getpid()):
        with suppress(OSError):
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


class Measured(Pipeline):
    """A pipeline that also measures the processor time of every stage, which tells more than the
    elapsed time on a machine that does other work too."""

    cpu: ClassVar[dict[str, float]] = {}

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = used()
        with super()._timed(stage):
            yield
        self.cpu[stage] = round(used() - began, 1)


def main(log: str, lake: str, master: str) -> None:
    """Run the pipeline, ask the questions, and print the results."""
    began = time.monotonic()
    spark = open_session(master=master, scratch=Path(lake) / "scratch")
    started = time.monotonic() - began
    pipeline = Measured(
        spark,
        Path(log),
        Lake(Path(lake)),
        say=lambda line: print(f"  {time.monotonic() - began:7.1f} s {line}", file=sys.stderr),
    )
    with watched() as most:
        outcome = pipeline.run()
    questions = ask_spark(spark, pipeline.lake)
    result = {
        "events": outcome.rows["bronze.events"],
        "start": round(started, 1),
        "seconds": outcome.seconds,
        "cpu": pipeline.cpu,
        "questions": questions,
        "memory_mb": most[0] >> 20,
        "lake_mb": sum(path.stat().st_size for path in Path(lake).rglob("*.parquet")) >> 20,
    }
    spark.stop()
    sys.stdout.write(msgspec.json.encode(result).decode() + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
