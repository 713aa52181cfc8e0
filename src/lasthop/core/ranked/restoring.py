"""Restoring ranked topics after a stop or a crash: every feed as the store has it, out of
contact."""

from __future__ import annotations

from collections import defaultdict
from typing import Protocol

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.ranked.feed_queue import shown_by
from lasthop.core.ranked.ranked_delivery import RankedDelivery, RankedSteps
from lasthop.core.ranked.records import (
    COLD,
    EARLY,
    NOT_FOLLOWED,
    PLACE_OF,
    Hot,
    unpack_cold,
    unpack_hot,
)
from lasthop.core.ranked.subscription import RankedSubscription
from lasthop.core.session import Session
from lasthop.decision.policies import POLICIES
from lasthop.decision.volume.memory import EntryState
from lasthop.decision.volume.policy_choice import PolicyChoice
from lasthop.message import TargetKind
from lasthop.store.ranked import KeptRow, RankedRestored
from lasthop.wire.hop.feeds import decode_instructions
from lasthop.wire.hop.frames import FEED_TYPE


class FeedOperations(RankedSteps, Protocol):
    """The interface of the feature that has all feeds."""

    def add(self, subscription: RankedSubscription) -> None:
        """Add a device's feed of a topic."""
        ...

    def subscription(self, session: Session, topic: str) -> RankedSubscription | None:
        """Return the session's feed of a topic; None if there is none."""
        ...

    def queue_again(self) -> None:
        """Queue the deliveries again that were queued before the restart."""
        ...

    def follow(self, subscription: RankedSubscription, now: Micros) -> bool:
        """Let a feed use the policy that is in force for it; return whether it changed."""
        ...


class FeedsRestored:
    """Rebuilds feeds after a restart, and then the deliveries that they decide about."""

    def __init__(
        self, deliveries: Deliveries, feeds: FeedOperations, restored: RankedRestored, now: Micros
    ) -> None:
        self._deliveries = deliveries
        self._feeds = feeds
        self._kept = {(row.message, row.device): row for row in restored.kept}
        self._subscriptions: list[RankedSubscription] = []
        self._restore(restored, now)

    def _restore(self, restored: RankedRestored, now: Micros) -> None:
        records = {(row.device, row.topic, row.part): row.record for row in restored.feeds}
        entries: defaultdict[tuple[int, str], list[EntryState]] = defaultdict(list)
        for row in self._kept.values():
            if row.place in PLACE_OF:
                entries[row.device, row.topic].append(_entry(row))
        for device in self._deliveries.registry:
            for topic, terms in device.record.terms.items():
                session = self._deliveries.session(device)
                at = (device.number, topic)
                hot = unpack_hot(records[*at, 0]) if (*at, 0) in records else Hot()
                choice = hot.choice if hot.choice.policy in POLICIES else PolicyChoice(hot.default)
                subscription = RankedSubscription(
                    self._deliveries, session, topic, terms, choice, now, default=hot.default
                )
                memory = unpack_cold(records[*at, COLD]) if (*at, COLD) in records else {}
                subscription.restore(hot, memory, entries[at])
                self._feeds.add(subscription)
                self._subscriptions.append(subscription)

    def decide(self, delivery: Delivery) -> None:
        """Let the feed decide about a restored delivery of a ranked topic, by its stored place."""
        message, session = delivery.item.message, delivery.session
        row = self._kept.get((message.key, session.device.number))
        instructs = message.content_type == FEED_TYPE and message.target.kind is TargetKind.DEVICE
        if row is None and not instructs:
            return
        topic = row.topic if row is not None else message.queue or ""
        subscription = self._feeds.subscription(session, topic)
        ranked = RankedDelivery(self._deliveries, self._feeds, delivery, subscription)
        if instructs:
            ranked.stamp = message.key
            ranked.shown = shown_by(decode_instructions(message.body))
            ranked.followed = row is None or row.place != NOT_FOLLOWED
        elif row is not None:
            ranked.arrived = row.place != EARLY
            ranked.stamp, ranked.keep, ranked.forget = row.stamp, row.keep, row.forget

    def finish(self, now: Micros) -> None:
        """Resume all feeds after everything has been restored."""
        self._feeds.queue_again()
        for subscription in self._subscriptions:
            for key in subscription.feed.entries():
                ranked = subscription.delivery(key)
                entry = subscription.feed.entry(key)
                if ranked is None or entry is None:
                    continue
                # The gateway may have stopped between a message's new rank and its feeds.
                if entry.rank != ranked.delivery.item.message.rank:
                    subscription.rank_changed(ranked, now)
            self._feeds.follow(subscription, now)


def _entry(row: KeptRow) -> EntryState:
    return EntryState(
        row.message, row.rank, row.expires_at, row.arrived_at, PLACE_OF[row.place], row.due
    )
