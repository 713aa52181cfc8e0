"""`lasthop sim last-hop` and `lasthop sim figure`: flags, keys, files.

About `runtime/cli/sim_last_hop.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lasthop.runtime.cli import main

KEYS = "waste loss lost wasted forwarded read_online read_policy events"


def sim(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["sim", *arguments])
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


def test_every_flag_is_taken_and_every_key_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    flags = (
        "--event-frequency 16 --user-frequency 1 --max 4 --threshold 0.2 --outage 0.5 "
        "--expiration 24 --expiration-distribution normal --expiring-portion 0.5 --rank-drop 0.1 "
        "--policy buffer --prefetch-limit 8 --expiration-threshold 2 --years 0.1 --seed 3 --json"
    )
    code, out, _ = sim(capsys, "last-hop", *flags.split())
    assert code == 0
    outcome = json.loads(out)
    assert list(outcome) == KEYS.split()
    assert outcome["waste"] == outcome["wasted"] / outcome["forwarded"]
    assert outcome["loss"] == outcome["lost"] / outcome["read_online"]


def test_percent_is_understood_and_people_get_sentences(
    capsys: pytest.CaptureFixture[str],
) -> None:
    share = sim(capsys, "last-hop", "--years", "0.1", "--outage", "0.9")
    percent = sim(capsys, "last-hop", "--years", "0.1", "--outage", "90")
    assert share[1].splitlines()[:3] == percent[1].splitlines()[:3]
    assert "virtual years per second" in share[1]


def test_an_unknown_policy_is_named_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = sim(capsys, "last-hop", "--policy", "hope")
    assert (code, out) == (2, "")
    assert "unknown policy hope" in err
    assert err.count("\n") == 1


def test_a_figure_is_drawn_into_a_directory(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    flags = ["--seeds", "2", "--years", "0.01", "--processes", "1", "--out", str(tmp_path / "new")]
    code, out, _ = sim(capsys, "figure", "3", *flags, "--json")
    assert code == 0
    result = json.loads(out)
    assert result["figure"] == 3
    assert all(Path(file).stat().st_size for file in result["files"])
    assert (tmp_path / "new" / "figure-3.csv").read_text().startswith("figure,curve,x,metric,")
    assert len(result["points"]) == 2 * 4 * 14


def test_spark_and_processes_are_not_for_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = sim(capsys, "figure", "1", "--spark", "local[2]", "--processes", "2")
    assert code == 2
    assert "cannot be used together" in err
