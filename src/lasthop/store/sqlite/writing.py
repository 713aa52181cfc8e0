"""Writes commits with one SQL statement.

A thread that runs SQL gives the interpreter lock away with every statement and waits up to 5 ms to
get it back while the event loop is busy. So a batch of commits is encoded into a few long values
and written by a single `INSERT` into a view, whose triggers take them apart inside SQLite, outside
the lock: one for what every commit has, and one for each feature, which costs nothing unless the
commits change it. Being one statement, it is also its own transaction. `bench/store_commit.py`
compares.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from zlib import crc32

from lasthop.message import Message
from lasthop.store.commit import Commit, DeliveryRow, MemoryRow, ReplyRow
from lasthop.store.sqlite.connection import transaction
from lasthop.store.sqlite.lines import pack
from lasthop.store.sqlite.pages import cut_into_pages
from lasthop.store.tables import TABLES
from lasthop.store.tables.base import joined, packed

_FEATURES = {table.changes: table.sqlite for table in TABLES}
_REPLY = f"$[{DeliveryRow.__struct_fields__.index('reply')}]"

_OF_FEATURES = [column for feature in _FEATURES.values() for column in feature.columns]
_COLUMNS = (
    "next_commit",
    "next_event",
    "last_key",
    "next_device",
    "pages",
    "bodies",
    "deliveries",
    "replies",
    "sessions",
    "devices",
    "removed",
    "keys",
    "fanouts",
    "credentials",
    "memories",
    "event_pages",
    "events",
    *_OF_FEATURES,
)

# Temporary, hence part of this program and not of the stored schema. `WHERE true` keeps the parser
# from taking ON CONFLICT for a join; `'$[0]'` is a fifth faster than the number 0 alone.
SETUP = (
    f"CREATE TEMP VIEW incoming AS SELECT {', '.join(f'NULL AS {name}' for name in _COLUMNS)}",
    f"""CREATE TEMP TRIGGER apply INSTEAD OF INSERT ON incoming BEGIN
        INSERT INTO page (first, last, count, crc, body)
            SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value ->> '$[3]',
                substr(NEW.bodies, value ->> '$[4]', value ->> '$[5]')
            FROM json_each(NEW.pages);
        INSERT INTO delivery (message, device, open, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[3]', value
            FROM json_each(NEW.deliveries) WHERE true
            ON CONFLICT DO UPDATE SET open = excluded.open, row = excluded.row;
        UPDATE delivery SET row = json_set(row, '{_REPLY}', reply.value ->> '$[2]')
            FROM json_each(NEW.replies) AS reply
            WHERE message = reply.value ->> '$[0]' AND device = reply.value ->> '$[1]'
            AND row ->> '{_REPLY}' = 0;
        INSERT INTO session (device, row)
            SELECT value ->> '$[0]', value FROM json_each(NEW.sessions) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
        INSERT INTO device (device, app, name, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value
            FROM json_each(NEW.devices) WHERE true
            ON CONFLICT DO UPDATE SET app = excluded.app, name = excluded.name, row = excluded.row;
        DELETE FROM device WHERE device IN (SELECT value FROM json_each(NEW.removed));
        DELETE FROM session WHERE device IN (SELECT value FROM json_each(NEW.removed));
        INSERT INTO idempotency (app, key, at, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[5]', value
            FROM json_each(NEW.keys) WHERE true
            ON CONFLICT DO UPDATE SET at = excluded.at, row = excluded.row;
        INSERT INTO fanout (message, row)
            SELECT value ->> '$[0]', value FROM json_each(NEW.fanouts) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
        DELETE FROM fanout WHERE message IN
            (SELECT value ->> '$[0]' FROM json_each(NEW.fanouts) WHERE value ->> '$[3]');
        INSERT INTO credential (hash, row)
            SELECT value ->> '$[0]', value FROM json_each(NEW.credentials) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
        INSERT INTO memory (device, name, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value FROM json_each(NEW.memories) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
        DELETE FROM memory WHERE (device, name) IN
            (SELECT value ->> '$[0]', value ->> '$[1]' FROM json_each(NEW.memories)
            WHERE value ->> '$[2]' = '');
        DELETE FROM memory WHERE device IN (SELECT value FROM json_each(NEW.removed));
        INSERT INTO event_page (first, count, crc, lines)
            SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]',
                substr(NEW.events, value ->> '$[3]', value ->> '$[4]')
            FROM json_each(NEW.event_pages);
        UPDATE meta SET
            next_commit = NEW.next_commit,
            next_event = NEW.next_event,
            last_key = max(last_key, NEW.last_key),
            next_device = max(next_device, NEW.next_device);
    END""",
    *(
        f"""CREATE TEMP TRIGGER apply_{feature.columns[0]} INSTEAD OF INSERT ON incoming
        WHEN NEW.{feature.columns[0]} IS NOT NULL BEGIN {feature.apply} END"""
        for feature in _FEATURES.values()
    ),
)

_INSERT = f"INSERT INTO incoming VALUES ({', '.join('?' * len(_COLUMNS))})"


def write(connection: sqlite3.Connection, commits: Sequence[Commit], *, next_event: int) -> None:
    """Write commits that are known to be in sequence, all or none."""
    runs = _runs(commits)
    if len(runs) == 1:
        connection.execute(_INSERT, _values(runs[0], next_event))
        return
    with transaction(connection):
        for run in runs:
            connection.execute(_INSERT, _values(run, next_event))
            next_event += sum(commit.event_count for commit in run)


def _runs(commits: Sequence[Commit]) -> list[list[Commit]]:
    """Split commits where writing them together could differ from writing them one after the
    other."""
    runs: list[list[Commit]] = [[]]
    for i, commit in enumerate(commits, 1):
        runs[-1].append(commit)
        if i < len(commits) and _removes(commit):
            runs.append([])
    return runs


def _removes(commit: Commit) -> bool:
    features = [_FEATURES[kind].removes(changes) for kind, changes in commit.changes.items()]
    return bool(commit.replies or commit.removed_devices or commit.fanouts or any(features))


def _values(run: list[Commit], next_event: int) -> tuple[int | str | bytes | None, ...]:
    pages, bodies = _pages([message for commit in run for message in commit.messages])
    event_pages, events = _event_pages(run, next_event)
    return (
        run[-1].n + 1,
        next_event + sum(commit.event_count for commit in run),
        max((commit.messages[-1].key for commit in run if commit.messages), default=0),
        max((max(commit.devices) for commit in run if commit.devices), default=0) + 1,
        pages,
        bodies,
        joined(commit.deliveries for commit in run),
        joined(_first_replies(commit) for commit in run),
        joined(commit.sessions.values() for commit in run),
        joined(commit.devices.values() for commit in run),
        joined(commit.removed_devices for commit in run),
        joined(commit.keys for commit in run),
        joined(commit.fanouts.values() for commit in run),
        joined(commit.credentials.values() for commit in run),
        joined(_latest_memories(run)),
        event_pages,
        events,
        *_of_features(run),
    )


def _of_features(run: list[Commit]) -> Iterable[str | bytes | None]:
    values: dict[str, str | bytes | None] = dict.fromkeys(_OF_FEATURES)
    for kind in {kind for commit in run for kind in commit.changes}:
        feature = _FEATURES[kind]
        changes = [commit.changes[kind] for commit in run if kind in commit.changes]
        values.update(zip(feature.columns, feature.values(changes), strict=True))
    return values.values()


def _latest_memories(run: list[Commit]) -> Iterable[Iterable[MemoryRow]]:
    """Return the newest state of each memory: an earlier empty one must not remove a later one."""
    latest: dict[tuple[int, str], MemoryRow] = {}
    for commit in run:
        latest.update(commit.memories)
    return [latest.values()]


def _first_replies(commit: Commit) -> Iterable[ReplyRow]:
    """Return the reply that counts, the first, of several to the same delivery."""
    return {(row.message, row.device): row for row in reversed(commit.replies)}.values()


def _pages(messages: list[Message]) -> tuple[str, bytes]:
    """Encode messages as pages: an index of (first, last, count, checksum), and their bodies."""
    pages = cut_into_pages(messages)
    return packed(
        ((page.first, page.last, page.count, crc32(page.body)), page.body) for page in pages
    )


def _event_pages(commits: Sequence[Commit], first: int) -> tuple[str, bytes]:
    """Encode events as pages, one for each commit: an index of (first, count, checksum), and their
    lines."""
    pages: list[tuple[tuple[int, ...], bytes]] = []
    for commit in commits:
        if commit.event_count:
            lines = pack(commit.events)
            pages.append(((first, commit.event_count, crc32(lines)), lines))
            first += commit.event_count
    return packed(pages)
