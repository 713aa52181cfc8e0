"""A surrogate's durable state: a mapping whose changes take effect only if the input succeeds.

Each entry is stored by itself, so that a change costs what the entry costs, not what the state
costs. Values are those of msgpack: None, booleans, numbers, text, bytes, lists and dictionaries. A
value that was read may be changed in place: the difference is found at the end of the input.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import msgspec

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

GONE = b""
"""The encoding that stands for a deleted entry: no real value has an empty encoding."""

ENTRY_COST = 32
"""Bytes that an entry takes besides its name and value, roughly."""


class StateTooLarge(Exception):
    """An input would make the surrogate's state larger than its limit."""


class StateLedger:
    """All entries of a surrogate's state, and the changes that the present input has made."""

    def __init__(self, entries: dict[str, bytes], *, limit: int) -> None:
        self._entries = dict(entries)
        self._size = sum(map(entry_size, entries.keys(), entries.values()))
        self._limit = limit
        self._open: dict[str, Any] = {}
        """Values that the input has read or set; a deleted one is not among them."""
        self._deleted: set[str] = set()

    def get(self, name: str) -> Any:
        """Return the value of an entry, which may be changed in place. Raises KeyError."""
        if name in self._open:
            return self._open[name]
        if name in self._deleted:
            raise KeyError(name)
        value = self._open[name] = _decode(self._entries[name])
        return value

    def set(self, name: str, value: object) -> None:
        """Set the value of an entry."""
        self._deleted.discard(name)
        self._open[name] = value

    def delete(self, name: str) -> None:
        """Delete an entry. Raises KeyError if there is none."""
        if name not in self:
            raise KeyError(name)
        self._open.pop(name, None)
        self._deleted.add(name)

    def __contains__(self, name: str) -> bool:
        return name in self._open or (name in self._entries and name not in self._deleted)

    def names(self, prefix: str) -> list[str]:
        """Return all names with this prefix in order; this looks at every entry."""
        found = {n for n in self._entries if n not in self._deleted} | self._open.keys()
        return sorted(name for name in found if name.startswith(prefix))

    def has_room(self, size: int) -> bool:
        """Return whether one more entry of this many bytes is likely to fit."""
        return self._size + size + ENTRY_COST <= self._limit

    def changes(self) -> dict[str, bytes]:
        """Return the encoded changes of the input. Raises StateTooLarge."""
        changes = {name: GONE for name in self._deleted if name in self._entries}
        for name, value in self._open.items():
            encoded = _encode(value)
            if self._entries.get(name) != encoded:
                changes[name] = encoded
        size = size_after(self._entries, self._size, changes)
        if size > self._limit:
            raise StateTooLarge(f"the state would have {size} bytes; the limit is {self._limit}")
        return changes

    def keep(self, changes: dict[str, bytes]) -> None:
        """Apply the changes of an input that succeeded."""
        self._size = size_after(self._entries, self._size, changes)
        apply(self._entries, changes)
        self.forget()

    def forget(self) -> None:
        """Forget the changes of an input that failed, or is over."""
        self._open = {}
        self._deleted = set()


class State(MutableMapping[str, Any]):
    """The entries of a surrogate's state under one prefix, as a mapping."""

    def __init__(self, ledger: StateLedger, prefix: str) -> None:
        self._ledger = ledger
        self._prefix = prefix

    def __getitem__(self, name: str) -> Any:
        return self._ledger.get(self._named(name))

    def __setitem__(self, name: str, value: object) -> None:
        self._ledger.set(self._named(name), value)

    def __delitem__(self, name: str) -> None:
        self._ledger.delete(self._named(name))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._prefix + name in self._ledger

    def __iter__(self) -> Iterator[str]:
        cut = len(self._prefix)
        return iter([name[cut:] for name in self._ledger.names(self._prefix)])

    def __len__(self) -> int:
        return len(self._ledger.names(self._prefix))

    def has_room(self, size: int) -> bool:
        """Return whether one more entry of this many bytes is likely to fit."""
        return self._ledger.has_room(size)

    def _named(self, name: str) -> str:
        if not isinstance(name, str):
            raise TypeError(f"names of the state must be text, not {type(name).__name__}")
        return self._prefix + name


def entry_size(name: str, value: bytes) -> int:
    """Return the size in bytes with which an entry counts towards the limit of the state."""
    return len(name) + len(value) + ENTRY_COST


def size_after(entries: dict[str, bytes], size: int, changes: dict[str, bytes]) -> int:
    """Return the size of the entries after these changes, given their present size."""
    for name, value in changes.items():
        if name in entries:
            size -= entry_size(name, entries[name])
        if value != GONE:
            size += entry_size(name, value)
    return size


def apply(entries: dict[str, bytes], changes: dict[str, bytes]) -> None:
    """Apply changes to the entries in place."""
    for name, value in changes.items():
        if value == GONE:
            entries.pop(name, None)
        else:
            entries[name] = value
