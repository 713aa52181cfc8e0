"""What a device's durable memory has to do: one contract, whatever keeps it.

An inbox holds received messages that are not finished, messages for the gateway, the session's
state and the keys of past messages. A transaction makes a session's `Change` durable, and with it
whatever a handler did in the same transaction: all of it or nothing, also across `kill -9` and
power loss. An inbox belongs to one thread at a time.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from lasthop.device.change import Change, InboxContents


class Transaction(Protocol):
    """Work that becomes durable together."""

    def get(self, name: str) -> bytes | None:
        """What was put under this name: an output file's length, a total, a position."""
        ...

    def put(self, name: str, value: bytes) -> None:
        """Keep a value under a name, in place of an earlier one."""
        ...

    def apply(self, change: Change) -> None:
        """Make a session's change part of it; for the SDK itself."""
        ...

    def attempt(self) -> AbstractContextManager[None]:
        """A part that is undone by itself when it raises."""
        ...


class Inbox(Protocol):
    """The durable memory of one device."""

    def load(self) -> InboxContents:
        """All that was committed."""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Work that is durable when the block ends, and undone when it raises."""
        ...

    def apply(self, change: Change) -> None:
        """A transaction with nothing but a change.

        Raises StoreFull or StoreBroken, and then has done nothing.
        """
        ...

    def close(self) -> None:
        """Give back what it holds open."""
        ...
