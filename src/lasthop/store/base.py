"""The contract of a store: what core may rely on, whichever driver is underneath.

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
"""How many idempotency keys `open` hands to core: retries mostly come within seconds, and the rest
are found with `find_keys`. At some 200 bytes each they cost core 2 MB."""


class Durability(StrEnum):
    """What an applied commit survives."""

    FULL = "full"
    """Loss of power. The only setting under which "accepted means durable" holds."""
    RELAXED = "relaxed"
    """`kill -9`, but not loss of power: for benchmarks and throw-away set-ups."""


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
        """The rest of this page from `offset` on; the page itself when that is where it starts."""
        if offset <= self.first:
            return self
        rest = self.lines.split(b"\n", offset - self.first)[-1]
        return EventPage(offset, self.end - offset, rest)


class Forgotten(msgspec.Struct):
    """What one bounded step of `retire` or `erase_device` removed.

    The work goes on with another call that has `start=next`, until `next` is None. Between two
    steps commits may be applied, so that forgetting a lot delays nobody.
    """

    messages: int = 0
    deliveries: int = 0
    keys: int = 0
    events: int = 0
    next: int | None = None


class Counts(msgspec.Struct):
    """How much a store holds."""

    messages: int
    open_deliveries: dict[int, int]
    """By state."""
    finished_deliveries: dict[int, int]
    """By state."""
    devices: int
    sessions: int
    keys: int
    fanouts: int
    credentials: int
    events: int
    rows: dict[str, int] = {}
    """Of features, by their names for them."""


class Reader(Protocol):
    """Answers questions about what has been applied."""

    def messages(self, keys: Iterable[int]) -> dict[int, Message]:
        """The messages with these keys; those that are gone are left out."""
        ...

    def deliveries(self, message: int) -> list[DeliveryRow]:
        """All deliveries of a message, in ascending order of device."""
        ...

    def all_deliveries(self) -> Iterator[DeliveryRow]:
        """Every delivery, in ascending order of message and device.

        They are those of one moment: when the first is taken.
        """
        ...

    def find_keys(self, app: str, keys: Iterable[str]) -> dict[str, KeyRow]:
        """The idempotency keys of an app that are known, by key."""
        ...

    def find(self, kind: type[Row], keys: Iterable[Any]) -> dict[Any, Row]:
        """Find the rows of one kind under these keys, also of what is over: a `GroupMessageRow` or
        a `StreamRow` by message, a `KnownPush` by push id."""
        ...

    def device(self, app: str, name: str) -> DeviceRow | None:
        """The device with this name; the newest, should there have been several."""
        ...

    def events(self, first: int, limit_bytes: int) -> list[EventPage]:
        """Consecutive pages from the event with offset `first` on, which starts the first page.

        As many as fit into `limit_bytes`, but at least one if there is any. If `first` has been
        dropped already, the oldest events that are left.
        """
        ...

    def event_at(self, offset: int) -> bytes | None:
        """One event's line, without its newline; None when it was dropped or is yet to come."""
        ...

    def exported_to(self) -> int:
        """All events below this offset have been exported."""
        ...

    def counts(self) -> Counts:
        """How much there is, for checks and metrics; takes time on a large store."""
        ...

    def backup(self, path: Path) -> None:
        """Write a consistent copy to `path`, which must not exist, while work goes on."""
        ...

    def close(self) -> None:
        """Let go of files and locks. Closing twice is allowed."""
        ...


class Store(Reader, Protocol):
    """Makes commits durable and gives everything back after a restart."""

    def open(self) -> Restored:
        """Start a new boot. The iterables in `Restored` are read before the first `apply`."""
        ...

    def apply(self, *commits: Commit) -> None:
        """Write these commits, all or none; they are durable when this returns.

        A commit belongs to the store from the moment it is handed over until this returns: nobody
        changes it or its rows. A row replaces the one with the same key, but a removed device
        takes its session with it and stays removed, a fan-out that is done is dropped, a reply
        counts only for a delivery that is there and has none, and messages are only ever added.
        What removes the row of a feature is said with the row.

        Raises `StoreFull` when there is no room; then nothing was written, and the same commits
        may be applied again later. Raises `StoreBroken` when the numbering has a gap, or when the
        store can no longer be trusted to write.
        """
        ...

    def exported(self, until: int) -> None:
        """Remember durably that all events below `until` are exported; never moves back."""
        ...

    def retire(
        self,
        *,
        messages_before: Micros,
        keys_before: Micros,
        keep_events: int = 0,
        start: int = 0,
    ) -> Forgotten:
        """Do one step of forgetting what is old.

        Goes: a message accepted before `messages_before` with no open delivery and no unfinished
        fan-out, that no feature still needs, with its deliveries and what features keep of it; an
        idempotency key from before `keys_before`; a page of events that is exported and not among
        the newest `keep_events`.
        """
        ...

    def erase_device(self, device: int, *, start: int = 0) -> Forgotten:
        """Do one step of forgetting a device: its row, session and deliveries.

        A message that went to it alone goes too. After the last step no file of the store holds
        the body of such a message.
        """
        ...

    def reader(self) -> Reader:
        """A reader for another thread."""
        ...


def check_sequence(
    commits: Sequence[Commit], *, next_commit: int, next_event: int, last_key: int
) -> None:
    """Refuse commits that do not continue where the last one ended: a gap is a lost commit."""
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
