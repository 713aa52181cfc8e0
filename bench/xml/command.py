"""What `lasthop bench xml` runs: sizes and times of XML messages, in one run."""

from __future__ import annotations

import gc
import gzip
import platform
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bench.xml.contenders import SIZES, TIMES, Jobs, typed
from bench.xml.results import (
    GOAL,
    TOLERANCE,
    WITH_SCHEMA,
    WITH_SCHEMA_AND_GZIP,
    Report,
    Size,
    Time,
)

SAMPLE = Path(__file__).parents[1] / "data" / "xml_events" / "messages"


def run(*, folder: Path | None = None, rounds: int = 9, as_json: bool = False) -> int:
    """Measure and print; returns the exit status."""
    paths = sorted((folder or SAMPLE).glob("*.xml"))
    if not paths:
        sys.stderr.write(f"lasthop bench: no XML files in {folder}\n")
        return 1
    report = measure([path.read_bytes() for path in paths], rounds=rounds)
    if as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        show(report, Console(width=110, highlight=False), sample=folder is None)
    return 0 if report.met or folder is not None else 1


def measure(documents: Sequence[bytes], *, rounds: int) -> Report:
    """Everyone, one after the other, on the same messages in the same order."""
    total = sum(map(len, documents))
    sizes = [size(label, make(documents), total) for label, make in SIZES.items()]
    return Report(
        len(documents),
        total,
        sum(len(typed(each)) for each in documents) / len(documents),
        platform.python_version(),
        sizes,
        times(documents, rounds),
    )


def size(label: str, messages: Sequence[bytes], total: int) -> Size:
    """The share of XML that messages are, as they are and compressed."""
    context = zlib.compressobj(9, zlib.DEFLATED, -15)
    flushed = (context.compress(each) + context.flush(zlib.Z_SYNC_FLUSH) for each in messages)

    def share(lengths: int) -> float:
        return round(100 * lengths / total, 2)

    return Size(
        label,
        share(sum(map(len, messages))),
        share(sum(len(gzip.compress(each, mtime=0)) for each in messages)),
        # The last four bytes of a flush are always the same, and senders leave them out.
        share(sum(len(each) - 4 for each in flushed)),
    )


def times(documents: Sequence[bytes], rounds: int) -> list[Time]:
    """Ratios are to the first in the table."""
    found: list[Time] = []
    for label, jobs in TIMES.items():
        write, read = timed(jobs, documents, rounds)
        first = found[0] if found else None
        ratio = None
        if first is None:
            ratio = 1.0
        elif write and read and first.write and first.read:
            ratio = round((first.write + first.read) / (write + read), 2)
        found.append(Time(label, write, read, ratio))
    return found


def timed(jobs: Jobs, documents: Sequence[bytes], rounds: int) -> tuple[float | None, float | None]:
    """Both jobs, in microseconds a message."""
    write = best(jobs.begin_write, jobs.written(documents), rounds) if jobs.begin_write else None
    read = best(jobs.begin_read, jobs.read(documents), rounds) if jobs.begin_read else None
    return write, read


def best(begin: Callable[[], Callable[[Any], object]], items: Sequence[Any], rounds: int) -> float:
    """The best round of each message, averaged: what the work costs without the neighbours'."""
    clock = time.perf_counter
    shortest = [float("inf")] * len(items)
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            job = begin()
            for place, item in enumerate(items):
                started = clock()
                job(item)
                shortest[place] = min(shortest[place], clock() - started)
    finally:
        gc.enable()
    return round(sum(shortest) / len(items) * 1e6, 1)


def show(report: Report, console: Console, *, sample: bool) -> None:
    """Print everything."""
    console.print(
        f"{report.messages} messages of one connection, {report.bytes / report.messages:.0f} bytes "
        f"and {report.events:.0f} events each, Python {report.python}"
    )
    sizes = Table(title="Size in per cent of XML", title_justify="left")
    sizes.add_column("format")
    for heading in ("raw", "gzip", "deflate, one context"):
        sizes.add_column(heading, justify="right")
    for size_ in report.sizes:
        sizes.add_row(size_.label, f"{size_.raw:.2f}", f"{size_.gzip:.2f}", f"{size_.deflate:.2f}")
    console.print(sizes)
    table = Table(title="Microseconds a message", title_justify="left")
    table.add_column("job")
    for heading in ("write", "read", "speed, lxml = 1"):
        table.add_column(heading, justify="right")
    for time_ in report.times:
        table.add_row(time_.label, *map(_number, (time_.write, time_.read, time_.ratio)))
    console.print(table)
    if sample:
        word = "met" if report.met else "missed"
        console.print(
            f"{word}: xebu data within {TOLERANCE} of {GOAL} % of XML, with automata at most "
            f"{WITH_SCHEMA} % ({WITH_SCHEMA_AND_GZIP} % with gzip)"
        )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
