"""The story of a delivery: complete, in order, with a reason for everything."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lasthop.clock import DAY, HOUR, SECOND
from lasthop.errors import StoreBroken
from lasthop.eventlog.exporter import Exporter, Rolling
from lasthop.eventlog.reader import LogReader
from lasthop.eventlog.story import ExplainedEvent, explain, story
from lasthop.events import Event, Kind
from tests.eventlog.rehearsal import Rehearsal, busy_day, device


@pytest.fixture(scope="module")
def day() -> Rehearsal:
    return busy_day()


@pytest.mark.parametrize("exported", [False, True])
def test_every_delivery_has_its_story(tmp_path: Path, exported: bool) -> None:
    day = busy_day()
    everything = [msgspec.json.decode(line, type=Event) for line in day.lines()]
    if exported:
        rolling = Rolling(size=500)
        Exporter(tmp_path, day.store, confirm=day.store.exported, rolling=rolling).finish(day.now)
        day.store.retire(messages_before=0, keys_before=0)
    with LogReader(tmp_path, day.store) as reader:
        for row in day.rows():
            events = story(reader.find, row.last_event)
            dev, state = events[-1].dev, events[-1].state
            ours = [e for e in everything if e.msg == row.message and e.dev == dev and e.state]
            # What was decided for all of its deliveries is no part of any one's story.
            assert events == [e for e in ours if e.kind != Kind.SETTLED]
            assert events[0].kind == Kind.ACCEPTED
            assert state == row.state


def test_a_story_is_found_without_a_scan(day: Rehearsal) -> None:
    looked_up: list[int] = []
    with LogReader(Path("/nonexistent"), day.store) as reader:

        def find(offset: int) -> Event | None:
            looked_up.append(offset)
            return reader.find(offset)

        message = day.rows()[0].message
        events = story(find, day.last_event(message))
    assert looked_up == [event.n for event in reversed(events)]


def test_every_line_says_why(day: Rehearsal) -> None:
    with LogReader(Path("/nonexistent"), day.store) as reader:
        for row in day.rows():
            for told in explain(story(reader.find, row.last_event)):
                assert told.why
                assert told.why != "no reason recorded"


def test_people_read_when_what_why_and_over_which_link() -> None:
    day = Rehearsal()
    day.register("phone")
    message = day.publish(device("phone"), rank=2.5, deliver_before=day.now + HOUR)
    day.now += 1_500_000
    day.connect("phone", 1)
    with LogReader(Path("/nonexistent"), day.store) as reader:
        lines = [str(told) for told in explain(story(reader.find, day.last_event(message)))]
    assert lines == [
        (
            "2026-11-15T12:00:00.000000Z   +0.000 ms  accepted: no contact (from publisher:desk,"
            " size 5 bytes, priority 4, rank 2.5, not after 2026-11-15T13:00:00.000000Z)"
        ),
        "2026-11-15T12:00:01.500000Z    +1.500 s  released over wifi: in contact (number 1/0)",
        (
            "2026-11-15T12:00:01.500000Z    +1.500 s  transmitted over wifi: handed to the link"
            " (number 1/0, attempt 1, bytes 5)"
        ),
    ]


def test_machines_read_the_same_as_json(day: Rehearsal) -> None:
    with LogReader(Path("/nonexistent"), day.store) as reader:
        told = explain(story(reader.find, day.rows()[0].last_event))
    assert msgspec.json.decode(msgspec.json.encode(told), type=list[ExplainedEvent]) == told


@pytest.mark.parametrize(
    "span, text",
    [
        (1, "+0.001 ms"),
        (SECOND, "+1.000 s"),
        (90 * SECOND, "+0:01:30"),
        (DAY + HOUR, "+1d 1:00:00"),
    ],
)
def test_spans_are_told_as_people_say_them(span: int, text: str) -> None:
    events = [Event(1, "g", 1, n, t, Kind.HELD) for n, t in ((0, 0), (1, span))]
    assert text in str(explain(events)[1])


def test_a_story_whose_beginning_is_gone_starts_where_the_log_does(day: Rehearsal) -> None:
    with LogReader(Path("/nonexistent"), day.store) as reader:
        whole = story(reader.find, day.rows()[0].last_event)
        cut = story(lambda n: reader.find(n) if n > whole[0].n else None, day.rows()[0].last_event)
    assert cut == whole[1:]
    assert not story(lambda n: None, 5)
    assert not explain([])


def test_a_chain_into_another_delivery_is_refused() -> None:
    events = {
        0: Event(1, "g", 1, 0, 0, Kind.ACCEPTED, "a", "phone", 0, 1),
        1: Event(1, "g", 1, 1, 0, Kind.EXPIRED, "a", "phone", 1, 2, prev=0),
        2: Event(1, "g", 1, 2, 0, Kind.EXPIRED, "a", "phone", 2, 2, prev=2),
    }
    for last in (1, 2):
        with pytest.raises(StoreBroken, match="another delivery"):
            story(events.get, last)
