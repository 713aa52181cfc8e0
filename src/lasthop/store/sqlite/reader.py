"""Reading a store's file, by its owner or beside it."""

from __future__ import annotations

import sqlite3
from base64 import b64encode
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
from lasthop.store.bonds import BondRow
from lasthop.store.commit import (
    DeliveryRow,
    DeviceRow,
    KeyRow,
    KnownPush,
    OpenMessage,
    OpenPush,
    PushRow,
)
from lasthop.store.sqlite.backup import copy_into
from lasthop.store.sqlite.bonds import find_bonds
from lasthop.store.sqlite.connection import FILE_NAME, connect, store_errors
from lasthop.store.sqlite.lines import unpack
from lasthop.store.sqlite.migrations import check_version, version_of
from lasthop.store.sqlite.pages import Page
from lasthop.store.sqlite.ranked import rerank
from lasthop.store.sqlite.streams import find_stream
from lasthop.store.streams import StreamRow

BATCH = 4096
"""Rows that are read at a time where there may be millions."""

Row = TypeVar("Row")

_delivery = msgspec.json.Decoder(DeliveryRow)
_key = msgspec.json.Decoder(KeyRow)
_push = msgspec.json.Decoder(PushRow)
_pair = msgspec.json.Decoder(tuple[str, str | None])


class SqliteReader:
    """Answers questions about a store; see `Reader` for what the methods promise."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    @classmethod
    def beside(cls, directory: Path) -> SqliteReader:
        """Read the store in this data directory, whether or not a gateway is using it."""
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
                rerank(self._connection, found)
        return found

    def deliveries(self, message: int) -> list[DeliveryRow]:
        sql = "SELECT row FROM delivery WHERE message = ? ORDER BY device"
        return [_delivery.decode(row) for (row,) in self._all(sql, message)]

    def all_deliveries(self) -> Iterator[DeliveryRow]:
        with self._snapshot() as view:
            for row in view._stream("SELECT row FROM delivery ORDER BY message, device"):
                yield _delivery.decode(row)

    def open_messages(self) -> Iterator[OpenMessage]:
        """The messages that have open deliveries or are still fanned out, in ascending order of
        key."""
        with self._snapshot() as view:
            yield from view._open_messages()

    @contextmanager
    def _snapshot(self) -> Iterator[SqliteReader]:
        """A connection of its own, for which nothing changes while commits are applied."""
        with closing(SqliteReader.beside(self._path.parent)) as view:
            view._connection.execute("BEGIN")
            yield view

    def _open_messages(self) -> Iterator[OpenMessage]:
        sql = "SELECT row FROM delivery WHERE open ORDER BY message, device"
        pending: list[tuple[int, list[DeliveryRow]]] = []
        rows = (_delivery.decode(row) for row in self._stream(sql))
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

    def find_bonds(self, messages: Iterable[int]) -> dict[int, BondRow]:
        with store_errors():
            return find_bonds(self._connection, messages)

    def find_pushes(self, ids: Iterable[bytes]) -> dict[bytes, KnownPush]:
        sql = """SELECT id, message, row FROM push
            WHERE id IN (SELECT value FROM json_each(?))"""
        wanted = {b64encode(i).decode(): i for i in ids}
        rows = self._all(sql, msgspec.json.encode(list(wanted)).decode())
        return {
            wanted[text]: KnownPush(message, None if row is None else _push.decode(row))
            for text, message, row in rows
        }

    def open_pushes(self) -> Iterator[OpenPush]:
        """The pushes whose message is open or that have something to report, in ascending order of
        message."""
        with self._snapshot() as view:
            sql = """SELECT json_array(push.row, delivery.row) FROM push
                LEFT JOIN delivery ON delivery.message = push.message AND NOT delivery.open
                WHERE push.row IS NOT NULL AND push.message IN (
                SELECT message FROM delivery WHERE open UNION SELECT message FROM fanout
                UNION SELECT message FROM notification)
                ORDER BY push.message, delivery.device"""
            pairs = map(_pair.decode, view._stream(sql))
            for text, group in groupby(pairs, key=itemgetter(0)):
                ended = [_delivery.decode(row) for _, row in group if row is not None]
                yield OpenPush(_push.decode(text), ended)

    def stream(self, key: int) -> StreamRow | None:
        with store_errors():
            return find_stream(self._connection, key)

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
            (SELECT count(*) FROM credential), (SELECT ifnull(sum(count), 0) FROM event_page),
            (SELECT count(*) FROM push), (SELECT count(*) FROM notification),
            (SELECT count(*) FROM address)"""
        messages, devices, sessions, keys, fanouts, credentials, events, *more = self._all(sql)[0]
        pushes, notifications, addresses = more
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
            pushes=pushes,
            notifications=notifications,
            addresses=addresses,
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

    def _rows(self, table: str, kind: type[Row], order: str) -> list[Row]:
        """A whole table that is kept in memory anyway."""
        decode = msgspec.json.Decoder(kind).decode
        return [decode(row) for (row,) in self._all(f"SELECT row FROM {table} ORDER BY {order}")]

    def _stream(self, sql: str) -> Iterator[str]:
        with store_errors():
            cursor = self._connection.execute(sql)
            while batch := cursor.fetchmany(BATCH):
                for (row,) in batch:
                    yield row


def page_of(connection: sqlite3.Connection, key: int) -> Page | None:
    """The page that has the message with this key, if any has."""
    row = connection.execute(
        "SELECT first, last, count, body FROM page WHERE first <= ? ORDER BY first DESC LIMIT 1",
        (key,),
    ).fetchone()
    page = Page(*row) if row is not None else None
    return page if page is not None and key <= page.last else None
