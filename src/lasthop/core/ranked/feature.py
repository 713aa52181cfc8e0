"""All ranked topics of a gateway: their subscriptions, the devices in contact, and what devices
report."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.core.delivery import Delivery, Item
from lasthop.core.feature import CoreFeature, Operate, SessionPart
from lasthop.core.lifecycle import DELIVERED, PENDING, SENDING, Step
from lasthop.core.ranked.feed_queue import FeedQueue
from lasthop.core.ranked.ranked_delivery import RankedDelivery, ranked_of
from lasthop.core.ranked.records import OVER
from lasthop.core.ranked.restoring import FeedsRestored
from lasthop.core.ranked.subscription import RankedSubscription
from lasthop.core.ranked.watches import LossWatches
from lasthop.core.session import Session
from lasthop.core.spine import Spine
from lasthop.decision.reasons import BELOW_THRESHOLD
from lasthop.decision.volume.entry import Place
from lasthop.decision.volume.inputs import (
    ContactDown,
    ContactUp,
    Held,
    Lost,
    Muted,
    OfflineRead,
    RankChanged,
    Read,
    StorageChanged,
    Unread,
)
from lasthop.decision.volume.policy_choice import DEFAULT_POLICY, PolicyNews
from lasthop.decision.volume.terms import TopicTerms
from lasthop.errors import InvalidRequest, MalformedFrame, NotFound
from lasthop.events import Kind
from lasthop.message import Message, TargetKind
from lasthop.store.commit import DeliveryRow, Restored
from lasthop.store.ranked import FeedRow, KeptRow, RankedChanges, RankedRestored
from lasthop.wire.hop.feeds import (
    FeedEnded,
    FeedTerms,
    Forget,
    Inventory,
    Look,
    Report,
    ShowKept,
    Why,
    decode_look,
    decode_report,
)
from lasthop.wire.hop.frames import (
    FEED_TYPE,
    Feature,
    Headers,
    Hello,
    MessageFrame,
    Operation,
)

TOPIC = TargetKind.TOPIC

T = TypeVar("T")

INVENTORY = -1
"""The value of `_there` for a device that has yet to report its inventory: nothing is decided for
it before."""

HAD = "the application has had it"


class RankedTopics(SessionPart):
    """The ranked topics of one device."""

    def __init__(self, feeds: RankedFeature, session: Session) -> None:
        self._feeds = feeds
        self._session = session
        self.subscriptions: dict[str, RankedSubscription] = {}

    def decide(self, delivery: Delivery) -> None:
        self._feeds.decide(delivery)

    def before_sending(self, now: Micros) -> None:
        self._feeds.look_at(self._session, now)

    def on_device(self) -> Iterable[Delivery]:
        return self._feeds.unread(self._session)


class RankedFeature(CoreFeature):
    """Owns the ranked subscriptions of all sessions."""

    def __init__(self, spine: Spine) -> None:
        self._deliveries = deliveries = spine.deliveries
        self._acceptance = spine.acceptance
        self._book = spine.identity.policies
        self.watches = LossWatches(spine.identity.policies)
        spine.terms = self
        self._parts: dict[Session, RankedTopics] = {}
        self._restored: FeedsRestored | None = None
        """The feeds from the store, while the gateway is restored; otherwise None."""
        self.lanes = FeedQueue(deliveries, self)
        self._there: dict[Session, int] = {}
        """Devices in contact that understand ranked topics, and how many of their numbers must have
        come before anything is decided for them."""
        self._storage: dict[Session, int | None] = {}
        self._reranking: deque[tuple[int, list[Delivery]]] = deque()
        """Messages with a new rank, and the deliveries whose feeds have not been told of it."""
        self._queued_again: list[tuple[int, bool, float, RankedDelivery]] = []
        """Deliveries that were queued before a restart: by stamp, instructions before messages,
        best first."""

    def operations(self) -> Mapping[int, Operate]:
        return {Operation.LOOK: self._look, Operation.REPORT: self._report}

    def _look(self, session: Session, frame: MessageFrame, _: Headers, now: Micros) -> None:
        look = _understood(decode_look, frame.body)
        self.look(session, frame.topic or "", look, frame.key, now)

    def _report(self, session: Session, frame: MessageFrame, _: Headers, now: Micros) -> None:
        report = _understood(decode_report, frame.body)
        self.report(session, frame.topic, report, now)

    # Subscriptions.

    def subscriptions(self, session: Session) -> Mapping[str, RankedSubscription]:
        """Return the feeds of a device, by topic."""
        part = self._parts.get(session)
        return {} if part is None else part.subscriptions

    def subscription(self, session: Session, topic: str) -> RankedSubscription | None:
        """Return a device's feed of a topic; None if its subscription has no terms."""
        return self.subscriptions(session).get(topic)

    def add(self, subscription: RankedSubscription) -> None:
        """Add a device's feed of a topic, or replace it."""
        session = subscription.session
        part = self._parts.get(session)
        if part is None:
            part = self._parts[session] = RankedTopics(self, session)
            session.add_part(part)
        part.subscriptions[subscription.topic] = subscription

    def muted(self, session: Session) -> Mapping[str, bool]:
        """Return the topics of a device's feeds, and whether each is muted now."""
        return {
            topic: subscription.muted for topic, subscription in self.subscriptions(session).items()
        }

    def subscribe(self, session: Session, topic: str, terms: TopicTerms, now: Micros) -> bool:
        """Give a subscription these terms; return False if it has them already."""
        old = self.subscription(session, topic)
        if old is not None and old.terms == terms:
            return False
        self._renew(session, topic, terms, old, now)
        return True

    def amended(self, session: Session, changes: Mapping[str, object], now: Micros) -> None:
        """Renew the feeds whose terms depend on the user's time zone, if that has changed."""
        if "zone" not in changes:
            return
        zone = session.device.record.zone
        for topic, subscription in list(self.subscriptions(session).items()):
            wanted = subscription.terms.subscription(
                zone, retention=self._deliveries.limits.retained
            )
            if wanted != subscription.subscription:
                self._renew(session, topic, subscription.terms, subscription, now)

    def _renew(
        self,
        session: Session,
        topic: str,
        terms: TopicTerms,
        old: RankedSubscription | None,
        now: Micros,
    ) -> None:
        device = session.device
        default = DEFAULT_POLICY if old is None else old.default
        choice = terms.choice(self._book.choose(device.app, device.name, topic, default))
        subscription = RankedSubscription(
            self._deliveries, session, topic, terms, choice, now, default=default
        )
        if old is not None:
            old.gone = True
        self.add(subscription)
        device.record.terms = device.record.terms | {topic: terms}
        self._deliveries.commits.record(
            Kind.SUBSCRIBED,
            now,
            session,
            topic=topic,
            terms=subscription.describe(),
            policy=choice.label,
        )
        subscription.note()
        subscription.say(FeedTerms(subscription.subscription.max))
        if old is not None:
            self._inherit(subscription, old, now)
        self.watches.watch(subscription)
        if self.ready(session):
            self._up(subscription, now)

    def _inherit(
        self, subscription: RankedSubscription, old: RankedSubscription, now: Micros
    ) -> None:
        """Let a feed with new terms take over the messages of the old one."""
        subscription.lane.extendleft(reversed(old.lane))
        subscription.policy.succeed(old.policy)
        entries = [entry for key in old.feed.entries() if (entry := old.feed.entry(key))]
        before, fresh = old.feed.state(), subscription.feed.state().agenda
        # The quiet hours are those of the new terms; the count of what was shown today goes on.
        agenda = msgspec.structs.replace(
            before.agenda, quiet=fresh.quiet, next_change=fresh.next_change
        )
        subscription.muted = old.muted
        subscription.feed.resume(msgspec.structs.replace(before, agenda=agenda), entries)
        for ranked in self._of(old):
            ranked.feed = subscription
            subscription.note(ranked.key)
        for entry in entries:
            subscription.take(RankChanged(entry.key, entry.rank), now)

    def unsubscribe(self, session: Session, topic: str, now: Micros) -> None:
        """End a feed: give up its open deliveries, and tell the device to forget what it keeps."""
        subscription = self._drop(session, topic)
        if subscription is None:
            return
        subscription.gone = True
        changes = self._deliveries.commits.open.of(RankedChanges)
        number = session.device.number
        for ranked in self._of(subscription):
            key, delivery = ranked.key, ranked.delivery
            if not ranked.instructs:
                if delivery.state is PENDING and ranked.stamp:
                    session.dequeue(delivery)
                self._deliveries.give_up(delivery, _end_of(delivery), now, "the subscription ended")
            changes.kept[key, number] = KeptRow(key, number, topic, OVER, 0.0, None, 0, 0, 0)
        subscription.lane.clear()
        subscription.say(FeedEnded())
        self.lanes.flush(subscription, now)
        self._forget_feed(subscription)

    def _drop(self, session: Session, topic: str) -> RankedSubscription | None:
        subscription = self.subscription(session, topic)
        if subscription is not None:
            del self._parts[session].subscriptions[topic]
            terms = session.device.record.terms
            session.device.record.terms = {t: v for t, v in terms.items() if t != topic}
        return subscription

    def _forget_feed(self, subscription: RankedSubscription) -> None:
        number = subscription.session.device.number
        subscription.gone = True
        row = FeedRow(number, subscription.topic, 0, b"")
        self._deliveries.commits.open.of(RankedChanges).feeds[number, subscription.topic, 0] = row

    def removed(self, session: Session, now: Micros) -> None:
        for subscription in self.subscriptions(session).values():
            self._forget_feed(subscription)
        self._parts.pop(session, None)
        self._there.pop(session, None)
        self._storage.pop(session, None)

    def _of(self, subscription: RankedSubscription) -> list[RankedDelivery]:
        mailbox = subscription.session.mailbox.values()
        found = (ranked_of(delivery) for delivery in mailbox)
        return [ranked for ranked in found if ranked is not None and ranked.feed is subscription]

    def policies_changed(self, now: Micros, news: Iterable[PolicyNews] = ()) -> int:
        """Choose the policy of every feed again after a reload, and record what became of versions
        on trial; return how many feeds got another policy."""
        for item in news:
            self._deliveries.commits.record(
                Kind.POLICY_CHANGED,
                now,
                policy=item.version,
                reason=item.reason,
                count=item.percent,
            )
        changed = 0
        for part in self._parts.values():
            for subscription in part.subscriptions.values():
                changed += self.follow(subscription, now)
        return changed

    def follow(self, subscription: RankedSubscription, now: Micros) -> bool:
        """Let a feed use the policy that is configured for it; return False if it already does."""
        self.watches.watch(subscription)
        device = subscription.session.device
        choice = subscription.terms.choice(
            self._book.choose(device.app, device.name, subscription.topic, subscription.default)
        )
        if choice.plain == subscription.choice.plain:
            return False
        subscription.follow(choice, now)
        return True

    # Messages.

    def decide(self, delivery: Delivery) -> None:
        """Let the feed of a ranked topic decide about a delivery."""
        subscription = self.takes(delivery.session, delivery.item.message)
        if subscription is not None:
            RankedDelivery(self._deliveries, self, delivery, subscription)

    def takes(self, session: Session, message: Message) -> RankedSubscription | None:
        """Return the feed that decides about this message for a device; None if there is none."""
        target = message.target
        if target.kind is not TOPIC or message.content_type == FEED_TYPE:
            return None
        return self.subscription(session, target.name)

    def change_rank(
        self,
        app: str,
        message: Message,
        rank: float,
        delivered: Sequence[int],
        now: Micros,
    ) -> int:
        """Give a message another rank; return how many of its deliveries are still open."""
        item = self._acceptance.find(app, message.key)
        if item is not None:
            message = item.message
        message.rank = rank
        deliveries = self._deliveries
        deliveries.commits.open.of(RankedChanges).ranks[message.key] = rank
        deliveries.commits.record(
            Kind.RANK_CHANGED, now, app=app, msg=message.key, rank=rank, target=str(message.target)
        )
        deliveries.commits.hurry()
        open_for = 0 if item is None else len(item.deliveries)
        had = []
        for number in delivered:
            device = deliveries.registry.numbered(number)
            if device is not None and message.key not in deliveries.session(device).mailbox:
                had.append(deliveries.session(device))
        self._rerank(item, message, had, now)
        return open_for

    def _rerank(
        self, item: Item | None, message: Message, delivered: Iterable[Session], now: Micros
    ) -> None:
        """Tell the feeds of a message's new rank; the sessions in `delivered` have received the
        message."""
        if item is not None:
            self._reranking.append((message.key, list(item.deliveries)))
            self.proceed(now)
        for session in delivered:
            subscription = self.takes(session, message)
            if subscription is not None and message.rank < subscription.subscription.threshold:
                subscription.retract(message.key, BELOW_THRESHOLD, now)
                subscription.note()
                self._deliveries.touch(session)

    def proceed(self, now: Micros) -> None:
        """Tell more feeds about changed ranks, as many as fit into one commit."""
        left = self._deliveries.limits.fanout_batch
        while self._reranking and left:
            deliveries = self._reranking[0][1]
            while deliveries and left:
                ranked = ranked_of(deliveries.pop())
                if ranked is not None and ranked.feed is not None:
                    left -= 1
                    if ranked.delivery.state < DELIVERED and not ranked.instructs:
                        ranked.feed.rank_changed(ranked, now)
            if not deliveries:
                self._reranking.popleft()
        if self._reranking:
            self._deliveries.commits.hurry()

    # Contact.

    def introduced(
        self, session: Session, hello: Hello, now: Micros, *, resumed: bool, forgot: bool
    ) -> None:
        """Note that a device is in contact; the feature may have to wait for its report before it
        decides anything."""
        self._there.pop(session, None)
        if not hello.features & Feature.FEEDS:
            return
        self._storage[session] = hello.storage
        if resumed:
            # Decide nothing before the reports have come that the device has numbered already.
            self._there[session] = hello.assigned or 0
        elif hello.epoch is not None:
            # In a new epoch both sides may remember different things: the device says what it
            # keeps.
            self._there[session] = INVENTORY
        else:
            self._there[session] = 0
            self._lost(session, frozenset(), now)
            for delivery in self.unread(session):
                # It was to be shown when the device lost its memory, which would have reported
                # that.
                self._deliveries.give_up(delivery, Step.GIVE_UP, now, "the device lost its memory")

    def _lost(self, session: Session, held: frozenset[int], now: Micros) -> None:
        """Take back the messages that a device has lost: it keeps those in `held` and nothing
        else."""
        for subscription in self.subscriptions(session).values():
            lost: list[int] = []
            for key in subscription.feed.on_device():
                ranked = subscription.delivery(key)
                if key in held or (ranked is not None and not ranked.on_device):
                    continue
                lost.append(key)
                if ranked is not None:
                    self.lanes.take_back(ranked, "lost with the device's memory", now)
            if lost:
                self._deliveries.commits.record(
                    Kind.REPORTED,
                    now,
                    session,
                    topic=subscription.topic,
                    reason="lost",
                    keys=tuple(lost),
                )
                subscription.take(Lost(tuple(lost)), now)

    def ready(self, session: Session) -> bool:
        """Return whether a device is in contact and has reported enough for decisions to be
        taken."""
        awaited = self._there.get(session)
        return awaited == 0 and session.greeted

    def look_at(self, session: Session, now: Micros) -> None:
        """Let the feeds of a session act on what has changed for it."""
        awaited = self._there.get(session)
        if awaited is not None and awaited > 0 and session.lane.inbound.received >= awaited:
            self._there[session] = 0
        subscriptions = list(self.subscriptions(session).values())
        if self.ready(session):
            for subscription in subscriptions:
                if not subscription.feed.in_contact:
                    self._up(subscription, now)
        for subscription in subscriptions:
            if subscription.lane:
                self.lanes.flush(subscription, now)

    def _up(self, subscription: RankedSubscription, now: Micros) -> None:
        self._deliveries.commits.record(
            Kind.REPORTED, now, subscription.session, topic=subscription.topic, count=0
        )
        limits = (subscription.terms.storage, self._storage.get(subscription.session))
        storage = min((n for n in limits if n is not None), default=None)
        if storage != subscription.feed.state().storage:
            subscription.take(StorageChanged(storage), now)
        subscription.take(ContactUp(), now)

    def away(self, session: Session, now: Micros) -> None:
        self._there.pop(session, None)
        for subscription in self.subscriptions(session).values():
            if subscription.feed.in_contact:
                subscription.take(ContactDown(), now)

    def unread(self, session: Session) -> list[Delivery]:
        """Return the deliveries that a device keeps unread, as far as the gateway knows."""
        if session not in self._parts:
            return []
        found = (ranked_of(delivery) for delivery in session.mailbox.values())
        return [ranked.delivery for ranked in found if ranked is not None and ranked.on_device]

    # Reports of devices.

    def look(self, session: Session, topic: str, look: Look, key: int | None, now: Micros) -> None:
        """Show the best messages to a user who looks at a ranked topic."""
        subscription = self.subscription(session, topic)
        if subscription is None:
            raise NotFound("there is no ranked subscription to this topic", topic=topic)
        self._deliveries.commits.record(
            Kind.READ,
            now,
            session,
            topic=topic,
            count=-1 if look.wanted is None else look.wanted,
            queue_size=look.queue_size,
            keys=look.held,
            policy=subscription.choice.label,
        )
        subscription.looking = key
        # Both sides agree on what is kept, except for messages on their way, which the feed knows
        # already.
        known = min(look.queue_size, subscription.feed.unread_there)
        subscription.take(Read(look.wanted, known), now)
        if subscription.looking is not None:  # There was nothing to show.
            subscription.looking = None
            subscription.say(ShowKept(()), reply_to=key)

    def report(self, session: Session, topic: str | None, report: Report, now: Micros) -> None:
        """Handle a device's report of what became of the messages that it keeps."""
        if report.reads:
            subscription = self.subscription(session, topic or "")
            if subscription is None and not topic:
                raise InvalidRequest("a report of reads must name their topic")
            for read in report.reads:
                self._read(session, subscription, topic or "", read.at, read.wanted, read.keys, now)
        self._had(session, report.had, now)
        for key in report.lapsed:
            ranked = self._kept(session, key)
            if ranked is not None and ranked.delivery.state is not PENDING:
                self._end(ranked, Step.EXPIRE, "expired unread on the device", now)
        if report.unread:
            self._unread(session, report.unread, now)
        if report.held is not None:
            self._inventory(session, report.held, now)

    def _read(
        self,
        session: Session,
        subscription: RankedSubscription | None,
        topic: str,
        at_ms: int,
        wanted: int | None,
        keys: tuple[int, ...],
        now: Micros,
    ) -> None:
        at = min(at_ms * MILLISECOND, now)
        self._deliveries.commits.record(
            Kind.READ,
            now,
            session,
            topic=topic,
            count=-1 if wanted is None else wanted,
            keys=keys,
            at=at,
        )
        for key in keys:
            self._deliveries.commits.record(Kind.READ, now, session, topic=topic, msg=key, at=at)
        if subscription is not None:
            subscription.take(OfflineRead(at, wanted, keys), now)
        self._had(session, keys, now)

    def _had(self, session: Session, keys: Iterable[int], now: Micros) -> None:
        for key in keys:
            ranked = self._kept(session, key)
            if ranked is not None:
                if ranked.delivery.state is PENDING and ranked.stamp:
                    session.dequeue(ranked.delivery)
                self._end(ranked, Step.DELIVER, HAD, now)

    def _end(self, ranked: RankedDelivery, step: Step, reason: str, now: Micros) -> None:
        subscription = ranked.feed
        event = self._deliveries.step(ranked.delivery, step, now, reason)
        if subscription is not None:
            subscription.mark(event)

    def _kept(self, session: Session, key: int) -> RankedDelivery | None:
        ranked = ranked_of(session.mailbox.get(key))
        return ranked if ranked is not None and not ranked.instructs else None

    def _unread(self, session: Session, keys: tuple[int, ...], now: Micros) -> None:
        for key in keys:
            ranked = self._kept(session, key)
            if ranked is None or ranked.feed is None:
                continue
            subscription, message = ranked.feed, ranked.delivery.item.message
            self._deliveries.commits.record(
                Kind.REPORTED, now, session, topic=subscription.topic, reason="unread", keys=(key,)
            )
            subscription.take(Unread((Held(key, message.rank, message.deliver_before),)), now)

    def _inventory(self, session: Session, inventory: Inventory, now: Micros) -> None:
        """Compare what the device says that it keeps with the feeds, after either side may have
        forgotten."""
        held = frozenset(item.key for _, items in inventory for item in items)
        self._lost(session, held, now)
        for topic, items in inventory:
            subscription = self.subscription(session, topic)
            for item in items:
                if subscription is None:
                    continue
                place = subscription.feed.place(item.key)
                ranked = subscription.delivery(item.key)
                if place is Place.DEVICE:
                    if ranked is not None and ranked.stamp and ranked.delivery.state is PENDING:
                        # It would be sent again although the device has it.
                        delivery = ranked.delivery
                        session.dequeue(delivery)
                        self._deliveries.step(delivery, Step.RELEASE, now, "the device has it")
                        self._deliveries.step(delivery, Step.RECEIVE, now, "the device has it")
                        ranked.stamp = 0
                        subscription.note(item.key)
                elif place is not Place.ENDED or ranked is not None:
                    subscription.say(Forget(Why.ROOM, (item.key,)))
                else:
                    expires_at = None if item.expires_at is None else item.expires_at * MILLISECOND
                    subscription.take(Unread((Held(item.key, item.rank, expires_at),)), now)
        if self._there.get(session) == INVENTORY:
            self._there[session] = 0
            self._deliveries.touch(session)

    def acknowledged(self, ranked: RankedDelivery, now: Micros) -> None:
        """Take the step for an acknowledged number: the device has stored the message, or has
        followed the instruction."""
        subscription, delivery = ranked.feed, ranked.delivery
        if ranked.instructs or subscription is None or not ranked.keep:
            self._deliveries.step(delivery, Step.DELIVER, now)
            if ranked.followed and ranked.shown:
                self._had(delivery.session, ranked.shown, now)
            return
        if delivery.state is SENDING:
            self._deliveries.step(delivery, Step.RECEIVE, now)
            ranked.stamp = 0
            subscription.note(ranked.key)
        if ranked.forget:
            self.lanes.take_back(ranked, "taken back", now)
        if subscription.lane:
            self._deliveries.touch(delivery.session)

    # After a restart.

    def wait_again(self, ranked: RankedDelivery, now: Micros) -> None:
        """Let a restored delivery that has not left wait again, in the queue if it was queued."""
        message = ranked.delivery.item.message
        if ranked.stamp:
            row = (ranked.stamp, not ranked.instructs, -message.rank, ranked)
            self._queued_again.append(row)
        elif not ranked.arrived and message.deliver_after is not None:
            self._deliveries.timers.add(max(now, message.deliver_after), ranked.delivery)
        if message.deliver_before is not None:
            self._deliveries.timers.add(message.deliver_before, ranked.delivery)

    def restore(self, restored: Restored, now: Micros) -> None:
        self._restored = FeedsRestored(self._deliveries, self, restored.of(RankedRestored), now)

    def reopening(self, delivery: Delivery, row: DeliveryRow) -> None:
        if self._restored is not None:
            self._restored.decide(delivery)

    def finish(self, now: Micros) -> None:
        if self._restored is not None:
            self._restored.finish(now)
            self._restored = None

    def queue_again(self) -> None:
        """Queue the deliveries again that were queued before a restart, after everything was
        restored."""
        queued, self._queued_again = self._queued_again, []
        for stamp, _, _, ranked in sorted(queued, key=lambda row: row[:3]):
            if ranked.delivery.state is PENDING:
                self.lanes.queue(ranked, stamp)

    # Context.

    def mute(self, session: Session, topic: str, quiet: bool, now: Micros) -> None:
        """Mute a topic because of the user's context, or unmute it."""
        subscription = self.subscription(session, topic)
        if subscription is not None and subscription.muted != quiet:
            subscription.muted = quiet
            self._deliveries.commits.record(
                Kind.CONTEXT_CHANGED,
                now,
                session,
                topic=topic,
                reason="quiet" if quiet else "heard",
            )
            subscription.take(Muted(quiet), now)


def _end_of(delivery: Delivery) -> Step:
    """Return the step that gives up a delivery of which the device may have nothing."""
    return Step.SUPPRESS if delivery.state is PENDING else Step.GIVE_UP


def _understood(decode: Callable[[bytes], T], body: bytes) -> T:
    """Return a decoded body; raise an error that is answered instead of one that closes the
    channel."""
    try:
        return decode(body)
    except MalformedFrame as error:
        raise InvalidRequest(str(error)) from None
