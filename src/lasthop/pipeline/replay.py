"""A device's logged history through the real decision engine: as it was, or under another policy.

*As it was*: the feed is given exactly the inputs that the log has, and decides. What it decides is
held against the decisions that were logged; all of them agree, or the log or the engine is wrong.

*Under another policy*: what arrived, when there was contact and when the user looked is taken as
given. What the device held is modelled with its own queue, so that the result is an estimate: a
user who finds other things may behave otherwise.

There is no Spark in here: a worker needs lasthop and nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import msgspec

from lasthop.clock import Micros
from lasthop.decision.policies import POLICIES, Policy, Tuning
from lasthop.decision.policies.memory import recall
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import Drop, Effect, Forward, Hold, Rerank, Retract, Show
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import (
    Arrived,
    ContactDown,
    ContactUp,
    Held,
    Input,
    Muted,
    OfflineRead,
    RankChanged,
    Read,
    Withdrawn,
    Woken,
)
from lasthop.decision.volume.subscription import Subscription
from lasthop.errors import InvalidRequest
from lasthop.events import Kind
from lasthop.policy import Forwarding

COLUMNS = (
    "n",
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
"""What a replay looks at."""

KINDS = (
    Kind.ACCEPTED,
    Kind.HELD,
    Kind.RELEASED,
    Kind.TRANSMITTED,
    Kind.EXPIRED,
    Kind.SUPPRESSED,
    Kind.CANCELLED,
    Kind.REPLACED,
    Kind.READ,
    Kind.RETRACTED,
    Kind.RANK_CHANGED,
    Kind.SUBSCRIBED,
    Kind.CONTEXT_CHANGED,
    Kind.CONTACT_STARTED,
    Kind.CONTACT_LOST,
    Kind.REPORTED,
    Kind.TIMER_FIRED,
    Kind.POLICY_CHANGED,
)

WOKEN, DOWN = Woken(), ContactDown()


class Row(NamedTuple):
    """One event, as far as a replay looks at it."""

    n: int
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


class Terms(msgspec.Struct):
    """What a feed was made with: `terms` of a `subscribed` or `policy_changed` event."""

    subscription: dict[str, Any] = {}
    policy: str = "unified"
    tuning: dict[str, Any] = {}
    memory: dict[str, Any] = {}
    """What the policy knew from its first moment on."""

    def wishes(self) -> Subscription:
        """The subscription."""
        try:
            return msgspec.convert(self.subscription, Subscription)
        except (msgspec.ValidationError, ValueError) as error:
            raise InvalidRequest(f"these terms cannot be read: {error}") from None

    def decider(self) -> Policy:
        """The policy that was in force."""
        if self.policy not in POLICIES:
            raise InvalidRequest("unknown policy", policy=self.policy, known=", ".join(POLICIES))
        policy = POLICIES[self.policy](msgspec.convert(self.tuning, Tuning))
        if self.memory:
            recall(policy, self.memory)
        return policy


_decode_terms = msgspec.json.Decoder(Terms).decode


def terms_of(text: str) -> Terms:
    """Terms from an event; the built-in ones if it has none."""
    try:
        return _decode_terms(text) if text else Terms()
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"these terms cannot be read: {error}") from None


def decider(forwarding: Forwarding, subscription: Subscription) -> Policy:
    """A policy from what was learned or chosen."""
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

Choose = Callable[[str, Terms], Policy]
"""The policy of a topic's feed."""


class Decision(NamedTuple):
    """What was decided, as it is logged."""

    kind: str
    msg: int
    reason: str


def decided(effects: Iterable[Effect]) -> Iterator[Decision]:
    """Effects in the words of the log."""
    for effect in effects:
        if isinstance(effect, Forward):
            yield Decision("forwarded", effect.key, effect.reason)
        elif isinstance(effect, Hold):
            yield Decision("held", effect.key, effect.reason)
        elif isinstance(effect, Retract):
            yield Decision("retracted", effect.key, effect.reason)
        elif isinstance(effect, Drop):
            yield Decision("dropped", effect.key, effect.reason)
        elif isinstance(effect, Show):
            for key in effect.keys:
                yield Decision("shown", key, effect.reason)


def logged(row: Row) -> Decision | None:
    """A decision that an event tells of, if it does."""
    if not row.msg or not row.topic:
        return None
    if row.kind == Kind.RELEASED:
        return Decision("forwarded", row.msg, row.reason)
    if row.kind == Kind.HELD:
        return Decision("held", row.msg, row.reason)
    if row.kind == Kind.RETRACTED:
        return Decision("retracted", row.msg, row.reason)
    if row.kind in (Kind.EXPIRED, Kind.SUPPRESSED):
        return Decision("dropped", row.msg, row.reason)
    if row.kind in (Kind.CANCELLED, Kind.REPLACED):
        return Decision("dropped", row.msg, row.reason)
    if row.kind == Kind.READ and not row.at:
        return Decision("shown", row.msg, row.reason)
    return None


@dataclass(slots=True)
class Agreement:
    """How a replay of the live policy compares with the log."""

    decisions: int = 0
    """That were logged."""
    same: int = 0
    first_difference: str = ""

    def differ(self, text: str) -> None:
        if not self.first_difference:
            self.first_difference = text


class _LiveFeed:
    """A feed that is given what the log says it was given."""

    def __init__(self, terms: Terms, now: Micros) -> None:
        self.feed = Feed(terms.wishes(), terms.decider(), now=now)
        self.expected: deque[Decision] = deque()
        self.reads: list[OfflineRead] = []
        self._forwarded: set[int] = set()

    def take(self, given: Input, now: Micros) -> None:
        """Let it decide."""
        for decision in decided(self.feed.take(given, now)):
            if decision.kind == "forwarded":
                self._forwarded.add(decision.msg)
            elif decision.kind == "dropped" and decision.msg in self._forwarded:
                continue  # Its delivery had come to its end already, and says no more.
            self.expected.append(decision)


def check(rows: Iterable[Row]) -> Agreement:
    """Replay a device's history, in the order of its events, under the policies that were live.

    Decisions of a feed must come out in the order in which they were logged.
    """
    result = Agreement()
    feeds: dict[str, _LiveFeed] = {}
    channels: set[int] = set()
    for row in rows:
        told = logged(row)
        live = feeds.get(row.topic)
        if told is not None and live is not None:
            result.decisions += 1
            if live.expected and live.expected[0] == told:
                live.expected.popleft()
                result.same += 1
            else:
                wanted = live.expected[0] if live.expected else None
                result.differ(f"event {row.n}: logged {told}, replayed {wanted}")
                if told in live.expected:
                    # Go on from there: one difference is not to hide that all others agree.
                    while live.expected.popleft() != told:
                        pass
                    result.same += 1
        for topic, given in _inputs(row, feeds, channels):
            feeds[topic].take(given, row.t)
    for topic, live in feeds.items():
        if live.expected:
            result.differ(f"{topic}: replayed {live.expected[0]}, which is not in the log")
    return result


def _inputs(
    row: Row, feeds: dict[str, _LiveFeed], channels: set[int]
) -> Iterator[tuple[str, Input]]:
    """What an event tells the feeds of a device."""
    topic, kind = row.topic, row.kind
    if kind == Kind.SUBSCRIBED and topic:
        feeds[topic] = _LiveFeed(terms_of(row.terms), row.t)
    elif kind == Kind.CONTACT_STARTED:
        channels.add(row.channel)
    elif kind == Kind.CONTACT_LOST:
        channels.discard(row.channel)
        if not channels:
            for name in feeds:
                yield name, DOWN
    elif topic not in feeds:
        return
    elif kind == Kind.ACCEPTED:
        yield topic, Arrived(row.msg, row.rank, row.before or None)
    elif kind == Kind.RANK_CHANGED:
        yield topic, RankChanged(row.msg, row.rank)
    elif kind in (Kind.CANCELLED, Kind.REPLACED):
        yield topic, Withdrawn(row.msg)
    elif kind == Kind.READ and not row.msg and row.at:
        feeds[topic].reads.append(
            OfflineRead(row.at, None if row.wanted < 0 else row.wanted, tuple(row.keys))
        )
    elif kind == Kind.READ and not row.msg:
        wanted = None if row.wanted < 0 else row.wanted
        yield topic, Read(wanted, row.queue_size, _held(row.keys))
    elif kind == Kind.REPORTED:
        live = feeds[topic]
        reads, live.reads = tuple(live.reads), []
        yield topic, ContactUp(reads, tuple(row.keys))
    elif kind == Kind.CONTEXT_CHANGED:
        yield topic, Muted(row.reason == "quiet")
    elif kind == Kind.TIMER_FIRED:
        yield topic, WOKEN
    elif kind == Kind.POLICY_CHANGED:
        feeds[topic].feed.follow(terms_of(row.terms).decider())


def _held(keys: Sequence[int]) -> tuple[Held, ...]:
    """What the device said it had: of all but strangers the gateway knows better."""
    return tuple(Held(key, -inf) for key in keys)


@dataclass(slots=True)
class Story:
    """What a policy would have done with one topic of one device."""

    forwarded: dict[int, Micros] = field(default_factory=dict)
    """What went to the device, and when."""
    read: dict[int, Micros] = field(default_factory=dict)
    """What the user saw, and when."""
    links: dict[int, str] = field(default_factory=dict)
    """Over which link it went."""


def as_logged(rows: Iterable[Row], topics: Iterable[str]) -> dict[str, Story]:
    """What the log says was done with these topics."""
    stories = {topic: Story() for topic in topics}
    where: dict[int, Story] = {}
    for row in rows:
        if row.kind == Kind.TRANSMITTED and row.msg in where:
            where[row.msg].links.setdefault(row.msg, row.link)
        story = stories.get(row.topic)
        if story is None or not row.msg:
            continue
        if row.kind == Kind.RELEASED:
            story.forwarded.setdefault(row.msg, row.t)
            where[row.msg] = story
        elif row.kind == Kind.READ:
            story.read.setdefault(row.msg, row.at or row.t)
    return stories


class Estimate:
    """One topic of one device, modelled under a policy: contacts and looks are given."""

    def __init__(self, terms: Terms, policy: Policy, now: Micros) -> None:
        wishes = terms.wishes()
        self._feed = Feed(wishes, policy, now=now)
        self._device = DeviceQueue(max_per_read=wishes.max)
        self._known: dict[int, tuple[float, Micros | None]] = {}
        self._linked = False
        self._link = ""
        self.story = Story()

    def wake(self, now: Micros) -> None:
        """Let the feed do what it had planned for before `now`."""
        feed = self._feed
        while (due := feed.next_wake()) is not None and due <= now:
            self._take(WOKEN, due)

    def arrived(self, key: int, rank: float, before: Micros | None, now: Micros) -> None:
        self._known[key] = (rank, before)
        self._take(Arrived(key, rank, before), now)

    def given(self, given: Input, now: Micros) -> None:
        """A change of rank, a withdrawal, a change of mood."""
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
        """The user looks, with contact or without."""
        if self._linked:
            self._take(self._device.ask(wanted, now), now)
        else:
            for key in self._device.read_offline(wanted, now):
                self.story.read.setdefault(key, now)

    def _take(self, given: Input, now: Micros) -> None:
        device, story = self._device, self.story
        for effect in self._feed.take(given, now):
            if isinstance(effect, Forward):
                rank, before = self._known[effect.key]
                device.forward(effect, rank=rank, expires_at=before)
                story.forwarded.setdefault(effect.key, now)
                story.links.setdefault(effect.key, self._link)
            elif isinstance(effect, Show):
                for key in device.show(effect):
                    story.read.setdefault(key, now)
            elif isinstance(effect, Retract):
                device.retract(effect)
            elif isinstance(effect, Rerank):
                device.rerank(effect)


class Moment(NamedTuple):
    """Something that happened, when, and the event that tells of it."""

    at: Micros
    n: int
    row: Row


_GIVEN = {
    Kind.ACCEPTED,
    Kind.RANK_CHANGED,
    Kind.CANCELLED,
    Kind.REPLACED,
    Kind.SUBSCRIBED,
    Kind.CONTEXT_CHANGED,
    Kind.CONTACT_STARTED,
    Kind.CONTACT_LOST,
    Kind.REPORTED,
}


def moments(rows: Iterable[Row]) -> list[Moment]:
    """What is taken as given, in the order in which it happened: a read that was heard of later
    comes where it belongs."""
    given = [
        Moment(row.at or row.t, row.n, row)
        for row in rows
        if row.kind in _GIVEN or (row.kind == Kind.READ and not row.msg)
    ]
    given.sort()
    return given


def estimate(given: Sequence[Moment], choose: Choose) -> dict[str, Story]:
    """What would have happened, for each topic, had `choose` chosen the policies."""
    feeds: dict[str, Estimate] = {}
    links: dict[int, str] = {}
    for at, _, row in given:
        topic, kind = row.topic, row.kind
        for feed in feeds.values() if not topic else (feeds[topic],) if topic in feeds else ():
            feed.wake(at)
        if kind == Kind.SUBSCRIBED and topic:
            terms = terms_of(row.terms)
            if topic not in feeds:
                feeds[topic] = Estimate(terms, choose(topic, terms), at)
        elif kind == Kind.CONTACT_STARTED:
            links[row.channel] = row.link
        elif kind == Kind.CONTACT_LOST:
            links.pop(row.channel, None)
            if not links:
                for feed in feeds.values():
                    feed.alone(at)
        elif topic in feeds:
            _give(feeds[topic], row, next(reversed(links.values()), ""), at)
    return {topic: feed.story for topic, feed in feeds.items()}


def _give(feed: Estimate, row: Row, link: str, at: Micros) -> None:
    kind = row.kind
    if kind == Kind.ACCEPTED:
        feed.arrived(row.msg, row.rank, row.before or None, at)
    elif kind == Kind.RANK_CHANGED:
        feed.given(RankChanged(row.msg, row.rank), at)
    elif kind in (Kind.CANCELLED, Kind.REPLACED):
        feed.given(Withdrawn(row.msg), at)
    elif kind == Kind.CONTEXT_CHANGED:
        feed.given(Muted(row.reason == "quiet"), at)
    elif kind == Kind.REPORTED:
        feed.contact(link, at)
    elif kind == Kind.READ:
        feed.look(None if row.wanted < 0 else row.wanted, at)
