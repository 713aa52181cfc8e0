"""A device that says which links it likes, when it wants to be left alone, and what it can afford.

`DevicePreferences` is what the gateway knows of one such device: its preferences, its budgets, what
is held and for how long. It asks `decision` and keeps the books; `core.dispatch` does the sending.
Devices without preferences have none and cost nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.core.contacts.channel_state import ChannelState, fits
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.feature import Asked, OrderKey
from lasthop.core.preferences.caps import Caps
from lasthop.core.preferences.grants import Grants
from lasthop.core.session import Session
from lasthop.core.transfer import Transfer
from lasthop.decision.budgets import Budgets, Closure
from lasthop.decision.choice import Choice, MessageToPlace as Question
from lasthop.decision.contention import Gauge
from lasthop.decision.decide import Action
from lasthop.decision.ledger import Ledger, Reserved, encode_budgets, restored_budgets
from lasthop.decision.links import Link, Tariff
from lasthop.decision.preferences import Preferences
from lasthop.decision.routes import NoLink, contradiction
from lasthop.decision.schedule import Slot, Unsatisfiable, earliest
from lasthop.decision.transmission import choose
from lasthop.message import Quality

BUDGETS, CAPS = "budgets", "caps"
"""The names under which the store keeps them."""


class HeldQueue:
    """Deliveries of one lane that wait behind the first of them: in order of acceptance, or where
    a cap chooses among them the best first."""

    __slots__ = ("by_rank", "queue", "reason")

    def __init__(self, reason: str, *, by_rank: bool = False) -> None:
        self.by_rank = by_rank
        """More wait than may come, and the best shall come first."""
        self.queue: list[tuple[float, int, Delivery]] = []
        self.reason = reason

    def add(self, delivery: Delivery) -> None:
        """One more waits; one that comes back after its release has its old place."""
        self._push(delivery, delivery.place)

    def _push(self, delivery: Delivery, place: int) -> None:
        rank = delivery.decider.rank(delivery) if self.by_rank else 0.0
        heapq.heappush(self.queue, (-rank, place, delivery))

    def take_over(self, other: HeldQueue) -> None:
        """Those who waited elsewhere wait here."""
        for _, place, delivery in other.queue:
            self._push(delivery, place)  # As it was: it may have another place by now.

    @property
    def order(self) -> tuple[int, float, int]:
        """Whose turn it is among lanes: by priority, then by rank under a cap, then by who came
        first."""
        rank, key, delivery = self.queue[0]
        return -delivery.item.message.priority, rank, key


class DevicePreferences:
    """One device's wishes, and what came of them."""

    def __init__(
        self,
        deliveries: Deliveries,
        session: Session,
        preferences: Preferences,
        shared: Budgets | None = None,
    ) -> None:
        self.deliveries = deliveries
        self.session = session
        self.preferences = preferences
        self.ledger: Ledger[Delivery | Transfer] = Ledger(preferences.budgets(shared=shared))
        self.grants = Grants(self)
        self.caps = Caps(preferences)
        self.held: dict[OrderKey, HeldQueue] = {}
        self.parked: dict[Delivery, None] = {}
        """Under way, and no link may carry it again just now."""
        self.promised: dict[Delivery, Reserved] = {}
        """To leave again, once the place that is reserved for it is so durably: what is spent
        without a trace would be spent once more."""
        self.resting: dict[Delivery, None] = {}
        """What carriers are to have at a better time; each has a timer."""
        self.reconsider = False
        """Links, limits or wishes have changed since what is held was last looked at."""
        self.due: Micros | None = None
        """For when it stands among the gateway's timers."""
        self.spent = False
        """Something was spent since it was last asked whether a link has reached its limit."""
        self.closures: dict[str, Closure] = {}
        """Links that have reached their limits, by label."""
        self.wanted: tuple[str, ...] = ()
        """Links that the device would do well to open."""
        self.told: tuple[int, tuple[str, ...]] = (0, ())
        """The contact in which it was told so, and what."""

    @property
    def budgets(self) -> Budgets:
        """What may be spent, and what was."""
        return self.ledger.budgets

    def restore(self, name: str, state: bytes, now: Micros) -> None:
        """Go on with what an earlier life kept under a name. What was reserved may have left."""
        if name == CAPS:
            self.caps.restore(state, self.preferences)
        else:
            self.ledger.budgets = restored_budgets(state, now, shared=self.budgets.shared)
            self.budgets.change(self.preferences.limits)

    def woken(self, now: Micros) -> None:
        """Something that is held may leave now."""
        self.due = None
        self.reconsider = True
        self.deliveries.touch(self.session)

    def write(self) -> None:
        """Put budgets and caps, and what all devices share, into the open commit."""
        device = self.session.device.number
        commit = self.deliveries.commits.open
        commit.remember(device, BUDGETS, encode_budgets(self.budgets))
        if self.preferences.caps:
            commit.remember(device, CAPS, self.caps.encode())
        shared = self.budgets.shared
        if shared is not None:
            commit.remember(0, BUDGETS, encode_budgets(shared))

    def prefer(self, preferences: Preferences) -> None:
        """The device wants it otherwise from now on; what was used stays used."""
        self.ledger.change(preferences.limits, zone_name=preferences.zone)
        self.preferences = preferences
        self.caps.change(preferences)
        for delivery in self.resting:
            self.session.enqueue(delivery)
        self.resting = {}
        self.closures = {}
        self.reconsider = True

    # Decisions.

    def choice(self, delivery: Delivery, size: int, now: Micros) -> Choice | Unsatisfiable:
        """Over which link a delivery goes now, or what it waits for; so many bytes of its body are
        still to leave."""
        message = delivery.item.message
        since = max(message.accepted_at, message.deliver_after or 0)
        slot = self.slot(delivery, now)
        if isinstance(slot, Unsatisfiable):
            return slot
        if slot is not None and slot.at > now:
            return Choice(Action.HOLD, slot.reasons, until=slot.at)
        question = Question(
            size=size,
            since=since,
            deliver_before=message.deliver_before,
            delay_tolerance=message.delay_tolerance,
            attempts=self.ledger.attempts(delivery),
        )
        return self.link_for(question, message.queue, message.quality, now)

    def link_for(
        self, question: Question, queue: str | None, quality: Quality | None, now: Micros
    ) -> Choice:
        """Over which link something of a queue goes now, or what it waits for."""
        preferences = self.preferences
        chosen = choose(
            question,
            queue=preferences.queue(queue),
            current=list(self._links(quality)),
            budgets=self.budgets,
            now=now,
            best=preferences.links,
            calendar=preferences.calendar,
        )
        for closure in chosen.close:
            self.closures[closure.link] = closure
        if chosen.wanted:
            self.wanted = chosen.wanted
        return chosen

    def slot(self, delivery: Delivery, now: Micros) -> Slot | Unsatisfiable | None:
        """When a delivery may come; `None`: at any time. What has left before is not held."""
        if delivery.attempts:
            return None
        message = delivery.item.message
        since = max(message.accepted_at, message.deliver_after or 0)
        return self._slot(message, since, now)

    def _slot(self, message: Asked, since: Micros, now: Micros) -> Slot | Unsatisfiable | None:
        """When a message may come; `None`: at any time, as far as the device is concerned."""
        preferences = self.preferences
        caps = self.caps.covering(message.queue)
        if not (preferences.quiet or preferences.digests or caps):
            return None
        asked = preferences.constraints(message, since=since, now=now)
        asked += [cap.constraint(now) for cap in caps]
        return earliest(asked, now, rank=message.rank)

    def objection(self, message: Asked, now: Micros) -> Unsatisfiable | NoLink | None:
        """Why something that comes in now can never be sent as its publisher asks, while the
        device wants what it wants: nobody needs to wait to know."""
        slot = self._slot(message, max(now, message.deliver_after or 0), now)
        if isinstance(slot, Unsatisfiable):
            return slot
        if message.quality is None:
            return None
        terms = self.preferences.queue(message.queue)
        return contradiction(message.quality, terms, self.session.device.record.routes)

    def _links(self, quality: Quality | None) -> Iterator[Link]:
        for line in self.session.lines:
            if line.greeted and not line.paused and fits(line, quality):
                yield self.link_of(line)

    def link_of(self, line: ChannelState) -> Link:
        """A line as the decision sees it: what the device declared, corrected by what was
        measured."""
        declared = self.preferences.link(line.link) or Link(line.link or "link", Tariff())
        link = msgspec.structs.replace(declared, channel=line.channel)
        return line.gauge.estimate.applied(link) if line.gauge is not None else link

    def closed(self, label: str, now: Micros) -> Closure | None:
        """Whether a link must not be used at present."""
        return self.budgets.closure(label, tariff=self.tariff(label), now=now)

    def tariff(self, label: str) -> Tariff:
        """What a link charges, as far as the device has said."""
        declared = self.preferences.link(label)
        return Tariff() if declared is None else declared.tariff

    def look_for_closures(self, now: Micros) -> None:
        """Whether one of the links that are up has reached its limit."""
        for line in self.session.lines:
            closure = self.closed(line.link, now)
            if closure is not None:
                self.closures[closure.link] = closure

    # The books.

    def reserve(self, delivery: Delivery, choice: Choice, now: Micros) -> None:
        """Take what a delivery will cost out of the budgets, until it has left or not."""
        queue = delivery.item.message.queue or ""
        self.ledger.reserve(delivery, choice, queue=queue, now=now)
        if not delivery.attempts:
            for cap in self.caps.covering(delivery.item.message.queue):
                cap.record(now)

    def left(self, delivery: Delivery, now: Micros) -> int:
        """It was handed to its channel: the money is spent. Returns how much, with what its body
        has cost ahead of it."""
        reserved = self.ledger.reserved(delivery)
        assert reserved is not None
        line = self.session.line_of(reserved.channel)
        if line is not None:
            line.gauge = line.gauge or Gauge()
        gauge = None if line is None else line.gauge
        money = self.ledger.left(delivery, now, gauge=gauge).charge.money
        return money + self.grants.paid(delivery.item.message.key)

    def refund(self, delivery: Delivery, now: Micros) -> None:
        """It did not leave."""
        if self.ledger.refund(delivery, now):
            self._refunded(delivery, now)

    def _refunded(self, delivery: Delivery, now: Micros) -> None:
        if not delivery.attempts:
            for cap in self.caps.covering(delivery.item.message.queue):
                cap.withdraw(now)
        self.reconsider = True

    def acknowledged(self, delivery: Delivery, now: Micros) -> ChannelState | None:
        """The device has it. Returns the line that carried it, if that is to be told of again."""
        channel = self.ledger.acknowledged(delivery, now)
        line = None if channel is None else self.session.line_of(channel)
        if line is None or line.gauge is None:
            return None
        gauge = line.gauge
        if gauge.told_at is not None and now < gauge.told_at + TELL_EVERY:
            return None
        gauge.told_at = now
        return line

    def ended(self, delivery: Delivery, now: Micros) -> None:
        """It has come to its end."""
        if self.ledger.ended(delivery, now):
            self._refunded(delivery, now)
        self.parked.pop(delivery, None)
        self.resting.pop(delivery, None)
        self.grants.paid(delivery.item.message.key)


TELL_EVERY: Micros = 10 * SECOND
"""Between two entries in the log about one line: delays change with the network, not with the
message."""
