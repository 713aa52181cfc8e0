"""The tables of pushes, client addresses and notifications, in memory and in SQLite."""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec

from lasthop.store.commit import DeliveryRow
from lasthop.store.pushes import (
    AddressRow,
    KnownPush,
    NotificationRow,
    OpenPush,
    PushChanges,
    PushesRestored,
    PushRow,
)
from lasthop.store.tables.base import (
    THESE,
    MemoryTable,
    SqliteTable,
    StoreInMemory,
    as_json,
    joined,
)

if TYPE_CHECKING:
    from lasthop.store.sqlite.reader import SqliteReader


class PushesInMemory(MemoryTable[PushChanges]):
    """The rows of pushes, addresses and notifications in memory."""

    def __init__(self) -> None:
        self._addresses: dict[tuple[str, str], AddressRow] = {}
        self._pushes: dict[bytes, KnownPush] = {}
        self._push_of: dict[int, bytes] = {}
        """The push of each message that still has more than its push-id."""
        self.notifications: dict[tuple[int, int], NotificationRow] = {}

    def write(self, changes: PushChanges) -> None:
        for name, address in changes.addresses.items():
            self._addresses[name] = address
            if not address.target:
                del self._addresses[name]
        for push in changes.pushes.values():
            self._pushes[push.id] = KnownPush(push.message, copy(push))
            self._push_of[push.message] = push.id
        for at, notification in changes.notifications.items():
            self.notifications[at] = copy(notification)
            if notification.done:
                del self.notifications[at]

    def read(self, spine: StoreInMemory) -> PushesRestored:
        return PushesRestored(
            addresses=[copy(row) for _, row in sorted(self._addresses.items())],
            pushes=self._open(spine),
            notifications=[copy(row) for _, row in sorted(self.notifications.items())],
        )

    def _open(self, spine: StoreInMemory) -> list[OpenPush]:
        found: list[OpenPush] = []
        told = self.keeps()
        for message, push_id in sorted(self._push_of.items()):
            rows = spine.deliveries.get(message, {})
            row = self._pushes[push_id].row
            unfinished = message in spine.fanouts or any(row.open for row in rows.values())
            if row is not None and (unfinished or message in told):
                ended = [copy(r) for _, r in sorted(rows.items()) if not r.open]
                found.append(OpenPush(copy(row), ended))
        return found

    def find(self, keys: Iterable[bytes]) -> dict[bytes, KnownPush]:
        kept = self._pushes
        return {i: KnownPush(kept[i].message, copy(kept[i].row)) for i in keys if i in kept}

    def keeps(self) -> set[int]:
        return {message for message, _ in self.notifications}

    def forget(self, messages: Collection[int]) -> None:
        """Keep only the ids of the pushes of these messages, and drop their notifications."""
        for message in self._push_of.keys() & messages:
            self._pushes[self._push_of.pop(message)] = KnownPush(message, None)
        for at in [at for at in self.notifications if at[0] in messages]:
            del self.notifications[at]

    def counts(self) -> dict[str, int]:
        return {
            "pushes": len(self._pushes),
            "notifications": len(self.notifications),
            "addresses": len(self._addresses),
        }


_delivery = msgspec.json.Decoder(DeliveryRow)
_push = msgspec.json.Decoder(PushRow)

_DONE = f"$[{NotificationRow.__struct_fields__.index('done')}]"

# Indented as when it was released: SQLite keeps the text, and a step is never changed.
SCHEMA = (
    # Push-ids are kept for ever: a row of 60 bytes once `row` was removed with the message.
    """CREATE TABLE push (
                id TEXT PRIMARY KEY,
                message INTEGER NOT NULL,
                row TEXT) WITHOUT ROWID""",
    "CREATE INDEX push_message ON push (message) WHERE row IS NOT NULL",
    """CREATE TABLE notification (
                message INTEGER NOT NULL,
                place INTEGER NOT NULL,
                row TEXT NOT NULL,
                PRIMARY KEY (message, place)) WITHOUT ROWID""",
    """CREATE TABLE address (
                app TEXT NOT NULL,
                address TEXT NOT NULL,
                row TEXT NOT NULL,
                PRIMARY KEY (app, address)) WITHOUT ROWID""",
)


class PushesInSqlite(SqliteTable[PushChanges]):
    """The rows of pushes, addresses and notifications in SQLite."""

    counted = (("pushes", "push"), ("notifications", "notification"), ("addresses", "address"))
    columns = ("addresses", "pushes", "notifications")
    apply = f"""
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
            FROM json_each(NEW.notifications) WHERE value ->> '{_DONE}');"""
    keeps = "SELECT message FROM notification WHERE message BETWEEN ?1 AND ?2"

    def values(self, run: Sequence[PushChanges]) -> tuple[str, ...]:
        return (
            joined(changes.addresses.values() for changes in run),
            joined(changes.pushes.values() for changes in run),
            joined(changes.notifications.values() for changes in run),
        )

    def removes(self, changes: PushChanges) -> bool:
        return bool(changes.addresses or changes.notifications)

    def read(self, connection: sqlite3.Connection, reader: SqliteReader) -> PushesRestored:
        return PushesRestored(
            addresses=reader.rows("address", AddressRow, "app, address"),
            pushes=_open_pushes(reader),
            notifications=reader.rows("notification", NotificationRow, "message, place"),
        )

    def find(self, connection: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, KnownPush]:
        wanted = {b64encode(i).decode(): i for i in keys}
        sql = f"SELECT id, message, row FROM push WHERE id IN {THESE}"
        return {
            wanted[text]: KnownPush(message, None if row is None else _push.decode(row))
            for text, message, row in connection.execute(sql, (as_json(wanted),))
        }

    def forget(self, connection: sqlite3.Connection, messages: str) -> None:
        """Keep only the ids of the pushes of these messages, and drop their notifications."""
        for sql in (
            "UPDATE push SET row = NULL WHERE row IS NOT NULL AND message IN",
            "DELETE FROM notification WHERE message IN",
        ):
            connection.execute(f"{sql} {THESE}", (messages,))


def _open_pushes(reader: SqliteReader) -> Iterator[OpenPush]:
    """Yield the pushes whose message is open or that have a notification to send, in ascending
    order of message."""
    with reader.snapshot() as view:
        rows = view.each("""SELECT push.row, delivery.row FROM push
            LEFT JOIN delivery ON delivery.message = push.message AND NOT delivery.open
            WHERE push.row IS NOT NULL AND push.message IN (
            SELECT message FROM delivery WHERE open UNION SELECT message FROM fanout
            UNION SELECT message FROM notification)
            ORDER BY push.message, delivery.device""")
        for text, group in groupby(rows, key=itemgetter(0)):
            ended = [_delivery.decode(row) for _, row in group if row is not None]
            yield OpenPush(_push.decode(text), ended)
