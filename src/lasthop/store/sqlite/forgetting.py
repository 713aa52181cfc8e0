"""Removes what is old, and what must be erased, in steps that each block the store only briefly."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from zlib import crc32

from lasthop.store.base import Forgotten
from lasthop.store.sqlite.pages import MessagePage
from lasthop.store.sqlite.reader import page_of
from lasthop.store.tables import TABLES
from lasthop.store.tables.base import as_json

PAGES_PER_STEP = 32
"""Pages of messages in one step. With their deliveries a step took 13 ms on average and 63 ms at
worst, no longer than a large commit, so that publishers hardly notice."""

EVENT_PAGES_PER_STEP = 16
"""Pages of events in one step: they may be larger, since each has the events of a whole commit."""

ROWS_PER_STEP = 20_000
"""Small rows in one step: idempotency keys, and deliveries that are only looked at."""


def retire_messages(connection: sqlite3.Connection, *, before: int, start: int) -> Forgotten:
    """Remove old messages in one step through the pages from key `start` on; messages from `before`
    on stay."""
    pages = [
        MessagePage(*row)
        for row in connection.execute(
            "SELECT first, last, count, body FROM page WHERE first >= ? AND first < ?"
            " ORDER BY first LIMIT ?",
            (start, before, PAGES_PER_STEP),
        )
    ]
    result = Forgotten(next=pages[-1].last + 1 if len(pages) == PAGES_PER_STEP else None)
    for page in pages:
        pinned = _pinned(connection, page)
        gone = [key for key in page.all_keys() if key < before and key not in pinned]
        if gone:
            result.messages += len(gone)
            result.deliveries += _delete_deliveries(connection, gone, pinned)
            _forget(connection, gone)
            _take_off(connection, page, frozenset(gone))
    return result


_PINNED = " UNION ".join(
    (
        "SELECT message FROM delivery WHERE open AND message BETWEEN ?1 AND ?2",
        "SELECT message FROM fanout WHERE message BETWEEN ?1 AND ?2",
        *(table.sqlite.keeps for table in TABLES if table.sqlite.keeps),
    )
)


def _pinned(connection: sqlite3.Connection, page: MessagePage) -> frozenset[int]:
    """Return the messages on this page that are still needed."""
    rows = connection.execute(_PINNED, (page.first, page.last))
    return frozenset(message for (message,) in rows)


def _delete_deliveries(
    connection: sqlite3.Connection, gone: list[int], pinned: Collection[int]
) -> int:
    """Delete by range: all deliveries of `gone`, which ascend, and none of `pinned`; return their
    number."""
    return connection.execute(
        "DELETE FROM delivery WHERE message BETWEEN ? AND ?"
        " AND message NOT IN (SELECT value FROM json_each(?))",
        (gone[0], gone[-1], as_json(pinned)),
    ).rowcount


def _forget(connection: sqlite3.Connection, gone: list[int]) -> None:
    """Remove what features keep of these messages."""
    keys = as_json(gone)
    for table in TABLES:
        table.sqlite.forget(connection, keys)


def _take_off(connection: sqlite3.Connection, page: MessagePage, gone: Collection[int]) -> None:
    connection.execute("DELETE FROM page WHERE first = ?", (page.first,))
    rest = page.without(gone)
    if rest is not None:
        connection.execute(
            "INSERT INTO page (first, last, count, crc, body) VALUES (?, ?, ?, ?, ?)",
            (rest.first, rest.last, rest.count, crc32(rest.body), rest.body),
        )


def retire_keys(connection: sqlite3.Connection, *, before: int) -> Forgotten:
    """Delete idempotency keys from before a time, as many as one step may."""
    keys = connection.execute(
        "DELETE FROM idempotency WHERE (app, key) IN"
        " (SELECT app, key FROM idempotency WHERE at < ? ORDER BY at LIMIT ?)",
        (before, ROWS_PER_STEP),
    ).rowcount
    return Forgotten(keys=keys, next=0 if keys == ROWS_PER_STEP else None)


def retire_events(connection: sqlite3.Connection, *, keep: int) -> Forgotten:
    """Delete pages of events that are exported, as many as one step may; the newest `keep` events
    stay."""
    pages = connection.execute(
        "SELECT event_page.first, event_page.count FROM event_page, meta"
        " WHERE event_page.first + event_page.count <= min(exported_to, next_event - ?)"
        " ORDER BY event_page.first LIMIT ?",
        (keep, EVENT_PAGES_PER_STEP),
    ).fetchall()
    if pages:
        connection.execute("DELETE FROM event_page WHERE first <= ?", (pages[-1][0],))
    return Forgotten(
        events=sum(count for _, count in pages),
        next=0 if len(pages) == EVENT_PAGES_PER_STEP else None,
    )


def erase_deliveries(connection: sqlite3.Connection, device: int, *, start: int) -> Forgotten:
    """Erase a device's deliveries in one step from message `start` on, with messages that were for
    it alone."""
    ahead = connection.execute(
        "SELECT message FROM delivery WHERE message >= ? ORDER BY message LIMIT 1 OFFSET ?",
        (start, ROWS_PER_STEP),
    ).fetchone()
    # A message is never split between steps, however many deliveries it has.
    end: int | None = ahead[0] + 1 if ahead else None
    until = end if end is not None else 2**63 - 1
    theirs = connection.execute(
        "DELETE FROM delivery WHERE message >= ? AND message < ? AND device = ? RETURNING message",
        (start, until, device),
    ).fetchall()
    alone = connection.execute(
        "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT message FROM fanout)"
        " AND NOT EXISTS (SELECT 1 FROM delivery WHERE message = value) ORDER BY value",
        (as_json(message for (message,) in theirs),),
    )
    gone = [message for (message,) in alone]
    if end is None:
        made = [key for table in TABLES for key in table.sqlite.made_for(connection, device)]
        gone = sorted([*gone, *made])
    _forget(connection, gone)
    _erase_messages(connection, gone)
    return Forgotten(messages=len(gone), deliveries=len(theirs), next=end)


def _erase_messages(connection: sqlite3.Connection, keys: list[int]) -> None:
    """Remove these messages, in ascending order of key, from their pages."""
    while keys:
        page = page_of(connection, keys[0])
        if page is None:
            keys = keys[1:]
            continue
        _take_off(connection, page, frozenset(keys))
        keys = [key for key in keys if key > page.last]
