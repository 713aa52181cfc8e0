"""Runs `lasthop bench pipeline`: events per second of every stage, by cores and by size, and
DuckDB."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.pipeline.loop import WAYS, close, draw
from bench.pipeline.questions import ask_duckdb
from lasthop.simulation.fleet.log import write_log

ROOT = Path(__file__).parents[2]

DAYS = 60
EVENTS_OF_A_DEVICE = 8_000
"""The approximate number of events of a device in sixty days; the log has the exact number."""


def run(
    *,
    events: list[int],
    cores: list[int],
    logs: list[Path],
    directory: Path | None,
    as_json: bool,
) -> int:
    """Measure every size, or every existing log, with every number of cores."""
    rows = []
    with _workplace(directory) as place:
        for source in logs or (_written(place / f"log-{size}", size) for size in events):
            for count in cores:
                rows.append(_measured(source, place / "lake", count, as_json))
                if not as_json:
                    _print(rows[-1])
            if not logs:
                shutil.rmtree(source)
    if as_json:
        sys.stdout.write(msgspec.json.encode(rows).decode() + "\n")
    return 0


def _written(log: Path, events: int) -> Path:
    devices = max(1, round(events / EVENTS_OF_A_DEVICE))
    _note(f"writing the log of {devices} devices over {DAYS} days")
    write_log(log, devices=devices, days=DAYS, processes=os.cpu_count() or 1)
    return log


def _measured(log: Path, lake: Path, cores: int, as_json: bool) -> dict[str, Any]:
    shutil.rmtree(lake, ignore_errors=True)
    lake.mkdir(parents=True)
    _note(f"{cores} cores")
    command = [sys.executable, "-m", "bench.pipeline.stages", str(log), str(lake)]
    done = subprocess.run(
        [*command, f"local[{cores}]"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if as_json else None,
        check=True,
    )
    row: dict[str, Any] = msgspec.json.decode(done.stdout.splitlines()[-1])
    row["cores"] = cores
    row["duckdb"] = ask_duckdb(lake, cores=cores)
    for name, (_, count) in row["duckdb"].items():
        if row["questions"][name][1] != count:
            raise SystemExit(f"{name}: Spark has {row['questions'][name][1]} rows, DuckDB {count}")
    shutil.rmtree(lake)
    return row


def _print(row: dict[str, Any]) -> None:
    events, cores = row["events"], row["cores"]
    print(
        f"\n{events:,} events, {cores} cores, at most {row['memory_mb']:,} MB of memory, "
        f"tables {row['lake_mb']:,} MB"
    )
    stages = {**row["seconds"], "all": sum(row["seconds"].values())}
    cpu = {**row["cpu"], "all": sum(row["cpu"].values())}
    for stage, seconds in stages.items():
        rate = events / seconds if seconds else 0.0
        print(
            f"  {stage:10} {seconds:8.1f} s {rate:12,.0f} events/s {rate / cores:12,.0f} a core; "
            f"{1e6 * cpu[stage] / events:6.2f} µs of processor an event"
        )
    for name, (seconds, _) in row["questions"].items():
        other = row["duckdb"][name][0]
        print(f"  {name:26} {seconds:7.2f} s, DuckDB {other:7.2f} s")
    spark = sum(seconds for seconds, _ in row["questions"].values())
    duck = sum(seconds for seconds, _ in row["duckdb"].values())
    print(f"  {'all four':26} {spark:7.2f} s, DuckDB {duck:7.2f} s")


def run_judges(*, seeds: int, devices: int, days: int, switch: int, as_json: bool) -> int:
    """Let fleets judge what is learned from their own logs, and print every figure with its
    interval."""
    from bench.pipeline.judges import judge  # noqa: PLC0415

    found = judge(
        seeds=seeds,
        devices=devices,
        days=days,
        switch=switch,
        processes=os.cpu_count() or 1,
        progress=_note,
    )
    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        return 0
    print(f"{seeds} fleets of {devices} devices, days {switch + 1} to {days}; 95 % intervals")
    for way, figures in found["ways"].items():
        print(way)
        for name, (value, low, high) in figures.items():
            print(f"  {name:22} {value:9.4f}   {low:.4f} to {high:.4f}")
    return 0


def run_loop(
    *,
    policies: Path,
    devices: int,
    days: int,
    switch: int,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> int:
    """Run the fleet with learned policies from the day `switch` on, and compare them with the live
    ones and with the predictive policy that has learned nothing."""

    def progress(done: int) -> None:
        if not done % 100:
            _note(f"{done} of {devices} devices")

    loop = close(
        policies,
        devices=devices,
        days=days,
        switch=switch,
        seed=seed,
        processes=os.cpu_count() or 1,
        progress=progress,
    )
    if out is not None:
        draw(loop, out)
    if as_json:
        sys.stdout.write(msgspec.json.encode(loop.as_dict()).decode() + "\n")
        return 0
    print(f"{devices} devices, days {switch + 1} to {days}")
    print(f"{'':28}{'waste':>9}{'loss':>9}{'sum':>9}{'pings a day':>13}{'deaths a day':>14}")
    device_days = devices * (days - switch)
    for name, r in loop.results().items():
        print(
            f"{WAYS[name]:28}{r.waste:9.2%}{r.loss:9.2%}{r.waste + r.loss:9.2%}"
            f"{r.pings / device_days:13.2f}{r.deaths / device_days:14.3f}"
        )
    return 0


@contextmanager
def _workplace(directory: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=directory, prefix="lasthop-bench-") as name:
        yield Path(name)


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
