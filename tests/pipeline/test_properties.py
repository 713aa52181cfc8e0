"""What a log is read in, how often and in which order, changes no row of gold.

About `pipeline/jobs.py` and `pipeline/gold/`.
"""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

from pyspark.sql import SparkSession

from lasthop.pipeline.jobs import GOLD, Pipeline
from lasthop.pipeline.lake import Lake
from tests.pipeline.rows import rows_of


def everything(pipeline: Pipeline) -> dict[str, list[tuple[object, ...]]]:
    return {name: rounded(rows_of(pipeline.gold(name))) for name in GOLD}


def rounded(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Sums of fractions differ in the last digits when they are added in another order."""
    return sorted(
        (tuple(float(f"{v:.9g}") if isinstance(v, float) else v for v in row) for row in rows),
        key=repr,
    )


def scrambled(log: Path, out: Path, seed: int) -> tuple[Path, Path]:
    """The same events in other files: shuffled, every tenth twice, every tenth only later.

    A file is as long as that of its gateway, as far as its name says: a segment cannot have numbers
    far from its first one.
    """
    chance = random.Random(seed)
    first, later = out / "first", out / "later"
    for path in sorted(log.rglob("*.jsonl")):
        lines = path.read_bytes().splitlines(keepends=True)
        now = [line for line in lines if chance.random() >= 0.1]
        delayed = [line for line in lines if line not in set(now)]
        now += [line for line in lines if chance.random() < 0.1]
        chance.shuffle(now)
        middle, length = len(now) // 3, path.stat().st_size
        day, number = path.parent.name, int(path.stem.removeprefix("events-"))
        for root, part, shift in ((first, now[:middle], 0), (first, now[middle:], 1)):
            _put(root / path.parent.parent.name / day, number + shift, part, length)
        _put(later / path.parent.parent.name / day, number + 2, delayed, length)
    return first, later


def _put(directory: Path, number: int, lines: list[bytes], length: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    text = b"".join(lines)
    padding = b"\n" * max(0, length - len(text))
    (directory / f"events-{number:020d}.jsonl").write_bytes(text + padding)


def test_shuffled_doubled_delayed_and_split_input_gives_the_same_gold(
    spark: SparkSession, fleet: Pipeline, fleet_log: Path, tmp_path: Path
) -> None:
    first, later = scrambled(fleet_log, tmp_path, seed=11)
    lake = Lake(tmp_path / "lake")
    Pipeline(spark, first, lake).run()
    incomplete = Pipeline(spark, first, lake)
    assert everything(incomplete) != everything(fleet)
    for path in later.rglob("*.jsonl"):
        target = first / path.relative_to(later)
        path.rename(target)
    outcome = Pipeline(spark, first, lake).run()
    assert outcome.duplicates > 0
    assert outcome.orphans == 0
    assert outcome.missing_offsets == 0
    assert everything(Pipeline(spark, first, lake)) == everything(fleet)


def test_a_day_made_again_is_the_same_day(fleet: Pipeline) -> None:
    before = everything(fleet)
    silver = rows_of(fleet.silver("deliveries"))
    days = [date(2026, 9, 5)]
    starts = fleet.make_silver(days)
    fleet.make_gold(starts, days)
    fleet.settle(days)
    assert rows_of(fleet.silver("deliveries")) == silver
    assert everything(fleet) == before


def test_damaged_segments_are_reported_and_the_rest_is_right(
    spark: SparkSession, fleet: Pipeline, fleet_log: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    paths = sorted(fleet_log.rglob("*.jsonl"))
    lost = 0
    for path in paths:
        target = log / path.relative_to(fleet_log)
        target.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes()
        whole = data.count(b"\n")
        if path == paths[-1]:
            data = data[: len(data) * 2 // 3]
        elif path == paths[-2]:
            data = b"\x00\x9f\xff" * 500
        lost += whole - data.count(b"\n")
        target.write_bytes(data)
    pipeline = Pipeline(spark, log, Lake(tmp_path / "lake"))
    outcome = pipeline.run(counterfactual=False)
    assert outcome.problems == {"truncated": 1, "corrupt": 1}
    assert outcome.ingested.quarantined == 2
    assert outcome.missing_offsets > 0
    assert outcome.rows["silver.events"] == fleet.silver("events").count() - lost
    good_days = [path.parent.name.removeprefix("date=") for path in paths[:-2]]
    for name in ("usage", "channels", "energy"):
        ours, theirs = pipeline.gold(name), fleet.gold(name)
        assert rounded(rows_of(ours.where(ours["date"].isin(good_days)))) == rounded(
            rows_of(theirs.where(theirs["date"].isin(good_days)))
        )
