"""`lasthop sim sentences`: what the last-hop paper says about its figures, and what is measured."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lasthop.runtime.cli.options import Json, described
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.failure import Failure
from lasthop.simulation.last_hop.paper_text import SENTENCES
from lasthop.simulation.last_hop.sentence_tables import count, legend, tables
from lasthop.simulation.last_hop.sentences import (
    READINGS,
    Measured,
    Reading,
    measure_sentences,
    runs,
)
from lasthop.simulation.last_hop.sweep import mapper


def join(commands: typer.Typer) -> None:
    """Add the `sentences` command to its group."""
    commands.command(
        "sentences",
        help=described(
            "Measure every sentence of the last-hop paper's text about figures 1 to 6, and say"
            " which hold: with our reading of what the paper leaves open, and with others."
            " The answer is Markdown, as in docs/last-hop-figures.md.",
            "lasthop sim sentences",
            "lasthop sim sentences --figure 5 --reading looks-wait --seeds 1",
        ),
    )(sentences)


def reading_named(name: str) -> Reading:
    """Return the reading of this name. Raises Failure."""
    for reading in READINGS:
        if reading.name == name:
            return reading
    known = ", ".join(reading.name for reading in READINGS)
    raise Failure(f"unknown reading {name}: choose from {known}", exit_code=2)


def sentences(
    figure: Annotated[
        int | None, typer.Option(min=1, max=6, help="Only the sentences of this figure. [all]")
    ] = None,
    reading: Annotated[
        list[str] | None,
        typer.Option(
            metavar="|".join(reading.name for reading in READINGS),
            help="Only this reading of what the paper leaves open; several times. [all]",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of runs of every point; values are means.")
    ] = 3,
    years: Annotated[float, typer.Option(min=0.01, help="Virtual years in a run.")] = 1.0,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. [one per core]")
    ] = None,
    as_json: Json = False,
) -> None:
    readings = [reading_named(name) for name in reading] if reading else list(READINGS)
    wanted = [sentence for sentence in SENTENCES if figure in (None, sentence.figure)]
    pairs = [(reading, sentence) for reading in readings for sentence in wanted]
    with (
        Progress(
            TextColumn("sentences"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            disable=as_json or not sys.stderr.isatty(),
            transient=True,
        ) as bar,
        mapper(processes or os.cpu_count() or 1) as mapped,
    ):
        task = bar.add_task("runs", total=len(list(runs(pairs, seeds=seeds, years=years))))
        found = measure_sentences(
            readings,
            sentences=wanted,
            seeds=seeds,
            years=years,
            mapper=mapped,
            progress=lambda: bar.advance(task),
        )
    if as_json:
        say_json([_as_dict(measured) for measured in found])
        return
    say(tables(found))
    for name, (held, whole) in count(found).items():
        say(f"{name}: {held} of {whole} sentences hold")
    say("\n".join(["", "| reading | |", "|---|---|", *legend(readings)]))


def _as_dict(measured: Measured) -> dict[str, object]:
    sentence = measured.sentence
    return {
        "figure": sentence.figure,
        "sentence": sentence.text,
        "reading": measured.reading.name,
        "criterion": sentence.criterion,
        "holds": measured.holds,
        "values": {
            probe.label: value
            for probe, value in zip(sentence.probes, measured.values, strict=True)
        },
    }
