"""Following: every event once, from any offset on, whether sealed meanwhile or not."""

from __future__ import annotations

from pathlib import Path

from lasthop.eventlog.exporter import Exporter
from lasthop.eventlog.reader import LogReader
from lasthop.eventlog.tail import Only, Tail, follow
from lasthop.events import Kind
from tests.eventlog.history import NOON, History
from tests.eventlog.rehearsal import APP, busy_day


def test_new_events_are_seen_once_across_sealing(tmp_path: Path) -> None:
    history = History()
    exporter = Exporter(tmp_path, history.store, confirm=history.store.exported)
    rounds = iter(range(6))

    def more() -> bool:
        step = next(rounds, None)
        if step is None:
            return False
        history.commit([NOON] * 3)
        if step % 2:
            exporter.finish(NOON)
            history.drop_exported()
        return True

    with LogReader(tmp_path, history.store) as reader:
        tail = Tail(reader, start=0)
        assert [event.n for event in follow(tail, more)] == list(range(18))
        assert tail.offset == 18


def test_following_goes_on_where_it_was(tmp_path: Path) -> None:
    history = History()
    history.commit([NOON] * 10)
    with LogReader(tmp_path, history.store) as reader:
        tail = Tail(reader, start=2)
        seen = tail.poll(limit=3)
        assert seen is not None
        assert [event.n for event in seen] == [2, 3, 4]
        rest = Tail(reader, start=tail.offset).poll()
        assert rest is not None
        assert [event.n for event in rest] == [5, 6, 7, 8, 9]


def test_only_what_is_wanted_is_shown(tmp_path: Path) -> None:
    day = busy_day()
    with LogReader(tmp_path, day.store) as reader:
        events = list(reader.events())
        message = next(event.msg for event in events if event.kind == Kind.EXPIRED)

        def seen(only: Only) -> list[int]:
            tail = Tail(reader, start=0, only=only)
            return [event.n for event in follow(tail, lambda: False)]

        assert seen(Only()) == [event.n for event in events]
        assert seen(Only(app=APP, device="watch")) == [e.n for e in events if e.dev == "watch"]
        assert seen(Only(message=message)) == [e.n for e in events if e.msg == message]
        kinds = frozenset({Kind.EXPIRED, Kind.CANCELLED})
        assert seen(Only(kinds=kinds)) == [e.n for e in events if e.kind in kinds]
        assert not seen(Only(app="another"))


def test_nothing_wanted_among_what_is_new_is_not_the_end(tmp_path: Path) -> None:
    history = History()
    history.commit([NOON] * 3)
    with LogReader(tmp_path, history.store) as reader:
        tail = Tail(reader, start=0, only=Only(app="another"))
        assert tail.poll() == []
        assert tail.poll() is None
