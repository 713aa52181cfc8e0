"""Every driver of the store, behind one fixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lasthop.store.base import Store
from lasthop.store.commit import Restored
from lasthop.store.memory import MemoryStore
from lasthop.store.sqlite import SqliteStore


class Driver:
    """A store that can be restarted."""

    def __init__(self, store: Store, next_life: Callable[[Store], Store]) -> None:
        self.store = store
        self.restored = store.open()
        self._next_life = next_life

    def restart(self) -> Restored:
        self.store = self._next_life(self.store)
        self.restored = self.store.open()
        return self.restored


def memory_driver() -> Driver:
    def next_life(store: Store) -> Store:
        assert isinstance(store, MemoryStore)
        return store.crash()

    return Driver(MemoryStore(incarnation=7), next_life)


def sqlite_driver(directory: Path) -> Driver:
    def next_life(store: Store) -> Store:
        store.close()
        return SqliteStore(directory)

    return Driver(SqliteStore(directory, incarnation=7), next_life)


@pytest.fixture(params=["memory", "sqlite"])
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driver]:
    driver = memory_driver() if request.param == "memory" else sqlite_driver(tmp_path / "data")
    yield driver
    driver.store.close()


@pytest.fixture
def store(driver: Driver) -> Store:
    return driver.store
