"""The interface of a device's durable inbox, whatever stores it.

An inbox holds received messages that are not finished, messages for the gateway, the session's
state and the keys of past messages. A transaction makes a session's `Change` durable, together with
a handler's work in the same transaction: all of it or nothing, also across `kill -9` and power
loss. An inbox belongs to one thread at a time.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from lasthop.device.change import Change, InboxContents


class Transaction(Protocol):
    """Writes to the inbox that become durable together."""

    def get(self, name: str) -> bytes | None:
        """Return the value that the application stored under a name (an output file's length, a
        total, a position), or None."""
        ...

    def put(self, name: str, value: bytes) -> None:
        """Store a value under a name, in place of an earlier one."""
        ...

    def apply(self, change: Change) -> None:
        """Write a session's change in this transaction; for the SDK itself."""
        ...

    def attempt(self) -> AbstractContextManager[None]:
        """Return a block within the transaction; if it raises, only its own writes are undone."""
        ...


class Inbox(Protocol):
    """The durable storage of one device's messages and session."""

    def load(self) -> InboxContents:
        """Return everything that was committed to the inbox."""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Return a block whose writes are durable when it ends, and undone if it raises."""
        ...

    def apply(self, change: Change) -> None:
        """Write a change in a transaction of its own.

        If it raises StoreFull or StoreBroken, nothing was written.
        """
        ...

    def close(self) -> None:
        """Close the files that the inbox holds open."""
        ...
