"""The check: silent about a real gateway's log, and clear about every way in which one can lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from lasthop.core.lifecycle import TRANSITIONS, State
from lasthop.eventlog.check import ENDS, LIFE, LogCheck, LogReport, StoredDelivery
from lasthop.eventlog.exporter import Exporter
from lasthop.eventlog.reader import LogReader
from lasthop.eventlog.segment import sealed_segments
from lasthop.events import SCHEMA_VERSION, Event, Kind
from tests.eventlog.history import NOON
from tests.eventlog.rehearsal import APP, SHOP, Rehearsal, busy_day


def test_the_table_is_that_of_the_life_cycle() -> None:
    steps: dict[str, tuple[set[str], str]] = {}
    for (before, _), (after, kind) in TRANSITIONS.items():
        steps.setdefault(kind, (set(), after.name))[0].add(before.name)
    # Five events of a delivery are no steps: its beginning, and what leaves its state as it is.
    ours = {kind: (set(before), after) for kind, (before, after) in LIFE.items()}
    del ours[Kind.ACCEPTED], ours[Kind.HELD], ours[Kind.CONSULTED], ours[Kind.TRANSMITTED]
    del ours[Kind.COUNTED]
    assert ours == steps
    assert {LIFE[kind][1] for kind in ENDS} == {state.name for state in State if state.final}


@pytest.fixture
def day() -> Rehearsal:
    return busy_day()


def check(
    events: Sequence[Event], rows: Sequence[StoredDelivery] = (), *, whole: bool = False
) -> LogReport:
    checking = LogCheck()
    for event in events:
        checking.event(event)
    by_offset = {event.n: event for event in events}
    return checking.compare(rows, by_offset.get) if rows or whole else checking.finish()


def decoded(day: Rehearsal) -> list[Event]:
    return [msgspec.json.decode(line, type=Event) for line in day.lines()]


def test_a_real_gateway_and_its_log_agree(day: Rehearsal, tmp_path: Path) -> None:
    Exporter(tmp_path, day.store, confirm=day.store.exported).finish(day.now)
    day.store.retire(messages_before=0, keys_before=0)
    with LogReader(tmp_path, day.store) as reader:
        checking = LogCheck()
        checking.read(reader)
        report = checking.compare(day.rows(), reader.find)
    assert report.good, report.problems
    assert (report.first, report.newest_schema) == (0, SCHEMA_VERSION)
    assert report.compared == len(day.rows())
    assert report.apps[SHOP].accepted == 1
    tally = report.apps[APP]
    assert tally.accepted == len(day.rows()) - 1 == tally.ended.total() + tally.open
    assert tally.open + report.apps[SHOP].open == sum(row.open for row in day.rows())
    assert set(tally.ended) >= {Kind.DELIVERED, Kind.SENT, Kind.EXPIRED, Kind.SUPPRESSED}


def test_a_log_whose_old_days_are_gone_is_good(day: Rehearsal) -> None:
    events = decoded(day)
    for first in range(1, len(events), 7):
        report = check(events[first:], day.rows(), whole=True)
        assert report.good, report.problems
        assert report.first == first
        assert report.compared + report.older == len(day.rows())


def test_a_store_that_has_moved_on_is_good(day: Rehearsal) -> None:
    events = decoded(day)
    for end in range(1, len(events), 7):
        report = check(events[:end], day.rows(), whole=True)
        assert report.good, report.problems
        assert report.newer + report.compared == len(day.rows())


def test_messages_that_the_store_has_retired_are_good(day: Rehearsal) -> None:
    still_open = [row for row in day.rows() if row.open]
    assert check(decoded(day), still_open).good


def small_log() -> list[Event]:
    """Two deliveries to the phone, one after the other, and between them one to the tablet."""
    events: list[Event] = []

    def tell(kind: str, dev: str, msg: int, prev: int, state: str) -> int:
        n = len(events)
        dn = sum(event.dev == dev for event in events)
        events.append(Event(1, "g", 1, n, NOON, kind, "a", dev, dn, msg, prev, state, "so"))
        return n

    for dev, msg in (("phone", 7), ("tablet", 8), ("phone", 9)):
        last = tell(Kind.ACCEPTED, dev, msg, -1, "PENDING")
        last = tell(Kind.RELEASED, dev, msg, last, "SENDING")
        last = tell(Kind.TRANSMITTED, dev, msg, last, "SENDING")
        tell(Kind.EXPIRED, dev, msg, last, "EXPIRED")
    return events


def test_the_small_log_is_good() -> None:
    assert check(small_log()).good


def set_to(event: Event, **values: object) -> None:
    for name, value in values.items():
        setattr(event, name, value)


def steal(events: list[Event]) -> None:
    """Let an event continue a delivery that is not its own."""
    events.pop(3)
    set_to(events[4], prev=2)


BREAKS: dict[str, tuple[Callable[[list[Event]], object], str]] = {
    "gap": (lambda e: e.pop(5), "order: event 6 where 5 was expected"),
    "twice": (lambda e: e.insert(5, e[5]), "order: event 5 where 6 was expected"),
    "boot": (lambda e: set_to(e[5], boot=0), "order: event 5 is of boot 0, after 1"),
    "device": (
        lambda e: set_to(e[5], dn=9),
        "device order: event 5 is number 9 of device a/tablet, where 1 was expected",
    ),
    "prev": (
        lambda e: set_to(e[6], prev=4),
        "chain: event 6: message 0000000000000008 for a/tablet was transmitted after event 4,",
    ),
    "stolen": (
        steal,
        "chain: event 5: message 0000000000000008 for a/tablet was released after event 2 of",
    ),
    "begun": (
        lambda e: set_to(e[8], prev=3),
        "chain: event 8: message 0000000000000009 for a/phone was accepted after event 3",
    ),
    "state": (
        lambda e: set_to(e[3], state="SENT"),
        "life: event 3: message 0000000000000007 for a/phone was expired, with state 'SENT'",
    ),
    "step": (
        lambda e: set_to(e[5], kind="received", state="RECEIVED"),
        "life: event 5: message 0000000000000008 for a/tablet was received while PENDING",
    ),
    "reason": (
        lambda e: set_to(e[7], reason=""),
        "reason: event 7: message 0000000000000008 for a/tablet was expired without a reason",
    ),
}


@pytest.mark.parametrize("name", sorted(BREAKS))
def test_a_broken_log_is_told_in_a_clear_line(name: str) -> None:
    breaking, expected = BREAKS[name]
    events = small_log()
    breaking(events)
    report = check(events)
    assert not report.good
    assert any(problem.startswith(expected) for problem in report.problems), report.problems


def test_a_second_end_is_a_problem() -> None:
    events = [
        Event(1, "g", 1, 0, NOON, Kind.ACCEPTED, "a", "p", 0, 9, -1, "PENDING", "no contact"),
        Event(1, "g", 1, 1, NOON, Kind.EXPIRED, "a", "p", 1, 9, 0, "EXPIRED", "late"),
        Event(1, "g", 1, 2, NOON, Kind.CANCELLED, "a", "p", 2, 9, 1, "CANCELLED", "by hand"),
    ]
    report = check(events)
    assert report.problems == [
        (
            "chain: event 2: message 0000000000000009 for a/p was cancelled after event 1, which"
            " leaves no such delivery open"
        ),
        "conservation: app 'a': 1 accepted, but 2 ended and 0 open",
    ]


def test_a_remark_is_part_of_the_chain_and_changes_nothing() -> None:
    events = [
        Event(1, "g", 1, 0, NOON, Kind.ACCEPTED, "a", "p", 0, 9, -1, "PENDING", "no contact"),
        Event(1, "g", 1, 1, NOON, Kind.RANK_CHANGED, "a", "p", 1, 9, 0, "PENDING"),
        Event(9, "g", 1, 2, NOON, "something new", "a", "p", 2, 9, 1, "PENDING"),
        Event(1, "g", 1, 3, NOON, Kind.EXPIRED, "a", "p", 3, 9, 2, "EXPIRED", "late"),
    ]
    report = check(events, [StoredDelivery(9, 1, "EXPIRED", False, 3)])
    assert report.good, report.problems
    assert report.newest_schema == 9


def a_closed_row(day: Rehearsal) -> StoredDelivery:
    return next(row for row in day.rows() if not row.open)


def an_open_row(day: Rehearsal) -> StoredDelivery:
    return next(row for row in day.rows() if row.open)


ROW_BREAKS: dict[str, Callable[[Rehearsal], list[StoredDelivery]]] = {
    "another end": lambda day: [a_closed_row(day)._replace(state="EXPIRED")],
    "another message": lambda day: [a_closed_row(day)._replace(message=1)],
    "another event": lambda day: [a_closed_row(day)._replace(last_event=1)],
    "open again": lambda day: [a_closed_row(day)._replace(open=True, state="PENDING")],
    "closed early": lambda day: [an_open_row(day)._replace(open=False, state="EXPIRED")],
    "another state": lambda day: [an_open_row(day)._replace(state="RECEIVED")],
}


@pytest.mark.parametrize("name", sorted(ROW_BREAKS))
def test_a_store_that_disagrees_is_told(day: Rehearsal, name: str) -> None:
    (wrong,) = ROW_BREAKS[name](day)
    rows = [row for row in day.rows() if row.last_event != wrong.last_event]
    rows = [row for row in rows if row.message != wrong.message or row.device != wrong.device]
    report = check(decoded(day), [*rows, wrong])
    assert report.counts["store"] >= 1
    assert any(f"{wrong.message:016x}" in problem for problem in report.problems)


def test_an_open_delivery_that_the_store_lost_is_told(day: Rehearsal) -> None:
    lost = an_open_row(day)
    report = check(decoded(day), [row for row in day.rows() if row != lost])
    assert report.counts == {"store": 1}
    assert f"{lost.message:016x}" in report.problems[0]


def test_only_the_first_problems_are_shown_and_all_are_counted(day: Rehearsal) -> None:
    checking = LogCheck(show=3)
    for event in decoded(day):
        event.n *= 2
        checking.event(event)
    report = checking.finish()
    assert len(report.problems) == 3
    assert report.counts["order"] == len(day.lines()) - 1


def test_a_damaged_line_is_told_and_the_rest_is_read(day: Rehearsal, tmp_path: Path) -> None:
    Exporter(tmp_path, day.store, confirm=day.store.exported).finish(day.now)
    (segment, *_) = sealed_segments(tmp_path)
    lines = segment.path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"kind":"', b'"kind":')
    segment.path.write_bytes(b"".join(lines))
    with LogReader(tmp_path) as reader:
        checking = LogCheck()
        checking.read(reader)
    report = checking.finish()
    assert report.counts["unreadable"] == 1
    assert report.problems[0].startswith("unreadable: event 2 cannot be read")
    assert report.end == len(day.lines())


def test_an_empty_log_is_good() -> None:
    assert check([], whole=True).good
