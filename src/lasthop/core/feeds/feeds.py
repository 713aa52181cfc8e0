"""All ranked topics of a gateway: who subscribes to them, who is there, and what devices say of
them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.core.delivery import Delivery, Item
from lasthop.core.feeds.delivery import FeedDelivery
from lasthop.core.feeds.keeper import Keeper
from lasthop.core.feeds.lane import Lanes
from lasthop.core.feeds.policies import PolicyBook
from lasthop.core.feeds.records import OVER
from lasthop.core.feeds.terms import TopicTerms
from lasthop.core.lifecycle import DELIVERED, PENDING, SENDING, State, Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.session import Session
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
from lasthop.errors import InvalidRequest, NotFound
from lasthop.events import Kind
from lasthop.message import Message, TargetKind
from lasthop.store.ranked import FeedRow, KeptRow
from lasthop.wire.hop.feeds import (
    FeedEnded,
    FeedTerms,
    Forget,
    Inventory,
    Look,
    Report,
    ShowKept,
    Why,
)
from lasthop.wire.hop.frames import FEED_TYPE, Feature, Hello

TOPIC = TargetKind.TOPIC

INVENTORY = -1
"""Instead of a count of reports: the device will say what it keeps."""

HAD = "the application has had it"


class Feeds:
    """Owns the keepers of all sessions."""

    def __init__(self, room: Mailroom, book: PolicyBook) -> None:
        self._room = room
        self._book = book
        self.lanes = Lanes(room)
        self._there: dict[Session, int] = {}
        """Devices in contact that understand ranked topics, and how many of their numbers must be
        here before anything is decided for them."""
        self._storage: dict[Session, int | None] = {}
        self._reranking: deque[tuple[int, list[Delivery]]] = deque()
        """Messages with a new rank, and the deliveries whose feeds do not know of it."""

    # Subscriptions.

    def keeper(self, session: Session, topic: str) -> Keeper | None:
        """The feed of a topic, if the subscription has terms."""
        return None if session.feeds is None else session.feeds.get(topic)

    def subscribe(self, session: Session, topic: str, terms: TopicTerms, now: Micros) -> bool:
        """Give a subscription terms, or others; false when it has them."""
        old = self.keeper(session, topic)
        if old is not None and old.terms == terms:
            return False
        self._renew(session, topic, terms, old, now)
        return True

    def zone_changed(self, session: Session, now: Micros) -> None:
        """The user's clock is another one."""
        zone = session.device.record.zone
        for topic, keeper in list((session.feeds or {}).items()):
            wanted = keeper.terms.subscription(zone, retention=self._room.limits.retained)
            if wanted != keeper.subscription:
                self._renew(session, topic, keeper.terms, keeper, now)

    def _renew(
        self, session: Session, topic: str, terms: TopicTerms, old: Keeper | None, now: Micros
    ) -> None:
        device = session.device
        choice = terms.choice(self._book.choose(device.app, device.name, topic))
        keeper = Keeper(self._room, session, topic, terms, choice, now)
        if old is not None:
            old.gone = True
        if session.feeds is None:
            session.feeds = {}
        session.feeds[topic] = keeper
        device.record.terms = device.record.terms | {topic: terms}
        self._room.journal.tell(
            Kind.SUBSCRIBED,
            now,
            session,
            topic=topic,
            terms=keeper.describe(),
            policy=choice.label,
        )
        keeper.note()
        keeper.say(FeedTerms(keeper.subscription.max))
        if old is not None:
            self._inherit(keeper, old, now)
        if self.ready(session):
            self._up(keeper, now)

    def _inherit(self, keeper: Keeper, old: Keeper, now: Micros) -> None:
        """New terms for what is there already."""
        keeper.lane.extendleft(reversed(old.lane))
        keeper.policy.succeed(old.policy)
        entries = [entry for key in old.feed.entries() if (entry := old.feed.entry(key))]
        before, fresh = old.feed.state(), keeper.feed.state().agenda
        # The hours are those of the new terms; what was shown today was shown.
        agenda = msgspec.structs.replace(
            before.agenda, quiet=fresh.quiet, next_change=fresh.next_change
        )
        keeper.muted = old.muted
        keeper.feed.resume(msgspec.structs.replace(before, agenda=agenda), entries)
        for delivery in self._of(old):
            delivery.feed = keeper
            keeper.note(delivery.item.message.key)
        for entry in entries:
            keeper.take(RankChanged(entry.key, entry.rank), now)

    def unsubscribe(self, session: Session, topic: str, now: Micros) -> None:
        """End a feed: what is held is given up, what is kept on the device is forgotten."""
        keeper = self._drop(session, topic)
        if keeper is None:
            return
        keeper.gone = True
        changes = self._room.journal.commit.ranked_changes()
        number = session.device.number
        for delivery in self._of(keeper):
            key = delivery.item.message.key
            if not delivery.instructs:
                if delivery.state is PENDING and delivery.stamp:
                    session.dequeue(delivery)
                self._room.give_up(delivery, _end_of(delivery), now, "the subscription ended")
            changes.kept[key, number] = KeptRow(key, number, topic, OVER, 0.0, None, 0, 0, 0)
        keeper.lane.clear()
        keeper.say(FeedEnded())
        self.lanes.flush(keeper, now)
        self._forget_feed(keeper)

    def _drop(self, session: Session, topic: str) -> Keeper | None:
        keeper = self.keeper(session, topic)
        if keeper is not None and session.feeds is not None:
            del session.feeds[topic]
            terms = session.device.record.terms
            session.device.record.terms = {t: v for t, v in terms.items() if t != topic}
        return keeper

    def _forget_feed(self, keeper: Keeper) -> None:
        number = keeper.session.device.number
        keeper.gone = True
        row = FeedRow(number, keeper.topic, 0, b"")
        self._room.journal.commit.ranked_changes().feeds[number, keeper.topic, 0] = row

    def forget(self, session: Session) -> None:
        """The device is gone for good."""
        for keeper in (session.feeds or {}).values():
            self._forget_feed(keeper)
        self._there.pop(session, None)
        self._storage.pop(session, None)

    def _of(self, keeper: Keeper) -> list[FeedDelivery]:
        mailbox = keeper.session.mailbox.values()
        return [d for d in mailbox if isinstance(d, FeedDelivery) and d.feed is keeper]

    def policies_changed(self, now: Micros) -> int:
        """Ask the book again for every feed; how many follow another policy now."""
        changed = 0
        for session in self._room.sessions():
            for keeper in (session.feeds or {}).values():
                changed += self.follow(keeper, now)
        return changed

    def follow(self, keeper: Keeper, now: Micros) -> bool:
        """Let a feed follow the policy that the book has for it."""
        device = keeper.session.device
        choice = keeper.terms.choice(self._book.choose(device.app, device.name, keeper.topic))
        if choice.plain == keeper.choice.plain:
            return False
        keeper.follow(choice, now)
        return True

    # Messages.

    def takes(self, session: Session, message: Message) -> Keeper | None:
        """The feed that decides about this message for a device."""
        target = message.target
        if session.feeds is None or target.kind is not TOPIC or message.content_type == FEED_TYPE:
            return None
        return session.feeds.get(target.name)

    def released(self, delivery: Delivery, now: Micros) -> None:
        """A delivery of a ranked topic, or what its feed says, has its number."""
        assert isinstance(delivery, FeedDelivery)
        keeper = delivery.feed
        if keeper is None:
            self._room.step(delivery, Step.RELEASE, now, "in contact")
        else:
            keeper.mark(self._room.step(delivery, Step.RELEASE, now, keeper.why(delivery)))

    def due(self, delivery: Delivery, now: Micros) -> bool:
        """A delivery's own time has come; false if that is for the dispatcher to deal with."""
        assert isinstance(delivery, FeedDelivery)
        return delivery.feed is not None and delivery.feed.due(delivery, now)

    def rerank(
        self, item: Item | None, message: Message, delivered: Iterable[Session], now: Micros
    ) -> None:
        """A message is worth more, or less; `delivered` have had it."""
        if item is not None:
            self._reranking.append((message.key, list(item.deliveries)))
            self.proceed(now)
        for session in delivered:
            keeper = self.takes(session, message)
            if keeper is not None and message.rank < keeper.subscription.threshold:
                keeper.retract(message.key, BELOW_THRESHOLD, now)
                keeper.note()
                self._room.touch(session)

    def proceed(self, now: Micros) -> None:
        """Tell the next feeds of new ranks, as many as a commit is to have."""
        left = self._room.limits.fanout_batch
        while self._reranking and left:
            deliveries = self._reranking[0][1]
            while deliveries and left:
                delivery = deliveries.pop()
                if isinstance(delivery, FeedDelivery) and delivery.feed is not None:
                    left -= 1
                    if delivery.state < DELIVERED and not delivery.instructs:
                        delivery.feed.rank_changed(delivery, now)
            if not deliveries:
                self._reranking.popleft()
        if self._reranking:
            self._room.journal.hurry()

    # Contact.

    def hello(self, session: Session, hello: Hello, now: Micros, *, resumed: bool) -> None:
        """A device is there; it may have something to report first."""
        self._there.pop(session, None)
        if not hello.features & Feature.FEEDS:
            return
        self._storage[session] = hello.storage
        if resumed:
            self._there[session] = hello.assigned or 0
        elif hello.epoch is not None:
            self._there[session] = INVENTORY
        else:
            self._there[session] = 0
            self._lost(session, frozenset(), now)
            for delivery in self.unread(session):
                # It was to be shown when the device lost its memory, which would have told.
                self._room.give_up(delivery, Step.GIVE_UP, now, "the device lost its memory")

    def _lost(self, session: Session, held: frozenset[int], now: Micros) -> None:
        """The device keeps these and nothing else."""
        for keeper in (session.feeds or {}).values():
            lost: list[int] = []
            for key in keeper.feed.on_device():
                delivery = keeper.delivery(key)
                if key in held or (delivery is not None and not _received(delivery)):
                    continue
                lost.append(key)
                if delivery is not None:
                    self.lanes.take_back(delivery, "lost with the device's memory", now)
            if lost:
                self._room.journal.tell(
                    Kind.REPORTED,
                    now,
                    session,
                    topic=keeper.topic,
                    reason="lost",
                    keys=tuple(lost),
                )
                keeper.take(Lost(tuple(lost)), now)

    def ready(self, session: Session) -> bool:
        """Whether decisions can be taken for a device in contact."""
        awaited = self._there.get(session)
        return awaited == 0 and session.greeted

    def settle(self, session: Session, now: Micros) -> None:
        """Draw the consequences for the feeds of a session that was touched."""
        awaited = self._there.get(session)
        if awaited is not None and awaited > 0 and session.inbound.received >= awaited:
            self._there[session] = 0
        keepers = list((session.feeds or {}).values())
        if self.ready(session):
            for keeper in keepers:
                if not keeper.feed.in_contact:
                    self._up(keeper, now)
        for keeper in keepers:
            if keeper.lane:
                self.lanes.flush(keeper, now)

    def _up(self, keeper: Keeper, now: Micros) -> None:
        self._room.journal.tell(Kind.REPORTED, now, keeper.session, topic=keeper.topic, count=0)
        limits = (keeper.terms.storage, self._storage.get(keeper.session))
        storage = min((n for n in limits if n is not None), default=None)
        if storage != keeper.feed.state().storage:
            keeper.take(StorageChanged(storage), now)
        keeper.take(ContactUp(), now)

    def lost(self, session: Session, now: Micros) -> None:
        """A device is out of reach."""
        self._there.pop(session, None)
        for keeper in (session.feeds or {}).values():
            if keeper.feed.in_contact:
                keeper.take(ContactDown(), now)

    def unread(self, session: Session) -> list[FeedDelivery]:
        """What a device keeps, as far as is known here."""
        if session.feeds is None:
            return []
        mailbox = session.mailbox.values()
        return [d for d in mailbox if isinstance(d, FeedDelivery) and _received(d)]

    # What devices say.

    def look(self, session: Session, topic: str, look: Look, key: int | None, now: Micros) -> None:
        """The user wants to see the best."""
        keeper = self.keeper(session, topic)
        if keeper is None:
            raise NotFound("there is no ranked subscription to this topic", topic=topic)
        self._room.journal.tell(
            Kind.READ,
            now,
            session,
            topic=topic,
            count=-1 if look.wanted is None else look.wanted,
            queue_size=look.queue_size,
            keys=look.held,
            policy=keeper.choice.label,
        )
        keeper.looking = key
        # Both sides agree on what is kept, but for what is on its way: that is not news here.
        known = min(look.queue_size, keeper.feed.unread_there)
        keeper.take(Read(look.wanted, known), now)
        if keeper.looking is not None:  # There was nothing to show.
            keeper.looking = None
            keeper.say(ShowKept(()), reply_to=key)

    def report(self, session: Session, topic: str | None, report: Report, now: Micros) -> None:
        """What became of kept messages."""
        if report.reads:
            keeper = self.keeper(session, topic or "")
            if keeper is None and not topic:
                raise InvalidRequest("a report of reads names their topic")
            for read in report.reads:
                self._read(session, keeper, topic or "", read.at, read.wanted, read.keys, now)
        self._had(session, report.had, now)
        for key in report.lapsed:
            delivery = self._kept(session, key)
            if delivery is not None and delivery.state is not PENDING:
                self._end(delivery, Step.EXPIRE, "expired unread on the device", now)
        if report.unread:
            self._unread(session, report.unread, now)
        if report.held is not None:
            self._inventory(session, report.held, now)

    def _read(
        self,
        session: Session,
        keeper: Keeper | None,
        topic: str,
        at_ms: int,
        wanted: int | None,
        keys: tuple[int, ...],
        now: Micros,
    ) -> None:
        at = min(at_ms * MILLISECOND, now)
        self._room.journal.tell(
            Kind.READ,
            now,
            session,
            topic=topic,
            count=-1 if wanted is None else wanted,
            keys=keys,
            at=at,
        )
        for key in keys:
            self._room.journal.tell(Kind.READ, now, session, topic=topic, msg=key, at=at)
        if keeper is not None:
            keeper.take(OfflineRead(at, wanted, keys), now)
        self._had(session, keys, now)

    def _had(self, session: Session, keys: Iterable[int], now: Micros) -> None:
        for key in keys:
            delivery = self._kept(session, key)
            if delivery is not None:
                if delivery.state is PENDING and delivery.stamp:
                    session.dequeue(delivery)
                self._end(delivery, Step.DELIVER, HAD, now)

    def _end(self, delivery: FeedDelivery, step: Step, reason: str, now: Micros) -> None:
        keeper = delivery.feed
        event = self._room.step(delivery, step, now, reason)
        if keeper is not None:
            keeper.mark(event)

    def _kept(self, session: Session, key: int) -> FeedDelivery | None:
        delivery = session.mailbox.get(key)
        if isinstance(delivery, FeedDelivery) and not delivery.instructs:
            return delivery
        return None

    def _unread(self, session: Session, keys: tuple[int, ...], now: Micros) -> None:
        for key in keys:
            delivery = self._kept(session, key)
            if delivery is None or delivery.feed is None:
                continue
            keeper, message = delivery.feed, delivery.item.message
            self._room.journal.tell(
                Kind.REPORTED, now, session, topic=keeper.topic, reason="unread", keys=(key,)
            )
            keeper.take(Unread((Held(key, message.rank, message.deliver_before),)), now)

    def _inventory(self, session: Session, inventory: Inventory, now: Micros) -> None:
        """What the device keeps after all that may have been forgotten on either side."""
        held = frozenset(item.key for _, items in inventory for item in items)
        self._lost(session, held, now)
        for topic, items in inventory:
            keeper = self.keeper(session, topic)
            for item in items:
                if keeper is None:
                    continue
                place = keeper.feed.place(item.key)
                delivery = keeper.delivery(item.key)
                if place is Place.DEVICE:
                    if delivery is not None and delivery.state is PENDING and delivery.stamp:
                        # It would come again, and the device would know it.
                        session.dequeue(delivery)
                        self._room.step(delivery, Step.RELEASE, now, "the device has it")
                        self._room.step(delivery, Step.RECEIVE, now, "the device has it")
                        delivery.stamp = 0
                        keeper.note(item.key)
                elif place is not Place.ENDED or delivery is not None:
                    keeper.say(Forget(Why.ROOM, (item.key,)))
                else:
                    expires_at = None if item.expires_at is None else item.expires_at * MILLISECOND
                    keeper.take(Unread((Held(item.key, item.rank, expires_at),)), now)
        if self._there.get(session) == INVENTORY:
            self._there[session] = 0
            self._room.touch(session)

    def acknowledged(self, delivery: Delivery, now: Micros) -> None:
        """The number of a feed's delivery is closed: the device has it, or has done as told."""
        assert isinstance(delivery, FeedDelivery)
        keeper = delivery.feed
        if delivery.instructs or keeper is None or not delivery.keep:
            self._room.step(delivery, Step.DELIVER, now)
            if delivery.followed and delivery.shown:
                self._had(delivery.session, delivery.shown, now)
            return
        if delivery.state is SENDING:
            self._room.step(delivery, Step.RECEIVE, now)
            delivery.stamp = 0
            keeper.note(delivery.item.message.key)
        if delivery.forget:
            self.lanes.take_back(delivery, "taken back", now)
        if keeper.lane:
            self._room.touch(delivery.session)

    def dropped(self, delivery: Delivery) -> bool:
        """A device could not do all that it was told; its report says what it did. False: this was
        a message, and it came too late."""
        assert isinstance(delivery, FeedDelivery)
        if delivery.instructs:
            delivery.followed = False
            if delivery.feed is not None:
                delivery.feed.note(delivery.item.message.key)
            return True
        return False

    # Context.

    def mute(self, session: Session, topic: str, quiet: bool, now: Micros) -> None:
        """The user's context makes a topic quiet, or no longer."""
        keeper = self.keeper(session, topic)
        if keeper is not None and keeper.muted != quiet:
            keeper.muted = quiet
            self._room.journal.tell(
                Kind.CONTEXT_CHANGED,
                now,
                session,
                topic=topic,
                reason="quiet" if quiet else "heard",
            )
            keeper.take(Muted(quiet), now)


def _received(delivery: FeedDelivery | None) -> bool:
    return delivery is not None and delivery.keep and delivery.state is State.RECEIVED


def _end_of(delivery: FeedDelivery) -> Step:
    """How to give up a delivery of which the device may have nothing."""
    return Step.SUPPRESS if delivery.state is PENDING else Step.GIVE_UP
