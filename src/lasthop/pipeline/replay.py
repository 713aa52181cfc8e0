"""A replay of a device's logged history through the real feeds: as it was, or under another policy.

*As it was*: the feed is given exactly the inputs that the log has, and decides. Its decisions are
compared with those in the log; all of them agree, or the log or the feed is wrong.

*Under another policy*: what arrived, when there was contact and when the user looked is taken as
given. What the device held is modelled with its own queue, so that the result is an estimate: a
user who finds other things may behave differently.

This module does not use Spark: a worker needs lasthop and nothing else.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec

from lasthop.clock import Micros
from lasthop.decision.policies import POLICIES, Policy, Tuning
from lasthop.decision.policies.memory import memory_of, recall
from lasthop.decision.reasons import ASKED, NO_ROOM
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import DropEvent, Effect, Forward, Hold, Rerank, Retract, Show
from lasthop.decision.volume.entry import NEVER, Place
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import (
    Arrived,
    ContactDown,
    ContactUp,
    EventWithdrawn,
    Gone,
    Held,
    Input,
    Lost,
    Muted,
    OfflineRead,
    RankChanged,
    Read,
    Unread,
    Woken,
)
from lasthop.decision.volume.memory import EntryState
from lasthop.decision.volume.subscription import Subscription
from lasthop.errors import InvalidRequest
from lasthop.events import Event, Kind
from lasthop.policy import Forwarding

COLUMNS = (
    "n",
    "boot",
    "t",
    "kind",
    "msg",
    "topic",
    "rank",
    "before",
    "size",
    "count",
    "queue_size",
    "keys",
    "at",
    "reason",
    "channel",
    "link",
    "bytes",
    "cost",
    "terms",
    "policy",
    "other",
    "after",
)
"""The columns of events that a replay reads."""

ENDS = (
    Kind.SENT,
    Kind.DELIVERED,
    Kind.EXPIRED,
    Kind.CANCELLED,
    Kind.REPLACED,
    Kind.ABORTED,
    Kind.TIMED_OUT,
    Kind.UNDELIVERABLE,
    Kind.REASSIGNED,
    Kind.SUPPRESSED,
)

KINDS = (
    *ENDS,
    Kind.ACCEPTED,
    Kind.HELD,
    Kind.RELEASED,
    Kind.TRANSMITTED,
    Kind.RECEIVED,
    Kind.READ,
    Kind.RETRACTED,
    Kind.RANK_CHANGED,
    Kind.SUBSCRIBED,
    Kind.UNSUBSCRIBED,
    Kind.REMOVED,
    Kind.CONTEXT_CHANGED,
    Kind.CONTACT_STARTED,
    Kind.CONTACT_LOST,
    Kind.REPORTED,
    Kind.TIMER_FIRED,
    Kind.POLICY_CHANGED,
)

GIVEN = (
    Kind.ACCEPTED,
    Kind.RANK_CHANGED,
    Kind.CANCELLED,
    Kind.REPLACED,
    Kind.SUBSCRIBED,
    Kind.UNSUBSCRIBED,
    Kind.REMOVED,
    Kind.POLICY_CHANGED,
    Kind.CONTEXT_CHANGED,
    Kind.CONTACT_STARTED,
    Kind.CONTACT_LOST,
    Kind.REPORTED,
    Kind.READ,
)
"""Kinds of events that are taken as given when another policy is tried; of reads, only the looks of
a user, and of changed policies only that the live policy changed."""

INSTRUCTION = "what the feed says"
"""The reason of a message that carries instructions of a feed: it is not a decision about a
message."""

WOKEN, DOWN = Woken(), ContactDown()

_REPLAYED = frozenset(str(kind) for kind in KINDS)


class ReplayRow(NamedTuple):
    """One event, as far as a replay looks at it."""

    n: int
    boot: int
    t: Micros
    kind: str
    msg: int
    topic: str
    rank: float
    before: Micros
    size: int
    wanted: int
    queue_size: int
    keys: Sequence[int]
    at: Micros
    reason: str
    channel: int
    link: str
    bytes: int
    cost: float
    terms: str
    policy: str
    other: int
    after: Micros = 0


def histories(events: Iterable[Event]) -> dict[tuple[str, str], list[ReplayRow]]:
    """Return the rows of each app's devices, from the events of one gateway in their order."""
    rows: defaultdict[tuple[str, str], list[ReplayRow]] = defaultdict(list)
    for event in events:
        if event.dev and event.kind in _REPLAYED:
            row = ReplayRow(*(getattr(event, name) for name in COLUMNS))
            rows[event.app, event.dev].append(row)
    return rows


class LoggedTerms(msgspec.Struct):
    """The terms that a feed was made with: `terms` of a `subscribed` or `policy_changed` event."""

    subscription: dict[str, Any] = {}
    policy: str = "unified"
    tuning: dict[str, Any] = {}
    memory: dict[str, Any] = {}
    """What the policy knew from its first moment on."""

    def as_subscription(self) -> Subscription:
        """Return the subscription that the terms describe."""
        try:
            return msgspec.convert(self.subscription, Subscription)
        except (msgspec.ValidationError, ValueError) as error:
            raise InvalidRequest(f"these terms cannot be read: {error}") from None

    def decider(self) -> Policy:
        """Return the policy that was in force."""
        if self.policy not in POLICIES:
            raise InvalidRequest("unknown policy", policy=self.policy, known=", ".join(POLICIES))
        policy = POLICIES[self.policy](msgspec.convert(self.tuning, Tuning))
        if self.memory:
            recall(policy, self.memory)
        return policy


_decode_terms = msgspec.json.Decoder(LoggedTerms).decode


def terms_of(text: str) -> LoggedTerms:
    """Decode terms from an event; return the built-in ones if it has none."""
    try:
        return _decode_terms(text) if text else LoggedTerms()
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"these terms cannot be read: {error}") from None


def decider(forwarding: Forwarding, subscription: Subscription) -> Policy:
    """Return a policy with the parameters and the memory that were learned or chosen."""
    if forwarding.policy not in POLICIES:
        raise InvalidRequest("unknown policy", policy=forwarding.policy, known=", ".join(POLICIES))
    tuning = Tuning(
        max=subscription.max,
        prefetch_limit=forwarding.prefetch_limit,
        expiration_threshold=forwarding.expiration_threshold,
        price=forwarding.price,
    )
    policy = POLICIES[forwarding.policy](tuning)
    if forwarding.memory:
        recall(policy, forwarding.memory)
    return policy


ON_LINE = Forwarding(policy="on-line")
"""Forward everything as soon as there is contact: the best service, by which loss is measured."""

Choose = Callable[[str, LoggedTerms], Policy]
"""Returns the policy for a topic's feed, given the topic and its logged terms."""


class LoggedDecision(NamedTuple):
    """A decision about a message, as the log has it."""

    kind: str
    msg: int
    reason: str


def decided(effects: Iterable[Effect]) -> Iterator[LoggedDecision]:
    """Yield the decisions that effects stand for, as the log would have them."""
    for effect in effects:
        if isinstance(effect, Forward):
            yield LoggedDecision(FORWARDED, effect.key, effect.reason)
            if effect.instead_of is not None:
                yield LoggedDecision("retracted", effect.instead_of, NO_ROOM)
        elif isinstance(effect, Hold):
            yield LoggedDecision("held", effect.key, effect.reason)
        elif isinstance(effect, Retract):
            yield LoggedDecision("retracted", effect.key, effect.reason)
        elif isinstance(effect, DropEvent):
            yield LoggedDecision("dropped", effect.key, effect.reason)
        elif isinstance(effect, Show):
            for key in effect.keys:
                yield LoggedDecision("shown", key, effect.reason)


FORWARDED = "forwarded"

_LOGGED_AS = {
    Kind.RELEASED: FORWARDED,
    Kind.HELD: "held",
    Kind.RETRACTED: "retracted",
    Kind.EXPIRED: "dropped",
    Kind.SUPPRESSED: "dropped",
    Kind.READ: "shown",
}


def logged(row: ReplayRow) -> LoggedDecision | None:
    """Return the decision that an event stands for, or None."""
    kind = _LOGGED_AS.get(Kind(row.kind))
    if kind is None or not row.msg or not row.topic or row.at or row.reason == INSTRUCTION:
        return None
    return LoggedDecision(kind, row.msg, row.reason)


@dataclass(slots=True)
class Agreement:
    """How a replay of the live policy compares with the log."""

    decisions: int = 0
    """The number of decisions in the log."""
    same: int = 0
    unlogged: int = 0
    """Decisions that were repeated and are not in the log: they had no effect, since a link or a
    device was quicker."""
    first_difference: str = ""

    def differ(self, text: str) -> None:
        if not self.first_difference:
            self.first_difference = text


def inherit(feed: Feed, old: Feed) -> list[EntryState]:
    """Let a feed with new terms take over the events of the old one, as the gateway does; return
    them. The quiet hours are those of the new terms."""
    entries = [entry for key in old.entries() if (entry := old.entry(key)) is not None]
    before, fresh = old.state(), feed.state().agenda
    agenda = msgspec.structs.replace(
        before.agenda, quiet=fresh.quiet, next_change=fresh.next_change
    )
    feed.resume(msgspec.structs.replace(before, agenda=agenda), entries)
    return entries


class _LiveFeed:
    """A feed that is given the inputs that the log has."""

    def __init__(self, terms: LoggedTerms, now: Micros) -> None:
        self.policy = terms.decider()
        self.feed = Feed(terms.as_subscription(), self.policy, now=now)
        self.expected: deque[LoggedDecision] = deque()
        self.messages: dict[int, Held] = {}
        self._forwarded: dict[int, str] = {}
        self.left: set[int] = set()
        """Keys of the messages that left for the device, according to the log."""

    def never_left(self) -> int:
        """Return how many messages were to leave and did not, according to the log."""
        return len(self._forwarded.keys() - self.left)

    def take(self, given: Input, now: Micros) -> None:
        """Give the feed an input, and keep its decisions for comparison."""
        for decision in decided(self.feed.take(given, now)):
            if decision.kind == FORWARDED:
                self._forwarded[decision.msg] = decision.reason
            elif decision.kind != "dropped" or decision.msg not in self._forwarded:
                # An event on the device ended before, so the log has no further decision about it.
                self.expected.append(decision)

    def follow(self, policy: Policy) -> None:
        """Use another policy, which takes over what a policy of the same class knew."""
        if type(policy) is type(self.policy):
            recall(policy, memory_of(self.policy))
        self.policy = policy
        self.feed.follow(policy)

    def inherit(self, old: _LiveFeed, now: Micros) -> None:
        """Continue the feed of an earlier subscription under new terms."""
        if type(self.policy) is type(old.policy):
            recall(self.policy, memory_of(old.policy))
        self.messages, self._forwarded, self.left = old.messages, old._forwarded, old.left
        for entry in inherit(self.feed, old.feed):
            self.take(RankChanged(entry.key, entry.rank), now)

    def takes_again(self, told: LoggedDecision, result: Agreement) -> bool:
        """Return whether a logged decision was repeated. A message leaves when the link is free, so
        only the order of the other decisions is that of the log."""
        if told.kind == FORWARDED:
            self.left.add(told.msg)
            # By the time the message leaves, a read may also have asked for it. After a restart the
            # gateway no longer has the reason of what it was about to send.
            decided = self._forwarded.get(told.msg)
            return told.reason in (ASKED, decided) or (told.reason == "" and decided is not None)
        if told.kind == "dropped" and told.msg in self._forwarded:
            return True  # It expired on the device, which the feed does not decide.
        if told not in self.expected:
            return False
        while self.expected.popleft() != told:
            result.unlogged += 1
        return True


def check(rows: Iterable[ReplayRow]) -> Agreement:
    """Replay a device's history, in the order of its events, under the policies that were live.

    Every decision in the log must be repeated, for the same reason.
    """
    result = Agreement()
    feeds: dict[str, _LiveFeed] = {}
    channels: set[int] = set()
    boot, ended = 0, 0
    for row in rows:
        if row.boot != boot:
            boot = row.boot
            channels.clear()
            for live in feeds.values():
                live.take(DOWN, ended)
        ended = row.t
        told, about = logged(row), feeds.get(row.topic)
        if told is not None and about is not None:
            result.decisions += 1
            if told.kind == "dropped" and told not in about.expected:
                # A message's own deadline wakes its feed, and the log only has the message's
                # outcome.
                about.take(WOKEN, row.t)
            if about.takes_again(told, result):
                result.same += 1
            else:
                wanted = about.expected[0] if about.expected else None
                result.differ(f"event {row.n}: logged {told}, replayed {wanted}")
        for topic, given in _inputs(row, feeds, channels):
            feeds[topic].take(given, row.t)
    for topic, live in feeds.items():
        result.unlogged += len(live.expected) + live.never_left()
        if any(decision.kind == "shown" for decision in live.expected):
            result.differ(f"{topic}: replayed {live.expected[0]}, which is not in the log")
    return result


def _inputs(
    row: ReplayRow, feeds: dict[str, _LiveFeed], channels: set[int]
) -> Iterator[tuple[str, Input]]:
    """Yield the inputs for a device's feeds that an event stands for."""
    topic, kind = row.topic, row.kind
    live = feeds.get(topic)
    if kind == Kind.SUBSCRIBED and topic and (row.terms or live is None):
        feeds[topic] = _LiveFeed(terms_of(row.terms), row.t)
        if live is not None:
            feeds[topic].inherit(live, row.t)
    elif kind == Kind.CONTACT_STARTED:
        channels.add(row.channel)
    elif kind == Kind.CONTACT_LOST:
        channels.discard(row.channel)
        if not channels:
            for name in feeds:
                yield name, DOWN
    elif live is None:
        return
    elif kind == Kind.UNSUBSCRIBED:
        del feeds[topic]
    elif kind == Kind.ACCEPTED and row.reason != INSTRUCTION:
        live.messages[row.msg] = Held(row.msg, row.rank, row.before or None)
        yield topic, Arrived(row.msg, row.rank, row.before or None)
    elif kind == Kind.RANK_CHANGED:
        known = live.messages.get(row.msg)
        if known is not None:
            live.messages[row.msg] = Held(row.msg, row.rank, known.expires_at)
        yield topic, RankChanged(row.msg, row.rank)
    elif kind in ENDS and row.msg:
        yield from ((topic, given) for given in _ended(live.feed, row))
    elif kind == Kind.READ and not row.msg:
        wanted = None if row.wanted < 0 else row.wanted
        if row.at:
            yield topic, OfflineRead(row.at, wanted, tuple(row.keys))
        else:
            # Both sides agree on what the device holds, except for messages in transit.
            yield topic, Read(wanted, min(row.queue_size, len(live.feed.on_device())))
    elif kind == Kind.REPORTED:
        yield topic, _reported(live, row)
    elif kind == Kind.CONTEXT_CHANGED:
        yield topic, Muted(row.reason == "quiet")
    elif kind == Kind.TIMER_FIRED:
        yield topic, WOKEN
    elif kind == Kind.POLICY_CHANGED:
        live.follow(terms_of(row.terms).decider())


def _ended(feed: Feed, row: ReplayRow) -> Iterator[Input]:
    """Yield the input for a delivery that ended, unless the feed ended it itself."""
    place = feed.place(row.msg)
    if place is Place.ENDED:
        return
    if row.kind in (Kind.CANCELLED, Kind.REPLACED) and place is not Place.DEVICE:
        yield EventWithdrawn(row.msg)
    elif row.kind != Kind.DELIVERED or row.reason:
        yield Gone((row.msg,))


def _reported(live: _LiveFeed, row: ReplayRow) -> Input:
    if row.reason == "lost":
        return Lost(tuple(row.keys))
    if row.reason == "unread":
        return Unread(tuple(live.messages.get(key, Held(key, 0.0)) for key in row.keys))
    return ContactUp()


@dataclass(slots=True)
class TopicHistory:
    """What a policy did, or would have done, with one topic of one device."""

    forwarded: dict[int, Micros] = field(default_factory=dict)
    """Messages that went to the device, and when."""
    read: dict[int, Micros] = field(default_factory=dict)
    """Messages that the user saw, and when."""
    links: dict[int, str] = field(default_factory=dict)
    """The link over which each message went."""
    never_left: set[int] = field(default_factory=set)
    """Messages that the policy sent and that no link took before they expired or were taken back;
    only a log knows them."""


IN_THE_QUEUE = "deliver_before has passed"
"""The reason of an `expired` message that was waiting for a link; a feed's own reason is
another."""


def as_logged(rows: Iterable[ReplayRow], topics: Iterable[str]) -> dict[str, TopicHistory]:
    """Return what was done with these topics, according to the log."""
    histories = {topic: TopicHistory() for topic in topics}
    where: dict[int, TopicHistory] = {}
    for row in rows:
        if row.kind == Kind.TRANSMITTED and row.msg in where:
            where[row.msg].links.setdefault(row.msg, row.link)
        if row.kind == Kind.EXPIRED and row.reason == IN_THE_QUEUE and row.msg in where:
            where[row.msg].never_left.add(row.msg)
        history = histories.get(row.topic)
        if history is None or row.reason == INSTRUCTION:
            continue
        if row.kind == Kind.ACCEPTED:
            where[row.msg] = history
        elif row.kind == Kind.RELEASED:
            history.forwarded.setdefault(row.msg, row.t)
        elif row.kind == Kind.RETRACTED:
            history.never_left.add(row.msg)
        elif row.kind == Kind.READ and row.msg:
            history.read.setdefault(row.msg, row.at or row.t)
        elif row.kind == Kind.REPORTED and row.reason == "unread":
            for key in row.keys:
                history.read.pop(key, None)
    for history in histories.values():
        history.never_left -= history.forwarded.keys()
    return histories


class TopicEstimate:
    """One topic of one device, modelled under a policy, with the contacts and looks of the log."""

    def __init__(
        self,
        terms: LoggedTerms,
        policy: Policy,
        now: Micros,
        history: TopicHistory,
    ) -> None:
        subscription = terms.as_subscription()
        self._policy = policy
        self._feed = Feed(subscription, policy, now=now)
        self._device = DeviceQueue(max_per_read=subscription.max)
        self._known: dict[int, Held] = {}
        self._transit: dict[int, Micros] = {}
        """How long messages are under way to the device, where that is not at once."""
        self._there: dict[int, Micros] = {}
        """When such a message reaches the device."""
        self._link = ""
        self._ended = False
        self.history = history

    def renew(self, terms: LoggedTerms, policy: Policy, now: Micros) -> None:
        """Go on under other terms, as the gateway does: with the same messages, the same device
        and what a policy of the same class has learned."""
        old, subscription = self._feed, terms.as_subscription()
        self._succeed(policy)
        self._feed = Feed(subscription, policy, now=now)
        self._device.limit(subscription.max)
        for entry in inherit(self._feed, old):
            self._take(RankChanged(entry.key, entry.rank), now)

    def follow(self, policy: Policy) -> None:
        """Let another policy decide, which takes over what a policy of the same class knew."""
        self._succeed(policy)
        self._feed.follow(policy)

    def _succeed(self, policy: Policy) -> None:
        if type(policy) is type(self._policy):
            recall(policy, memory_of(self._policy))
        self._policy = policy

    def end(self) -> None:
        """End the subscription. The device hears of that in contact, and until then its user may
        read what it holds."""
        self._ended = True
        if self._feed.in_contact:
            self.forget()

    def forget(self) -> None:
        """Let the device forget what it holds of a topic whose subscription has ended."""
        if self._ended:
            self._device = DeviceQueue()

    def wake(self, now: Micros) -> None:
        """Let the feed do what it has planned for times up to `now`."""
        feed = self._feed
        while (due := feed.next_wake()) is not None and due <= now:
            self._take(WOKEN, due)

    def arrived(self, message: Held, transit: Micros, now: Micros) -> None:
        """Give the feed a message that may be considered from now on, and that takes so long to the
        device."""
        self._known[message.key] = message
        if transit:
            self._transit[message.key] = transit
        self._take(Arrived(message.key, message.rank, message.expires_at), now)

    def given(self, given: Input, now: Micros) -> None:
        """Give the feed another input: a change of rank, a withdrawal, or quiet."""
        if isinstance(given, RankChanged) and given.key in self._known:
            before = self._known[given.key]
            self._known[given.key] = Held(given.key, given.rank, before.expires_at)
        self._take(given, now)

    def contact(self, link: str, now: Micros) -> None:
        """Let the device be in contact, and report what the gateway has not been told."""
        self._link = link
        self._take(self._device.contact(), now)

    def alone(self, now: Micros) -> None:
        """Let the device be out of contact."""
        if self._feed.in_contact:
            self._take(DOWN, now)

    def ask(self, wanted: int | None, now: Micros) -> None:
        """Let the user look while there is contact."""
        if not self._ended:
            self._take(self._device.ask(wanted, now), now)

    def look(self, wanted: int | None, at: Micros) -> None:
        """Let the user look without contact, at what the device holds."""
        self._there = {key: there for key, there in self._there.items() if there > at}
        late = [held for held in self._device.all() if held.key in self._there]
        for held in late:
            self._device.forget(held.key)
        for key in self._device.read_offline(wanted, at):
            self.history.read.setdefault(key, at)
        for held in late:
            self._keep(held)

    def told(self, now: Micros) -> None:
        """Let the gateway hear of the oldest look without contact that it has not heard of."""
        if self._device.reads:
            self._take(self._device.reads.pop(0), now)

    def lost(self, now: Micros) -> None:
        """Let the device lose its memory, and everything that it holds."""
        keys = tuple(held.key for held in self._device.all())
        for key in keys:
            self._device.forget(key)
        self._take(Lost(keys), now)

    def unread(self, keys: Iterable[int], now: Micros) -> None:
        """Let messages be unread after all: the answer with them came too late to be shown."""
        again = [key for key in keys if self.history.read.pop(key, None) is not None]
        for key in again:
            self._keep(self._known[key])
        self._take(Unread(tuple(self._known[key] for key in again)), now)

    def _keep(self, held: Held) -> None:
        expires_at = NEVER if held.expires_at is None else held.expires_at
        self._device.add(held.key, held.rank, expires_at)

    def _take(self, given: Input, now: Micros) -> None:
        if self._ended:
            return
        device, history = self._device, self.history
        for effect in self._feed.take(given, now):
            if isinstance(effect, Forward):
                held = self._known[effect.key]
                device.forward(effect, rank=held.rank, expires_at=held.expires_at)
                if effect.key in self._transit:
                    self._there[effect.key] = now + self._transit[effect.key]
                history.forwarded.setdefault(effect.key, now)
                history.links.setdefault(effect.key, self._link)
            elif isinstance(effect, Show):
                for key in device.show(effect):
                    history.read.setdefault(key, now)
            elif isinstance(effect, Retract):
                device.retract(effect)
            elif isinstance(effect, Rerank):
                device.rerank(effect)


class MomentKind(IntEnum):
    """What a moment of the log means to an estimate."""

    LOOKED = 0
    """The user looks without contact, before the gateway is told by the event."""
    GIVEN = 1
    """What the event says happens, at the time of the event."""
    ARRIVED = 2
    """A message may be considered that was accepted for later."""
    BOOT_ENDED = 3
    """The boot ends that wrote the event, and every contact with it."""


class LoggedMoment(NamedTuple):
    """Something that happened, with its time and its event."""

    at: Micros
    n: int
    row: ReplayRow
    step: MomentKind = MomentKind.GIVEN
    transit: Micros = 0
    """How long an accepted message was under way to the device, once it had left."""


def transits(rows: Iterable[ReplayRow]) -> dict[int, Micros]:
    """Return how long each message was under way: from leaving until the first sign that the device
    has it, an acknowledgement or a read; without a sign, for ever."""
    left: dict[int, Micros] = {}
    there: dict[int, Micros] = {}
    for row in rows:
        if row.kind == Kind.RELEASED:
            left.setdefault(row.msg, row.t)
        elif row.kind in (Kind.RECEIVED, Kind.DELIVERED, Kind.READ) and row.msg in left:
            seen = row.at or row.t
            there[row.msg] = min(seen, there.get(row.msg, seen))
        elif row.kind == Kind.RETRACTED or row.reason == IN_THE_QUEUE:
            left.setdefault(row.msg, row.t)
    return {key: max(0, there.get(key, NEVER) - at) for key, at in left.items()}


def moments(rows: Sequence[ReplayRow]) -> list[LoggedMoment]:
    """Return what is taken as given, in the order in which it happened.

    The order is that of the log, also where the clock went back. A look without contact comes at
    its own time, before the gateway is told of it; so does a message that was accepted for later.
    """
    given_kinds = frozenset(GIVEN)
    under_way = transits(rows)
    found: list[tuple[Micros, int, LoggedMoment]] = []
    latest: Micros = 0
    before: ReplayRow | None = None
    for row in rows:
        if before is not None and row.boot != before.boot:
            # The gateway ended somewhere after the device's last event of the boot.
            ended = LoggedMoment(before.t, before.n, before, MomentKind.BOOT_ENDED)
            found.append((latest, before.n, ended))
        before, latest = row, max(latest, row.t)
        if row.kind not in given_kinds or row.reason == INSTRUCTION:
            continue
        if row.kind == Kind.READ and row.msg:
            continue
        if row.kind == Kind.READ and row.at:
            found.append((row.at, row.n, LoggedMoment(row.at, row.n, row, MomentKind.LOOKED)))
        late = row.kind == Kind.ACCEPTED and row.after > row.t
        at, step = (row.after, MomentKind.ARRIVED) if late else (row.t, MomentKind.GIVEN)
        moment = LoggedMoment(at, row.n, row, step, under_way.get(row.msg, 0))
        found.append((max(at, latest), row.n, moment))
    found.sort(key=lambda entry: (*entry[:2], entry[2].step))
    return [moment for _, _, moment in found]


def estimate(
    given: Sequence[LoggedMoment], choose: Choose, *, live: bool = False
) -> dict[str, TopicHistory]:
    """Return what would have happened, for each topic, if `choose` had chosen the policies.

    With `live`, `choose` is asked again whenever the log's policy changed.
    """
    device = DeviceEstimate(choose, live=live)
    for moment in given:
        device.live_through(moment)
    return device.histories


def estimate_live(given: Sequence[LoggedMoment]) -> dict[str, TopicHistory]:
    """Return what the model says that the live policies did: what was logged, or the model is
    wrong."""
    return estimate(given, lambda _, terms: terms.decider(), live=True)


class Audit(NamedTuple):
    """How a model of the live policies compares with what a device's log says about messages."""

    messages: int = 0
    """Messages of ranked topics that the device's gateway had for it."""
    agreed: int = 0
    """Those of them that left and were read, or did not, in the model as in the log."""
    difference: str = ""
    """The first message about which the two differ; empty if there is none."""


def audit(rows: Sequence[ReplayRow]) -> Audit:
    """Model the live policies of a device, and compare what left and what was read with the log."""
    estimated = estimate_live(moments(rows))
    logged = as_logged(rows, estimated)
    messages = {row.msg for row in rows if row.kind == Kind.ACCEPTED and row.topic in estimated}
    wrong: dict[int, str] = {}
    for topic, model in estimated.items():
        told = logged[topic]
        left = told.forwarded.keys() | told.never_left
        for keys, others, what in (
            (model.forwarded.keys(), left, "forwarded"),
            (model.read.keys(), told.read.keys(), "read"),
        ):
            wrong |= {key: f"{topic}: the log has not {what} {key}" for key in keys - others}
            wrong |= {key: f"{topic}: only the log has {what} {key}" for key in others - keys}
    messages |= wrong.keys()
    difference = wrong[min(wrong)] if wrong else ""
    return Audit(len(messages), len(messages) - len(wrong), difference)


class DeviceEstimate:
    """All ranked topics of one device, modelled from the moments that its log gives."""

    def __init__(self, choose: Choose, *, live: bool) -> None:
        self._choose = choose
        self._live = live
        self._feeds: dict[str, TopicEstimate] = {}
        self._ended: dict[str, TopicEstimate] = {}
        """Topics that are no longer subscribed to, of which the device may still hold messages."""
        self._links: dict[int, str] = {}
        """The label of the link of each channel that is open, by the number of the channel."""
        self.histories: dict[str, TopicHistory] = {}

    def live_through(self, moment: LoggedMoment) -> None:
        """Let a moment of the log happen."""
        at, _, row, step, _ = moment
        topic = row.topic
        feeds = self._feeds
        for feed in feeds.values() if not topic else (feeds[topic],) if topic in feeds else ():
            feed.wake(at)
        if step is MomentKind.BOOT_ENDED:
            self._links.clear()
            self._alone(at)
        elif step is MomentKind.LOOKED:
            looked_at = feeds.get(topic) or self._ended.get(topic)
            if looked_at is not None:
                looked_at.look(_wanted(row), at)
        elif row.kind == Kind.SUBSCRIBED and topic and row.terms:
            self._subscribe(topic, terms_of(row.terms), at)
        elif row.kind == Kind.CONTACT_STARTED:
            self._links[row.channel] = row.link
            for feed in self._ended.values():
                feed.forget()
        elif row.kind == Kind.CONTACT_LOST:
            self._links.pop(row.channel, None)
            if not self._links:
                self._alone(at)
        elif row.kind == Kind.REMOVED:
            feeds.clear()
            self._ended.clear()
        elif topic in feeds:
            self._give(topic, moment)

    def _alone(self, at: Micros) -> None:
        for feed in self._feeds.values():
            feed.alone(at)

    def _subscribe(self, topic: str, terms: LoggedTerms, at: Micros) -> None:
        policy = self._choose(topic, terms)
        if topic in self._feeds:
            self._feeds[topic].renew(terms, policy, at)
        else:
            history = self.histories.setdefault(topic, TopicHistory())
            self._ended.pop(topic, None)
            self._feeds[topic] = TopicEstimate(terms, policy, at, history)

    def _give(self, topic: str, moment: LoggedMoment) -> None:
        at, row = moment.at, moment.row
        feed, kind = self._feeds[topic], row.kind
        if kind == Kind.ACCEPTED:
            feed.arrived(Held(row.msg, row.rank, row.before or None), moment.transit, at)
        elif kind == Kind.RANK_CHANGED:
            feed.given(RankChanged(row.msg, row.rank), at)
        elif kind in (Kind.CANCELLED, Kind.REPLACED):
            feed.given(EventWithdrawn(row.msg), at)
        elif kind == Kind.CONTEXT_CHANGED:
            feed.given(Muted(row.reason == "quiet"), at)
        elif kind == Kind.READ:
            if row.at:
                feed.told(at)
            else:
                feed.ask(_wanted(row), at)
        elif kind == Kind.REPORTED and row.reason == "lost":
            feed.lost(at)
        elif kind == Kind.REPORTED and row.reason == "unread":
            feed.unread(row.keys, at)
        elif kind == Kind.REPORTED:
            feed.contact(next(reversed(self._links.values()), ""), at)
        elif kind == Kind.POLICY_CHANGED and self._live:
            feed.follow(self._choose(topic, terms_of(row.terms)))
        elif kind == Kind.UNSUBSCRIBED:
            feed.end()
            self._ended[topic] = self._feeds.pop(topic)


def _wanted(row: ReplayRow) -> int | None:
    return None if row.wanted < 0 else row.wanted
