"""One run of the pipeline in a process of its own: what every stage took, as JSON.

A Java machine is started once in a process and keeps what it has compiled; separate processes keep
runs comparable.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import msgspec

from bench.pipeline.questions import ask_spark
from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.lake import Lake
from lasthop.pipeline.session import open_session


def main(log: str, lake: str, master: str) -> None:
    """Run, ask, and say."""
    began = time.monotonic()
    spark = open_session(master=master, scratch=Path(lake) / "scratch")
    started = time.monotonic() - began
    pipeline = Pipeline(
        spark,
        Path(log),
        Lake(Path(lake)),
        say=lambda line: print(f"  {time.monotonic() - began:7.1f} s {line}", file=sys.stderr),
    )
    outcome = pipeline.run()
    questions = ask_spark(spark, pipeline.lake)
    runtime = spark._jvm.java.lang.Runtime.getRuntime()  # type: ignore[union-attr]
    result = {
        "events": outcome.rows["bronze.events"],
        "start": round(started, 1),
        "seconds": outcome.seconds,
        "questions": questions,
        "heap_mb": (runtime.totalMemory() - runtime.freeMemory()) >> 20,
        "driver_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }
    spark.stop()
    sys.stdout.write(msgspec.json.encode(result).decode() + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
