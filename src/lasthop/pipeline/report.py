"""A page for people: what the tables say, drawn, in one HTML file that needs nothing else.

Everything that is fetched from Spark is an aggregate of a size that does not grow with the log: by
day, by hour, by link; of networks the busiest.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

from pyspark.sql import DataFrame, functions as fn

from lasthop.pipeline.bronze import quarantined
from lasthop.pipeline.gold.calendar import HOURS
from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.schema import ratio
from lasthop.policy import Policies

BUSIEST = 8
"""Networks that get a curve."""

BLUE, ORANGE, GREEN, RED, GREY = "#2f6f9f", "#d9822b", "#3d8f5f", "#b5403b", "#8a8f98"

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


def render(pipeline: Pipeline, policies: Policies | None = None) -> str:
    """The page."""
    parts = [
        _numbers(pipeline),
        _section(
            "What became of messages",
            "Deliveries by the day on which they were accepted, by how they ended.",
            _outcomes(pipeline),
        ),
        _section(
            "How long they took",
            "From acceptance (or deliver_after) until delivery. Waiting for contact is part of it.",
            _latency(pipeline),
        ),
        _section(
            "Waste and loss on the last hop",
            "Waste: forwarded and never read. Loss: read under the on-line policy, on the same "
            "arrivals, contacts and looks, and not under the live one. What is unread at the end "
            "of the log counts as wasted.",
            _last_hop(pipeline),
        ),
        _section(
            "When people read",
            "Reads a day and device in each hour of UTC.",
            _hours(pipeline),
        ),
        _section(
            "When links are there",
            "The mean chance of each link by hour of the device's local week.",
            _calendar(pipeline),
        ),
        _section(
            "How long idle connections live",
            "The share that is still there after so long without traffic, for the networks with "
            "the most observations.",
            _survival(pipeline),
        ),
        _section("What links carried", "Bytes handed to each link, by day.", _usage(pipeline)),
        _section(
            "What radios took",
            "Odin's efficiency index in our reading, from a model of the radio: 1 is the device "
            "whose battery suffers least from messaging, relative to doing nothing.",
            _energy(pipeline),
        ),
        _channels(pipeline),
        _quarantine(pipeline),
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


def _numbers(pipeline: Pipeline) -> str:
    quality = pipeline.gold("delivery_quality")
    sums = quality.agg(
        *(fn.sum(name).alias(name) for name in ("accepted", "delivered", "duplicates", "bytes")),
        fn.sum("order_violations").alias("misordered"),
        fn.min("date").alias("first"),
        fn.max("date").alias("last"),
    ).first()
    devices = pipeline.silver("deliveries").agg(fn.count_distinct("app", "dev").alias("n")).first()
    assert sums is not None
    assert devices is not None
    shown = {
        "deliveries": f"{sums['accepted'] or 0:,}",
        "delivered": f"{sums['delivered'] or 0:,}",
        "devices": f"{devices['n']:,}",
        "delivered twice": f"{sums['duplicates'] or 0:,}",
        "out of order": f"{sums['misordered'] or 0:,}",
        "sent": f"{(sums['bytes'] or 0) / 1e6:,.1f} MB",
    }
    cells = "".join(f"<div><b>{value}</b>{name}</div>" for name, value in shown.items())
    span = f"{sums['first']} to {sums['last']}" if sums["first"] else "no deliveries yet"
    return f'<h1>Deliveries</h1><p>{span}</p><div class="numbers">{cells}</div>'


def _drawn(draw: Callable[[Any], None], *, height: float = 3.0) -> str:
    """A plot as part of the page."""
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


def _outcomes(pipeline: Pipeline) -> str:
    names = {"delivered": GREEN, "expired": ORANGE, "suppressed": GREY, "open": BLUE}
    rest = ("sent", "cancelled", "replaced", "aborted", "timed_out", "undeliverable", "reassigned")
    daily = pipeline.gold("delivery_quality").groupBy("date")
    rows = (
        daily.agg(
            *(fn.sum(name).alias(name) for name in names),
            fn.sum(sum((fn.col(name) for name in rest), fn.lit(0))).alias("other ends"),
        )
        .orderBy("date")
        .collect()
    )

    def draw(figure: Any) -> None:
        axes = _axes(figure, "deliveries")
        bottom = [0] * len(rows)
        for name, colour in {**names, "other ends": RED}.items():
            heights = [row[name] for row in rows]
            if any(heights):
                days = [row["date"] for row in rows]
                axes.bar(days, heights, bottom=bottom, color=colour, label=name, width=0.8)
                bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
        axes.legend(frameon=False, ncols=5, loc="lower left", bbox_to_anchor=(0, 1))

    return _drawn(draw) if rows else ""


def _latency(pipeline: Pipeline) -> str:
    rows = _daily(
        pipeline.silver("deliveries")
        .where(fn.col("delivered_at").isNotNull())
        .withColumn("s", (fn.col("delivered_at") - fn.greatest("accepted_at", "after")) / 1e6),
        *(fn.percentile_approx("s", p / 100, 1000).alias(f"p{p}") for p in (50, 90, 99)),
    )

    def draw(figure: Any) -> None:
        axes = _axes(figure, "seconds")
        for name, colour in (("p50", GREEN), ("p90", BLUE), ("p99", ORANGE)):
            values = [max(row[name], 1e-3) for row in rows]
            axes.plot([row["date"] for row in rows], values, color=colour, label=name, marker=".")
        axes.set_yscale("log")
        axes.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))

    return _drawn(draw) if rows else ""


def _daily(frame: DataFrame, *measures: Any) -> list[Any]:
    return frame.groupBy("date").agg(*measures).orderBy("date").collect()


def _last_hop(pipeline: Pipeline) -> str:
    rows = _daily(
        pipeline.gold("last_hop"),
        ratio(fn.sum("wasted"), fn.sum("forwarded")).alias("waste"),
        ratio(fn.sum("lost"), fn.sum("read_online")).alias("loss"),
    )

    def draw(figure: Any) -> None:
        axes = _axes(figure, "%")
        days = [row["date"] for row in rows]
        for name, colour in (("waste", ORANGE), ("loss", RED)):
            values = [100 * (row[name] or 0) for row in rows]
            axes.plot(days, values, color=colour, label=name, marker=".")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))

    return _drawn(draw) if rows else ""


def _hours(pipeline: Pipeline) -> str:
    profiles = pipeline.gold("read_profiles").where(fn.col("hours").isNotNull())
    row = profiles.agg(*(fn.avg(fn.col("hours")[h]).alias(f"h{h}") for h in range(24))).first()
    if row is None or row["h0"] is None:
        return ""

    def draw(figure: Any) -> None:
        axes = _axes(figure, "reads")
        axes.bar(range(24), [row[f"h{h}"] for h in range(24)], color=BLUE, width=0.85)
        axes.set_xticks(range(0, 24, 2), [f"{h}:00" for h in range(0, 24, 2)])

    return _drawn(draw, height=2.4)


def _calendar(pipeline: Pipeline) -> str:
    mean = [fn.avg(fn.col("hours")[h]).alias(f"h{h}") for h in range(HOURS)]
    devices = fn.count("*").alias("devices")
    table = pipeline.gold("link_calendar").groupBy("link").agg(devices, *mean)
    rows = table.orderBy(fn.desc("devices")).limit(4).collect()

    def draw(figure: Any) -> None:
        picture = None
        grid = figure.subplots(len(rows), 1, squeeze=False)
        for axes, row in zip(grid[:, 0], rows, strict=True):
            week = [[row[f"h{24 * day + hour}"] for hour in range(24)] for day in range(7)]
            picture = axes.imshow(week, vmin=0, vmax=1, cmap="Blues", aspect="auto")
            axes.set_yticks(range(7), ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"])
            axes.set_xticks(range(0, 24, 3), [f"{h}:00" for h in range(0, 24, 3)])
            axes.set_title(f"{row['link']}: {row['devices']:,} devices", loc="left", fontsize=10)
        figure.colorbar(picture, ax=grid[:, 0], label="chance", shrink=0.9)

    return _drawn(draw, height=0.6 + 2.0 * len(rows)) if rows else ""


def _survival(pipeline: Pipeline) -> str:
    curves = pipeline.gold("survival")
    weight = fn.sum(fn.col("answered") + fn.col("missed")).alias("weight")
    busiest = curves.groupBy("network").agg(weight).orderBy(fn.desc("weight")).limit(BUSIEST)
    rows = curves.join(busiest, "network").orderBy(fn.desc("weight"), "interval").collect()
    names = list(dict.fromkeys(row["network"] for row in rows))

    def draw(figure: Any) -> None:
        axes = _axes(figure, "share alive")
        for name in names:
            of_network = [row for row in rows if row["network"] == name]
            minutes = [row["interval"] / 60e6 for row in of_network]
            axes.step(minutes, [row["survival"] for row in of_network], where="post", label=name)
        axes.set_xlabel("minutes without traffic")
        axes.set_ylim(0, 1.03)
        axes.legend(frameon=False, fontsize=8, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))

    return _drawn(draw) if rows else ""


def _usage(pipeline: Pipeline) -> str:
    links = pipeline.gold("usage").groupBy("date", "link").agg(fn.sum("bytes").alias("bytes"))
    rows = links.orderBy("date").collect()

    def draw(figure: Any) -> None:
        axes = _axes(figure, "MB")
        days = sorted({row["date"] for row in rows})
        bottom = dict.fromkeys(days, 0.0)
        for link, colour in zip(
            sorted({row["link"] for row in rows}),
            (BLUE, GREEN, ORANGE, RED, GREY) * 9,
            strict=False,
        ):
            sizes = {row["date"]: row["bytes"] / 1e6 for row in rows if row["link"] == link}
            heights = [sizes.get(day, 0.0) for day in days]
            axes.bar(days, heights, bottom=list(bottom.values()), color=colour, label=link)
            bottom = {day: bottom[day] + sizes.get(day, 0.0) for day in days}
        axes.legend(frameon=False, ncols=5, loc="lower left", bbox_to_anchor=(0, 1))

    return _drawn(draw) if rows else ""


def _energy(pipeline: Pipeline) -> str:
    tenth = fn.least(fn.floor(fn.col("efficiency") * 20), fn.lit(19)).alias("bin")
    counts = pipeline.gold("energy").groupBy("link", tenth).agg(fn.count("*").alias("n"))
    rows = counts.collect()

    def draw(figure: Any) -> None:
        axes = _axes(figure, "devices and days")
        links = sorted({row["link"] for row in rows})
        bottom = [0] * 20
        for link, colour in zip(links, (BLUE, GREEN, ORANGE, RED, GREY) * 9, strict=False):
            found = {row["bin"]: row["n"] for row in rows if row["link"] == link}
            heights = [found.get(place, 0) for place in range(20)]
            places = [(place + 0.5) / 20 for place in range(20)]
            axes.bar(places, heights, bottom=bottom, width=0.045, color=colour, label=link)
            bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
        axes.set_xlabel("efficiency index")
        axes.legend(frameon=False, ncols=5, loc="lower left", bbox_to_anchor=(0, 1))

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


def _channels(pipeline: Pipeline) -> str:
    rows = (
        pipeline.gold("channels")
        .groupBy("link")
        .agg(
            fn.count_distinct("network").alias("networks"),
            fn.sum("transmissions").alias("transmissions"),
            fn.avg("rtt_p50").alias("rtt"),
            fn.avg("contention").alias("contention"),
            fn.avg("contended").alias("contended"),
        )
        .orderBy("link")
        .collect()
    )
    return _table(
        "Channels",
        ("link", "networks", "transmissions", "round trip", "contention", "contended"),
        [
            (
                row["link"],
                f"{row['networks']:,}",
                f"{row['transmissions']:,}",
                f"{(row['rtt'] or 0) / 1e3:,.0f} ms",
                f"{row['contention'] or 1:.2f}",
                f"{row['contended'] or 0:.1%}",
            )
            for row in rows
        ],
    )


def _quarantine(pipeline: Pipeline) -> str:
    rows = quarantined(pipeline.spark, pipeline.lake).limit(20).collect()
    return _table(
        "In quarantine",
        ("problem", "file", "lines"),
        [(row["problem"], row["file"], f"{row['lines']:,}") for row in rows],
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
    if held:
        rows.append(
            (
                "waste and loss on held-out days",
                f"{held['waste_and_loss']:.2%} (live {held['live_waste_and_loss']:.2%})",
            )
        )
    return _table(f"Policy {policies.version}", ("", ""), rows, left=2)
