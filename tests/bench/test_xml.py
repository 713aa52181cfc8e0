"""What the comparison of XML codecs measures, on a few messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bench.data.xml_events.generate import messages
from bench.xml import ours, rivals
from bench.xml.command import SAMPLE, best_of, measure, run, size
from bench.xml.results import GOALS, Report
from bench.xml.rivals import same_in_json


@pytest.fixture(autouse=True)
def little_training(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Learning from all the messages takes a while, and shows no more."""
    monkeypatch.setattr(ours, "TRAINING_MESSAGES", 30)
    monkeypatch.setattr(rivals, "TRAINING_MESSAGES", 30)
    ours.profile.cache_clear()
    yield
    ours.profile.cache_clear()


def test_the_sample_is_what_its_generator_makes() -> None:
    found = [path.read_bytes() for path in sorted(SAMPLE.glob("*.xml"))]
    assert found == messages(1, 200)
    assert messages(2, 3) != found[:3]


def test_everyone_is_measured_and_everything_comes_back() -> None:
    said = same_in_json(SAMPLE)
    assert said is not None
    report = measure(messages(1, 12), rounds=1, said=said[:12])
    raw = {each.label: each.raw for each in report.sizes}
    assert raw["XML"] == raw["XML written by us"] == 100
    assert raw["xebu data, values as text"] < raw["xebu data"] < raw["xebu data, forgetful"] < 50
    assert raw["xebu with automata"] < 0.7 * raw["xebu data"]
    assert raw["weft max"] < raw["weft deflate"] < raw["weft fast"] < raw["xebu with automata"]
    assert raw["weft fast, schema"] < raw["weft fast"]
    assert raw["weft fast, profile (trained)"] < 0.6 * raw["weft fast, schema"]
    # Messages that are readable by themselves, as through a gateway, are those that cost most.
    assert raw["weft fast, profile (trained), forgetful"] < raw["weft fast, schema, forgetful"]
    assert raw["weft fast, schema, forgetful"] < raw["weft fast, forgetful"]
    assert raw["weft fast"] < raw["weft fast, forgetful"] < raw["xebu data, forgetful"]
    assert raw["CBOR, the same data"] < raw["JSON, the same data"] < 30
    for each in report.sizes:
        assert 0 < each.shares["deflate ctx"] < each.shares["gzip"] + 1
        assert 0 < each.shares["zstd-19 ctx"] < each.shares["zstd-3"] + 1
    assert report.times[0].ratio == 1
    assert all(each.write and each.read and each.ratio for each in report.times)


def test_a_size_is_a_share() -> None:
    half = size("half", [b"x" * 50], 100).shares
    assert half["raw"] == 50
    assert half["deflate ctx"] < half["gzip"] < half["raw"]


def test_the_best_round_counts() -> None:
    fast, slow = best_of(3, [(lambda: len, ["a", "bc"]), (lambda: sorted, [range(10**5)])])
    assert 0 <= fast < slow


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


def test_a_goal_that_is_missed_is_said() -> None:
    sizes = [size(label, [b"x"], 1) for label in dict.fromkeys(goal.label for goal in GOALS)]
    assert Report(1, 1, 1, "", sizes, []).missed == list(GOALS)


def test_json_is_compared_only_where_it_says_the_same(tmp_path: Path) -> None:
    assert same_in_json(tmp_path) is None
    (tmp_path / "messages.jsonl").write_text('{"a":1}\n')
    assert same_in_json(tmp_path) == [{"a": 1}]
