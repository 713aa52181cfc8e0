"""Draws figures 7.1 to 7.4: CSV files, and PNG files if matplotlib is installed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from bench.exchange.results import PARTS, Point
from lasthop.simulation.last_hop.drawing import can_draw

COLUMNS = ("network", "protocol", "calls", "seconds", "deviation", *PARTS)


def draw(points: Sequence[Point], folder: Path) -> list[Path]:
    """Write all figures to a folder; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "exchange.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([getattr(point, column) for column in COLUMNS] for point in points)
    written = [path]
    if can_draw():
        for number, network in enumerate(dict.fromkeys(point.network for point in points), 1):
            chosen = [point for point in points if point.network == network]
            written.append(_times(chosen, network, folder / f"figure-7.{number}.png"))
        written.append(_octets(points, folder / "figure-7.4.png"))
    return written


def _times(points: Sequence[Point], network: str, path: Path) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    total, each = figure.subplots(1, 2)
    for protocol in dict.fromkeys(point.protocol for point in points):
        chosen = [point for point in points if point.protocol == protocol]
        calls = [point.calls for point in chosen]
        total.errorbar(
            calls,
            [point.seconds for point in chosen],
            yerr=[point.deviation for point in chosen],
            label=protocol,
            marker="o",
            capsize=3,
        )
        each.plot(
            calls,
            [1000 * point.seconds / point.calls for point in chosen],
            label=protocol,
            marker="o",
        )
    total.set_ylabel("total time (s)")
    each.set_ylabel("time for a call (ms)")
    for axes in (total, each):
        axes.set_xlabel("calls")
        axes.set_yscale("log")
        axes.grid(alpha=0.3, which="both")
    each.legend(fontsize="small")
    figure.suptitle(f"Calls over {network}")
    figure.savefig(path, dpi=120)
    return path


def _octets(points: Sequence[Point], path: Path) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    most = max(point.calls for point in points)
    chosen = [point for point in points if point.calls == most]
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    labels = [f"{point.network}\n{point.protocol}" for point in chosen]
    below = [0.0] * len(chosen)
    for part in PARTS:
        heights = [getattr(point, part) / 1000 for point in chosen]
        axes.bar(labels, heights, bottom=below, label=part)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_ylabel(f"kB for {most} calls")
    axes.tick_params(axis="x", labelsize=6)
    axes.grid(alpha=0.3, axis="y")
    axes.legend()
    figure.savefig(path, dpi=120)
    return path
