"""A look at what a store in memory keeps for a feature."""

from __future__ import annotations

from typing import Any, TypeVar

from lasthop.store.memory import MemoryStore
from lasthop.store.tables.base import MemoryTable

Table = TypeVar("Table", bound=MemoryTable[Any])


def rows_of(store: MemoryStore, kind: type[Table]) -> Table:
    """The rows of one feature."""
    (found,) = (table for table in store._kept.features.values() if isinstance(table, kind))
    return found
