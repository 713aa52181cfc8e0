"""An inbox in memory: for devices that may forget, for tests, and for rehearsal.

`crash` does what a power cut does to a real one: committed data survives, the object does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from lasthop.device.change import (
    NOTES,
    Change,
    DeviceFeedRow,
    DeviceKeptRow,
    DevicePieceRow,
    FlowRow,
    InboxContents,
    InboxRow,
    LaneRow,
    OutboxRow,
    RequestRow,
    SessionNumbers,
)
from lasthop.errors import StoreBroken, StoreError


class _Kept:
    """The committed data, which survives a `crash`."""

    __slots__ = (
        "feeds",
        "flows",
        "inbox",
        "kept",
        "lanes",
        "notes",
        "old_keys",
        "outbox",
        "pieces",
        "requests",
        "state",
        "young_keys",
    )

    def __init__(self) -> None:
        self.state = SessionNumbers()
        self.inbox: dict[tuple[int, int], InboxRow] = {}
        self.lanes: dict[tuple[bool, int], LaneRow] = {}
        self.outbox: dict[int, OutboxRow] = {}
        self.kept: dict[int, DeviceKeptRow] = {}
        self.feeds: dict[str, DeviceFeedRow] = {}
        self.flows: dict[tuple[int, bool], FlowRow] = {}
        self.pieces: dict[tuple[int, bool, int], DevicePieceRow] = {}
        self.old_keys: list[int] = []
        self.young_keys: list[int] = []
        self.notes: dict[str, bytes] = {}
        self.requests: dict[int, RequestRow] = {}


class MemoryTransaction:
    """Collects writes until they are committed."""

    __slots__ = ("_changes", "_kept", "_notes")

    def __init__(self, kept: _Kept) -> None:
        self._kept = kept
        self._notes: dict[str, bytes] = {}
        self._changes: list[Change] = []

    def get(self, name: str) -> bytes | None:
        value = self._notes.get(name)
        return value if value is not None else self._kept.notes.get(name)

    def put(self, name: str, value: bytes) -> None:
        self._notes[name] = bytes(value)

    def apply(self, change: Change) -> None:
        self._changes.append(change)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        before = dict(self._notes)
        try:
            yield
        except BaseException:
            self._notes = before
            raise

    def commit(self) -> None:
        """Apply the collected writes to the committed data."""
        for change in self._changes:
            _apply(self._kept, change)
        self._kept.notes.update(self._notes)


class MemoryInbox:
    """An inbox that keeps everything in dictionaries."""

    def __init__(self) -> None:
        self._kept = _Kept()
        self._closed = False
        self.commits = 0
        self.refuse: StoreError | None = None
        """An error that every commit raises while it is set, to simulate a full disk."""

    def load(self) -> InboxContents:
        kept = self._use()
        return InboxContents(
            state=kept.state,
            inbox=[kept.inbox[place] for place in sorted(kept.inbox)],
            lanes=[kept.lanes[lane] for lane in sorted(kept.lanes)],
            outbox=[kept.outbox[key] for key in sorted(kept.outbox)],
            old_keys=list(kept.old_keys),
            young_keys=list(kept.young_keys),
            kept=list(kept.kept.values()),
            feeds=list(kept.feeds.values()),
            requests=[kept.requests[key] for key in sorted(kept.requests)],
            flows=list(kept.flows.values()),
            pieces=[kept.pieces[at] for at in sorted(kept.pieces)],
            notes={name: kept.notes[name] for name in NOTES if kept.notes.get(name)},
        )

    @contextmanager
    def transaction(self) -> Iterator[MemoryTransaction]:
        transaction = MemoryTransaction(self._use())
        yield transaction
        if self.refuse is not None:
            raise self.refuse
        self._use()
        transaction.commit()
        self.commits += 1

    def apply(self, change: Change) -> None:
        with self.transaction() as transaction:
            transaction.apply(change)

    def note(self, name: str) -> bytes | None:
        """Return the value that a committed transaction has put under this name; None if there is
        none."""
        return self._use().notes.get(name)

    def crash(self) -> MemoryInbox:
        """End this inbox without closing it; return a new one with everything that was
        committed."""
        survivor = MemoryInbox()
        survivor._kept = self._use()
        self._closed = True
        return survivor

    def close(self) -> None:
        self._closed = True

    def _use(self) -> _Kept:
        if self._closed:
            raise StoreBroken("the inbox is closed")
        return self._kept


def _apply(kept: _Kept, change: Change) -> None:
    _apply_inbox(kept, change)
    _remember(kept, change)
    for key in change.discarded:
        kept.kept.pop(key, None)
    for unread in change.kept:
        kept.kept[unread.key] = unread
    for key, rank in change.reranked:
        kept.kept[key] = replace(kept.kept[key], rank=rank)
    for feed in change.feeds:
        kept.feeds[feed.topic] = feed
        if feed.gone:
            del kept.feeds[feed.topic]
    for waiting in change.queued:
        kept.outbox[waiting.frame.key or 0] = waiting
    for key, lane, number in change.renumbered:
        kept.outbox[key] = OutboxRow(number, kept.outbox[key].frame, lane)
    for key in change.taken:
        kept.outbox.pop(key, None)
    kept.requests.update((row.key, row) for row in change.requested)
    for key in change.settled:
        kept.requests.pop(key, None)
    _apply_streams(kept, change)
    kept.notes.update(change.notes)
    kept.state = change.state


def _apply_inbox(kept: _Kept, change: Change) -> None:
    inbox = kept.inbox
    if change.detached:
        kept.lanes.clear()
        for place, row in inbox.items():
            inbox[place] = replace(row, number=None, numbered_in=0)
    for lane, position, new in change.moved:
        row = inbox.pop((lane, position))
        if new is not None:
            inbox[0, new] = replace(row, position=new, lane=0)
    for row in change.stored:
        inbox[row.lane, row.position] = row
    for lane, position, numbered_in, number in change.adopted:
        row = replace(inbox[lane, position], number=number, numbered_in=numbered_in)
        inbox[lane, position] = row
    for lane, positions in change.removed.items():
        for position in positions:
            inbox.pop((lane, position), None)
    for lane_row in change.lanes:
        kept.lanes[lane_row.incoming, lane_row.id] = lane_row
        if lane_row.numbers is None:
            del kept.lanes[lane_row.incoming, lane_row.id]


def _apply_streams(kept: _Kept, change: Change) -> None:
    for piece in change.pieces:
        kept.pieces[piece.key, piece.incoming, piece.offset] = piece
    for key, incoming, below in change.dropped_pieces:
        for at in [at for at in kept.pieces if at[:2] == (key, incoming) and at[2] < below]:
            del kept.pieces[at]
    for flow in change.flows:
        kept.flows[flow.key, flow.incoming] = flow
        if flow.state is None:
            del kept.flows[flow.key, flow.incoming]


def _remember(kept: _Kept, change: Change) -> None:
    generation = kept.state.generation
    if change.state.generation == generation + 1:
        kept.old_keys, kept.young_keys = kept.young_keys, []
    elif change.state.generation > generation:
        kept.old_keys, kept.young_keys = [], []
    kept.young_keys += change.keys
