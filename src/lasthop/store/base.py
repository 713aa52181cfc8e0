"""The contract of a store: what the core may rely on, whichever driver is underneath.

A `Reader` answers questions and may be used by one thread at a time; a `Store` is a reader that
also writes, and is owned by one thread. The contract suite in `tests/store` runs over every driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from operator import lt
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from lasthop.clock import Micros
from lasthop.errors import StoreBroken
from lasthop.message import Message
from lasthop.store.commit import Commit, DeliveryRow, DeviceRow, KeyRow, Restored

Row = TypeVar("Row")

RECENT_KEYS = 10_000
"""How many idempotency keys `open` hands to the core: retries mostly come within seconds, and older
keys are found with `find_keys`. At some 200 bytes each they cost the core 2 MB."""


class Durability(StrEnum):
    """The kind of failure that an applied commit survives."""

    FULL = "full"
    """Commits survive a loss of power. Only with this setting does "accepted means durable"
    hold."""
    RELAXED = "relaxed"
    """Commits survive `kill -9`, but not a loss of power: for benchmarks and throw-away set-ups."""


class EventPage(msgspec.Struct, frozen=True):
    """Consecutive events as they were committed: `count` JSON lines, from offset `first` on."""

    first: int
    count: int
    lines: bytes

    @property
    def end(self) -> int:
        """The offset after the last event of the page."""
        return self.first + self.count

    def starting_at(self, offset: int) -> EventPage:
        """Return the rest of this page from `offset` on; the page itself if it starts there."""
        if offset <= self.first:
            return self
        rest = self.lines.split(b"\n", offset - self.first)[-1]
        return EventPage(offset, self.end - offset, rest)


class Forgotten(msgspec.Struct):
    """What one bounded step of `retire` or `erase_device` removed.

    The work continues with another call that has `start=next`, until `next` is None. Between two
    steps commits may be applied, so that forgetting a lot delays no commit.
    """

    messages: int = 0
    deliveries: int = 0
    keys: int = 0
    events: int = 0
    next: int | None = None


class Counts(msgspec.Struct):
    """How many rows of each kind a store holds."""

    messages: int
    open_deliveries: dict[int, int]
    """The number of open deliveries by state."""
    finished_deliveries: dict[int, int]
    """The number of finished deliveries by state."""
    devices: int
    sessions: int
    keys: int
    fanouts: int
    credentials: int
    events: int
    rows: dict[str, int] = {}
    """The number of rows of each feature's tables, by the name that the feature gives them."""


class Reader(Protocol):
    """Answers questions about the commits that were applied."""

    def messages(self, keys: Iterable[int]) -> dict[int, Message]:
        """Return the messages with these keys; those that were removed are left out."""
        ...

    def deliveries(self, message: int) -> list[DeliveryRow]:
        """Return all deliveries of a message, in ascending order of device."""
        ...

    def delivered_to(self, device: int, messages: Iterable[int]) -> set[int]:
        """Return those of these messages of which the device has or had a delivery."""
        ...

    def all_deliveries(self) -> Iterator[DeliveryRow]:
        """Yield every delivery, in ascending order of message and device.

        The deliveries are those of one moment: when the first is taken.
        """
        ...

    def find_keys(self, app: str, keys: Iterable[str]) -> dict[str, KeyRow]:
        """Return the rows of those of these idempotency keys that the app has used, by key."""
        ...

    def find(self, kind: type[Row], keys: Iterable[Any]) -> dict[Any, Row]:
        """Return the rows of one kind under these keys, finished ones included: a `GroupMessageRow`
        or a `StreamRow` by message, a `KnownPush` by push id."""
        ...

    def device(self, app: str, name: str) -> DeviceRow | None:
        """Return the device with this name, the newest if there were several; None if there is
        none."""
        ...

    def events(self, first: int, limit_bytes: int) -> list[EventPage]:
        """Return consecutive pages of events; the first page starts with offset `first`.

        As many pages as fit into `limit_bytes`, but at least one if there is any. If the event at
        `first` was dropped already, the pages start with the oldest event that is left.
        """
        ...

    def event_at(self, offset: int) -> bytes | None:
        """Return one event's line, without its newline; None when it was dropped or does not exist
        yet."""
        ...

    def exported_to(self) -> int:
        """Return the offset below which all events have been exported."""
        ...

    def counts(self) -> Counts:
        """Return how many rows there are, for checks and metrics; takes time on a large store."""
        ...

    def backup(self, path: Path) -> None:
        """Write a consistent copy to `path`, which must not exist, while the store is in use."""
        ...

    def close(self) -> None:
        """Release files and locks. Closing twice is allowed."""
        ...


class Store(Reader, Protocol):
    """Makes commits durable and returns everything after a restart."""

    def open(self) -> Restored:
        """Start a new boot. The iterables in `Restored` are read before the first `apply`."""
        ...

    def apply(self, *commits: Commit) -> None:
        """Write these commits, all or none; they are durable when this returns.

        A commit belongs to the store from the moment it is handed over until this returns: nobody
        changes it or its rows. A row replaces the one with the same key, but a removed device takes
        its session with it and stays removed, a fan-out that is done is dropped, a reply counts
        only for a delivery that exists and has none, and messages are only ever added. What removes
        the row of a feature is documented with the row.

        Raises `StoreFull` when there is no room; then nothing was written, and the same commits may
        be applied again later. Raises `StoreBroken` when the numbering has a gap, or when the store
        can no longer be trusted to write.
        """
        ...

    def exported(self, until: int) -> None:
        """Remember durably that all events below `until` are exported; the offset never moves
        back."""
        ...

    def retire(
        self,
        *,
        messages_before: Micros,
        keys_before: Micros,
        keep_events: int = 0,
        start: int = 0,
    ) -> Forgotten:
        """Remove old rows, one bounded step.

        This removes a message accepted before `messages_before` with no open delivery and no
        unfinished fan-out, that no feature still needs, with its deliveries and what features keep
        of it; an idempotency key from before `keys_before`; a page of events that is exported and
        not among the newest `keep_events`.
        """
        ...

    def erase_device(self, device: int, *, start: int = 0) -> Forgotten:
        """Remove a device, one bounded step: its row, session and deliveries.

        A message that went to this device alone is removed too. After the last step no file of the
        store holds the body of such a message.
        """
        ...

    def reader(self) -> Reader:
        """Return a reader of the same store for another thread."""
        ...


def check_sequence(
    commits: Sequence[Commit], *, next_commit: int, next_event: int, last_key: int
) -> None:
    """Raise StoreBroken for commits that do not continue where the last one ended: a gap means a
    lost commit."""
    for commit in commits:
        if commit.n != next_commit:
            raise StoreBroken("commits must be consecutive", expected=next_commit, got=commit.n)
        if commit.event_count and commit.first_event != next_event:
            raise StoreBroken(
                "events must be consecutive", expected=next_event, got=commit.first_event
            )
        if commit.messages:
            keys = [message.key for message in commit.messages]
            if keys[0] <= last_key or not all(map(lt, keys, keys[1:])):
                raise StoreBroken("message keys must ascend", last=last_key, commit=commit.n)
            last_key = keys[-1]
        next_commit += 1
        next_event += commit.event_count
