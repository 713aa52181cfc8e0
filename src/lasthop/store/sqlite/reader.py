"""Reads a store's file, for the store itself or beside it in another process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lasthop.errors import StoreBroken
from lasthop.message import Message
from lasthop.store.base import Counts, EventPage
from lasthop.store.commit import DeliveryRow, DeviceRow, KeyRow, OpenMessage
from lasthop.store.sqlite.backup import copy_into
from lasthop.store.sqlite.connection import FILE_NAME, connect, store_errors
from lasthop.store.sqlite.lines import unpack
from lasthop.store.sqlite.migrations import check_version, version_of
from lasthop.store.sqlite.pages import MessagePage
from lasthop.store.tables import TABLES
from lasthop.store.tables.base import THESE, as_json

BATCH = 4096
"""Rows that are read at a time where there may be millions."""

Row = TypeVar("Row")

_delivery = msgspec.json.Decoder(DeliveryRow)
_key = msgspec.json.Decoder(KeyRow)

_FINDING = {table.finds: table.sqlite for table in TABLES}


class SqliteReader:
    """Answers questions about a store; see `Reader` for what the methods promise."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    @classmethod
    def beside(cls, directory: Path) -> SqliteReader:
        """Return a reader of the store in this data directory, whether or not a gateway is using
        it."""
        path = directory / FILE_NAME
        if not path.exists():
            raise StoreBroken("there is no store in this directory", directory=str(directory))
        with store_errors():
            connection = connect(path, mode="ro")
            try:
                check_version(version_of(connection))
            except BaseException:
                connection.close()
                raise
            return cls(connection, path)

    def messages(self, keys: Iterable[int]) -> dict[int, Message]:
        found: dict[int, Message] = {}
        wanted = sorted(set(keys))
        start = 0
        with store_errors():
            while start < len(wanted):
                end = start + 1
                page = page_of(self._connection, wanted[start])
                if page is not None:
                    while end < len(wanted) and wanted[end] <= page.last:
                        end += 1
                    for message in page.find(wanted[start:end]):
                        found[message.key] = message
                start = end
            if found:
                for table in TABLES:
                    table.sqlite.amend(self._connection, found)
        return found

    def deliveries(self, message: int) -> list[DeliveryRow]:
        sql = "SELECT row FROM delivery WHERE message = ? ORDER BY device"
        return [_delivery.decode(row) for (row,) in self._all(sql, message)]

    def delivered_to(self, device: int, messages: Iterable[int]) -> set[int]:
        sql = f"SELECT message FROM delivery WHERE message IN {THESE} AND device = ?"
        with store_errors():
            rows = self._connection.execute(sql, (as_json(messages), device))
            return {message for (message,) in rows}

    def all_deliveries(self) -> Iterator[DeliveryRow]:
        with self.snapshot() as view:
            for (row,) in view.each("SELECT row FROM delivery ORDER BY message, device"):
                yield _delivery.decode(row)

    def open_messages(self) -> Iterator[OpenMessage]:
        """Yield the messages that have open deliveries or are still being fanned out, in ascending
        order of key."""
        with self.snapshot() as view:
            yield from view._open_messages()

    @contextmanager
    def snapshot(self) -> Iterator[SqliteReader]:
        """Yield a reader on a connection of its own, for which nothing changes while commits are
        applied."""
        with closing(SqliteReader.beside(self._path.parent)) as view:
            view._connection.execute("BEGIN")
            yield view

    def _open_messages(self) -> Iterator[OpenMessage]:
        sql = "SELECT row FROM delivery WHERE open ORDER BY message, device"
        pending: list[tuple[int, list[DeliveryRow]]] = []
        rows = (_delivery.decode(row) for (row,) in self.each(sql))
        delivered = ((row.message, row) for row in rows)
        fanned_out = ((key, None) for (key,) in self._all("SELECT message FROM fanout ORDER BY 1"))
        both = merge(delivered, fanned_out, key=itemgetter(0))
        for key, group in groupby(both, key=itemgetter(0)):
            pending.append((key, [row for _, row in group if row is not None]))
            if len(pending) == BATCH:
                yield from self._with_messages(pending)
                pending = []
        yield from self._with_messages(pending)

    def _with_messages(self, groups: list[tuple[int, list[DeliveryRow]]]) -> Iterator[OpenMessage]:
        messages = self.messages(key for key, _ in groups)
        for key, rows in groups:
            message = messages.get(key)
            if message is None:
                raise StoreBroken("an open delivery has no message", message=key)
            yield OpenMessage(message, rows)

    def find_keys(self, app: str, keys: Iterable[str]) -> dict[str, KeyRow]:
        sql = """SELECT row FROM idempotency WHERE app = ?
            AND key IN (SELECT value FROM json_each(?))"""
        wanted = msgspec.json.encode(list(keys)).decode()
        rows = (_key.decode(row) for (row,) in self._all(sql, app, wanted))
        return {row.key: row for row in rows}

    def find(self, kind: type[Row], keys: Iterable[Any]) -> dict[Any, Row]:
        with store_errors():
            return _FINDING[kind].find(self._connection, keys)

    def device(self, app: str, name: str) -> DeviceRow | None:
        sql = "SELECT row FROM device WHERE app = ? AND name = ? ORDER BY device DESC LIMIT 1"
        for (row,) in self._all(sql, app, name):
            return msgspec.json.decode(row, type=DeviceRow)
        return None

    def events(self, first: int, limit_bytes: int) -> list[EventPage]:
        sql = """SELECT first, count, lines FROM event_page
            WHERE first >= ifnull((SELECT max(first) FROM event_page WHERE first <= ?), 0)
            AND first + count > ? ORDER BY first"""
        pages: list[EventPage] = []
        size = 0
        with store_errors():
            cursor = self._connection.execute(sql, (first, first))
            for number, count, lines in cursor:
                page = EventPage(number, count, unpack(lines)).starting_at(first)
                size += len(page.lines)
                if pages and size > limit_bytes:
                    break
                pages.append(page)
            cursor.close()
        return pages

    def event_at(self, offset: int) -> bytes | None:
        sql = """SELECT first, count, lines FROM event_page
            WHERE first <= ? ORDER BY first DESC LIMIT 1"""
        for first, count, lines in self._all(sql, offset):
            if offset < first + count:
                page = EventPage(first, count, unpack(lines)).starting_at(offset)
                return page.lines.partition(b"\n")[0]
        return None

    def exported_to(self) -> int:
        return int(self._all("SELECT exported_to FROM meta")[0][0])

    def counts(self) -> Counts:
        states: dict[bool, dict[int, int]] = {True: {}, False: {}}
        place = f"$[{DeliveryRow.__struct_fields__.index('state')}]"
        sql = f"SELECT open, row ->> '{place}', count(*) FROM delivery GROUP BY 1, 2"
        for is_open, state, number in self._all(sql):
            states[bool(is_open)][state] = number
        sql = """SELECT (SELECT ifnull(sum(count), 0) FROM page),
            (SELECT count(*) FROM device), (SELECT count(*) FROM session),
            (SELECT count(*) FROM idempotency), (SELECT count(*) FROM fanout),
            (SELECT count(*) FROM credential), (SELECT ifnull(sum(count), 0) FROM event_page)"""
        messages, devices, sessions, keys, fanouts, credentials, events = self._all(sql)[0]
        counted = [pair for table in TABLES for pair in table.sqlite.counted]
        return Counts(
            messages=messages,
            open_deliveries=states[True],
            finished_deliveries=states[False],
            devices=devices,
            sessions=sessions,
            keys=keys,
            fanouts=fanouts,
            credentials=credentials,
            events=events,
            rows={name: self._all(f"SELECT count(*) FROM {of}")[0][0] for name, of in counted},
        )

    def backup(self, path: Path) -> None:
        if path.exists():
            raise StoreBroken("the backup's file exists already", path=str(path))
        with store_errors():
            copy_into(self._connection, path)

    def close(self) -> None:
        self._connection.close()

    def _all(self, sql: str, *values: int | str) -> list[tuple[Any, ...]]:
        with store_errors():
            return self._connection.execute(sql, values).fetchall()

    def rows(self, table: str, kind: type[Row], order: str) -> list[Row]:
        """Return all rows of a table, which are kept in memory anyway."""
        decode = msgspec.json.Decoder(kind).decode
        return [decode(row) for (row,) in self._all(f"SELECT row FROM {table} ORDER BY {order}")]

    def each(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query in batches, since there may be millions."""
        with store_errors():
            cursor = self._connection.execute(sql)
            while batch := cursor.fetchmany(BATCH):
                yield from batch


def page_of(connection: sqlite3.Connection, key: int) -> MessagePage | None:
    """Return the page with the message of this key; None if no page has it."""
    row = connection.execute(
        "SELECT first, last, count, body FROM page WHERE first <= ? ORDER BY first DESC LIMIT 1",
        (key,),
    ).fetchone()
    page = MessagePage(*row) if row is not None else None
    return page if page is not None and key <= page.last else None
