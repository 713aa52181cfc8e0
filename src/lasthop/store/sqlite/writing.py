"""Commits as one statement.

A thread that runs SQL gives the interpreter lock away with every statement and waits up to 5 ms to
get it back while the event loop is busy. So a batch of commits is encoded into a few long values
and written by a single `INSERT` into a view, whose trigger takes them apart inside SQLite, outside
the lock. Being one statement, it is also its own transaction. `bench/store_commit.py` compares.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from lasthop.message import Message
from lasthop.store.commit import Commit, DeliveryRow, MemoryRow, NotificationRow, ReplyRow
from lasthop.store.sqlite.bonds import write_bonds
from lasthop.store.sqlite.connection import transaction
from lasthop.store.sqlite.lines import pack
from lasthop.store.sqlite.pages import cut_into_pages
from lasthop.store.sqlite.ranked import write_ranked
from lasthop.store.sqlite.streams import write_streams
from lasthop.store.sqlite.surrogates import write_surrogates

_json = msgspec.json.Encoder()

_DONE = f"$[{NotificationRow.__struct_fields__.index('done')}]"
_REPLY = f"$[{DeliveryRow.__struct_fields__.index('reply')}]"

# Temporary, hence part of this program and not of the stored schema. `WHERE true` keeps the parser
# from taking ON CONFLICT for a join; `'$[0]'` is a fifth faster than the number 0 alone.
SETUP = (
    """CREATE TEMP VIEW incoming AS SELECT
        0 AS next_commit, 0 AS next_event, 0 AS last_key, 0 AS next_device,
        '' AS pages, x'' AS bodies, '' AS deliveries, '' AS replies, '' AS sessions,
        '' AS devices, '' AS removed, '' AS keys, '' AS fanouts, '' AS credentials, '' AS memories,
        '' AS addresses, '' AS pushes, '' AS notifications, '' AS event_pages, x'' AS events""",
    f"""CREATE TEMP TRIGGER apply INSTEAD OF INSERT ON incoming BEGIN
        INSERT INTO page (first, last, count, body)
            SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]',
                substr(NEW.bodies, value ->> '$[3]', value ->> '$[4]')
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
        INSERT INTO address (app, address, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value
            FROM json_each(NEW.addresses) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
        DELETE FROM address WHERE (app, address) IN
            (SELECT value ->> '$[0]', value ->> '$[1]'
            FROM json_each(NEW.addresses) WHERE value ->> '$[2]' = '');
        INSERT INTO push (id, message, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value FROM json_each(NEW.pushes) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
        INSERT INTO notification (message, place, row)
            SELECT value ->> '$[0]', value ->> '$[1]', value
            FROM json_each(NEW.notifications) WHERE true
            ON CONFLICT DO UPDATE SET row = excluded.row;
        DELETE FROM notification WHERE (message, place) IN
            (SELECT value ->> '$[0]', value ->> '$[1]'
            FROM json_each(NEW.notifications) WHERE value ->> '{_DONE}');
        INSERT INTO event_page (first, count, lines)
            SELECT value ->> '$[0]', value ->> '$[1]',
                substr(NEW.events, value ->> '$[2]', value ->> '$[3]')
            FROM json_each(NEW.event_pages);
        UPDATE meta SET
            next_commit = NEW.next_commit,
            next_event = NEW.next_event,
            last_key = max(last_key, NEW.last_key),
            next_device = max(next_device, NEW.next_device);
    END""",
)

_INSERT = f"INSERT INTO incoming VALUES ({', '.join('?' * 20)})"


def write(connection: sqlite3.Connection, commits: Sequence[Commit], *, next_event: int) -> None:
    """Write commits that are known to be in sequence, all or none."""
    runs = _runs(commits)
    special = (part for c in commits for part in (c.ranked, c.surrogates, c.bonds, c.streams))
    if len(runs) == 1 and all(part is None for part in special):
        connection.execute(_INSERT, _values(runs[0], next_event))
        return
    with transaction(connection):
        for run in runs:
            connection.execute(_INSERT, _values(run, next_event))
            write_ranked(connection, run)
            write_surrogates(connection, run)
            write_bonds(connection, run)
            write_streams(connection, run)
            next_event += sum(commit.event_count for commit in run)


def _runs(commits: Sequence[Commit]) -> list[list[Commit]]:
    """Cut where writing commits together could differ from writing them one after the other."""
    runs: list[list[Commit]] = [[]]
    for i, commit in enumerate(commits, 1):
        runs[-1].append(commit)
        if i < len(commits) and _removes(commit):
            runs.append([])
    return runs


def _removes(commit: Commit) -> bool:
    return bool(
        commit.replies
        or commit.removed_devices
        or commit.fanouts
        or commit.addresses
        or commit.notifications
    )


def _values(run: list[Commit], next_event: int) -> tuple[int | str | bytes, ...]:
    pages, bodies = _pages([message for commit in run for message in commit.messages])
    event_pages, events = _event_pages(run, next_event)
    return (
        run[-1].n + 1,
        next_event + sum(commit.event_count for commit in run),
        max((commit.messages[-1].key for commit in run if commit.messages), default=0),
        max((max(commit.devices) for commit in run if commit.devices), default=0) + 1,
        pages,
        bodies,
        _rows(commit.deliveries for commit in run),
        _rows(_first_replies(commit) for commit in run),
        _rows(commit.sessions.values() for commit in run),
        _rows(commit.devices.values() for commit in run),
        _rows(commit.removed_devices for commit in run),
        _rows(commit.keys for commit in run),
        _rows(commit.fanouts.values() for commit in run),
        _rows(commit.credentials.values() for commit in run),
        _rows(_latest_memories(run)),
        _rows(commit.addresses.values() for commit in run),
        _rows(commit.pushes.values() for commit in run),
        _rows(commit.notifications.values() for commit in run),
        event_pages,
        events,
    )


def _latest_memories(run: list[Commit]) -> Iterable[Iterable[MemoryRow]]:
    """The state that counts, of several: an earlier empty one must not take a later one along."""
    latest: dict[tuple[int, str], MemoryRow] = {}
    for commit in run:
        latest.update(commit.memories)
    return [latest.values()]


def _first_replies(commit: Commit) -> Iterable[ReplyRow]:
    """The reply that counts, of several to the same delivery."""
    return {(row.message, row.device): row for row in reversed(commit.replies)}.values()


def _rows(of_commits: Iterable[Iterable[object]]) -> str:
    """One JSON array, the earliest commit's rows first, so that a later row wins."""
    return _json.encode(list(chain.from_iterable(of_commits))).decode()


def _pages(messages: list[Message]) -> tuple[str, bytes]:
    """Where each page lies in the bodies (first, last, count, offset from 1, length), and those."""
    index: list[tuple[int, int, int, int, int]] = []
    offset = 1
    pages = cut_into_pages(messages)
    for page in pages:
        index.append((page.first, page.last, page.count, offset, len(page.body)))
        offset += len(page.body)
    return _json.encode(index).decode(), b"".join(page.body for page in pages)


def _event_pages(commits: Sequence[Commit], first: int) -> tuple[str, bytes]:
    """The same for events (first, count, offset from 1, length): a page for each commit."""
    index: list[tuple[int, int, int, int]] = []
    pages: list[bytes] = []
    offset = 1
    for commit in commits:
        if commit.event_count:
            page = pack(commit.events)
            pages.append(page)
            index.append((first, commit.event_count, offset, len(page)))
            first += commit.event_count
            offset += len(page)
    return _json.encode(index).decode(), b"".join(pages)
