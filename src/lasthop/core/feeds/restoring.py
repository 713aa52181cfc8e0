"""Ranked topics after a stop or a crash: every feed as the store has it, out of contact."""

from __future__ import annotations

from collections import defaultdict

from lasthop.clock import Micros
from lasthop.core.delivery import Item
from lasthop.core.feeds.delivery import FeedDelivery
from lasthop.core.feeds.feeds import Feeds
from lasthop.core.feeds.keeper import Keeper
from lasthop.core.feeds.lane import shown_by
from lasthop.core.feeds.policies import Choice
from lasthop.core.feeds.records import (
    COLD,
    EARLY,
    PLACE_OF,
    UNFOLLOWED,
    Hot,
    unpack_cold,
    unpack_hot,
)
from lasthop.core.lifecycle import PENDING
from lasthop.core.mailroom import Mailroom
from lasthop.core.session import Session
from lasthop.decision.policies import POLICIES
from lasthop.decision.volume.memory import EntryState
from lasthop.message import TargetKind
from lasthop.store.ranked import KeptRow, RankedRestored
from lasthop.wire.hop.feeds import decode_instructions
from lasthop.wire.hop.frames import FEED_TYPE


class FeedsRestored:
    """Rebuilds feeds, then the deliveries that they decide about."""

    def __init__(self, room: Mailroom, feeds: Feeds, restored: RankedRestored, now: Micros) -> None:
        self._room = room
        self._feeds = feeds
        self._kept = {(row.message, row.device): row for row in restored.kept}
        self._queued: list[tuple[int, bool, float, FeedDelivery]] = []
        self._keepers: list[Keeper] = []
        self._restore(restored, now)

    def _restore(self, restored: RankedRestored, now: Micros) -> None:
        records = {(row.device, row.topic, row.part): row.record for row in restored.feeds}
        entries: defaultdict[tuple[int, str], list[EntryState]] = defaultdict(list)
        for row in self._kept.values():
            if row.place in PLACE_OF:
                entries[row.device, row.topic].append(_entry(row))
        for device in self._room.registry:
            for topic, terms in device.record.terms.items():
                session = self._room.session(device)
                at = (device.number, topic)
                hot = unpack_hot(records[*at, 0]) if (*at, 0) in records else Hot()
                choice = hot.choice if hot.choice.policy in POLICIES else Choice()
                keeper = Keeper(self._room, session, topic, terms, choice, now)
                memory = unpack_cold(records[*at, COLD]) if (*at, COLD) in records else {}
                keeper.restore(hot, memory, entries[at])
                session.feeds = {**(session.feeds or {}), topic: keeper}
                self._keepers.append(keeper)

    def open(self, item: Item, session: Session, now: Micros) -> FeedDelivery | None:
        """A delivery of a ranked topic, as it stands; None if it is not one."""
        message = item.message
        row = self._kept.get((message.key, session.device.number))
        instructs = message.content_type == FEED_TYPE and message.target.kind is TargetKind.DEVICE
        if row is None and not instructs:
            return None
        topic = row.topic if row is not None else message.queue or ""
        keeper = self._feeds.keeper(session, topic)
        delivery = self._room.put(FeedDelivery(item, session, now, keeper))
        if instructs:
            delivery.stamp = message.key
            delivery.shown = shown_by(decode_instructions(message.body))
            delivery.followed = row is None or row.place != UNFOLLOWED
        elif row is not None:
            delivery.arrived = row.place != EARLY
            delivery.stamp, delivery.keep, delivery.forget = row.stamp, row.keep, row.forget
        return delivery

    def waits(self, delivery: FeedDelivery, now: Micros) -> None:
        """It has not left: queue it again if it was queued."""
        message = delivery.item.message
        if delivery.stamp:
            row = (delivery.stamp, not delivery.instructs, -message.rank, delivery)
            self._queued.append(row)
        elif not delivery.arrived and message.deliver_after is not None:
            self._room.timers.add(max(now, message.deliver_after), delivery)
        if message.deliver_before is not None:
            self._room.timers.add(message.deliver_before, delivery)

    def finish(self, now: Micros) -> None:
        """Everything is there: go on."""
        for stamp, _, _, delivery in sorted(self._queued, key=lambda row: row[:3]):
            if delivery.state is PENDING:
                self._feeds.lanes.queue(delivery, stamp)
        for keeper in self._keepers:
            for key in keeper.feed.entries():
                delivery_or_none = keeper.delivery(key)
                entry = keeper.feed.entry(key)
                if delivery_or_none is None or entry is None:
                    continue
                # A stop may have come between a message's new rank and its feeds.
                if entry.rank != delivery_or_none.item.message.rank:
                    keeper.rank_changed(delivery_or_none, now)
            self._feeds.follow(keeper, now)


def _entry(row: KeptRow) -> EntryState:
    return EntryState(
        row.message, row.rank, row.expires_at, row.arrived_at, PLACE_OF[row.place], row.due
    )
