"""The page about the paper's figures says what the command measures, and its readings differ.

Besides `simulation/last_hop/sentences.py`, about `simulation/last_hop/paper_text.py`,
`simulation/last_hop/sentence_tables.py` and `runtime/cli/sim_sentences.py`.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lasthop.runtime.cli import main
from lasthop.simulation.last_hop.drawing import write_picture
from lasthop.simulation.last_hop.figures import FIGURES, measure, under
from lasthop.simulation.last_hop.paper_text import SENTENCES
from lasthop.simulation.last_hop.parameters import Denominator, LifeJudged, Parameters
from lasthop.simulation.last_hop.run import run
from lasthop.simulation.last_hop.sentence_tables import legend, sentence_row, tables
from lasthop.simulation.last_hop.sentences import (
    OURS,
    READINGS,
    Measured,
    Reading,
    Sentence,
    measure_sentences,
)
from tests.docs.blocks import ROOT

PAGE = ROOT / "docs/last-hop-figures.md"
COMMAND = "lasthop sim sentences --seeds 3"
HARD = Parameters(max=None, outage=0.9, expiration=4.2, years=0.25)


def reading(name: str) -> Reading:
    return next(reading for reading in READINGS if reading.name == name)


def about(figure: int, beginning: str = "") -> list[Sentence]:
    return [s for s in SENTENCES if s.figure == figure and s.text.startswith(beginning)]


def test_the_page_has_the_numbers_of_the_command() -> None:
    """For a sample: a look at all of them takes minutes."""
    text = PAGE.read_text()
    assert COMMAND in text
    sample = [*about(1)[:2], *about(2, "before dropping")]
    for found in measure_sentences([OURS], sentences=sample, seeds=3, years=1.0):
        assert sentence_row(found) in text
    for found in measure_sentences([reading("normal")], sentences=about(4), seeds=3, years=1.0):
        assert found.holds
    normal = re.findall(r"^\| normal \|.*", text, re.MULTILINE)
    assert "| normal | yes | yes |" in normal


def test_the_page_has_every_sentence_and_every_reading() -> None:
    text = PAGE.read_text()
    for sentence in SENTENCES:
        assert f"| {sentence.text} |" in text
    for row in legend(READINGS):
        assert row in text
    assert {sentence.figure for sentence in SENTENCES} == {1, 2, 3, 4, 5, 6}


def test_the_pictures_of_the_page_are_small() -> None:
    named = re.findall(r"\]\((images/[a-z0-9-]+\.svg)\)", PAGE.read_text())
    assert len(named) >= 6
    for name in named:
        assert (ROOT / "docs" / name).stat().st_size <= 500_000


def test_a_verdict_follows_from_the_values_and_nothing_else() -> None:
    (sentence,) = about(2, "the losses grow")
    straight = (0.3, 0.5, 0.7, 0.9) * 2
    steep = (0.01, 0.1, 0.3, 0.9) * 2
    assert not sentence.holds(straight)
    assert sentence.holds(steep)
    (gap,) = about(6, "That range")
    assert gap.holds((0.0, 0.01))
    assert not gap.holds((0.0, 0.02))
    (sharp,) = about(6, "the waste is high")
    waste = [0.7, 0.7, 0.7, 0.7, 0.7, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert sharp.holds((*waste, *[0.0] * 12))
    slow = [0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1, 0.0, 0.0, 0.0]
    assert not sharp.holds((*slow, *[0.0] * 12))


def test_every_sentence_shows_measurements_that_it_has() -> None:
    for sentence in SENTENCES:
        assert sentence.probes
        assert all(place < len(sentence.probes) for place in sentence.shown)
        labels = [probe.label for probe in sentence.probes]
        assert len(set(labels)) == len(labels), sentence.text


def test_readings_are_shown_only_where_they_make_a_difference() -> None:
    one, two = about(4)
    alike = [Measured(one, r, (0.9, 0.95), True) for r in READINGS[:2]]
    assert "| reading |" not in tables(alike)
    differ = [Measured(two, OURS, (0.1, 0.1, 0.1), False)]
    differ.append(Measured(two, READINGS[1], (0.0, 0.0, 0.0), True))
    text = tables(differ)
    assert "| ours | no: 10.0, 10.0, 10.0 % |" in text
    assert "| uniform | yes |" in text


def test_a_loss_may_be_a_share_of_all_events() -> None:
    p = replace(HARD, policy="on-demand")
    ours, other = run(p), run(replace(p, loss_of=Denominator.EVENTS))
    assert ours.lost == other.lost
    assert ours.loss == ours.lost / ours.read_online
    assert other.loss == other.lost / other.events


def test_a_life_that_is_judged_at_arrival_is_not_judged_again() -> None:
    """What waits for a link grows older: figure 7 sends it all the same."""
    p = replace(HARD, policy="expiration", expiration_threshold=6.0)
    ours, other = run(p), run(replace(p, life_judged=LifeJudged.ARRIVAL))
    assert other.forwarded > ours.forwarded
    assert other.waste > ours.waste
    assert other.loss < ours.loss
    with pytest.raises(ValueError, match="judge at arrival"):
        replace(HARD, policy="buffer", life_judged=LifeJudged.ARRIVAL)


def test_a_look_that_waits_for_the_link_loses_less() -> None:
    p = replace(HARD, policy="on-demand")
    ours, other = run(p), run(replace(p, reads_wait=True))
    assert other.loss < ours.loss / 2
    assert run(replace(p, policy="on-line", reads_wait=True)).loss == 0


def test_a_figure_can_be_drawn_under_another_reading() -> None:
    figure = under(FIGURES[5](), reading("looks-wait").of)
    points = replace(figure, points=figure.points[:1])
    assert all(point.parameters.reads_wait for point in figure.points)
    assert measure(points, seeds=1, years=0.02)


def test_the_command_answers_for_people_and_for_machines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = "--figure 4 --reading normal --seeds 1 --years 0.5 --processes 1"
    with pytest.raises(SystemExit) as ended:
        main(["sim", "sentences", *small.split(), "--json"])
    assert ended.value.code == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["figure"] for row in rows] == [4, 4]
    assert all(row["holds"] and row["reading"] == "normal" for row in rows)
    with pytest.raises(SystemExit):
        main(["sim", "sentences", *small.split()])
    assert "normal: 2 of 2 sentences hold" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["sim", "sentences", "--reading", "wishful"])
    assert ended.value.code == 2
    assert "unknown reading wishful" in capsys.readouterr().err


def test_a_picture_is_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = replace(FIGURES[2](), points=FIGURES[2]().points[:2])
    rows = measure(figure, seeds=1, years=0.02)
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for file in files:
        write_picture(figure, rows, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert b"<text" in files[0].read_bytes()
