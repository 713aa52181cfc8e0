"""A measured figure as files: CSV for machines, and with matplotlib PNG or SVG for people."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import astuple, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lasthop.simulation.last_hop.figures import DrawnFigure, FigureRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOWEST = 1e-4
"""The lowest value on a logarithmic axis: the paper's axes are not finer, and zero has no place
there."""


def can_draw() -> bool:
    """Return whether matplotlib is installed; it comes with the extra `plots`."""
    return find_spec("matplotlib") is not None


def write_csv(rows: Sequence[FigureRow], path: Path) -> None:
    """Write one line for every point and metric."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(FigureRow))
        writer.writerows(astuple(row) for row in rows)


def write_picture(figure: DrawnFigure, rows: Sequence[FigureRow], path: Path) -> None:
    """Draw the curves of a figure with error bars, without a display, as the name of the file
    says: PNG or SVG. The same rows give the same bytes."""
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure as Canvas  # noqa: PLC0415

    canvas = Canvas(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.add_subplot()
    axes.set_title(f"Figure {figure.number}. {figure.title}", fontsize="medium")
    if figure.number == 7:
        _draw_trade_off(axes, rows)
    else:
        _draw_curves(axes, figure, rows)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="x-small", ncols=2)
    # Text stays text, so that the file is small; dates and random ids would change it every time.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "lasthop"}):
        canvas.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)


def error_bars(points: Sequence[FigureRow]) -> tuple[list[float], list[float]]:
    """Return the lengths of the error bars below and above the mean; a share stays between 0 and
    1."""
    below = [min(row.deviation, row.mean) for row in points]
    above = [min(row.deviation, 1 - row.mean) for row in points]
    return below, above


def _draw_curves(axes: Axes, figure: DrawnFigure, rows: Sequence[FigureRow]) -> None:
    for metric in figure.metrics:
        for number, curve in enumerate(dict.fromkeys(row.curve for row in rows)):
            points = [row for row in rows if (row.curve, row.metric) == (curve, metric)]
            axes.errorbar(
                [row.x for row in points],
                [max(row.mean, LOWEST) if figure.log_y else row.mean for row in points],
                yerr=error_bars(points),
                label=f"{curve}: {metric}" if len(figure.metrics) > 1 else curve,
                color=f"C{number}",
                linestyle="-" if metric == "waste" else "--",
                marker=".",
                capsize=2,
            )
    if figure.log_x:
        axes.set_xscale("log", base=2)
    if figure.log_y:
        axes.set_yscale("log")
        axes.set_ylim(LOWEST, 1.2)
    axes.set_xlabel(figure.x)
    axes.set_ylabel(" and ".join(figure.metrics))


def _draw_trade_off(axes: Axes, rows: Sequence[FigureRow]) -> None:
    for curve in dict.fromkeys(row.curve for row in rows):
        waste, loss = (
            [row for row in rows if (row.curve, row.metric) == (curve, metric)]
            for metric in ("waste", "loss")
        )
        axes.errorbar(
            [row.mean for row in waste],
            [row.mean for row in loss],
            xerr=error_bars(waste),
            yerr=error_bars(loss),
            label=curve,
            marker=".",
            capsize=2,
        )
    axes.set_xlabel("waste")
    axes.set_ylabel("loss")
