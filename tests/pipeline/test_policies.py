"""What is learned suits its readers, is kept in versions, and can be taken back.

About `pipeline/learn.py`, `pipeline/tuning.py`, `pipeline/what_if.py` and `policy/store.py`.
"""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from pyspark.sql import DataFrame, SparkSession, functions as fn

from lasthop.clock import HOUR, MINUTE
from lasthop.errors import Conflict, InvalidRequest, NotFound, StoreBroken
from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.lake import Lake
from lasthop.pipeline.learn import (
    DEVICE,
    EVERY_APP,
    PARTS,
    PRICES,
    SCORES,
    DaySpan,
    chosen_at,
    fitted_prices,
    learn,
    micros_of,
    price_of,
    shared_choices,
    splits_of,
    trusted_scores,
)
from lasthop.pipeline.tuning import BASELINE, CANDIDATES, LIVE, tune
from lasthop.pipeline.what_if import answer, named
from lasthop.policy import (
    BUILT_IN,
    FORMAT,
    Calendar,
    DevicePolicy,
    Forwarding,
    Lineage,
    Policies,
    PolicyIndex,
    TopicPolicy,
    decode,
    encode,
)
from lasthop.policy.store import CONTENT, POINTER, PolicyStore
from tests.pipeline.rows import frame
from tests.pipeline.test_replay import histories


def version(note: str, **parts: object) -> Policies:
    lineage = Lineage(code="1", made_at=1_800_000_000_000_000, note=note)
    return msgspec.structs.replace(Policies(FORMAT, "draft", lineage), **parts)


def test_who_is_not_known_is_like_the_segment_then_the_fleet_then_the_default() -> None:
    own, segment, fleet, any_topic = (
        Forwarding(policy="buffer", prefetch_limit=n) for n in range(4)
    )
    index = PolicyIndex(
        version(
            "levels",
            devices=(TopicPolicy("app", "mine", "news", own),),
            segments=(TopicPolicy("app", "daily", "news", segment),),
            fleet=(TopicPolicy("app", "", "news", fleet), TopicPolicy("app", "", "", any_topic)),
            about=(
                DevicePolicy("app", "mine", "daily"),
                DevicePolicy("app", "like-others", "daily"),
            ),
        )
    )
    asked = {
        (device, topic): (found.forwarding, found.level)
        for device in ("mine", "like-others", "new")
        for topic in ("news", "offers")
        for found in [index.forwarding("app", device, topic)]
    }
    assert asked == {
        ("mine", "news"): (own, "device"),
        ("mine", "offers"): (any_topic, "fleet"),
        ("like-others", "news"): (segment, "segment"),
        ("like-others", "offers"): (any_topic, "fleet"),
        ("new", "news"): (fleet, "fleet"),
        ("new", "offers"): (any_topic, "fleet"),
    }
    assert index.forwarding("other", "mine", "news").level == "default"
    assert PolicyIndex(BUILT_IN).forwarding("a", "b", "c").forwarding == Forwarding()


@given(st.binary(max_size=200))
@settings(max_examples=50)
def test_bytes_that_are_no_policy_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not a policy"):
        decode(data)


@pytest.mark.parametrize(
    "part, message",
    [
        ('"format": 9', "format of the policy is unknown"),
        ('"default": {"policy": ""}', "must have a name"),
        ('"default": {"prefetch_limit": -1}', "cannot be negative"),
        ('"default": {"price": -0.5}', "cannot be negative"),
        ('"default": {"confidence": 2}', "between 0 and 1"),
        ('"default": {"colour": "red"}', "not a policy"),
        ('"heartbeats": {"op:a": 5}', "between 10 seconds and 2 hours"),
        (
            '"about": [{"app":"a","name":"b","calendar":{"zone":"UTC","hours":{"w":[1]}}}]',
            "168",
        ),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(part: str, message: str) -> None:
    whole = {"format": FORMAT, "version": "x", "lineage": {"code": "1", "made_at": 0}}
    data = msgspec.json.encode({**whole, **msgspec.json.decode("{" + part + "}")})
    with pytest.raises(InvalidRequest, match=message):
        decode(data)


def test_a_version_survives_being_written(tmp_path: Path) -> None:
    full = version(
        "full",
        devices=(
            TopicPolicy("a", "d", "t", Forwarding(memory={"_offline": 0.25}, confidence=0.5)),
        ),
        about=(DevicePolicy("a", "d", "s", Calendar("UTC", {"wifi": (50,) * 168})),),
        heartbeats={"op:a": 5 * MINUTE},
    )
    assert decode(encode(full)) == full
    policy_store = PolicyStore(tmp_path)
    name = policy_store.publish(full)
    assert policy_store.current() == msgspec.structs.replace(full, version=name)


def test_versions_are_switched_and_taken_back(tmp_path: Path) -> None:
    policy_store = PolicyStore(tmp_path)
    assert policy_store.current() is None
    with pytest.raises(NotFound, match="no earlier version"):
        policy_store.roll_back()
    names = [policy_store.publish(version(note)) for note in ("one", "two", "three")]
    assert policy_store.publish(version("three")) == names[2]
    assert policy_store.versions() == sorted(names)
    current = policy_store.current()
    assert current is not None
    assert current.lineage.note == "three"
    assert policy_store.roll_back() == names[1]
    assert policy_store.roll_back() == names[0]
    with pytest.raises(NotFound, match="no earlier version"):
        policy_store.roll_back()
    pointer = policy_store.pointer()
    assert pointer is not None
    assert pointer.version == names[0]


def test_a_version_that_was_changed_or_moved_is_refused(tmp_path: Path) -> None:
    policy_store = PolicyStore(tmp_path)
    name = policy_store.publish(version("one"))
    path = tmp_path / name / CONTENT
    good = path.read_bytes()
    path.write_bytes(good.replace(b"one", b"two"))
    with pytest.raises(StoreBroken, match="does not match its digest"):
        policy_store.current()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / CONTENT).write_bytes(good)
    with pytest.raises(StoreBroken, match="another version's name"):
        policy_store.read("elsewhere")
    with pytest.raises(NotFound, match="no such version"):
        policy_store.read("nowhere")
    (tmp_path / POINTER).write_text("{")
    with pytest.raises(StoreBroken, match="pointer"):
        policy_store.pointer()


def test_every_candidate_is_counted_in_three_parts_of_the_days(fleet_log: Path) -> None:
    fit, split = 20_702 * 24 * HOUR, 20_703 * 24 * HOUR
    topics = 0
    for rows in histories(fleet_log).values():
        scores = tune(rows, fit=fit, split=split)
        whole = tune(rows, fit=split + 999 * HOUR, split=split + 1000 * HOUR)
        for score, uncut in zip(scores, whole, strict=True):
            parts = zip(score[4:8], score[8:12], score[12:16], strict=True)
            assert tuple(map(sum, parts)) == uncut[4:8]
            assert score.agreed == score.messages > 0
        for topic in {score.topic for score in scores}:
            of_topic = {score.candidate: score for score in scores if score.topic == topic}
            assert sorted(of_topic) == [LIVE, *range(len(CANDIDATES))]
            # What is live is the first candidate here, so that both did the same.
            assert of_topic[LIVE][4:16] == of_topic[0][4:16]
            assert of_topic[len(CANDIDATES) - 1].lost == 0
            topics += 1
    assert topics > 5


def scored(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    """Scores of devices with enough reads, who read ten messages in every part of the days."""
    usual: dict[str, Any] = {"store": "s", "app": "app", "topic": "news", "segment": "often"}
    usual |= {"reads": 50, "messages": 1000, "agreed": 1000, "memory": ""}
    for part in ("", "fit_", "held_"):
        usual |= {f"{part}forwarded": 20, f"{part}read_online": 10}
        usual |= {f"{part}wasted": 0, f"{part}lost": 0}
    return frame(spark, SCORES, [usual | row for row in rows])


def bargains(app: str = "app") -> list[dict[str, Any]]:
    """A frugal candidate, the predictive one, and one that loses nothing."""
    found = []
    for number, wasted, lost in ((LIVE, 10, 0), (1, 0, 5), (BASELINE, 4, 1), (5, 8, 0)):
        row: dict[str, Any] = {"app": app, "dev": "phone", "candidate": number}
        for part in ("", "fit_", "held_"):
            row |= {f"{part}wasted": wasted, f"{part}lost": lost}
        found.append(row)
    return found


@pytest.mark.parametrize(
    "budgets, chosen, within",
    [
        ({}, BASELINE, True),
        ({"app": 0.5}, 1, True),
        ({EVERY_APP: 0.5, "app": 0.0}, 5, True),
        ({EVERY_APP: 0.2}, BASELINE, True),
    ],
)
def test_least_is_wasted_within_the_budget_of_loss(
    spark: SparkSession, budgets: dict[str, float], chosen: int, within: bool
) -> None:
    scores = scored(spark, *bargains())
    prices = fitted_prices(scores, budgets)
    assert prices["app"].within is within
    tried = scores.where(fn.col("candidate") != LIVE)
    (row,) = chosen_at(tried, price_of(prices), *DEVICE, parts=PARTS).collect()
    assert row["candidate"] == chosen
    (shared,) = shared_choices(scores, price_of(prices), "app", "topic").collect()
    assert (shared["candidate"], shared["devices"]) == (chosen, 1)


def test_a_budget_that_no_choice_keeps_is_said(spark: SparkSession) -> None:
    rows = bargains()
    for row in rows:
        row["fit_lost"] = 3
    fitted = fitted_prices(scored(spark, *rows), {EVERY_APP: 0.01})["app"]
    assert (fitted.price, fitted.within) == (PRICES[-1], False)


def test_nothing_is_learned_from_a_device_that_the_model_does_not_reproduce(
    spark: SparkSession,
) -> None:
    rows = [
        {"dev": dev, "candidate": number, "agreed": agreed}
        for dev, agreed in (("good", 999), ("bad", 998), ("worse", 5))
        for number in (LIVE, 0)
    ]
    trusted, figures, names = trusted_scores(scored(spark, *rows))
    assert {row["dev"] for row in trusted.collect()} == {"good"}
    assert figures == {"agreement": round(2002 / 3000, 6), "refused": 2.0}
    assert names == ["app/worse", "app/bad"]
    with pytest.raises(Conflict, match="nothing can be learned from this log") as refused:
        trusted_scores(scored(spark, *rows[2:]))
    assert "app/worse, app/bad" in str(refused.value)


def test_a_version_is_learned_and_pays_on_days_that_it_has_not_seen(fleet: Pipeline) -> None:
    span = DaySpan(date(2026, 9, 4), date(2026, 9, 7))
    assert span.split == date(2026, 9, 7)
    policies = learn(fleet, span, made_at=1)
    assert policies.lineage.first_day == "2026-09-04"
    events = fleet.silver("events")
    assert policies.lineage.events == events.where(events["date"] <= span.last).count()
    assert policies.devices
    assert {topic.topic for topic in policies.fleet} >= {"", "news"}
    assert policies.about[0].calendar is not None
    assert policies.heartbeats
    assert all(30_000_000 < interval < 3 * HOUR for interval in policies.heartbeats.values())
    assert set(policies.lineage.held_out) == {
        "agreement",
        "refused",
        *(
            f"{who}{what}"
            for who in ("", "live_", "predictive_")
            for what in ("waste", "loss", "waste_and_loss")
        ),
    }
    assert policies.lineage.held_out["agreement"] == 1.0
    assert policies.lineage.budgets.keys() == {"fleet"}
    assert policies.lineage.refused == ()
    # It can be used.
    (result,) = [answer(fleet.silver("events"), policies, name="learned")]
    assert result.estimate["waste"].value < result.live["waste"].value


def test_what_is_learned_from_can_be_made_alone_and_the_rest_is_left_to_the_next_run(
    fleet: Pipeline, fleet_log: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    newest = max(fleet_log.rglob("date=*"))
    shutil.copytree(newest, log / newest.name)
    told = sum(segment.read_bytes().count(b"\n") for segment in newest.glob("*.jsonl"))
    alone = Pipeline(fleet.spark, log, Lake(tmp_path / "lake"))
    (day,) = alone.prepare()
    assert alone.silver("events").count() == told > 0
    assert learn(alone, DaySpan(day, day), made_at=1).lineage.events == told
    assert not alone.lake.dates("gold", "delivery_quality")
    assert alone.changed() == [day]
    assert alone.prepare() == [day]
    assert alone.silver("events").count() == told


def test_a_log_of_a_day_is_split_within_the_day(fleet: Pipeline) -> None:
    day = date(2026, 9, 5)
    events = fleet.silver("events").where(fn.col("date") == day)
    times = sorted(row["t"] for row in events.select("t").collect())
    span = times[-1] - times[0]
    fit, split = splits_of(events, DaySpan(day, day))
    assert (fit, split) == pytest.approx((times[0] + 0.6 * span, times[0] + 0.8 * span), abs=2)
    # Four days are split between days, and none at all anywhere.
    assert splits_of(events, DaySpan(date(2026, 9, 4), date(2026, 9, 7))) == (
        micros_of(date(2026, 9, 6)),
        micros_of(date(2026, 9, 7)),
    )
    assert splits_of(events.limit(0), DaySpan(day, day))[1] == micros_of(day)


def test_what_if_reproduces_the_live_policy_and_calls_the_rest_an_estimate(fleet: Pipeline) -> None:
    result = answer(fleet.silver("events"), named("unified"), name="unified")
    assert result.first_difference == ""
    assert result.decisions == result.reproduced > 300
    assert result.devices == 6
    assert "estimates" in result.note
    # Estimating the live policy gives what was logged, but for reads not yet told of.
    assert result.totals["live"]["forwarded"] == result.totals["estimate"]["forwarded"]
    assert result.totals["live"]["bytes"] == pytest.approx(result.totals["estimate"]["bytes"])
    assert result.totals["live"]["money"] == pytest.approx(result.totals["estimate"]["money"])
    assert result.difference["waste"].value == pytest.approx(0.0, abs=0.05)
    for figure in (*result.live.values(), *result.estimate.values()):
        assert figure.low <= figure.value <= figure.high


def test_what_if_on_demand_wastes_nothing_and_loses(fleet: Pipeline) -> None:
    result = answer(fleet.silver("events"), named("on-demand"), name="on-demand")
    assert result.estimate["waste"].value == 0.0
    assert result.estimate["loss"].value > result.live["loss"].value
    on_line = answer(fleet.silver("events"), named("on-line"), name="on-line")
    assert on_line.estimate["loss"].value == 0.0
    assert on_line.estimate["waste"].value > result.live["waste"].value


@pytest.mark.parametrize(
    "text, message",
    [
        ("wild", "unknown policy"),
        ("buffer:colour=1", "no such setting"),
        ("rate:price=x", "not a number"),
    ],
)
def test_a_policy_that_is_misspelt_is_said(text: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        named(text)


def test_a_named_policy_takes_settings() -> None:
    assert named("predictive:price=2.5") == Forwarding(policy="predictive", price=2.5)
    assert named("buffer:prefetch_limit=3").prefetch_limit == 3
