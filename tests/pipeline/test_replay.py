"""The log, given to the engine again, is decided in the same way."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from lasthop.decision.policies import POLICIES
from lasthop.errors import InvalidRequest
from lasthop.eventlog.check import LogCheck
from lasthop.eventlog.reader import LogReader
from lasthop.events import Event, Kind
from lasthop.pipeline.replay import (
    COLUMNS,
    INSTRUCTION,
    ReplayRow,
    TopicHistory,
    as_logged,
    audit,
    check,
    estimate,
    moments,
    terms_of,
)
from lasthop.simulation.fleet.log import write_log
from tests.pipeline.faulty import write_faulty_log
from tests.pipeline.rows import NOON, History


def histories(log: Path) -> dict[str, list[ReplayRow]]:
    """Every device's events, in their order."""
    devices: dict[str, list[ReplayRow]] = defaultdict(list)
    for path in sorted(log.rglob("*.jsonl"), key=lambda path: path.name):
        for line in path.read_bytes().splitlines():
            event = msgspec.json.decode(line, type=Event)
            if event.dev:
                devices[event.dev].append(ReplayRow(*(getattr(event, name) for name in COLUMNS)))
    return devices


@pytest.mark.parametrize("policy", POLICIES)
def test_the_live_policy_takes_every_logged_decision_again(tmp_path: Path, policy: str) -> None:
    write_log(tmp_path, devices=12, days=5, seed=3, policy=policy)
    decisions = 0
    for device, rows in histories(tmp_path).items():
        agreement = check(rows)
        assert agreement.first_difference == "", device
        assert agreement.same == agreement.decisions
        assert agreement.unlogged == 0
        decisions += agreement.decisions
    assert decisions > 500


@pytest.mark.parametrize("policy", ["unified", "predictive", "on-demand"])
def test_an_estimate_of_the_live_policy_is_what_happened(tmp_path: Path, policy: str) -> None:
    write_log(tmp_path, devices=12, days=5, seed=4, policy=policy)
    for rows in histories(tmp_path).values():
        estimated = estimate(moments(rows), lambda _, terms: terms.decider())
        forwarded = {row.msg for row in rows if row.kind == Kind.RELEASED}
        read = {row.msg for row in rows if row.kind == Kind.READ and row.msg}
        assert {key for history in estimated.values() for key in history.forwarded} == forwarded
        # What was read and not yet told when the log ended is known to the estimate alone.
        assert {key for history in estimated.values() for key in history.read} >= read


ON_LINE_TERMS = '{"subscription":{"max":%s},"policy":"on-line","tuning":{"max":%s}}'


def a_contact(history: History, at: int, channel: int, boot: int = 1) -> None:
    """A device comes, and its feed is in contact."""
    for kind, facts in (
        (Kind.CONTACT_STARTED, {"channel": channel, "link": "wifi"}),
        (Kind.REPORTED, {"topic": "news", "count": 0}),
    ):
        history.tell(kind, at, **facts).boot = boot


def estimated(history: History) -> TopicHistory:
    rows = [ReplayRow(*(getattr(event, name) for name in COLUMNS)) for event in history.events]
    return estimate(moments(rows), lambda _, terms: terms.decider())["news"]


def test_a_contact_ends_with_the_gateway_s_boot() -> None:
    history = History()
    history.tell(Kind.SUBSCRIBED, NOON, topic="news", terms=ON_LINE_TERMS % (8, 8))
    a_contact(history, NOON, 1)
    # The gateway dies: nothing says that the contact is lost. What comes now cannot leave.
    later = history.tell(Kind.ACCEPTED, NOON + 10, msg=1, topic="news", rank=1.0)
    read = history.tell(Kind.READ, NOON + 90, topic="news", count=8, at=NOON + 50)
    later.boot = read.boot = 2
    found = estimated(history)
    assert (found.forwarded, found.read) == ({}, {})
    a_contact(history, NOON + 100, 1, boot=2)
    assert estimated(history).forwarded == {1: NOON + 100}


def test_changed_terms_hold_from_then_on() -> None:
    history = History()
    history.tell(Kind.SUBSCRIBED, NOON, topic="news", terms=ON_LINE_TERMS % (8, 8))
    a_contact(history, NOON, 1)
    for msg in (1, 2, 3):
        history.tell(Kind.ACCEPTED, NOON + msg, msg=msg, topic="news", rank=float(msg))
    history.tell(Kind.SUBSCRIBED, NOON + 10, topic="news", terms=ON_LINE_TERMS % (1, 1))
    history.tell(Kind.REPORTED, NOON + 10, topic="news", count=0)
    history.tell(Kind.READ, NOON + 20, topic="news", count=-1, queue_size=3)
    history.tell(Kind.CONTACT_LOST, NOON + 30, channel=1)
    history.tell(Kind.READ, NOON + 90, topic="news", count=-1, at=NOON + 40)
    assert estimated(history).read == {3: NOON + 20, 2: NOON + 40}


def test_nothing_is_forwarded_after_an_unsubscription() -> None:
    history = History()
    history.tell(Kind.SUBSCRIBED, NOON, topic="news", terms=ON_LINE_TERMS % (8, 8))
    a_contact(history, NOON, 1)
    history.tell(Kind.ACCEPTED, NOON + 1, msg=1, topic="news")
    history.tell(Kind.UNSUBSCRIBED, NOON + 2, topic="news")
    history.tell(Kind.ACCEPTED, NOON + 3, msg=2, topic="news")
    history.tell(Kind.READ, NOON + 90, topic="news", count=8, at=NOON + 4)
    history.tell(Kind.SUBSCRIBED, NOON + 100, topic="news", terms=ON_LINE_TERMS % (8, 8))
    history.tell(Kind.REPORTED, NOON + 100, topic="news", count=0)
    history.tell(Kind.ACCEPTED, NOON + 101, msg=3, topic="news")
    found = estimated(history)
    assert found.forwarded == {1: NOON + 1, 3: NOON + 101}
    assert found.read == {}


def test_what_was_under_way_is_not_seen_without_contact() -> None:
    history = History()
    history.tell(Kind.SUBSCRIBED, NOON, topic="news", terms=ON_LINE_TERMS % (8, 8))
    a_contact(history, NOON, 1)
    history.tell(Kind.ACCEPTED, NOON + 1, msg=1, topic="news")
    history.tell(Kind.RELEASED, NOON + 2, msg=1, topic="news", reason="sent ahead of a read")
    history.tell(Kind.CONTACT_LOST, NOON + 3, channel=1)
    a_contact(history, NOON + 60, 2)
    history.tell(Kind.READ, NOON + 60, topic="news", count=8, at=NOON + 30)
    history.tell(Kind.RECEIVED, NOON + 70, msg=1)
    history.tell(Kind.READ, NOON + 80, topic="news", count=8, queue_size=1)
    assert estimated(history).read == {1: NOON + 80}


def test_a_clock_that_goes_back_does_not_change_the_order() -> None:
    history = History()
    history.tell(Kind.SUBSCRIBED, NOON, topic="news", terms=ON_LINE_TERMS % (8, 8))
    history.tell(Kind.ACCEPTED, NOON + 60, msg=1, topic="news")
    a_contact(history, NOON + 30, 1)
    assert estimated(history).forwarded == {1: NOON + 30}


LOGS = [(seed, policy) for seed in range(5) for policy in ("unified", "predictive")]


@pytest.mark.parametrize("seed, policy", LOGS)
def test_the_model_of_the_live_policy_does_what_was_logged_whatever_fails(
    tmp_path: Path, seed: int, policy: str
) -> None:
    """Two gateways with crashes, many boots, changed terms and unsubscriptions."""
    write_faulty_log(tmp_path, gateways=2, devices=3, days=5, seed=seed, policy=policy)
    devices = 0
    for log in sorted(tmp_path.iterdir()):
        for device, rows in histories(log).items():
            found = audit(rows)
            assert found.difference == "", device
            assert found.agreed == found.messages > 0
            assert check(rows).first_difference == "", device
            devices += 1
    assert devices == 6


def test_the_audit_names_the_message_that_differs(tmp_path: Path) -> None:
    write_log(tmp_path, devices=1, days=3, seed=3)
    (rows,) = histories(tmp_path).values()
    at = next(i for i, row in enumerate(rows) if row.kind == Kind.RELEASED)
    found = audit(rows[:at] + rows[at + 1 :])
    assert found.agreed == found.messages - 1
    assert found.difference.endswith(f"the log has not forwarded {rows[at].msg}")
    found = audit([row for row in rows if row.kind != Kind.REPORTED])
    assert "only the log has" in found.difference


def test_a_message_that_is_unread_after_all_was_not_read() -> None:
    history = History()
    history.tell(Kind.ACCEPTED, msg=1, topic="news")
    history.tell(Kind.READ, msg=1, topic="news", reason="asked for by a read")
    history.tell(Kind.REPORTED, topic="news", reason="unread", keys=(1,))
    rows = [ReplayRow(*(getattr(event, name) for name in COLUMNS)) for event in history.events]
    assert as_logged(rows, ["news"])["news"].read == {}


def test_a_changed_decision_is_noticed(tmp_path: Path) -> None:
    write_log(tmp_path, devices=3, days=3, seed=3)
    rows = max(histories(tmp_path).values(), key=len)
    at = next(i for i, row in enumerate(rows) if row.kind == Kind.RELEASED)
    changed = [*rows]
    changed[at] = rows[at]._replace(reason="because I say so")
    agreement = check(changed)
    assert agreement.same == agreement.decisions - 1
    assert f"event {rows[at].n}" in agreement.first_difference
    assert check(rows[:at] + rows[at + 1 :]).unlogged == 1
    assert check([row for row in rows if row.kind != Kind.REPORTED]).first_difference


def test_the_fleet_s_log_is_whole(tmp_path: Path) -> None:
    write_log(tmp_path, devices=5, days=4, seed=1)
    checking = LogCheck()
    with LogReader(tmp_path / "gw-000") as reader:
        checking.read(reader)
    report = checking.finish()
    assert report.problems == []
    assert report.apps["fleet"].accepted > 100


def test_the_fleet_s_log_does_not_depend_on_who_writes_it(tmp_path: Path) -> None:
    written = []
    for processes in (1, 2):
        log = tmp_path / str(processes)
        write_log(log, devices=3, days=2, seed=5, processes=processes)
        written.append({path.name: path.read_bytes() for path in log.rglob("*.jsonl")})
    assert written[0] == written[1]


@pytest.mark.parametrize("text", ["{", '{"subscription": 5}', '{"policy": "wild"}'])
def test_terms_that_cannot_be_read_are_said(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"cannot be read|unknown policy"):
        terms_of(text).decider()


def test_what_a_feed_says_to_a_device_was_not_forwarded() -> None:
    history = History()
    for msg, reason in ((1, "sent ahead of a read"), (2, INSTRUCTION)):
        history.tell(Kind.ACCEPTED, msg=msg, topic="news", reason=reason if msg == 2 else "")
        history.tell(Kind.RELEASED, msg=msg, topic="news", reason=reason)
    rows = [ReplayRow(*(getattr(event, name) for name in COLUMNS)) for event in history.events]
    assert as_logged(rows, ["news"])["news"].forwarded.keys() == {1}
