"""Runs `lasthop bench xml`: sizes and times of XML messages, in one run."""

from __future__ import annotations

import gc
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from bench.xml.contenders import IN_STRIDE, SIZES, TIMES
from bench.xml.ours import typed
from bench.xml.results import GOALS, SPEEDS, Report, Size, Time
from bench.xml.rivals import COMPRESSORS, as_cbor, as_json, same_in_json

SAMPLE = Path(__file__).parents[1] / "data" / "xml_events" / "messages"


def run(*, folder: Path | None = None, rounds: int = 9, as_json: bool = False) -> int:
    """Measure and print; return the exit status."""
    place = folder or SAMPLE
    paths = sorted(place.glob("*.xml"))
    if not paths:
        sys.stderr.write(f"lasthop bench: no XML files in {folder}\n")
        return 1
    report = measure([path.read_bytes() for path in paths], rounds=rounds, said=same_in_json(place))
    if as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        show(report, Console(width=120, highlight=False), sample=folder is None)
    return 0 if folder is not None or not report.missed else 1


def measure(
    documents: Sequence[bytes], *, rounds: int, said: Sequence[object] | None = None
) -> Report:
    """Measure every codec on the same messages in the same order."""
    total = sum(map(len, documents))
    sizes = [size(label, make(documents), total) for label, make in SIZES.items()]
    if said is not None and len(said) == len(documents):
        sizes += [
            size("JSON, the same data", as_json(said), total),
            size("CBOR, the same data", as_cbor(said), total),
        ]
    return Report(
        len(documents),
        total,
        sum(len(typed(each)) for each in documents) / len(documents),
        platform.python_version(),
        sizes,
        times(documents, rounds),
    )


def size(label: str, messages: Sequence[bytes], total: int) -> Size:
    """Return the size of messages in per cent of XML, as they are and compressed."""
    return Size(
        label,
        {
            name: round(100 * compressed(messages) / total, 2)
            for name, compressed in COMPRESSORS.items()
        },
    )


def times(documents: Sequence[bytes], rounds: int) -> list[Time]:
    """Measure all times, with a turn for every codec in every round; ratios are to the first in the
    table."""
    writes = [(jobs.begin_write, jobs.written(documents)) for jobs in TIMES.values()]
    reads = [(jobs.begin_read, jobs.read(documents)) for jobs in TIMES.values()]
    best = best_of(rounds, [*writes, *reads])
    pairs = list(zip(best[: len(TIMES)], best[len(TIMES) :], strict=True))
    lxml = sum(pairs[0])
    return [
        Time(label, round(write, 1), round(read, 1), round(lxml / (write + read), 3))
        for label, (write, read) in zip(TIMES, pairs, strict=True)
    ]


def best_of(
    rounds: int, jobs: Sequence[tuple[Callable[[], Callable[[Any], object]], Sequence[Any]]]
) -> list[float]:
    """Return for each job the best round of each message, averaged, in microseconds.

    The best round is the cost without interference from other work. A job starts afresh in each
    round.
    """
    clock = time.perf_counter
    shortest = [[float("inf")] * len(items) for _, items in jobs]
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for (begin, items), found in zip(jobs, shortest, strict=True):
                job = begin()
                for place, item in enumerate(items):
                    started = clock()
                    job(item)
                    found[place] = min(found[place], clock() - started)
            gc.collect()
    finally:
        gc.enable()
    return [sum(found) / len(found) * 1e6 for found in shortest]


def show(report: Report, console: Console, *, sample: bool) -> None:
    """Print the report for people."""
    console.print(
        f"{report.messages} messages of one connection, {report.bytes / report.messages:.0f} bytes "
        f"and {report.events:.0f} events each, Python {report.python}"
    )
    sizes = Table(title="Size in per cent of XML", title_justify="left")
    sizes.add_column("format")
    for name in COMPRESSORS:
        sizes.add_column(name, justify="right")
    for each in report.sizes:
        sizes.add_row(each.label, *(f"{share:.2f}" for share in each.shares.values()))
    console.print(sizes)
    console.print(
        "ctx: one compressor for the connection, flushed after each message. "
        "trained: on 698 other messages (seed 2)"
    )
    table = Table(title="Microseconds a message", title_justify="left")
    table.add_column("job")
    for heading in ("write", "read", "speed, lxml = 1"):
        table.add_column(heading, justify="right")
    for time_ in report.times:
        table.add_row(time_.label, f"{time_.write:g}", f"{time_.read:g}", f"{time_.ratio:g}")
    console.print(table)
    if sample:
        _show_goals(report, console)


def _show_goals(report: Report, console: Console) -> None:
    missed = report.missed
    for goal in GOALS:
        word = "missed" if goal in missed else "met"
        console.print(f"{word}: {goal.label} ({goal.compressor}) at most {goal.most} % of XML")
    ratios = {each.label: each.ratio for each in report.times}
    for engine, least in SPEEDS.items():
        ratio = ratios.get(f"{IN_STRIDE} ({engine})")
        if ratio is None:
            console.print(f"not measured: {engine}; `make accelerate` builds it")
        else:
            word = "met" if ratio >= least else "missed"
            console.print(f"{word}: {IN_STRIDE} ({engine}) {least} times as fast as lxml")
