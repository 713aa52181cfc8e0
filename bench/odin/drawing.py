"""Draws the results as pictures, and writes them to one self-contained page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.odin.command import Report


def can_draw() -> bool:
    """Whether matplotlib is installed; it comes with the extra `plots`."""
    return find_spec("matplotlib") is not None


def write_png(report: Report, out: Path) -> list[Path]:
    """Draw four pictures: loss, latency, bytes, energy."""
    rows = report.reliability
    services = list(dict.fromkeys(row.service for row in rows))
    bearers = list(dict.fromkeys(row.bearer for row in rows))
    by = {(row.service, row.bearer, row.broken): row for row in rows}
    spent = {(row.service, row.bearer): row for row in report.energy}
    pictures = {
        "loss": (
            "Lost of 360 messages, with breaks of up to 30 minutes",
            {b: [float(by[s, b, True].lost) for s in services] for b in bearers},
        ),
        "latency": (
            "Median latency (ms)",
            {b: [by[s, b, False].latency_ms for s in services] for b in bearers},
        ),
        "bytes": (
            "Protocol bytes a message of 256 bytes (none: not public)",
            {b: [by[s, b, False].bytes_per_message or 0.0 for s in services] for b in bearers},
        ),
        "energy": (
            "Hours that a battery lasts",
            {b: [spent[s, b].hours for s in services] for b in bearers},
        ),
    }
    return [
        _bars(title, services, values, out / f"odin-{name}.png")
        for name, (title, values) in pictures.items()
    ]


def _bars(title: str, names: Sequence[str], values: dict[str, list[float]], path: Path) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    width = 0.8 / len(values)
    for place, (label, heights) in enumerate(values.items()):
        positions = [number + place * width for number in range(len(names))]
        axes.bar(positions, heights, width, label=label)
    axes.set_xticks([number + 0.4 - width / 2 for number in range(len(names))], names)
    axes.set_title(title, fontsize="medium")
    axes.grid(axis="y", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    return path


STYLE = "body{font-family:sans-serif;max-width:60em;margin:auto}td,th{padding:.2em .6em}"


def write_html(report: Report, pictures: Sequence[Path], path: Path) -> None:
    """Write tables and pictures to one page."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Odin's experiments</title>",
        f"<style>{STYLE}</style><h1>Odin's experiments</h1>",
        "<p>Ours is the real code on virtual time; the others are emulated by their policies.</p>",
    ]
    for picture in pictures:
        data = b64encode(picture.read_bytes()).decode()
        parts.append(f"<img alt='{escape(picture.stem)}' src='data:image/png;base64,{data}'>")
    parts.append(_table("Two hours", report.reliability))
    parts.append(_table("24 hours", report.energy))
    if report.load:
        parts.append(_table("Load over real sockets", report.load))
    path.write_text("\n".join(parts) + "\n")


def _table(title: str, rows: Sequence[object]) -> str:
    names: list[str] = list(type(rows[0]).__dataclass_fields__)  # type: ignore[attr-defined]
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(getattr(row, name))}</td>" for name in names) + "</tr>"
        for row in rows
    )
    return f"<h2>{escape(title)}</h2><table><tr>{head}</tr>{body}</table>"


def _cell(value: object) -> str:
    if value is None:
        return "not public"
    return f"{value:.2f}" if isinstance(value, float) else escape(str(value))
