"""What the comparison with Kannel sends, counts and concludes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bench.pap.command import encoding
from bench.pap.kannel import installed
from bench.pap.payload import CONTENT_TYPE, document, number_of, push
from bench.pap.results import Encoding, Report, Row, Run, percentile
from lasthop.runtime.cli import main
from lasthop.wire.ota.terminal import UNKNOWN
from lasthop.wire.ota.transform import PushContent, for_wsp
from lasthop.wire.pap.documents import PushMessage
from lasthop.wire.pap.submission import read_submission


def test_a_push_is_what_initiators_submit() -> None:
    submission = read_submission(CONTENT_TYPE, push(7, run="r", host="127.77.0.1"))
    message = submission.document.message
    assert isinstance(message, PushMessage)
    assert message.push_id == "r-7@pi.example.org"
    assert submission.content is not None
    assert submission.content.body == document(7).encode()
    compiled = for_wsp(PushContent("text/vnd.wap.si", (), submission.content.body), UNKNOWN)
    assert number_of(compiled.body) == 7
    assert number_of(b"something else") == -1


def test_the_encoder_is_measured() -> None:
    found = encoding(50)
    assert found.from_document > found.from_text > 0


def test_goals_are_judged_by_the_median() -> None:
    def row(*pushes: float, missing: int = 0) -> Row:
        return Row("x", "y", [Run(p, p, 1.0, missing, 0, 0) for p in pushes])

    fast = Encoding(30_000, 60_000)
    assert Report("3", 1, 1, True, [row(9, 100, 120), row(90, 95, 1000)], fast).met
    assert not Report("3", 1, 1, True, [row(80), row(90)], fast).met
    assert not Report("3", 1, 1, True, [row(100, missing=1), row(90)], fast).met
    assert not Report("3", 1, 1, True, [row(100), row(90)], Encoding(10_000, 60_000)).met
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([1], 0.99) == 1


@pytest.mark.peer
@pytest.mark.slow
def test_both_gateways_take_the_same_pushes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not installed() and os.environ.get("CI") == "true":
        pytest.fail("not installed: kannel")
    if not installed():
        pytest.skip("not installed: kannel")
    with pytest.raises(SystemExit):
        main(
            [
                *("bench", "pap", "--pushes", "50", "--rounds", "1", "--rate", "50"),
                *("--seconds", "0.5", "--connections", "4", "--in", str(tmp_path), "--json"),
            ]
        )
    report = json.loads(capsys.readouterr().out)
    assert [row["label"].split()[0] for row in report["rows"]] == ["lasthop", "Kannel"]
    for row in report["rows"]:
        (run,) = row["runs"]
        assert (run["missing"], run["duplicates"], run["refused"]) == (0, 0, 0)
