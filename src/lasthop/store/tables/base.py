"""What a driver requires of the tables of a feature. Most features need only some of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from lasthop.message import Message
from lasthop.store.commit import DeliveryRow, FanoutRow

if TYPE_CHECKING:
    from lasthop.store.sqlite.reader import SqliteReader

Changes = TypeVar("Changes")

_json = msgspec.json.Encoder()

THESE = "(SELECT value FROM json_each(?))"
"""The SQL that yields the values of a list which `as_json` has encoded."""


class StoreInMemory(Protocol):
    """The part of a store in memory that the tables of features use."""

    deliveries: dict[int, dict[int, DeliveryRow]]
    fanouts: dict[int, FanoutRow]

    def read_messages(self, keys: Iterable[int]) -> dict[int, Message]:
        """Return copies of the messages with these keys."""
        ...


class MemoryTable(Generic[Changes]):
    """The rows of a feature in a store in memory."""

    def write(self, changes: Changes) -> None:
        """Write a feature's changes of one commit."""
        raise NotImplementedError

    def read(self, spine: StoreInMemory) -> object:
        """Return the feature's rows when the store is opened."""
        raise NotImplementedError

    def find(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """Return the rows under these keys that exist."""
        raise NotImplementedError

    def amend(self, messages: Mapping[int, Message]) -> None:
        """Update messages that were read from the store with the changes since they were
        accepted."""

    def keeps(self) -> Collection[int]:
        """Return the messages that are still needed, though they may have no open delivery."""
        return ()

    def made_for(self, device: int) -> list[int]:
        """Return the messages that are for this device alone, though they have no delivery."""
        return []

    def forget(self, messages: Collection[int]) -> None:
        """Remove what the feature keeps of these messages, which are being removed."""

    def retire(self, before: int) -> None:
        """Remove finished rows that belong to a key below `before`."""

    def counts(self) -> dict[str, int]:
        """Return the number of rows by name, for `Counts`."""
        return {}


class SqliteTable(Generic[Changes]):
    """The rows of a feature in SQLite; the methods are those of `MemoryTable`.

    A commit is one statement, which has a few columns for each feature. They are NULL unless the
    commit changes the feature, and otherwise taken apart by the statements in `apply`.
    """

    columns: ClassVar[tuple[str, ...]]
    apply: ClassVar[str]
    keeps: ClassVar[str] = ""
    """The SQL that selects the messages from ?1 to ?2 that are still needed."""
    counted: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Names for `counts`, each with the table that has the rows."""

    def values(self, run: Sequence[Changes]) -> tuple[str | bytes, ...]:
        """Return the columns for the changes of these commits, the earliest first."""
        raise NotImplementedError

    def removes(self, changes: Changes) -> bool:
        """Whether later commits must be written by another statement."""
        return True

    def read(self, connection: sqlite3.Connection, reader: SqliteReader) -> object:
        raise NotImplementedError

    def find(self, connection: sqlite3.Connection, keys: Iterable[Any]) -> dict[Any, Any]:
        raise NotImplementedError

    def amend(self, connection: sqlite3.Connection, messages: Mapping[int, Message]) -> None:
        pass

    def made_for(self, connection: sqlite3.Connection, device: int) -> list[int]:
        return []

    def forget(self, connection: sqlite3.Connection, messages: str) -> None:
        """Remove what the feature keeps of these messages, given `as_json`."""

    def retire(self, connection: sqlite3.Connection, before: int) -> None:
        pass


class Kept(NamedTuple):
    """How both drivers keep the rows of one feature."""

    changes: type[Any]
    memory: Callable[[], MemoryTable[Any]]
    sqlite: SqliteTable[Any]
    finds: type[Any] | None = None
    """The type of row that `Reader.find` looks up by key; None if the feature has none."""


def as_json(rows: Iterable[object]) -> str:
    """Encode rows for a statement, as one JSON array."""
    return _json.encode(list(rows)).decode()


def joined(of_commits: Iterable[Iterable[object]]) -> str:
    """Encode the rows of several commits, the earliest first, so that a later row wins."""
    return as_json(chain.from_iterable(of_commits))


def packed(parts: Iterable[tuple[tuple[int, ...], bytes]]) -> tuple[str, bytes]:
    """Encode parts for a statement: their bytes one after the other, and a JSON array that has, for
    each part, what it belongs to, its offset from 1 and its length."""
    index: list[tuple[int, ...]] = []
    bodies: list[bytes] = []
    offset = 1
    for owner, body in parts:
        index.append((*owner, offset, len(body)))
        bodies.append(body)
        offset += len(body)
    return as_json(index), b"".join(bodies)
