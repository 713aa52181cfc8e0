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
    as_logged,
    check,
    estimate,
    moments,
    terms_of,
)
from lasthop.simulation.fleet.log import write_log
from tests.pipeline.rows import History


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
