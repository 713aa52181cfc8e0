"""A store in memory: the reference for the contract, and what rehearsals crash and restart.

An applied commit survives `crash`, everything else is lost; that is all that "durable" means on a
virtual clock. The tables pass to the next store by reference, so that a crash costs nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from heapq import nlargest
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from lasthop.clock import Micros
from lasthop.errors import StoreBroken, StoreError
from lasthop.message import Message, first_key_at
from lasthop.store.base import RECENT_KEYS, Counts, EventPage, Forgotten, check_sequence
from lasthop.store.commit import (
    Commit,
    CredentialRow,
    DeliveryRow,
    DeviceRow,
    FanoutRow,
    KeyRow,
    MemoryRow,
    OpenMessage,
    ReplyRow,
    Restored,
    SessionRow,
)
from lasthop.store.tables import TABLES

Row = TypeVar("Row")


class _DurableTables:
    """All rows that are durable."""

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.boot = 0
        self.next_commit = 1
        self.next_event = 0
        self.last_key = 0
        self.next_device = 1
        self.exported_to = 0
        self.messages: dict[int, Message] = {}
        self.deliveries: dict[int, dict[int, DeliveryRow]] = {}
        self.devices: dict[int, DeviceRow] = {}
        self.sessions: dict[int, SessionRow] = {}
        self.keys: dict[tuple[str, str], KeyRow] = {}
        self.fanouts: dict[int, FanoutRow] = {}
        self.credentials: dict[bytes, CredentialRow] = {}
        self.memories: dict[tuple[int, str], MemoryRow] = {}
        self.features = {table.changes: table.memory() for table in TABLES}
        self.finding = {table.finds: self.features[table.changes] for table in TABLES}
        self.events: list[EventPage] = []

    def add(self, commit: Commit) -> None:
        """Write one commit. Messages are copied, since the core drops the bodies of its own."""
        self.next_commit = commit.n + 1
        if commit.messages:
            self.messages.update((message.key, copy(message)) for message in commit.messages)
            self.last_key = commit.messages[-1].key
        for delivery in commit.deliveries:
            self.deliveries.setdefault(delivery.message, {})[delivery.device] = delivery
        self._add_replies(commit.replies)
        self.sessions.update(commit.sessions)
        for owner, memory in commit.memories.items():
            self.memories[owner] = memory
            if not memory.state:
                del self.memories[owner]
        self._add_devices(commit)
        self.keys.update(((row.app, row.key), row) for row in commit.keys)
        for message, fanout in commit.fanouts.items():
            self.fanouts[message] = fanout
            if fanout.done:
                del self.fanouts[message]
        self.credentials.update(commit.credentials)
        for kind, changes in commit.changes.items():
            self.features[kind].write(changes)
        if commit.event_count:
            page = EventPage(self.next_event, commit.event_count, bytes(commit.events))
            self.events.append(page)
            self.next_event = page.end

    def read_messages(self, keys: Iterable[int]) -> dict[int, Message]:
        """Return copies of the messages with these keys, with later changes by features."""
        messages = self.messages
        found = {key: copy(messages[key]) for key in keys if key in messages}
        for table in self.features.values():
            table.amend(found)
        return found

    def forget(self, keys: Collection[int]) -> None:
        """Remove these messages, their deliveries, and what features keep of them."""
        for key in keys:
            del self.messages[key]
            self.deliveries.pop(key, None)
        for table in self.features.values():
            table.forget(keys)

    def _add_replies(self, replies: list[ReplyRow]) -> None:
        for row in replies:
            delivery = self.deliveries.get(row.message, {}).get(row.device)
            if delivery is not None and not delivery.reply:
                self.deliveries[row.message][row.device] = replace(delivery, reply=row.reply)

    def _add_devices(self, commit: Commit) -> None:
        if commit.devices:
            self.devices.update(commit.devices)
            self.next_device = max(self.next_device, max(commit.devices) + 1)
        for number in commit.removed_devices:
            self.devices.pop(number, None)
            self.sessions.pop(number, None)
            self.memories = {o: row for o, row in self.memories.items() if o[0] != number}

    def page_index(self, offset: int) -> int:
        """Return the index in `events` of the page with this offset, or where it would be."""
        return max(0, bisect_right(self.events, offset, key=lambda page: page.first) - 1)


class MemoryStore:
    """A store that keeps everything in dictionaries; see `Store` for what the methods promise."""

    def __init__(self, *, incarnation: int = 1) -> None:
        self._tables: _DurableTables | None = _DurableTables(incarnation)
        self.refuse: StoreError | None = None
        """The error that `apply` raises without writing anything, while set: a full disk, or a
        broken one."""

    @property
    def _kept(self) -> _DurableTables:
        if self._tables is None:
            raise StoreBroken("the store is closed")
        return self._tables

    def crash(self) -> MemoryStore:
        """Close this store like a crash, and return a store with everything that was applied."""
        survivor = MemoryStore()
        survivor._tables, self._tables = self._kept, None
        return survivor

    def open(self) -> Restored:
        kept = self._kept
        kept.boot += 1
        newest = nlargest(
            RECENT_KEYS, kept.keys.values(), key=lambda row: (row.at, row.app, row.key)
        )
        return Restored(
            incarnation=kept.incarnation,
            boot=kept.boot,
            next_commit=kept.next_commit,
            next_event=kept.next_event,
            last_key=kept.last_key,
            next_device=kept.next_device,
            devices=[copy(row) for _, row in sorted(kept.devices.items())],
            sessions=[copy(row) for _, row in sorted(kept.sessions.items())],
            open=self._open_messages(),
            fanouts=[copy(row) for _, row in sorted(kept.fanouts.items())],
            keys=newest[::-1],
            credentials=[copy(row) for _, row in sorted(kept.credentials.items())],
            memories=[copy(row) for _, row in sorted(kept.memories.items())],
            kept={type(rows): rows for rows in (f.read(kept) for f in kept.features.values())},
        )

    def _open_messages(self) -> list[OpenMessage]:
        kept = self._kept
        found: dict[int, list[DeliveryRow]] = {}
        for key in sorted(kept.deliveries.keys() | kept.fanouts.keys()):
            rows = kept.deliveries.get(key, {})
            still_open = [copy(row) for _, row in sorted(rows.items()) if row.open]
            if still_open or key in kept.fanouts:
                found[key] = still_open
        messages = kept.read_messages(found)
        return [OpenMessage(messages[key], rows) for key, rows in found.items()]

    def apply(self, *commits: Commit) -> None:
        kept = self._kept
        if self.refuse is not None:
            raise self.refuse
        check_sequence(
            commits,
            next_commit=kept.next_commit,
            next_event=kept.next_event,
            last_key=kept.last_key,
        )
        for commit in commits:
            kept.add(commit)

    def messages(self, keys: Iterable[int]) -> dict[int, Message]:
        return self._kept.read_messages(keys)

    def deliveries(self, message: int) -> list[DeliveryRow]:
        rows = self._kept.deliveries.get(message, {})
        return [copy(rows[device]) for device in sorted(rows)]

    def delivered_to(self, device: int, messages: Iterable[int]) -> set[int]:
        kept = self._kept.deliveries
        return {key for key in messages if device in kept.get(key, {})}

    def all_deliveries(self) -> Iterator[DeliveryRow]:
        kept = self._kept.deliveries
        yield from [row for message in sorted(kept) for row in self.deliveries(message)]

    def find_keys(self, app: str, keys: Iterable[str]) -> dict[str, KeyRow]:
        kept = self._kept.keys
        return {key: kept[app, key] for key in keys if (app, key) in kept}

    def find(self, kind: type[Row], keys: Iterable[Any]) -> dict[Any, Row]:
        return self._kept.finding[kind].find(keys)

    def device(self, app: str, name: str) -> DeviceRow | None:
        rows = self._kept.devices.values()
        named = [row for row in rows if row.app == app and row.name == name]
        return copy(max(named, key=lambda row: row.device)) if named else None

    def events(self, first: int, limit_bytes: int) -> list[EventPage]:
        kept = self._kept
        pages: list[EventPage] = []
        size = 0
        for i in count(kept.page_index(first)):
            if i == len(kept.events):
                break
            page = kept.events[i]
            if page.end <= first:
                continue
            page = page.starting_at(first)
            size += len(page.lines)
            if pages and size > limit_bytes:
                break
            pages.append(page)
        return pages

    def event_at(self, offset: int) -> bytes | None:
        kept = self._kept
        for page in kept.events[kept.page_index(offset) :][:1]:
            if page.first <= offset < page.end:
                return page.starting_at(offset).lines.partition(b"\n")[0]
        return None

    def exported_to(self) -> int:
        return self._kept.exported_to

    def exported(self, until: int) -> None:
        kept = self._kept
        if until > kept.next_event:
            raise StoreBroken(
                "events that do not exist yet cannot have been exported",
                until=until,
                next=kept.next_event,
            )
        kept.exported_to = max(kept.exported_to, until)

    def retire(
        self,
        *,
        messages_before: Micros,
        keys_before: Micros,
        keep_events: int = 0,
        start: int = 0,
    ) -> Forgotten:
        kept = self._kept
        limit = first_key_at(messages_before)
        needed = {key for table in kept.features.values() for key in table.keeps()}
        done = [
            key
            for key in kept.messages
            if key < limit
            and key not in kept.fanouts
            and key not in needed
            and not any(row.open for row in kept.deliveries.get(key, {}).values())
        ]
        old_keys = [key for key, row in kept.keys.items() if row.at < keys_before]
        horizon = min(kept.exported_to, kept.next_event - keep_events)
        old_events = [page for page in kept.events if page.end <= horizon]
        retired = Forgotten(
            messages=len(done),
            deliveries=sum(len(kept.deliveries.pop(key, {})) for key in done),
            keys=len(old_keys),
            events=sum(page.count for page in old_events),
        )
        kept.forget(done)
        for table in kept.features.values():
            table.retire(limit)
        for app_key in old_keys:
            del kept.keys[app_key]
        del kept.events[: len(old_events)]
        return retired

    def erase_device(self, device: int, *, start: int = 0) -> Forgotten:
        kept = self._kept
        kept.devices.pop(device, None)
        kept.sessions.pop(device, None)
        kept.memories = {o: row for o, row in kept.memories.items() if o[0] != device}
        theirs = [key for key, rows in kept.deliveries.items() if device in rows]
        for key in theirs:
            del kept.deliveries[key][device]
        alone = [key for key in theirs if not kept.deliveries[key] and key not in kept.fanouts]
        made = [key for table in kept.features.values() for key in table.made_for(device)]
        kept.forget([*alone, *made])
        return Forgotten(messages=len(alone) + len(made), deliveries=len(theirs))

    def backup(self, path: Path) -> None:
        raise StoreBroken("a store in memory has no backup", path=str(path))

    def counts(self) -> Counts:
        kept = self._kept
        rows = [row for by_device in kept.deliveries.values() for row in by_device.values()]
        return Counts(
            messages=len(kept.messages),
            open_deliveries=dict(Counter(row.state for row in rows if row.open)),
            finished_deliveries=dict(Counter(row.state for row in rows if not row.open)),
            devices=len(kept.devices),
            sessions=len(kept.sessions),
            keys=len(kept.keys),
            fanouts=len(kept.fanouts),
            credentials=len(kept.credentials),
            events=sum(page.count for page in kept.events),
            rows={n: c for f in kept.features.values() for n, c in f.counts().items()},
        )

    def reader(self) -> MemoryStore:
        """Return the store itself: there is nothing to share but the dictionaries."""
        return self

    def close(self) -> None:
        self._tables = None
