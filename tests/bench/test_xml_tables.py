"""The tables about XML processing, on a few messages."""

from __future__ import annotations

import msgspec
import pytest
from lxml import etree

from bench.data.xml_events.generate import messages
from bench.xml_tables import processing
from bench.xml_tables.command import Report, measure, show
from bench.xml_tables.meter import memory, memory_each, seconds

# What the tests look at takes most of a minute to measure: once is enough.
pytestmark = pytest.mark.timeout(600)


def test_memory_is_what_a_job_keeps_and_what_it_takes() -> None:
    taken = memory(lambda size: bytes(size) + bytes(size), [100_000] * 3)
    assert 600_000 <= taken.left < 650_000
    assert taken.peak >= taken.left
    assert memory_each(lambda: bytes, [100_000] * 3) == pytest.approx(100_000, rel=0.1)
    assert seconds(lambda: bytes, [10, 20], 2) > 0


def test_every_processor_reads_and_writes() -> None:
    rows = processing.measure("x", messages(1, 3), 1)
    assert [row.processor for row in rows] == list(processing.PROCESSORS)
    by_name = {row.processor: row for row in rows}
    assert all(min(row.milliseconds) > 0 for row in rows)
    left = {name: row.left for name, row in by_name.items() if row.left is not None}
    # What discards its results leaves nothing, and events take less than nodes.
    assert left["SAX"][0] < 0.1 * left["XAS"][0]
    assert left["XAS"][0] < left["DOM"][0]
    assert by_name["lxml"].left is None


def test_the_large_document_is_xml() -> None:
    tree = etree.fromstring(processing.directory(200))
    assert len(tree.findall(".//{*}file")) == 200


@pytest.fixture(scope="module")
def report() -> Report:
    return measure(messages(1, 6), files=100, rounds=1)


@pytest.mark.nightly
def test_formats_are_as_large_as_elsewhere(report: Report) -> None:
    rows = {row.format: row for row in report.formats}
    assert rows["lxml"].share == pytest.approx(100, abs=0.1)
    assert rows["Weft max"].size < rows["XebuS"].size < rows["Xebu"].size < rows["XebuF"].size
    assert rows["XebuZ"].size < rows["Xebu"].size
    assert all(row.write > 0 and row.read > 0 for row in rows.values())
    assert rows["lxml"].read_memory is None
    memories = [row.write_memory for name, row in rows.items() if not name.startswith("lxml")]
    assert all(each is not None and each > 0.5 for each in memories)


@pytest.mark.nightly
def test_footprints_grow_with_what_is_loaded(report: Report) -> None:
    rows = {row.format: row for row in report.footprint}
    assert rows["XAS (XML)"].code < rows["Xebu"].code < rows["XebuS"].code
    assert all(row.packed < row.code for row in rows.values() if row.code)
    assert rows["lxml"].library > 1000
    assert rows["Xebu"].library == 0


@pytest.mark.nightly
def test_tables_are_printed(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    show(report, as_json=True)
    said = msgspec.json.decode(capsys.readouterr().out)
    assert said["messages"] == 6
    assert said["formats"][0]["format"] == "lxml"
    show(report, as_json=False)
    assert "table 7.9" in capsys.readouterr().out
