"""The keys of messages that the application is done with, so that a message that is sent again in a
new epoch is recognised."""

from __future__ import annotations

from collections.abc import Iterable


class KeyMemory:
    """Remembers at least the last `limit` keys, at most twice as many.

    The keys are in two generations: when the young generation is full, the old one is forgotten as
    a whole. Forgetting so costs nothing for each key, and an inbox can forget in the same steps.
    """

    __slots__ = ("_added", "_limit", "_old", "_young", "generation")

    def __init__(
        self,
        limit: int,
        *,
        generation: int = 0,
        old: Iterable[int] = (),
        young: Iterable[int] = (),
    ) -> None:
        self._limit = limit
        self._old = set(old)
        self._young = set(young)
        self._added: list[int] = []
        self.generation = generation

    def __contains__(self, key: int) -> bool:
        return key in self._young or key in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def add(self, key: int) -> None:
        """Remember a key; forget the old generation if the young one is full."""
        self._young.add(key)
        self._added.append(key)
        if len(self._young) >= self._limit:
            self._old = self._young
            self._young = set()
            self.generation += 1

    def take_added(self) -> list[int]:
        """Return the keys that were added since the last call."""
        added, self._added = self._added, []
        return added
