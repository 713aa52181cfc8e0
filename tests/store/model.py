"""The contract once more, as naively as it can be said: lists that are filtered and rewritten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import msgspec

from lasthop.message import Message, first_key_at
from lasthop.store.base import Counts, Forgotten, Store
from lasthop.store.commit import (
    Commit,
    CredentialRow,
    DeliveryRow,
    DeviceRow,
    FanoutRow,
    KeyRow,
    MemoryRow,
    OpenMessage,
    Restored,
    SessionRow,
)
from lasthop.store.groups import GroupChanges, GroupMessageRow, GroupRow, GroupsRestored
from lasthop.store.pushes import (
    AddressRow,
    KnownPush,
    NotificationRow,
    OpenPush,
    PushChanges,
    PushesRestored,
    PushRow,
)
from lasthop.store.ranked import FeedRow, KeptRow, RankedChanges, RankedRestored, TopicRow
from lasthop.store.remembered import HistoryChanges, HistoryRestored, RememberedRow
from lasthop.store.streams import PieceRow, StreamChanges, StreamRow, StreamsRestored
from lasthop.store.surrogates import (
    ConsultRow,
    RevisionRow,
    StateRow,
    SurrogateChanges,
    SurrogatesRestored,
)


class Model:
    """What a store should hold after the same calls."""

    def __init__(self) -> None:
        self.next_commit = 1
        self.next_event = 0
        self.last_key = 0
        self.next_device = 1
        self.exported_to = 0
        self.messages: list[Message] = []
        self.deliveries: list[DeliveryRow] = []
        self.devices: list[DeviceRow] = []
        self.sessions: list[SessionRow] = []
        self.keys: list[KeyRow] = []
        self.fanouts: list[FanoutRow] = []
        self.credentials: list[CredentialRow] = []
        self.memories: list[MemoryRow] = []
        self.addresses: list[AddressRow] = []
        self.push_ids: dict[bytes, int] = {}
        self.pushes: list[PushRow] = []
        self.notifications: list[NotificationRow] = []
        self.feeds: list[FeedRow] = []
        self.kept: list[KeptRow] = []
        self.topics: list[TopicRow] = []
        self.consults: dict[int, ConsultRow] = {}
        self.states: dict[tuple[str, str], StateRow] = {}
        self.revisions: dict[int, RevisionRow] = {}
        self.records: list[GroupRow] = []
        self.group_messages: list[GroupMessageRow] = []
        self.remembered: dict[int, RememberedRow] = {}
        self.streams: dict[int, StreamRow] = {}
        self.pieces: list[PieceRow] = []
        self.events: list[tuple[int, list[bytes]]] = []

    def apply(self, commit: Commit) -> None:
        commit = deepcopy(commit)
        self.next_commit += 1
        self.messages += commit.messages
        self.last_key = max([self.last_key, *(message.key for message in commit.messages)])
        for delivery in commit.deliveries:
            self.deliveries = [
                row
                for row in self.deliveries
                if (row.message, row.device) != (delivery.message, delivery.device)
            ] + [delivery]
        for reply in commit.replies:
            for row in self.deliveries:
                if (row.message, row.device, row.reply) == (reply.message, reply.device, 0):
                    row.reply = reply.reply
        for session in commit.sessions.values():
            self.sessions = [row for row in self.sessions if row.device != session.device]
            self.sessions.append(session)
        for memory in commit.memories.values():
            owner = memory.device, memory.name
            self.memories = [row for row in self.memories if (row.device, row.name) != owner]
            self.memories += [memory] if memory.state else []
        for device in commit.devices.values():
            self.devices = [row for row in self.devices if row.device != device.device] + [device]
            self.next_device = max(self.next_device, device.device + 1)
        for number in commit.removed_devices:
            self._forget(number)
        for key in commit.keys:
            self.keys = [row for row in self.keys if (row.app, row.key) != (key.app, key.key)]
            self.keys.append(key)
        for fanout in commit.fanouts.values():
            self.fanouts = [row for row in self.fanouts if row.message != fanout.message]
            self.fanouts += [] if fanout.done else [fanout]
        for credential in commit.credentials.values():
            self.credentials = [row for row in self.credentials if row.hash != credential.hash]
            self.credentials.append(credential)
        self._apply_pushes(commit.of(PushChanges))
        self._apply_ranked(commit.of(RankedChanges))
        self._apply_surrogates(commit.of(SurrogateChanges))
        self._apply_groups(commit.of(GroupChanges))
        self._apply_streams(commit.of(StreamChanges))
        self._apply_history(commit.of(HistoryChanges))
        if commit.event_count:
            lines = bytes(commit.events).splitlines()
            assert len(lines) == commit.event_count
            self.events.append((commit.first_event, lines))
            self.next_event += len(lines)

    def _apply_pushes(self, changes: PushChanges) -> None:
        for address in changes.addresses.values():
            name = (address.app, address.address)
            self.addresses = [r for r in self.addresses if (r.app, r.address) != name]
            self.addresses += [address] if address.target else []
        for push in changes.pushes.values():
            self.push_ids[push.id] = push.message
            self.pushes = [row for row in self.pushes if row.id != push.id] + [push]
        for told in changes.notifications.values():
            at = (told.message, told.place)
            self.notifications = [r for r in self.notifications if (r.message, r.place) != at]
            self.notifications += [] if told.done else [told]

    def _apply_ranked(self, changes: RankedChanges) -> None:
        removed = {(f.device, f.topic) for f in changes.feeds.values() if not f.record}
        for feed in changes.feeds.values():
            part = (feed.device, feed.topic, feed.part)
            self.feeds = [row for row in self.feeds if (row.device, row.topic, row.part) != part]
            self.feeds.append(feed)
        self.feeds = [row for row in self.feeds if (row.device, row.topic) not in removed]
        for kept in changes.kept.values():
            at = (kept.message, kept.device)
            self.kept = [row for row in self.kept if (row.message, row.device) != at]
            self.kept += [kept] if kept.place else []
        for message in self.messages:
            message.rank = changes.ranks.get(message.key, message.rank)
        for topic in changes.topics.values():
            same_topic = (topic.app, topic.topic)
            self.topics = [row for row in self.topics if (row.app, row.topic) != same_topic]
            self.topics.append(topic)

    def _apply_surrogates(self, changes: SurrogateChanges) -> None:
        self.consults |= changes.consults
        self.consults = {n: row for n, row in self.consults.items() if not row.done}
        self.states |= changes.states
        self.states = {name: row for name, row in self.states.items() if row.value}
        self.revisions |= changes.revisions

    def _apply_groups(self, changes: GroupChanges) -> None:
        for record in changes.records.values():
            name = (record.app, record.target)
            self.records = [row for row in self.records if (row.app, row.target) != name]
            self.records += [record] if record.record else []
        for group_message in changes.group_messages.values():
            self.group_messages = [
                row for row in self.group_messages if row.message != group_message.message
            ] + [group_message]

    def _apply_streams(self, changes: StreamChanges) -> None:
        for piece in changes.pieces:
            at = (piece.stream, piece.offset)
            self.pieces = [row for row in self.pieces if (row.stream, row.offset) != at] + [piece]
        for key, below in changes.handed_on.items():
            self.pieces = [r for r in self.pieces if r.stream != key or r.offset >= below]
        self.streams |= changes.rows
        over = {key for key, row in changes.rows.items() if not row.open}
        self.pieces = [row for row in self.pieces if row.stream not in over]

    def _apply_history(self, changes: HistoryChanges) -> None:
        self.remembered |= changes.rows
        self._no_longer(changes.forgotten)

    def _no_longer(self, messages: Iterable[int]) -> None:
        self.remembered = {k: row for k, row in self.remembered.items() if k not in messages}

    def _forget(self, number: int) -> None:
        self.devices = [row for row in self.devices if row.device != number]
        self.sessions = [row for row in self.sessions if row.device != number]
        self.memories = [row for row in self.memories if row.device != number]

    def retire(self, *, messages_before: int, keys_before: int, keep_events: int) -> Forgotten:
        needed = {row.message for row in self.deliveries if row.open}
        needed |= {row.message for row in self.fanouts + self.notifications}
        needed |= {row.message for row in self.consults.values()}
        needed |= {row.content for row in self.revisions.values() if row.open}
        needed |= {row.message for row in self.group_messages if row.open}
        needed |= self.remembered.keys()
        limit = first_key_at(messages_before)
        gone = {m.key for m in self.messages if m.key < limit and m.key not in needed}
        horizon = min(self.exported_to, self.next_event - keep_events)
        before = self.counts()
        self.messages = [message for message in self.messages if message.key not in gone]
        self.deliveries = [row for row in self.deliveries if row.message not in gone]
        self.pushes = [row for row in self.pushes if row.message not in gone]
        self.revisions = {key: row for key, row in self.revisions.items() if key not in gone}
        self.group_messages = [row for row in self.group_messages if row.message not in gone]
        self.streams = {k: row for k, row in self.streams.items() if k >= limit or row.open}
        self.keys = [row for row in self.keys if row.at >= keys_before]
        self.events = [page for page in self.events if page[0] + len(page[1]) > horizon]
        return self._difference(before)

    def erase_device(self, number: int) -> Forgotten:
        before = self.counts()
        self._forget(number)
        theirs = {row.message for row in self.deliveries if row.device == number}
        self.deliveries = [row for row in self.deliveries if row.device != number]
        needed = {row.message for row in self.deliveries} | {row.message for row in self.fanouts}
        self.messages = [m for m in self.messages if m.key not in theirs or m.key in needed]
        gone = theirs - needed
        self.pushes = [row for row in self.pushes if row.message not in gone]
        self.notifications = [row for row in self.notifications if row.message not in gone]
        revised = {key for key, row in self.revisions.items() if row.device == number}
        self.messages = [m for m in self.messages if m.key not in revised]
        self.revisions = {key: row for key, row in self.revisions.items() if key not in revised}
        self.group_messages = [row for row in self.group_messages if row.message not in gone]
        self._no_longer(gone | revised)
        return self._difference(before)

    def _difference(self, before: Counts) -> Forgotten:
        def deliveries(counts: Counts) -> int:
            return sum((*counts.open_deliveries.values(), *counts.finished_deliveries.values()))

        after = self.counts()
        return Forgotten(
            messages=before.messages - after.messages,
            deliveries=deliveries(before) - deliveries(after),
            keys=before.keys - after.keys,
            events=before.events - after.events,
        )

    def counts(self) -> Counts:
        return Counts(
            messages=len(self.messages),
            open_deliveries=dict(Counter(row.state for row in self.deliveries if row.open)),
            finished_deliveries=dict(Counter(row.state for row in self.deliveries if not row.open)),
            devices=len(self.devices),
            sessions=len(self.sessions),
            keys=len(self.keys),
            fanouts=len(self.fanouts),
            credentials=len(self.credentials),
            events=sum(len(lines) for _, lines in self.events),
            rows={
                "pushes": len(self.push_ids),
                "notifications": len(self.notifications),
                "addresses": len(self.addresses),
                "remembered": len(self.remembered),
            },
        )

    def check(self, store: Store) -> None:
        """Compare everything that can be asked of a store that is open."""
        assert list(store.all_deliveries()) == by_key(self.deliveries)
        kept = {message.key: message for message in self.messages}
        assert store.messages(range_of_interest(self, kept)) == kept
        assert store.counts() == self.counts()
        assert store.exported_to() == self.exported_to
        for app in {row.app for row in self.keys} | {"app"}:
            keys = {row.key: row for row in self.keys if row.app == app}
            assert store.find_keys(app, [*keys, "unknown"]) == keys
        kept_rows = {row.id: row for row in self.pushes}
        assert store.find(GroupMessageRow, [row.message for row in self.group_messages] + [0]) == {
            row.message: row for row in self.group_messages
        }
        assert store.find(KnownPush, [*self.push_ids, b"unknown"]) == {
            i: KnownPush(message, kept_rows.get(i)) for i, message in self.push_ids.items()
        }
        assert store.find(StreamRow, [*self.streams, 0]) == self.streams
        for number in {row.device for row in self.deliveries} | {0}:
            theirs = {row.message for row in self.deliveries if row.device == number}
            assert store.delivered_to(number, [*kept, *theirs, 0]) == theirs
        pages = [(p.first, p.lines.splitlines()) for p in store.events(0, 1 << 30)]
        assert pages == self.events
        for first, lines in self.events:
            assert store.event_at(first + len(lines) - 1) == lines[-1]

    def check_restored(self, restored: Restored) -> None:
        """Compare what a store gives back when it is opened."""
        assert restored.next_commit == self.next_commit
        assert restored.next_event == self.next_event
        assert restored.last_key == self.last_key
        assert restored.next_device == self.next_device
        assert list(restored.devices) == by_key(self.devices)
        assert list(restored.sessions) == by_key(self.sessions)
        assert list(restored.fanouts) == by_key(self.fanouts)
        assert list(restored.credentials) == by_key(self.credentials)
        assert list(restored.memories) == sorted(
            self.memories, key=lambda row: (row.device, row.name)
        )
        assert list(restored.keys) == sorted(self.keys, key=lambda r: (r.at, r.app, r.key))
        pushes = restored.of(PushesRestored)
        assert list(pushes.addresses) == by_key(self.addresses)
        assert list(pushes.notifications) == by_key(self.notifications)
        unfinished = {row.message for row in self.deliveries if row.open}
        unfinished |= {row.message for row in self.fanouts + self.notifications}
        assert list(pushes.pushes) == [
            OpenPush(
                push,
                [
                    row
                    for row in by_key(self.deliveries)
                    if row.message == push.message and not row.open
                ],
            )
            for push in sorted(self.pushes, key=lambda row: row.message)
            if push.message in unfinished
        ]
        ranked = restored.of(RankedRestored)
        assert list(ranked.feeds) == by_key(self.feeds)
        assert [(r.message, r.device, r) for r in ranked.kept] == sorted(
            ((r.message, r.device, r) for r in self.kept), key=lambda row: row[:2]
        )
        assert list(ranked.topics) == by_key(self.topics)
        surrogates = restored.of(SurrogatesRestored)
        assert list(surrogates.consults) == [row for _, row in sorted(self.consults.items())]
        assert list(surrogates.states) == [row for _, row in sorted(self.states.items())]
        revisions = [row for _, row in sorted(self.revisions.items()) if row.open]
        assert list(surrogates.revisions) == revisions
        held = {row.message for row in self.consults.values() if row.from_device}
        assert list(surrogates.held) == [m for m in self.messages if m.key in held]
        group_messages = restored.of(GroupsRestored)
        assert list(group_messages.records) == by_key(self.records)
        wanted = [row for row in self.group_messages if row.open or row.record]
        assert list(group_messages.group_messages) == sorted(wanted, key=lambda row: row.message)
        streams = restored.of(StreamsRestored)
        assert list(streams.rows) == [row for _, row in sorted(self.streams.items()) if row.open]
        assert list(streams.pieces) == by_key(self.pieces)
        history = restored.of(HistoryRestored)
        assert list(history.rows) == [row for _, row in sorted(self.remembered.items())]
        opened = [row for row in by_key(self.deliveries) if row.open]
        needed = {row.message for row in opened} | {row.message for row in self.fanouts}
        assert list(restored.open) == [
            OpenMessage(message, [row for row in opened if row.message == message.key])
            for message in self.messages
            if message.key in needed
        ]


def by_key(rows: list[Any]) -> list[Any]:
    """In the order of the fields, which begin with the key."""
    return sorted(rows, key=msgspec.structs.astuple)


def range_of_interest(model: Model, kept: dict[int, Message]) -> list[int]:
    """Keys to ask for: those that are kept, their neighbours, and those that may be gone."""
    mentioned = {row.message for row in model.deliveries} | {model.last_key}
    return [key + d for key in {*kept, *mentioned} for d in (-1, 0, 1) if key + d >= 0]
