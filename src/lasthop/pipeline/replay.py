"""A replay of a device's logged history through the real feeds: as it was, or under another policy.

*As it was*: the feed is given exactly the inputs that the log has, and decides. Its decisions are
compared with those in the log; all of them agree, or the log or the feed is wrong.

*Under another policy*: what arrived, when there was contact and when the user looked is taken as
given. What the device held is modelled with its own queue, so that the result is an estimate: a
user who finds other things may behave differently.

This module does not use Spark: a worker needs lasthop and nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from lasthop.clock import Micros
from lasthop.decision.policies import POLICIES, Policy, Tuning
from lasthop.decision.policies.memory import memory_of, recall
from lasthop.decision.reasons import ASKED, NO_ROOM
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import DropEvent, Effect, Forward, Hold, Rerank, Retract, Show
from lasthop.decision.volume.entry import Place
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
from lasthop.decision.volume.subscription import Subscription
from lasthop.errors import InvalidRequest
from lasthop.events import Kind
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
    Kind.READ,
    Kind.RETRACTED,
    Kind.RANK_CHANGED,
    Kind.SUBSCRIBED,
    Kind.UNSUBSCRIBED,
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
    Kind.CONTEXT_CHANGED,
    Kind.CONTACT_STARTED,
    Kind.CONTACT_LOST,
    Kind.REPORTED,
    Kind.READ,
)
"""Kinds of events that are taken as given when another policy is tried; of reads, only the looks of
a user."""

INSTRUCTION = "what the feed says"
"""The reason of a message that carries instructions of a feed: it is not a decision about a
message."""

WOKEN, DOWN = Woken(), ContactDown()


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
        entries = [e for key in old.feed.entries() if (e := old.feed.entry(key)) is not None]
        self.feed.resume(old.feed.state(), entries)
        for entry in entries:
            self.take(RankChanged(entry.key, entry.rank), now)

    def takes_again(self, told: LoggedDecision, result: Agreement) -> bool:
        """Return whether a logged decision was repeated. A message leaves when the link is free, so
        only the order of the other decisions is that of the log."""
        if told.kind == FORWARDED:
            self.left.add(told.msg)
            # By the time the message leaves, a read may also have asked for it.
            return told.reason in (ASKED, self._forwarded.get(told.msg))
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
    boot = 0
    for row in rows:
        if row.boot != boot:
            boot = row.boot
            channels.clear()
            for live in feeds.values():
                live.take(DOWN, row.t)
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


def as_logged(rows: Iterable[ReplayRow], topics: Iterable[str]) -> dict[str, TopicHistory]:
    """Return what was done with these topics, according to the log."""
    histories = {topic: TopicHistory() for topic in topics}
    where: dict[int, TopicHistory] = {}
    for row in rows:
        if row.kind == Kind.TRANSMITTED and row.msg in where:
            where[row.msg].links.setdefault(row.msg, row.link)
        history = histories.get(row.topic)
        if history is None or not row.msg or row.reason == INSTRUCTION:
            continue
        if row.kind == Kind.RELEASED:
            history.forwarded.setdefault(row.msg, row.t)
            where[row.msg] = history
        elif row.kind == Kind.READ:
            history.read.setdefault(row.msg, row.at or row.t)
    return histories


class TopicEstimate:
    """One topic of one device, modelled under a policy, with the contacts and looks of the log."""

    def __init__(self, terms: LoggedTerms, policy: Policy, now: Micros) -> None:
        as_subscription = terms.as_subscription()
        self._feed = Feed(as_subscription, policy, now=now)
        self._device = DeviceQueue(max_per_read=as_subscription.max)
        self._known: dict[int, tuple[float, Micros | None]] = {}
        self._linked = False
        self._link = ""
        self.history = TopicHistory()

    def wake(self, now: Micros) -> None:
        """Let the feed do what it has planned for times up to `now`."""
        feed = self._feed
        while (due := feed.next_wake()) is not None and due <= now:
            self._take(WOKEN, due)

    def arrived(self, key: int, rank: float, before: Micros | None, now: Micros) -> None:
        self._known[key] = (rank, before)
        self._take(Arrived(key, rank, before), now)

    def given(self, given: Input, now: Micros) -> None:
        """Give the feed another input: a change of rank, a withdrawal, or quiet."""
        if isinstance(given, RankChanged) and given.key in self._known:
            self._known[given.key] = (given.rank, self._known[given.key][1])
        self._take(given, now)

    def contact(self, link: str, now: Micros) -> None:
        self._linked, self._link = True, link
        self._take(self._device.contact(), now)

    def alone(self, now: Micros) -> None:
        if self._linked:
            self._linked = False
            self._take(DOWN, now)

    def look(self, wanted: int | None, now: Micros) -> None:
        """Let the user look, with contact or without."""
        if self._linked:
            self._take(self._device.ask(wanted, now), now)
        else:
            for key in self._device.read_offline(wanted, now):
                self.history.read.setdefault(key, now)

    def _take(self, given: Input, now: Micros) -> None:
        device, history = self._device, self.history
        for effect in self._feed.take(given, now):
            if isinstance(effect, Forward):
                rank, before = self._known[effect.key]
                device.forward(effect, rank=rank, expires_at=before)
                history.forwarded.setdefault(effect.key, now)
                history.links.setdefault(effect.key, self._link)
            elif isinstance(effect, Show):
                for key in device.show(effect):
                    history.read.setdefault(key, now)
            elif isinstance(effect, Retract):
                device.retract(effect)
            elif isinstance(effect, Rerank):
                device.rerank(effect)


class LoggedMoment(NamedTuple):
    """Something that happened, with its time and its event."""

    at: Micros
    n: int
    row: ReplayRow


def moments(rows: Iterable[ReplayRow]) -> list[LoggedMoment]:
    """Return what is taken as given, in the order in which it happened: a read that was reported
    later comes at its own time."""
    given_kinds = frozenset(GIVEN)
    given = [
        LoggedMoment(row.at or row.t, row.n, row)
        for row in rows
        if row.kind in given_kinds
        and row.reason != INSTRUCTION
        and not (row.kind == Kind.READ and row.msg)
    ]
    given.sort()
    return given


def estimate(given: Sequence[LoggedMoment], choose: Choose) -> dict[str, TopicHistory]:
    """Return what would have happened, for each topic, if `choose` had chosen the policies."""
    feeds: dict[str, TopicEstimate] = {}
    links: dict[int, str] = {}
    for at, _, row in given:
        topic, kind = row.topic, row.kind
        for feed in feeds.values() if not topic else (feeds[topic],) if topic in feeds else ():
            feed.wake(at)
        if kind == Kind.SUBSCRIBED and topic:
            terms = terms_of(row.terms)
            if topic not in feeds:
                feeds[topic] = TopicEstimate(terms, choose(topic, terms), at)
        elif kind == Kind.CONTACT_STARTED:
            links[row.channel] = row.link
        elif kind == Kind.CONTACT_LOST:
            links.pop(row.channel, None)
            if not links:
                for feed in feeds.values():
                    feed.alone(at)
        elif topic in feeds:
            _give(feeds[topic], row, next(reversed(links.values()), ""), at)
    return {topic: feed.history for topic, feed in feeds.items()}


def _give(feed: TopicEstimate, row: ReplayRow, link: str, at: Micros) -> None:
    kind = row.kind
    if kind == Kind.ACCEPTED:
        feed.arrived(row.msg, row.rank, row.before or None, at)
    elif kind == Kind.RANK_CHANGED:
        feed.given(RankChanged(row.msg, row.rank), at)
    elif kind in (Kind.CANCELLED, Kind.REPLACED):
        feed.given(EventWithdrawn(row.msg), at)
    elif kind == Kind.CONTEXT_CHANGED:
        feed.given(Muted(row.reason == "quiet"), at)
    elif kind == Kind.REPORTED:
        feed.contact(link, at)
    elif kind == Kind.READ:
        feed.look(None if row.wanted < 0 else row.wanted, at)
