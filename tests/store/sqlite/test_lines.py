"""Lines of events come back as they were, however they were kept."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import StoreBroken
from lasthop.store.sqlite import SqliteReader, SqliteStore
from lasthop.store.sqlite.lines import FEW, pack, unpack
from lasthop.store.sqlite.migrations import MIGRATIONS
from tests.store.making import Maker, event_line

MANY = 5000


@given(st.lists(st.text(), min_size=1, max_size=50), st.integers(1, 200))
def test_lines_come_back(words: list[str], times: int) -> None:
    lines = b"".join(b'{"n":%d,"is":"%s"}\n' % p for p in enumerate(w.encode() for w in words))
    lines *= times
    assert unpack(pack(lines)) == lines
    assert unpack(pack(bytearray(lines))) == lines


def test_many_are_packed_and_a_few_are_not() -> None:
    line = event_line(1)
    few = line * (FEW // len(line))
    assert pack(few) == few
    assert len(pack(few + line)) < len(few) / 10


def test_a_damaged_page_is_reported() -> None:
    packed = pack(event_line(1) * MANY)
    for damaged in (packed[:-1], packed[:50] + b"?" + packed[51:], b""):
        with pytest.raises(StoreBroken, match="a page of events is damaged"):
            unpack(damaged)


def test_a_store_keeps_them_packed_and_finds_every_one(tmp_path: Path) -> None:
    make = Maker()
    with closing(SqliteStore(tmp_path)) as store:
        store.open()
        store.apply(make.commit(events=3), make.commit(events=MANY), make.commit(events=1))
        assert [(page.first, page.count) for page in store.events(0, 1 << 40)] == [
            (0, 3),
            (3, MANY),
            (3 + MANY, 1),
        ]
        kept = b"".join(page.lines for page in store.events(0, 1 << 40))
        assert kept == b"".join(event_line(n) for n in range(MANY + 4))
        assert store.events(MANY, 1 << 40)[0].lines == event_line(MANY) + event_line(
            MANY + 1
        ) + event_line(MANY + 2)
        for n in (0, 3, 2000, MANY + 2, MANY + 3):
            assert store.event_at(n) == event_line(n).rstrip()
        assert store.event_at(MANY + 4) is None
        # What is asked for is counted as it is handed over, not as it is kept.
        assert len(store.events(0, 1000)) == 1
        sizes = [size for (size,) in store._all("SELECT length(lines) FROM event_page")]
        assert sizes[1] < MANY * len(event_line(0)) / 5


def test_a_store_from_before_there_was_packing_is_read(tmp_path: Path) -> None:
    before = [step for step in MIGRATIONS if step.to < 8]
    lines = b"".join(event_line(n) for n in range(MANY))
    with closing(SqliteStore(tmp_path, migrations=before)) as store:
        store._connection.execute(
            "INSERT INTO event_page (first, count, lines) VALUES (0, ?, ?)", (MANY, lines)
        )
        store._connection.execute("UPDATE meta SET next_event = ?", (MANY,))
    make = Maker(next_event=MANY)
    with closing(SqliteStore(tmp_path)) as store:
        store.open()
        store.apply(make.commit(events=MANY))
        with closing(SqliteReader.beside(tmp_path)) as reader:
            both = b"".join(page.lines for page in reader.events(0, 1 << 40))
    assert both == b"".join(event_line(n) for n in range(2 * MANY))
