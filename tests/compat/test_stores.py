"""Stores and inboxes of earlier versions: they are read, go on, and end as they did then.

About `store/sqlite/` and `device/inbox_sqlite.py`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.compat.adapter import fresh_files, held, in_todays_words, restored
from tests.compat.files import HERE, VERSIONS, as_json, kept, kept_json, known
from tests.compat.playing import RECORDINGS, Recording, outcome, second_life, standing
from tests.compat.record import record
from tests.compat.scenarios import NEED_NODE, SCENARIOS
from tests.wire.installed import need

TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
OPEN = {"PENDING", "SENDING", "RECEIVED", "PARKED"}


UNUSED = {"lasthop_lane", "lane"}
"""Tables that stay empty until a version of the gateway offers what they are for."""


def test_every_scenario_was_recorded() -> None:
    assert VERSIONS
    for name in SCENARIOS:
        assert any(Recording(HERE / version, name).store.exists() for version in VERSIONS), name


def test_a_recording_is_never_recorded_again(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="v1-plain was recorded before, which is how it stays"):
        record(SCENARIOS["plain"], HERE / "v1", tmp_path)


def test_every_table_has_rows_in_some_recording(tmp_path: Path) -> None:
    """If this fails for a new one: record a new version (see README.md)."""
    rows: Counter[str] = Counter()
    for recording in RECORDINGS:
        inboxes = [recording.inbox(device) for device in recording.memory()["devices"]]
        for packed in (recording.store, *inboxes):
            rows.update(count_rows(kept(packed)))
    (tmp_path / "fresh").mkdir()
    fresh_files(tmp_path / "fresh")
    today = {table for path in (tmp_path / "fresh").rglob("*") for table in tables_of(path)}
    assert not [table for table in sorted(today - UNUSED) if not rows[table]]


def count_rows(content: bytes) -> dict[str, int]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(content)
        count = "SELECT count(*) FROM"
        return {
            table: database.execute(f"{count} {table}").fetchone()[0]
            for (table,) in database.execute(TABLES).fetchall()
        }


def tables_of(path: Path) -> list[str]:
    if path.suffix not in (".db", ".inbox"):
        return []
    with closing(sqlite3.connect(path)) as database:
        return [name for (name,) in database.execute(TABLES)]


def test_every_row_is_read_as_it_was_written(recording: Recording, tmp_path: Path) -> None:
    memory = recording.unpack(tmp_path)
    recorded = kept_json(recording.rows)
    store = as_json(restored(tmp_path / "store"))
    assert known(store, recorded["store"]) == recorded["store"]
    for name in memory["devices"]:
        inbox = as_json(held(tmp_path / f"{name}.inbox"))
        assert known(inbox, recorded["inboxes"][name]) == recorded["inboxes"][name]


def test_what_was_open_comes_to_its_recorded_end(recording: Recording, tmp_path: Path) -> None:
    if recording.name in NEED_NODE:
        need("node")
    scenario = SCENARIOS[recording.name]
    stage = second_life(scenario, tmp_path, recording.unpack(tmp_path))
    before = kept_json(recording.restored)
    assert known(as_json(standing(stage, scenario)), before) == before
    scenario.second(stage)
    after = in_todays_words(kept_json(recording.ended))
    # What happened before the crash is kept in the words of that time.
    assert in_todays_words(known(as_json(outcome(stage, scenario)), after)) == after
    stage.crash()


def test_what_was_recorded_is_worth_it(recording: Recording) -> None:
    """Much was open, nothing is any more, and nobody has had anything twice."""
    before, after = kept_json(recording.restored), kept_json(recording.ended)
    assert any(state_of(told) in OPEN for told in before["stories"].values())
    assert not [title for title, told in after["stories"].items() if state_of(told) in OPEN]
    delivered = {
        (title.split()[0][:16], title.split()[-1])
        for title, told in after["stories"].items()
        if state_of(told) == "DELIVERED"
    }
    for name, device in (after["devices"] | after["others"]).items():
        had = Counter(line[0] for line in device["had"] if line[3] != "timed out")
        assert max(had.values(), default=1) == 1, f"{name} has had something twice"
        # Of what came after a backup the gateway knows nothing.
        if recording.name != "backup":
            numbered = {key for key, to in delivered if to == name}
            assert numbered.issuperset(set(had) - best_effort(after)), name


def state_of(told: list[str]) -> str:
    return told[0].partition(" ")[0]


def best_effort(after: dict[str, Any]) -> set[str]:
    """Messages of which only is known that they left."""
    return {t.split()[0][:16] for t, told in after["stories"].items() if state_of(told) == "SENT"}
