"""The report for people: one HTML file with drawings of what the tables say, which needs no other
file."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence
from datetime import date
from io import BytesIO
from typing import Any

from lasthop.pipeline.summary import BINS, PipelineSummary
from lasthop.policy import Policies

BLUE, ORANGE, GREEN, RED, GREY = "#2f6f9f", "#d9822b", "#3d8f5f", "#b5403b", "#8a8f98"

COLOURS = (BLUE, GREEN, ORANGE, RED, GREY) * 9
"""Colours for links, more than any fleet has."""

STYLE = """
:root { color-scheme: light }
body { font: 16px/1.5 system-ui, sans-serif; color: #1d2530; max-width: 64rem; margin: 2rem auto;
       padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: 0 } h2 { font-size: 1.15rem; margin: 2.2rem 0 .3rem }
p { margin: .3rem 0 .8rem; max-width: 46rem } figure { margin: 0 } img { max-width: 100% }
.numbers { display: flex; flex-wrap: wrap; gap: .5rem 2.2rem; margin: 1.2rem 0 }
.numbers div { min-width: 7rem } .numbers b { display: block; font-size: 1.5rem }
table { border-collapse: collapse; font-size: .92rem } td, th { padding: .2rem .9rem .2rem 0 }
th { text-align: left; border-bottom: 1px solid #c8ced6 } td.n, th.n { text-align: right }
.warn { color: #b5403b }
"""


def render(summary: PipelineSummary, policies: Policies | None = None) -> str:
    """Return the report as an HTML page."""
    parts = [
        _numbers(summary),
        _section(
            "What became of messages",
            "Deliveries by the day on which they were accepted, by how they ended.",
            _outcomes(summary),
        ),
        _section(
            "How long they took",
            "From acceptance (or deliver_after) until delivery. Waiting for contact is part of it.",
            _latency(summary),
        ),
        _section(
            "Waste and loss on the last hop",
            "Waste: forwarded and never read. Loss: read under the on-line policy, on the same "
            "arrivals, contacts and looks, and not under the live one. What is unread at the end "
            "of the log counts as wasted.",
            _last_hop(summary),
        ),
        _section(
            "When people read",
            "Reads a day and device in each hour of UTC.",
            _hours(summary),
        ),
        _section(
            "When links are there",
            "The mean chance of each link by hour of the device's local week.",
            _calendar(summary),
        ),
        _section(
            "How long idle connections live",
            "The share that is still there after so long without traffic, for the networks with "
            "the most observations.",
            _survival(summary),
        ),
        _section("What links carried", "Bytes handed to each link, by day.", _usage(summary)),
        _section(
            "What radios took",
            "Odin's efficiency index in our reading, from a model of the radio: 1 is the device "
            "whose battery suffers least from messaging, relative to doing nothing.",
            _energy(summary),
        ),
        _agreement(summary),
        _channels(summary),
        _quarantine(summary),
        _policy(policies),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>lasthop: deliveries</title><style>{STYLE}</style>\n{body}\n</html>\n"
    )


def _section(title: str, text: str, picture: str) -> str:
    if not picture:
        return ""
    return f"<h2>{html.escape(title)}</h2><p>{html.escape(text)}</p>{picture}"


def _numbers(summary: PipelineSummary) -> str:
    totals = summary.totals
    shown = {
        "deliveries": f"{totals.accepted:,}",
        "delivered": f"{totals.delivered:,}",
        "devices": f"{totals.devices:,}",
        "delivered twice": f"{totals.duplicates:,}",
        "out of order": f"{totals.misordered:,}",
        "sent": f"{totals.bytes / 1e6:,.1f} MB",
    }
    cells = "".join(f"<div><b>{value}</b>{name}</div>" for name, value in shown.items())
    span = f"{totals.first} to {totals.last}" if totals.first else "no deliveries yet"
    return f'<h1>Deliveries</h1><p>{span}</p><div class="numbers">{cells}</div>'


def _drawn(draw: Callable[[Any], None], *, height: float = 3.0) -> str:
    """Return a plot as an image in the page."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9.6, height), dpi=110, layout="constrained")
    draw(figure)
    data = BytesIO()
    figure.savefig(data, format="png")
    text = base64.b64encode(data.getvalue()).decode()
    return f'<figure><img alt="" src="data:image/png;base64,{text}"></figure>'


def _axes(figure: Any, label: str = "") -> Any:
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e6e9ee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_ylabel(label)
    return axes


def _days(rows: Sequence[Any]) -> list[date]:
    return [date.fromisoformat(row.date) for row in rows]


def _legend(axes: Any, columns: int = 5, **style: Any) -> None:
    axes.legend(frameon=False, ncols=columns, loc="lower left", bbox_to_anchor=(0, 1), **style)


def _outcomes(summary: PipelineSummary) -> str:
    rows = summary.outcomes
    names = {"delivered": GREEN, "expired": ORANGE, "suppressed": GREY, "open": BLUE, "other": RED}

    def draw(figure: Any) -> None:
        axes = _axes(figure, "deliveries")
        bottom = [0] * len(rows)
        for name, colour in names.items():
            heights = [getattr(row, name) for row in rows]
            label = "other ends" if name == "other" else name
            if any(heights):
                axes.bar(_days(rows), heights, bottom=bottom, color=colour, label=label, width=0.8)
                bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
        _legend(axes)

    return _drawn(draw) if rows else ""


def _latency(summary: PipelineSummary) -> str:
    rows = summary.latency

    def draw(figure: Any) -> None:
        axes = _axes(figure, "seconds")
        for name, colour in (("p50", GREEN), ("p90", BLUE), ("p99", ORANGE)):
            values = [max(getattr(row, name), 1e-3) for row in rows]
            axes.plot(_days(rows), values, color=colour, label=name, marker=".")
        axes.set_yscale("log")
        _legend(axes, 3)

    return _drawn(draw) if rows else ""


def _last_hop(summary: PipelineSummary) -> str:
    rows = summary.last_hop

    def draw(figure: Any) -> None:
        axes = _axes(figure, "%")
        for name, colour in (("waste", ORANGE), ("loss", RED)):
            values = [100 * (getattr(row, name) or 0) for row in rows]
            axes.plot(_days(rows), values, color=colour, label=name, marker=".")
        axes.set_ylim(bottom=0)
        _legend(axes, 2)

    return _drawn(draw) if rows else ""


def _hours(summary: PipelineSummary) -> str:
    hours = summary.read_hours

    def draw(figure: Any) -> None:
        axes = _axes(figure, "reads")
        axes.bar(range(24), hours, color=BLUE, width=0.85)
        axes.set_xticks(range(0, 24, 2), [f"{h}:00" for h in range(0, 24, 2)])

    return _drawn(draw, height=2.4) if hours else ""


def _calendar(summary: PipelineSummary) -> str:
    rows = summary.calendar

    def draw(figure: Any) -> None:
        picture = None
        grid = figure.subplots(len(rows), 1, squeeze=False)
        for axes, row in zip(grid[:, 0], rows, strict=True):
            week = [row.hours[24 * day : 24 * day + 24] for day in range(7)]
            picture = axes.imshow(week, vmin=0, vmax=1, cmap="Blues", aspect="auto")
            axes.set_yticks(range(7), ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"])
            axes.set_xticks(range(0, 24, 3), [f"{h}:00" for h in range(0, 24, 3)])
            axes.set_title(f"{row.link}: {row.devices:,} devices", loc="left", fontsize=10)
        figure.colorbar(picture, ax=grid[:, 0], label="chance", shrink=0.9)

    return _drawn(draw, height=0.6 + 2.0 * len(rows)) if rows else ""


def _survival(summary: PipelineSummary) -> str:
    curves = summary.survival

    def draw(figure: Any) -> None:
        axes = _axes(figure, "share alive")
        for curve in curves:
            axes.step(curve.minutes, curve.alive, where="post", label=curve.network)
        axes.set_xlabel("minutes without traffic")
        axes.set_ylim(0, 1.03)
        _legend(axes, 4, fontsize=8)

    return _drawn(draw) if curves else ""


def _usage(summary: PipelineSummary) -> str:
    rows = summary.usage

    def draw(figure: Any) -> None:
        axes = _axes(figure, "MB")
        days = sorted(set(_days(rows)))
        bottom = [0.0] * len(days)
        links = sorted({row.link for row in rows})
        for link, colour in zip(links, COLOURS, strict=False):
            sizes = {date.fromisoformat(r.date): r.bytes / 1e6 for r in rows if r.link == link}
            heights = [sizes.get(day, 0.0) for day in days]
            axes.bar(days, heights, bottom=bottom, color=colour, label=link)
            bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
        _legend(axes)

    return _drawn(draw) if rows else ""


def _energy(summary: PipelineSummary) -> str:
    rows = summary.energy

    def draw(figure: Any) -> None:
        axes = _axes(figure, "devices and days")
        bottom = [0] * BINS
        for link, colour in zip(sorted({row.link for row in rows}), COLOURS, strict=False):
            found = {row.bin: row.count for row in rows if row.link == link}
            heights = [found.get(place, 0) for place in range(BINS)]
            places = [(place + 0.5) / BINS for place in range(BINS)]
            axes.bar(places, heights, bottom=bottom, width=0.9 / BINS, color=colour, label=link)
            bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
        axes.set_xlabel("efficiency index")
        _legend(axes)

    return _drawn(draw, height=2.4) if rows else ""


def _table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1
) -> str:
    if not rows:
        return ""
    marks = ["" if place < left else ' class="n"' for place in range(len(heads))]
    head = "".join(f"<th{m}>{html.escape(h)}</th>" for m, h in zip(marks, heads, strict=True))
    lines = "".join(
        "<tr>" + "".join(f"<td{m}>{html.escape(c)}</td>" for m, c in zip(marks, r, strict=True))
        for r in rows
    )
    return f"<h2>{html.escape(title)}</h2><table><tr>{head}</tr>{lines}</table>"


def _channels(summary: PipelineSummary) -> str:
    return _table(
        "Channels",
        ("link", "networks", "transmissions", "round trip", "contention", "contended"),
        [
            (
                row.link,
                f"{row.networks:,}",
                f"{row.transmissions:,}",
                f"{(row.rtt or 0) * 1e3:,.0f} ms",
                f"{row.contention or 1:.2f}",
                f"{row.contended or 0:.1%}",
            )
            for row in summary.channels
        ],
    )


def _agreement(summary: PipelineSummary) -> str:
    found = summary.agreement
    if not found.devices:
        return ""
    text = (
        f"The model of the live policies treats {found.agreed:,} of {found.messages:,} messages "
        f"({found.share:.2%}) as the log does, and {found.trusted:,} of {found.devices:,} devices "
        "well enough to learn from."
    )
    rows = [
        (f"{one.app}/{one.dev}", one.difference, f"{one.agreed:,} of {one.messages:,}")
        for one in found.worst
    ]
    table = _table("Devices that nothing is learned from", ("device", "", "alike"), rows, left=2)
    return f"<h2>Whether estimates can be trusted</h2><p>{html.escape(text)}</p>{table}"


def _quarantine(summary: PipelineSummary) -> str:
    return _table(
        "In quarantine",
        ("problem", "file", "lines"),
        [(row.problem, row.file, f"{row.lines:,}") for row in summary.quarantine],
        left=2,
    )


def _policy(policies: Policies | None) -> str:
    if policies is None:
        return ""
    lineage = policies.lineage
    held = lineage.held_out
    rows = [
        ("learned from", f"{lineage.first_day} to {lineage.last_day}, {lineage.events:,} events"),
        ("by lasthop", lineage.code),
        ("choices for devices", f"{len(policies.devices):,}"),
        ("networks with an interval", f"{len(policies.heartbeats):,}"),
    ]
    for measure in ("waste", "loss"):
        if measure in held:
            others = ", ".join(
                f"{name} {held[key]:.2%}"
                for name, key in (
                    ("live", f"live_{measure}"),
                    ("predictive", f"predictive_{measure}"),
                )
                if key in held
            )
            rows.append((f"{measure} on held-out days", f"{held[measure]:.2%} ({others})"))
    return _table(f"Policy {policies.version}", ("", ""), rows, left=2)
