"""The page says what the tables say."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from lasthop.pipeline.audit import agreed
from lasthop.pipeline.gold.last_hop import AGREEMENT
from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.lake import Lake
from lasthop.pipeline.report import render
from lasthop.pipeline.summary import PipelineSummary, summarise, write
from lasthop.policy import FORMAT, Lineage, Policies
from tests.pipeline.rows import frame


def test_a_page_has_every_plot_and_needs_nothing_else(fleet: Pipeline) -> None:
    held = {"waste": 0.1, "live_waste": 0.4, "predictive_waste": 0.2, "loss": 0.05}
    lineage = Lineage("1", 0, "2026-09-04", "2026-09-07", 2000, held)
    page = render(summarise(fleet, 0), Policies(FORMAT, "v1", lineage))
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert len(pictures) == 8
    for picture in pictures:
        assert base64.b64decode(picture).startswith(b"\x89PNG")
    accepted = fleet.gold("delivery_quality").agg({"accepted": "sum"}).collect()[0][0]
    assert f"<b>{accepted:,}</b>deliveries" in page
    assert "10.00% (live 40.00%, predictive 20.00%)" in page
    assert "(100.00%) as the log does, and 6 of 6 devices" in page
    assert "http" not in re.sub(r"data:image[^\"]+", "", page)


def test_without_any_rows_there_is_a_page(spark: SparkSession, tmp_path: Path) -> None:
    page = render(summarise(Pipeline(spark, tmp_path, Lake(tmp_path)), 0))
    assert "no deliveries yet" in page
    assert "<img" not in page


def test_the_summary_is_small_and_reads_back(fleet: Pipeline) -> None:
    summary = summarise(fleet, 1_800_000_000_000_000)
    write(fleet, summary)
    data = (fleet.lake.root / "summary.json").read_bytes()
    assert len(data) < 200_000
    assert msgspec.json.decode(data, type=PipelineSummary) == summary
    assert sum(day.delivered for day in summary.outcomes) == summary.totals.delivered
    assert [day.date for day in summary.outcomes] == sorted(day.date for day in summary.outcomes)
    assert all(0 <= share <= 1 for week in summary.calendar for share in week.hours)
    assert len(summary.read_hours) == 24
    carried = fleet.gold("usage").agg({"messages": "sum"}).collect()[0][0]
    assert sum(row.messages for row in summary.usage) == carried


def test_devices_that_the_model_does_not_reproduce_are_named(spark: SparkSession) -> None:
    rows = [
        {"store": "s", "app": "app", "dev": dev, "messages": 10, "agreed": n, "share": n / 10}
        for dev, n in (("good", 10), ("bad", 7), ("worse", 2))
    ]
    rows[1]["difference"] = rows[2]["difference"] = "news: only the log has read 5"
    found = agreed(frame(spark, AGREEMENT, rows))
    assert (found.devices, found.trusted, found.messages, found.agreed) == (3, 1, 30, 19)
    assert [one.dev for one in found.worst] == ["worse", "bad"]
    assert found.worst[0].difference == "news: only the log has read 5"
