"""What the comparison of XML codecs measures, on a few messages."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.data.xml_events.generate import messages
from bench.xml.command import SAMPLE, best, measure, run, size
from bench.xml.results import Report


def test_the_sample_is_what_its_generator_makes() -> None:
    found = [path.read_bytes() for path in sorted(SAMPLE.glob("*.xml"))]
    assert found == messages(1, 200)
    assert messages(2, 3) != found[:3]


def test_everyone_is_measured_and_everything_comes_back() -> None:
    report = measure(messages(1, 12), rounds=1)
    raw = {each.label: each.raw for each in report.sizes}
    assert raw["XML"] == raw["XML written by us"] == 100
    assert raw["xebu data, values as text"] < raw["xebu data"] < raw["xebu data, forgetful"] < 50
    assert raw["xebu with automata"] < 0.7 * raw["xebu data"]
    assert all(0 < each.deflate < each.gzip + 1 for each in report.sizes)
    assert report.times[0].ratio == 1
    assert all(each.write and each.read and each.ratio for each in report.times)


def test_a_size_is_a_share() -> None:
    half = size("half", [b"x" * 50], 100)
    assert half.raw == 50
    assert half.deflate < half.gzip < half.raw


def test_the_best_round_counts() -> None:
    assert best(lambda: len, ["a", "bc"], 3) >= 0


@pytest.mark.parametrize("as_json", [True, False])
def test_a_folder_of_messages_is_taken_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    for number, data in enumerate(messages(1, 3)):
        (tmp_path / f"{number}.xml").write_bytes(data)
    assert run(folder=tmp_path, rounds=1, as_json=as_json) == 0
    said = capsys.readouterr().out
    if as_json:
        assert msgspec.json.decode(said, type=Report).messages == 3
    else:
        assert "xebu data" in said
        assert "met" not in said


def test_an_empty_folder_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder=tmp_path) == 1
    assert "no XML files" in capsys.readouterr().err
