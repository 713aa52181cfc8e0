"""One device's feed of one topic in the gateway: the engine's feed, its deliveries, and the
instructions to the device.

The feed decides at once; its messages and instructions are put in a lane and leave it in order: a
message before the instruction that shows it, an instruction to forget before the message comes
again.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

import msgspec

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.lifecycle import DELIVERED, PENDING, State, Step
from lasthop.core.ranked.ranked_delivery import RankedDelivery, ranked_of
from lasthop.core.ranked.records import (
    COLD,
    EARLY,
    HOT,
    NOT_FOLLOWED,
    OVER,
    PLACES,
    SHOWN,
    Hot,
    pack,
)
from lasthop.core.session import Session
from lasthop.decision.policies import Tuning
from lasthop.decision.reasons import ASKED, EXPIRED, NO_ROOM, WITHDRAWN
from lasthop.decision.volume.effects import DropEvent, Effect, Forward, Hold, Rerank, Retract, Show
from lasthop.decision.volume.entry import Place
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import (
    Arrived,
    EventWithdrawn,
    Gone,
    Input,
    RankChanged,
    Woken,
)
from lasthop.decision.volume.live_loss import LossWatch
from lasthop.decision.volume.memory import EntryState
from lasthop.decision.volume.policy_choice import (
    DEFAULT_POLICY,
    PolicyChoice,
    Remembered,
    policy_of,
)
from lasthop.decision.volume.subscription import Subscription
from lasthop.decision.volume.terms import TopicTerms
from lasthop.events import Event, Kind
from lasthop.store.commit import Commit
from lasthop.store.ranked import FeedRow, KeptRow, RankedChanges
from lasthop.wire.hop.feeds import (
    Forget,
    Instruction,
    NewRank,
    ShowKept,
    Why,
    decode_instructions,
    encode_instructions,
)

NO_ENTRY = EntryState(0, 0.0, None, 0, Place.ENDED, 0)

_encode = msgspec.json.Encoder().encode


class QueuedSend(msgspec.Struct):
    """A step in the lane: a message that leaves for the device."""

    key: int
    keep: bool = True


class Say(msgspec.Struct):
    """A step in the lane: an instruction to the device, perhaps the answer to a user's look at the
    topic."""

    instruction: Instruction
    reply_to: int | None = None


class RankedSubscription:
    """A ranked subscription of one device, which owns the feed of the topic."""

    def __init__(
        self,
        deliveries: Deliveries,
        session: Session,
        topic: str,
        terms: TopicTerms,
        choice: PolicyChoice,
        now: Micros,
        *,
        default: str = DEFAULT_POLICY,
    ) -> None:
        self._deliveries = deliveries
        self.session = session
        self.topic = topic
        self.terms = terms
        self.choice = choice
        self.default = default
        """The default policy when the subscription was made."""
        self.subscription = self._subscription()
        self.policy: Remembered = policy_of(choice, self.subscription.max)
        self.feed = Feed(self.subscription, self.policy, now=now)
        self.feed.track()
        self.lane: deque[QueuedSend | Say] = deque()
        self.armed: Micros | None = None
        """The time at which the gateway's timers will wake the feed; None if no timer is set."""
        self.muted = False
        self._changed: set[int] = set()
        """Messages whose rows are to be written though the feed did not move them."""
        self._new = True
        self.gone = False
        """Whether the subscription has ended or was replaced by one with other terms, so that it is
        no longer written to the store."""
        self.dirty = False
        self.watch: LossWatch | None = None
        """Counts what the user misses, while the device takes part in a policy's trial."""
        self.looking: int | None = None
        """The key of the user's look that is being answered; None if there is none."""

    def _subscription(self) -> Subscription:
        record = self.session.device.record
        return self.terms.subscription(record.zone, retention=self._deliveries.limits.retained)

    def describe(self) -> str:
        """Return the terms and the policy as JSON, for the log."""
        said = {
            "subscription": _unusual(self.subscription),
            "policy": self.choice.policy,
            "tuning": _unusual(self.policy.tuning),
        }
        if self.choice.memory:
            said["memory"] = self.choice.memory
        return _encode(said).decode()

    # Inputs of the feed.

    def begin(
        self, ranked: RankedDelivery, accepted: Event, until: Micros | None, now: Micros
    ) -> None:
        """Consider a delivery that was accepted, now or when its delay is over."""
        self.mark(accepted)
        if until is None:
            self.arrive(ranked, now)
        else:
            self._deliveries.timers.add(until, ranked.delivery)
            self.note(ranked.key)

    def arrive(self, ranked: RankedDelivery, now: Micros) -> None:
        """Tell the feed of a message that may be considered from now on."""
        message = ranked.delivery.item.message
        ranked.arrived = True
        self.take(Arrived(message.key, message.rank, message.deliver_before), now)

    def take(self, given: Input, now: Micros) -> None:
        """Give the feed an input, and carry out the effects that it returns."""
        effects = self.feed.take(given, now)
        if self.watch is not None:
            self.watch.take(given, effects, now)
        self.note()
        if effects:
            self._follow(effects, now)
        self._arm()

    def woken(self, now: Micros) -> None:
        """Wake the feed at a time that it asked for, maybe long ago."""
        if self.armed is None or now < self.armed:
            return
        self.armed = None
        wake = self.feed.next_wake()
        if wake is not None and wake <= now:
            self._tell(Kind.TIMER_FIRED, now)
            self.take(Woken(), now)
        else:
            self._arm()

    def due(self, ranked: RankedDelivery, now: Micros) -> bool:
        """Act on a time that was set for a delivery; return False if the dispatcher has to handle
        it."""
        delivery = ranked.delivery
        if delivery.state is not PENDING or ranked.instructs:
            return False
        before = delivery.item.message.deliver_before
        if not ranked.arrived and (before is None or now < before):
            self.arrive(ranked, now)
            return True
        if not ranked.arrived:
            return False
        self.take(Woken(), now)
        return delivery.state >= DELIVERED or not ranked.stamp

    def ended(self, ranked: RankedDelivery) -> None:
        """Tell the feed that a delivery has ended, for whatever reason."""
        key, delivery = ranked.key, ranked.delivery
        if ranked.instructs:
            if not ranked.followed:
                self.note(key)
            return
        self.note(key)
        ranked.stamp = 0
        place = self.feed.place(key)
        if place is not Place.ENDED and not self.gone:
            taken_back = delivery.state in (State.CANCELLED, State.REPLACED)
            withdrawn = taken_back and place is not Place.DEVICE
            given: Input = EventWithdrawn(key) if withdrawn else Gone((key,))
            self.take(given, delivery.changed_at)

    def follow(self, choice: PolicyChoice, now: Micros) -> None:
        """Replace the policy, which takes over what the old one has learned."""
        policy = policy_of(choice, self.subscription.max)
        policy.succeed(self.policy)
        self.choice, self.policy = choice, policy
        self.feed.follow(policy)
        self._new = True
        self.note()
        self._tell(Kind.POLICY_CHANGED, now, terms=self.describe())

    def rank_changed(self, ranked: RankedDelivery, now: Micros) -> None:
        """Tell the feed that a message has another rank."""
        message = ranked.delivery.item.message
        if self.feed.place(message.key) is not Place.ENDED:
            self._tell(Kind.RANK_CHANGED, now, msg=message.key, rank=message.rank)
            self.take(RankChanged(message.key, message.rank), now)

    def why(self, ranked: RankedDelivery) -> str:
        """Return the reason that is recorded in the event of a delivery that leaves."""
        if ranked.instructs:
            return "what the feed says"
        key = ranked.key
        return ASKED if self.feed.place(key) is Place.ENDED else self.feed.why(key)

    def mark(self, event: Event) -> None:
        """Add the topic and the policy to an event of a delivery."""
        event.topic = self.topic
        event.policy = self.choice.label

    def say(self, instruction: Instruction, *, reply_to: int | None = None) -> None:
        """Send the device an instruction, after the earlier ones."""
        self.lane.append(Say(instruction, reply_to))
        self.note()
        self._deliveries.touch(self.session)

    def delivery(self, key: int) -> RankedDelivery | None:
        """Return the open delivery of a message if this feed decides about it; otherwise None."""
        ranked = ranked_of(self.session.mailbox.get(key))
        return ranked if ranked is not None and ranked.feed is self else None

    # Effects of the feed.

    def _follow(self, effects: list[Effect], now: Micros) -> None:
        sent: dict[int, QueuedSend] = {}
        for effect in effects:
            if isinstance(effect, Forward):
                sent[effect.key] = send = QueuedSend(effect.key)
                self.lane.append(send)
                if effect.instead_of is not None:
                    self.retract(effect.instead_of, NO_ROOM, now)
            elif isinstance(effect, Show):
                self._show(effect, sent, now)
            elif isinstance(effect, Retract):
                self.retract(effect.key, effect.reason, now)
            elif isinstance(effect, Rerank):
                self.lane.append(Say(NewRank(effect.key, effect.rank)))
            elif isinstance(effect, Hold):
                self._hold(effect, now)
            else:
                self._drop(effect, now)
        self._deliveries.touch(self.session)

    def _show(self, effect: Show, sent: dict[int, QueuedSend], now: Micros) -> None:
        kept: list[int] = []
        for key in effect.keys:
            self._tell(Kind.READ, now, msg=key, reason=effect.reason)
            if effect.reason != ASKED and key in sent:
                sent[key].keep = False  # The device gives it to the application at once.
            else:
                kept.append(key)
        if kept and effect.reason != ASKED:
            self.lane.append(Say(ShowKept(tuple(kept))))
        elif effect.reason == ASKED:
            self.lane.append(Say(ShowKept(effect.keys), self.looking))
            self.looking = None

    def retract(self, key: int, reason: str, now: Micros) -> None:
        """Tell the device to forget a message, whether it still keeps the message or has shown it
        already."""
        self._tell(Kind.RETRACTED, now, msg=key, reason=reason)
        why = Why.ROOM if reason == NO_ROOM else Why.RANK
        self.lane.append(Say(Forget(why, (key,))))

    def _hold(self, effect: Hold, now: Micros) -> None:
        ranked = self.delivery(effect.key)
        if ranked is not None:
            self.mark(
                self._deliveries.commits.record_step(ranked.delivery, Kind.HELD, now, effect.reason)
            )

    def _drop(self, effect: DropEvent, now: Micros) -> None:
        ranked = self.delivery(effect.key)
        if ranked is None or effect.reason == WITHDRAWN or ranked.delivery.state is not PENDING:
            return
        step = Step.EXPIRE if effect.reason == EXPIRED else Step.SUPPRESS
        self.mark(self._deliveries.give_up(ranked.delivery, step, now, effect.reason))

    def _tell(self, kind: Kind, now: Micros, **facts: object) -> None:
        self._deliveries.commits.record(
            kind, now, self.session, topic=self.topic, policy=self.choice.label, **facts
        )

    # The rows in the store.

    def note(self, key: int | None = None) -> None:
        """Write the feed, and with `key` the row of that message, with the open commit."""
        if key is not None:
            self._changed.add(key)
        if not self.dirty:
            self.dirty = True
            self._deliveries.commits.note(self)

    def write(self, commit: Commit) -> None:
        """Write the changed rows of the feed into a commit."""
        self.dirty = False
        if self.gone:
            return
        changes = commit.of(RankedChanges)
        number = self.session.device.number
        changed, self._changed = self._changed | self.feed.moved(), set()
        for key in changed:
            changes.kept[key, number] = self._row(key)
        snapshot = self.policy.snapshot(always=self._new)
        if snapshot is not None:
            self._new = False
            row = FeedRow(number, self.topic, COLD, pack(snapshot))
            changes.feeds[number, self.topic, COLD] = row
        hot = Hot(
            self.feed.state(),
            self.choice.plain,
            [list(lesson) for lesson in self.policy.lessons],
            [_parked(step) for step in self.lane],
            self.default,
        )
        changes.feeds[number, self.topic, HOT] = FeedRow(number, self.topic, HOT, pack(hot))

    def _row(self, key: int) -> KeptRow:
        ranked = self.delivery(key)
        entry = self.feed.entry(key) or NO_ENTRY
        place = PLACES.get(entry.place, _place(ranked))
        return KeptRow(
            key,
            self.session.device.number,
            self.topic,
            place,
            entry.rank,
            entry.expires_at,
            entry.arrived_at,
            entry.due,
            ranked.stamp if ranked is not None else 0,
            ranked is not None and ranked.keep,
            ranked is not None and ranked.forget,
        )

    def restore(self, hot: Hot, memory: dict[str, Any], entries: list[EntryState]) -> None:
        """Restore the feed from the store."""
        self.policy.remember(memory, hot.lessons)
        self.feed.resume(hot.state, entries)
        self.feed.moved()
        self.muted = hot.state.agenda.muted
        self.lane = deque(stored_step(row) for row in hot.lane)
        self._new = False
        self._arm()

    def _arm(self) -> None:
        wake = self.feed.next_wake()
        if wake is not None and (self.armed is None or wake < self.armed):
            self.armed = wake
            self._deliveries.timers.add(wake, self)


def _place(ranked: RankedDelivery | None) -> int:
    """Return the stored place of a delivery that the feed has nothing to decide about."""
    if ranked is None:
        return OVER
    if ranked.instructs:
        return OVER if ranked.followed else NOT_FOLLOWED
    return SHOWN if ranked.arrived else EARLY


def _parked(step: QueuedSend | Say) -> list[Any]:
    if isinstance(step, QueuedSend):
        return [step.key, step.keep]
    return [encode_instructions((step.instruction,)), step.reply_to]


def _unusual(value: Subscription | Tuning) -> dict[str, Any]:
    """Return the fields that differ from their defaults."""
    return {
        field.name: item
        for field in dataclasses.fields(value)
        if (item := getattr(value, field.name)) != field.default
    }


def stored_step(row: list[Any]) -> QueuedSend | Say:
    """Return a step of the lane from its stored form."""
    if isinstance(row[0], int):
        return QueuedSend(row[0], row[1])
    return Say(decode_instructions(row[0])[0], row[1])
