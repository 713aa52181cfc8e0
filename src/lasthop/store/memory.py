"""A store in memory: the reference for the contract, and what rehearsals crash and restart.

An applied commit outlives `crash`, everything else is lost; that is all that "durable" means on a
virtual clock. State moves to the next life by reference, so that a crash costs nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from heapq import nlargest
from itertools import count
from pathlib import Path

from msgspec.structs import replace

from lasthop.clock import Micros
from lasthop.errors import StoreBroken, StoreError
from lasthop.message import Message, first_key_at
from lasthop.store.base import RECENT_KEYS, Counts, EventPage, Forgotten, check_sequence
from lasthop.store.bonds import RECENT_BONDS, BondChanges, BondRow, BondsRestored
from lasthop.store.commit import (
    AddressRow,
    Commit,
    CredentialRow,
    DeliveryRow,
    DeviceRow,
    FanoutRow,
    KeyRow,
    KnownPush,
    MemoryRow,
    NotificationRow,
    OpenMessage,
    OpenPush,
    ReplyRow,
    Restored,
    SessionRow,
)
from lasthop.store.ranked import RankedChanges, RankedRestored
from lasthop.store.streams import PieceRow, StreamChanges, StreamRow, StreamsRestored
from lasthop.store.surrogates import SurrogateChanges, SurrogatesRestored


class _Tables:
    """Everything that is durable."""

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
        self.addresses: dict[tuple[str, str], AddressRow] = {}
        self.pushes: dict[bytes, KnownPush] = {}
        self.push_of: dict[int, bytes] = {}
        """By message: those of which more than the id is left."""
        self.notifications: dict[tuple[int, int], NotificationRow] = {}
        self.ranked = RankedChanges()
        self.surrogates = SurrogateChanges()
        self.bonds = BondChanges()
        self.streams: dict[int, StreamRow] = {}
        self.pieces: dict[int, dict[int, PieceRow]] = {}
        self.events: list[EventPage] = []

    def add(self, commit: Commit) -> None:
        """Write one commit. Messages are copied, since core drops the bodies of its own."""
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
        self._add_push_rows(commit)
        if commit.ranked is not None:
            self._add_ranked(commit.ranked)
        if commit.surrogates is not None:
            self._add_surrogates(commit.surrogates)
        if commit.bonds is not None:
            self._add_bonds(commit.bonds)
        if commit.streams is not None:
            self._add_streams(commit.streams)
        if commit.event_count:
            page = EventPage(self.next_event, commit.event_count, bytes(commit.events))
            self.events.append(page)
            self.next_event = page.end

    def _add_ranked(self, changes: RankedChanges) -> None:
        kept = self.ranked
        kept.feeds.update(changes.feeds)
        for feed in changes.feeds.values():
            if not feed.record:
                for part in (0, 1):
                    kept.feeds.pop((feed.device, feed.topic, part), None)
        kept.kept.update(changes.kept)
        for at, row in changes.kept.items():
            if not row.place:
                del kept.kept[at]
        kept.ranks.update(changes.ranks)
        kept.topics.update(changes.topics)

    def _add_surrogates(self, changes: SurrogateChanges) -> None:
        kept = self.surrogates
        for number, consult in changes.consults.items():
            kept.consults[number] = copy(consult)
            if consult.done:
                del kept.consults[number]
        for name, entry in changes.states.items():
            kept.states[name] = entry
            if not entry.value:
                del kept.states[name]
        kept.revisions.update((key, copy(row)) for key, row in changes.revisions.items())

    def needed_by_surrogates(self) -> set[int]:
        """Messages that are needed without an open delivery of their own."""
        kept = self.surrogates
        revised = {row.content for row in kept.revisions.values() if row.open}
        return revised | {row.message for row in kept.consults.values()}

    def _add_bonds(self, changes: BondChanges) -> None:
        self.bonds.bonds.update(changes.bonds)
        for at, row in changes.circles.items():
            self.bonds.circles[at] = row
            if not row.record:
                del self.bonds.circles[at]

    def wanted_bonds(self) -> list[BondRow]:
        """The open ones, and the newest that are over and have a record, by message."""
        rows = self.bonds.bonds.values()
        over = sorted((r for r in rows if r.record and not r.open), key=lambda r: r.message)
        wanted = [row for row in rows if row.open] + over[-RECENT_BONDS:]
        return [copy(row) for row in sorted(wanted, key=lambda row: row.message)]

    def _add_streams(self, changes: StreamChanges) -> None:
        for piece in changes.pieces:
            self.pieces.setdefault(piece.stream, {})[piece.offset] = piece
        for key, below in changes.handed_on.items():
            kept = self.pieces.get(key, {})
            for offset in [offset for offset in kept if offset < below]:
                del kept[offset]
        for row in changes.rows.values():
            self.streams[row.key] = row
            if not row.open:
                self.pieces.pop(row.key, None)

    def ranked_now(self, message: Message) -> Message:
        """A copy of a message, with the rank that it has by now."""
        message = copy(message)
        message.rank = self.ranked.ranks.get(message.key, message.rank)
        return message

    def _add_replies(self, replies: list[ReplyRow]) -> None:
        for row in replies:
            delivery = self.deliveries.get(row.message, {}).get(row.device)
            if delivery is not None and not delivery.reply:
                self.deliveries[row.message][row.device] = replace(delivery, reply=row.reply)

    def _add_push_rows(self, commit: Commit) -> None:
        for address in commit.addresses.values():
            self.addresses[address.app, address.address] = address
            if not address.target:
                del self.addresses[address.app, address.address]
        for push in commit.pushes.values():
            self.pushes[push.id] = KnownPush(push.message, copy(push))
            self.push_of[push.message] = push.id
        for at, notification in commit.notifications.items():
            self.notifications[at] = copy(notification)
            if notification.done:
                del self.notifications[at]

    def forget_push(self, message: int) -> None:
        """Keep nothing of a push but its id."""
        found = self.push_of.pop(message, None)
        if found is not None:
            self.pushes[found] = KnownPush(message, None)

    def _add_devices(self, commit: Commit) -> None:
        if commit.devices:
            self.devices.update(commit.devices)
            self.next_device = max(self.next_device, max(commit.devices) + 1)
        for number in commit.removed_devices:
            self.devices.pop(number, None)
            self.sessions.pop(number, None)
            self.memories = {o: row for o, row in self.memories.items() if o[0] != number}

    def page_index(self, offset: int) -> int:
        """Where in `events` the page with this offset is, or would be."""
        return max(0, bisect_right(self.events, offset, key=lambda page: page.first) - 1)


class MemoryStore:
    """Keeps everything in dictionaries; see `Store` for what the methods promise."""

    def __init__(self, *, incarnation: int = 1) -> None:
        self._tables: _Tables | None = _Tables(incarnation)
        self.refuse: StoreError | None = None
        """While set, `apply` raises it and writes nothing: a full disk, or a broken one."""

    @property
    def _kept(self) -> _Tables:
        if self._tables is None:
            raise StoreBroken("the store is closed")
        return self._tables

    def crash(self) -> MemoryStore:
        """End this life, and give the store that the next one opens: all that was applied."""
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
            addresses=[copy(row) for _, row in sorted(kept.addresses.items())],
            pushes=self._open_pushes(),
            notifications=[copy(row) for _, row in sorted(kept.notifications.items())],
            ranked=RankedRestored(
                feeds=[copy(row) for _, row in sorted(kept.ranked.feeds.items())],
                kept=[copy(row) for _, row in sorted(kept.ranked.kept.items())],
                topics=[copy(row) for _, row in sorted(kept.ranked.topics.items())],
            ),
            surrogates=self._surrogates(),
            bonds=BondsRestored(
                circles=[copy(row) for _, row in sorted(kept.bonds.circles.items())],
                bonds=kept.wanted_bonds(),
            ),
            streams=StreamsRestored(
                rows=[copy(row) for _, row in sorted(kept.streams.items()) if row.open],
                pieces=[
                    copy(piece)
                    for _, pieces in sorted(kept.pieces.items())
                    for _, piece in sorted(pieces.items())
                ],
            ),
        )

    def _surrogates(self) -> SurrogatesRestored:
        kept = self._kept.surrogates
        consults = [copy(row) for _, row in sorted(kept.consults.items())]
        revisions = [copy(row) for _, row in sorted(kept.revisions.items()) if row.open]
        held = sorted(row.message for row in consults if row.from_device)
        return SurrogatesRestored(
            consults=consults,
            states=[copy(row) for _, row in sorted(kept.states.items())],
            revisions=revisions,
            held=self.messages(held).values(),
        )

    def _open_pushes(self) -> list[OpenPush]:
        kept = self._kept
        found: list[OpenPush] = []
        told = {message for message, _ in kept.notifications}
        for message, push_id in sorted(kept.push_of.items()):
            rows = kept.deliveries.get(message, {})
            row = kept.pushes[push_id].row
            unfinished = message in kept.fanouts or any(row.open for row in rows.values())
            if row is not None and (unfinished or message in told):
                ended = [copy(r) for _, r in sorted(rows.items()) if not r.open]
                found.append(OpenPush(copy(row), ended))
        return found

    def _open_messages(self) -> list[OpenMessage]:
        kept = self._kept
        found: list[OpenMessage] = []
        for key in sorted(kept.deliveries.keys() | kept.fanouts.keys()):
            rows = kept.deliveries.get(key, {})
            still_open = [copy(row) for _, row in sorted(rows.items()) if row.open]
            if still_open or key in kept.fanouts:
                found.append(OpenMessage(kept.ranked_now(kept.messages[key]), still_open))
        return found

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
        kept = self._kept
        messages = kept.messages
        return {key: kept.ranked_now(messages[key]) for key in keys if key in messages}

    def deliveries(self, message: int) -> list[DeliveryRow]:
        rows = self._kept.deliveries.get(message, {})
        return [copy(rows[device]) for device in sorted(rows)]

    def all_deliveries(self) -> Iterator[DeliveryRow]:
        kept = self._kept.deliveries
        yield from [row for message in sorted(kept) for row in self.deliveries(message)]

    def find_keys(self, app: str, keys: Iterable[str]) -> dict[str, KeyRow]:
        kept = self._kept.keys
        return {key: kept[app, key] for key in keys if (app, key) in kept}

    def find_bonds(self, messages: Iterable[int]) -> dict[int, BondRow]:
        kept = self._kept.bonds.bonds
        return {key: copy(kept[key]) for key in messages if key in kept}

    def find_pushes(self, ids: Iterable[bytes]) -> dict[bytes, KnownPush]:
        kept = self._kept.pushes
        return {i: KnownPush(kept[i].message, copy(kept[i].row)) for i in ids if i in kept}

    def stream(self, key: int) -> StreamRow | None:
        row = self._kept.streams.get(key)
        return None if row is None else copy(row)

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

    def exported(self, upto: int) -> None:
        kept = self._kept
        if upto > kept.next_event:
            raise StoreBroken(
                "cannot have exported events yet to come", upto=upto, next=kept.next_event
            )
        kept.exported_to = max(kept.exported_to, upto)

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
        to_report = {message for message, _ in kept.notifications}
        needed = kept.needed_by_surrogates()
        done = [
            key
            for key in kept.messages
            if key < limit
            and key not in kept.fanouts
            and key not in to_report
            and key not in needed
            and not ((bond := kept.bonds.bonds.get(key)) is not None and bond.open)
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
        for key in done:
            del kept.messages[key]
            kept.forget_push(key)
            kept.ranked.ranks.pop(key, None)
            kept.surrogates.revisions.pop(key, None)
            kept.bonds.bonds.pop(key, None)
        for key in [key for key, row in kept.streams.items() if key < limit and not row.open]:
            del kept.streams[key]
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
        for key in alone:
            del kept.messages[key], kept.deliveries[key]
            kept.forget_push(key)
            for at in [at for at in kept.notifications if at[0] == key]:
                del kept.notifications[at]
            kept.ranked.ranks.pop(key, None)
            kept.bonds.bonds.pop(key, None)
        revised = kept.surrogates.revisions
        contents = [row.content for row in revised.values() if row.device == device]
        for content in contents:
            del kept.messages[content], revised[content]
        return Forgotten(messages=len(alone) + len(contents), deliveries=len(theirs))

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
            pushes=len(kept.pushes),
            notifications=len(kept.notifications),
            addresses=len(kept.addresses),
        )

    def reader(self) -> MemoryStore:
        """Itself: there is nothing to share but the dictionaries."""
        return self

    def close(self) -> None:
        self._tables = None
