"""The log over the embedded store: exporter and reader use its reader, as other threads do.

About `eventlog/exporter.py`, `eventlog/reader.py` and `store/sqlite/reader.py`.
"""

from __future__ import annotations

from pathlib import Path

from lasthop.eventlog.exporter import Exporter, Rolling
from lasthop.eventlog.reader import LogReader
from lasthop.store.commit import Commit
from lasthop.store.sqlite import SqliteStore
from tests.eventlog.history import NOON, event_line, sealed_lines


def test_events_go_from_the_embedded_store_to_segments_and_are_found_in_both(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path / "data")
    restored = store.open()
    reader = store.reader()
    log = tmp_path / "data" / "log"
    lines: list[bytes] = []
    try:
        for round_ in range(4):
            new = [event_line(len(lines) + i, NOON) for i in range(50)]
            events = bytearray(b"".join(line + b"\n" for line in new))
            n = restored.next_commit + round_
            store.apply(Commit(n=n, first_event=len(lines), events=events, event_count=len(new)))
            lines += new
            if round_ != 3:
                exporter = Exporter(log, reader, confirm=store.exported, rolling=Rolling(size=2000))
                exporter.finish(NOON)
                assert sealed_lines(log) == lines
                store.retire(messages_before=0, keys_before=0)
        with LogReader(log, reader) as found:
            assert list(found.lines()) == lines
            assert [found.line(n) for n in range(len(lines))] == lines
            assert found.end() == len(lines)
    finally:
        reader.close()
        store.close()
