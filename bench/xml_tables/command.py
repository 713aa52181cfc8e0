"""Runs the measurements of `lasthop bench xml-tables`."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from bench.xml_tables import footprint, formats, processing

SAMPLE = Path(__file__).parents[1] / "data" / "xml_events" / "messages"


class Report(NamedTuple):
    python: str
    messages: int
    bytes: int
    large: int
    """Bytes of the one large document."""
    processing: list[processing.Row]
    formats: list[formats.Row]
    footprint: list[footprint.Row]


def run(*, messages: int = 200, files: int = 20_000, rounds: int = 5, as_json: bool = False) -> int:
    """Measure and print; return the exit status."""
    documents = [path.read_bytes() for path in sorted(SAMPLE.glob("*.xml"))[:messages]]
    show(measure(documents, files=files, rounds=rounds), as_json=as_json)
    return 0


def measure(documents: list[bytes], *, files: int, rounds: int) -> Report:
    large = processing.directory(files)
    processed = processing.measure("Event", documents, rounds)
    processed += processing.measure("Syxaw", [large], min(rounds, 3))
    return Report(
        platform.python_version(),
        len(documents),
        sum(map(len, documents)),
        len(large),
        processed,
        formats.measure(documents, rounds),
        footprint.measure(),
    )


def show(report: Report, *, as_json: bool) -> None:
    if as_json:
        rows = ("processing", "formats", "footprint")
        named = {name: [row._asdict() for row in getattr(report, name)] for name in rows}
        sys.stdout.write(msgspec.json.encode(report._asdict() | named).decode() + "\n")
        return
    console = Console(width=110, highlight=False)
    console.print(
        f"Python {report.python}; Event: {report.messages} messages, {report.bytes / 1000:.0f} kB; "
        f"Syxaw: one document, {report.large / 1000:.0f} kB"
    )
    console.print(_processing(report.processing))
    console.print(_formats(report.formats))
    console.print(_footprint(report.footprint))


def _table(title: str, left: int, *headings: str) -> Table:
    table = Table(title=title, title_justify="left")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < left else "right")
    return table


def _processing(rows: list[processing.Row]) -> Table:
    table = _table(
        "Reading, and reading and writing (table 7.5)",
        2,
        *("data", "processor", "time (ms)", "memory (MiB)", "left over (MiB)"),
    )
    for row in rows:
        table.add_row(
            row.data,
            row.processor,
            *(
                "-" if pair is None else f"{pair[0]:,.1f}, {pair[1]:,.1f}"
                for pair in (row.milliseconds, row.peak, row.left)
            ),
        )
    return table


def _formats(rows: list[formats.Row]) -> Table:
    table = _table(
        "A message (table 7.7)",
        1,
        *("format", "size (B)", "size (%)", "write (ms)", "(1/s)", "memory (kB)"),
        *("read (ms)", "(1/s)", "memory (kB)"),
    )
    for row in rows:
        table.add_row(
            row.format,
            f"{row.size:,.0f}",
            f"{row.share:.1f}",
            *_cost(row.write, row.write_memory),
            *_cost(row.read, row.read_memory),
        )
    return table


def _cost(milliseconds: float, memory: float | None) -> tuple[str, str, str]:
    shown = "-" if memory is None else f"{memory:.1f}"
    return f"{milliseconds:.3f}", f"{1000 / milliseconds:,.0f}", shown


def _footprint(rows: list[footprint.Row]) -> Table:
    table = _table(
        "Loaded (table 7.9)",
        1,
        *("format", "modules", "code (kB)", "compressed (kB)", "libraries of C (kB)"),
    )
    for row in rows:
        table.add_row(
            row.format,
            str(row.modules),
            f"{row.code:,.1f}",
            f"{row.packed:,.1f}",
            f"{row.library:,.0f}" if row.library else "-",
        )
    return table
