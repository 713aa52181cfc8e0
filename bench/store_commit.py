"""Compares ways to write a commit: row by row, table by table, or in one statement.

    python -m bench.store_commit --messages 500 --commits 40

Every message is inserted with its delivery, its device's session and two events; the next commit
updates the delivery. A thread writes as fast as it can, first beside an idle main thread, then
beside one that runs Python all the time, as an event loop under load does. `main` is the share of
the time in which the main thread ran; the writer, or another process, took the rest.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import msgspec

from lasthop.events import Event, Kind
from lasthop.message import KeyMaker, Message, Target, TargetKind
from lasthop.store.base import Durability
from lasthop.store.commit import Commit, DeliveryRow, SessionRow
from lasthop.store.sqlite import SqliteStore
from lasthop.store.sqlite.connection import transaction
from lasthop.store.sqlite.lines import pack
from lasthop.store.sqlite.pages import cut_into_pages

NOW = 1_763_200_000_000_000
DEVICES = 1000
COLUMNS = DeliveryRow.__struct_fields__

encode_json = msgspec.json.Encoder().encode
encode_msgpack = msgspec.msgpack.Encoder().encode

Write = Callable[[SqliteStore, Commit], None]


def row_by_row(store: SqliteStore, commit: Commit) -> None:
    """Write a commit with a column for each field, and `executemany`."""
    connection = store._connection
    update = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[2:])
    with transaction(connection):
        connection.executemany(
            "INSERT INTO bench_message VALUES (?, ?)",
            [(message.key, encode_msgpack(message)) for message in commit.messages],
        )
        connection.executemany(
            f"INSERT INTO bench_delivery VALUES ({', '.join('?' * len(COLUMNS))})"
            f" ON CONFLICT DO UPDATE SET {update}",
            [msgspec.structs.astuple(row) for row in commit.deliveries],
        )
        connection.executemany(
            "INSERT OR REPLACE INTO bench_session VALUES (?, ?, ?)",
            [(row.device, row.epoch, encode_json(row)) for row in commit.sessions.values()],
        )
        finish(connection, commit)


def table_by_table(store: SqliteStore, commit: Commit) -> None:
    """Write a commit with one statement for each table, which takes its rows from one JSON text."""
    connection = store._connection
    with transaction(connection):
        connection.executemany(
            "INSERT INTO page (first, last, count, body) VALUES (?, ?, ?, ?)",
            [
                (page.first, page.last, page.count, page.body)
                for page in cut_into_pages(commit.messages)
            ],
        )
        connection.execute(
            "INSERT INTO delivery (message, device, open, row)"
            " SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[3]', value"
            " FROM json_each(?) WHERE true"
            " ON CONFLICT DO UPDATE SET open = excluded.open, row = excluded.row",
            (encode_json(commit.deliveries).decode(),),
        )
        connection.execute(
            "INSERT INTO session (device, row) SELECT value ->> '$[0]', value"
            " FROM json_each(?) WHERE true ON CONFLICT DO UPDATE SET row = excluded.row",
            (encode_json(list(commit.sessions.values())).decode(),),
        )
        finish(connection, commit)


def one_statement(store: SqliteStore, commit: Commit) -> None:
    """Write a commit as the store's driver does, in one statement."""
    store.apply(commit)


def finish(connection: sqlite3.Connection, commit: Commit) -> None:
    connection.execute(
        "INSERT INTO event_page (first, count, lines) VALUES (?, ?, ?)",
        (commit.first_event, commit.event_count, pack(commit.events)),
    )
    connection.execute("UPDATE meta SET next_commit = ?", (commit.n + 1,))


def create_tables(store: SqliteStore) -> None:
    """Create the tables that `row_by_row` needs."""
    columns = ", ".join(f"{name} INTEGER NOT NULL" for name in COLUMNS)
    for statement in (
        "CREATE TABLE bench_message (key INTEGER PRIMARY KEY, body BLOB)",
        f"CREATE TABLE bench_delivery ({columns}, PRIMARY KEY (message, device)) WITHOUT ROWID",
        "CREATE INDEX bench_open ON bench_delivery (message, device) WHERE open",
        "CREATE TABLE bench_session (device INTEGER PRIMARY KEY, epoch INTEGER, rest BLOB)",
    ):
        store._connection.execute(statement)


def make_commits(number: int, size: int, body: int) -> list[Commit]:
    keys = KeyMaker(node=0, after=0, random64=lambda: 2**63)
    commits: list[Commit] = []
    events = 0
    previous: list[Message] = []
    for n in range(1, number + 1):
        commit = Commit(n=n, first_event=events, events=bytearray())
        now = NOW + n * 5_000
        for i in range(size):
            target = Target(TargetKind.DEVICE, f"device-{i % DEVICES}")
            message = Message(
                keys.key(now), keys.salt(), "app", "bench", target, now, os.urandom(body)
            )
            commit.messages.append(message)
        for state, messages in ((0, commit.messages), (7, previous)):
            for i, message in enumerate(messages):
                device = i % DEVICES
                commit.deliveries.append(
                    DeliveryRow(message.key, device, state, state < 7, 1, n, 1, now, events)
                )
                commit.sessions[device] = SessionRow(device, 1, n, n, n, 0, n)
                kind = Kind.DELIVERED if state else Kind.ACCEPTED
                event = Event(
                    1, "gateway", 1, events, now, kind, "app", f"device-{device}", n, message.key
                )
                commit.events += encode_json(event) + b"\n"
                events += 1
        commit.event_count = events - commit.first_event
        previous = commit.messages
        commits.append(commit)
    return commits


class Measured(NamedTuple):
    seconds: float
    processor: float
    """Seconds of processor time of the writing thread."""
    main: float
    """Share of the time in which the main thread ran."""


def spin() -> None:
    """Do a little work in pure Python."""
    x = 0
    for i in range(1000):
        x += i * i % 7


def measure(
    write: Write, commits: list[Commit], durability: Durability, *, busy: bool, place: Path | None
) -> Measured:
    with tempfile.TemporaryDirectory(prefix="lasthop-bench-", dir=place) as directory:
        store = SqliteStore(Path(directory), durability=durability)
        store.open()
        create_tables(store)
        took: list[tuple[float, float]] = []

        def run() -> None:
            start, processor = time.perf_counter(), time.thread_time()
            for commit in commits:
                write(store, commit)
            took.append((time.perf_counter() - start, time.thread_time() - processor))

        writer = Thread(target=run)
        writer.start()
        start, processor = time.perf_counter(), time.thread_time()
        while busy and writer.is_alive():
            spin()
        main = (time.thread_time() - processor) / (time.perf_counter() - start)
        writer.join()
        store.close()
        ((seconds, processor),) = took
        return Measured(seconds, processor, main)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=500, help="messages in a commit")
    parser.add_argument(
        "--commits",
        type=int,
        default=40,
        help="number of commits; beside a busy thread each may take seconds",
    )
    parser.add_argument("--body", type=int, default=256, help="bytes of a message's body")
    parser.add_argument("--durability", type=Durability, default=Durability.FULL)
    parser.add_argument(
        "--in",
        type=Path,
        dest="place",
        help="directory for the stores; the results depend on its disk",
    )
    arguments = parser.parse_args()

    commits = make_commits(arguments.commits, arguments.messages, arguments.body)
    total = arguments.commits * arguments.messages
    print(
        f"{total:,} messages of {arguments.body} bytes in commits of {arguments.messages},"
        f" durability={arguments.durability}, SQLite {sqlite3.sqlite_version}"
    )
    print(f"{'way':16} {'main thread':22} {'messages/s':>11} {'µs cpu each':>12} {'main':>6}")
    for busy, interval in ((False, 0.005), (True, 0.005), (True, 0.0005)):
        sys.setswitchinterval(interval)
        beside = f"busy, switch {interval * 1000:g} ms" if busy else "idle"
        for write in (row_by_row, table_by_table, one_statement):
            result = measure(write, commits, arguments.durability, busy=busy, place=arguments.place)
            print(
                f"{write.__name__:16} {beside:22} {total / result.seconds:11,.0f}"
                f" {result.processor / total * 1e6:12.2f}"
                + (f" {result.main:6.0%}" if busy else "")
            )


if __name__ == "__main__":
    main()
