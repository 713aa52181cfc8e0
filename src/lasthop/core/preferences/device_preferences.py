"""The state of a device that has preferences about links, quiet hours and costs.

`DevicePreferences` is what the gateway knows of one such device: its preferences, its budgets, what
is held and for how long. It asks `decision` and keeps the budgets; `core.dispatch` does the
sending. Devices without preferences have none and cost nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.core.contacts.channel_state import ChannelState, fits
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.feature import Asked, OrderKey, WaitReason
from lasthop.core.lifecycle import PENDING
from lasthop.core.preferences.caps import Caps
from lasthop.core.preferences.grants import Grants
from lasthop.core.session import Session
from lasthop.core.transfer import Transfer
from lasthop.decision.budgets import Budgets, Closure
from lasthop.decision.choice import Choice, MessageToPlace as Question
from lasthop.decision.contention import Gauge
from lasthop.decision.decide import Action
from lasthop.decision.ledger import BudgetLedger, Reserved, encode_budgets, restored_budgets
from lasthop.decision.links import Charge, Link, Tariff
from lasthop.decision.preferences import Preferences
from lasthop.decision.routes import NoLink, contradiction
from lasthop.decision.schedule import Slot, Unsatisfiable, earliest
from lasthop.decision.transmission import choose
from lasthop.message import Quality

BUDGETS, CAPS = "budgets", "caps"
"""The names under which the store keeps the budgets and the caps of a device."""


class HeldQueue:
    """The deliveries of one lane that are held back, in order of acceptance; or best first, if a
    cap lets fewer of them through than wait."""

    __slots__ = ("by_rank", "queue", "reason", "until")

    def __init__(self, reason: str, *, by_rank: bool = False, until: Micros | None = None) -> None:
        self.by_rank = by_rank
        """Whether the best delivery comes first, because a cap lets fewer deliveries through than
        wait."""
        self.queue: list[tuple[float, int, Delivery]] = []
        self.reason = reason
        self.until = until
        """When the first delivery is decided about again at the latest; None if no time is
        known."""

    def waiting(self, delivery: Delivery) -> WaitReason:
        """Return what a delivery of this queue waits for. The first one is held itself, and the
        others are behind it."""
        first = min((row for row in self.queue if row[2].state is PENDING), default=None)
        if first is None or first[2] is delivery:
            return WaitReason(self.reason, self.until)
        head = first[2].item.message.id
        return WaitReason(f"it is behind message {head}, which waits: {self.reason}", self.until)

    def add(self, delivery: Delivery) -> None:
        """Add a delivery; a delivery that comes back after its release gets its old place."""
        self._push(delivery, delivery.place)

    def _push(self, delivery: Delivery, place: int) -> None:
        rank = delivery.decider.rank(delivery) if self.by_rank else 0.0
        heapq.heappush(self.queue, (-rank, place, delivery))

    def take_over(self, other: HeldQueue) -> None:
        """Move the deliveries of another queue to this one."""
        for _, place, delivery in other.queue:
            self._push(delivery, place)  # Its old place: the delivery may have another one by now.

    @property
    def order(self) -> tuple[int, float, int]:
        """The key by which the held queues of a device are sorted: priority of the first delivery,
        then its rank if a cap applies, then its time of acceptance."""
        rank, key, delivery = self.queue[0]
        return -delivery.item.message.priority, rank, key


class DevicePreferences:
    """One device's preferences, its budgets, and the deliveries that they hold back."""

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
        self.ledger: BudgetLedger[Delivery | Transfer] = BudgetLedger(
            preferences.budgets(shared=shared)
        )
        self.gauges: dict[tuple[str, str], Gauge] = {}
        """The newest measurements of each link and network, used last at the end."""
        self.grants = Grants(self)
        self.caps = Caps(preferences)
        self.held: dict[OrderKey, HeldQueue] = {}
        self.parked: dict[Delivery, None] = {}
        """Released deliveries that no link may carry for the moment."""
        self.promised: dict[Delivery, Reserved] = {}
        """Deliveries that will leave again once their reservation is durable: a reservation that a
        crash erased would be spent a second time."""
        self.resting: dict[Delivery, WaitReason] = {}
        """Deliveries that carriers will get at a better time, and what they wait for."""
        self.with_carrier: set[Delivery] = set()
        """Deliveries whose reservation is for a carrier, which reports what it has spent."""
        self.reconsider = False
        """Whether links, limits or preferences have changed since the held deliveries were last
        looked at."""
        self.due: Micros | None = None
        """The time at which the gateway's timers will wake the device's preferences; None if no
        timer is set."""
        self.spent = False
        """Whether something was spent since the links were last checked against their limits."""
        self.closures: dict[str, Closure] = {}
        """Links that have reached their limits, by label."""
        self.wanted: tuple[str, ...] = ()
        """Links that the device should open."""
        self.told: tuple[int, tuple[str, ...]] = (0, ())
        """The contact in which the device was last told which links to open, and the links that it
        was told."""

    @property
    def budgets(self) -> Budgets:
        """The device's budgets, with what has been spent of them."""
        return self.ledger.budgets

    def restore(self, name: str, state: bytes, now: Micros) -> None:
        """Restore budgets or caps from the store, by name. What was reserved counts as spent,
        because it may have left."""
        if name == CAPS:
            self.caps.restore(state, self.preferences)
        else:
            self.ledger.budgets = restored_budgets(state, now, shared=self.budgets.shared)
            self.budgets.change(self.preferences.limits)

    def woken(self, now: Micros) -> None:
        """Look again at the held deliveries: one of them may leave now."""
        self.due = None
        self.reconsider = True
        self.deliveries.touch(self.session)

    def write(self) -> None:
        """Write budgets and caps, and the budgets that all devices share, with the open commit."""
        device = self.session.device.number
        commit = self.deliveries.commits.open
        commit.remember(device, BUDGETS, encode_budgets(self.budgets))
        if self.preferences.caps:
            commit.remember(device, CAPS, self.caps.encode())
        shared = self.budgets.shared
        if shared is not None:
            commit.remember(0, BUDGETS, encode_budgets(shared))

    def prefer(self, preferences: Preferences) -> None:
        """Replace the preferences; amounts that were spent stay spent."""
        self.ledger.change(preferences.limits, zone_name=preferences.zone)
        self.preferences = preferences
        self.caps.change(preferences)
        self.wake_resting()
        self.closures = {}
        self.reconsider = True

    def wake_resting(self) -> None:
        """Queue the deliveries again that wait for a better time."""
        resting, self.resting = self.resting, {}
        for delivery in resting:
            self.session.enqueue(delivery)

    # Decisions.

    def choice(self, delivery: Delivery, size: int, now: Micros) -> Choice | Unsatisfiable:
        """Return the link over which a delivery goes now, or what it waits for; `size` bytes of its
        body are still to leave."""
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
        """Return the link over which a message of a queue goes now, or what it waits for."""
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

    def place(self, delivery: Delivery, size: int, now: Micros, links: Sequence[Link]) -> Choice:
        """Return over which of its carriers' links a delivery of `size` octets goes now, or what it
        waits for. A tariff that the device has declared goes before that of the route."""
        message = delivery.item.message
        terms = self.preferences.queue(message.queue)
        if message.quality is not None and message.quality.bearer_required:
            # The publisher's word, which was checked when the message came in.
            terms = msgspec.structs.replace(terms, links=None)
        question = Question(
            size=size,
            since=max(message.accepted_at, message.deliver_after or 0),
            deliver_before=message.deliver_before,
            delay_tolerance=message.delay_tolerance,
        )
        return choose(
            question,
            queue=terms,
            current=[self.declared(link) for link in links],
            budgets=self.budgets,
            now=now,
            best=self.preferences.links,
            calendar=self.preferences.calendar,
        )

    def declared(self, link: Link) -> Link:
        """Return a carrier's link at the tariff that the device has declared for its label."""
        known = self.preferences.link(link.label)
        return link if known is None else msgspec.structs.replace(link, tariff=known.tariff)

    def slot(self, delivery: Delivery, now: Micros) -> Slot | Unsatisfiable | None:
        """Return when a delivery may be sent; None if it may be sent at any time. A delivery that
        has left before is not held."""
        if delivery.attempts:
            return None
        message = delivery.item.message
        since = max(message.accepted_at, message.deliver_after or 0)
        return self._slot(message, since, now)

    def _slot(self, message: Asked, since: Micros, now: Micros) -> Slot | Unsatisfiable | None:
        """Return when a message may be sent; None for at any time, as far as the device is
        concerned."""
        preferences = self.preferences
        caps = self.caps.covering(message.queue)
        if not (preferences.quiet or preferences.digests or caps):
            return None
        asked = preferences.constraints(message, since=since, now=now)
        asked += [cap.constraint(now) for cap in caps]
        return earliest(asked, now, rank=message.rank)

    def objection(self, message: Asked, now: Micros) -> Unsatisfiable | NoLink | None:
        """Return why a message that comes in now can never be sent as its publisher asks, under the
        present preferences; None if it can."""
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
        """Return a channel as a link for the decision: what the device declared, corrected by what
        was measured."""
        declared = self.preferences.link(line.link) or Link(line.link or "link", Tariff())
        link = msgspec.structs.replace(declared, channel=line.channel)
        gauge = line.gauge or self.gauges.get((line.link, line.network))
        return gauge.estimate.applied(link) if gauge is not None else link

    def _gauge(self, line: ChannelState) -> Gauge:
        """Return the gauge of a channel's link and network, which earlier channels may have filled;
        of two channels over the same, each has its own."""
        at = line.link, line.network
        known = self.gauges.pop(at, None)
        if known is None or any(other.gauge is known for other in self.session.lines):
            known = Gauge()
        if len(self.gauges) >= MOST_GAUGES:
            del self.gauges[next(iter(self.gauges))]
        self.gauges[at] = known
        return known

    def closed(self, label: str, now: Micros) -> Closure | None:
        """Return the closure of a link that must not be used at present; None if it may be used."""
        return self.budgets.closure(label, tariff=self.tariff(label), now=now)

    def tariff(self, label: str) -> Tariff:
        """Return the tariff of a link, as far as the device has declared it."""
        declared = self.preferences.link(label)
        return Tariff() if declared is None else declared.tariff

    def look_for_closures(self, now: Micros) -> None:
        """Find the open links that have reached their limits."""
        for line in self.session.lines:
            closure = self.closed(line.link, now)
            if closure is not None:
                self.closures[closure.link] = closure

    # The budgets.

    def reserve(self, delivery: Delivery, choice: Choice, now: Micros) -> None:
        """Reserve what a delivery will cost in the budgets, until it has left or is refunded."""
        queue = delivery.item.message.queue or ""
        self.ledger.reserve(delivery, choice, queue=queue, now=now)
        if not delivery.attempts:
            for cap in self.caps.covering(delivery.item.message.queue):
                cap.record(now)

    def left(self, delivery: Delivery, now: Micros) -> int:
        """Charge a delivery that was handed to its channel; return its price, including that of a
        body that went ahead of it."""
        reserved = self.ledger.reserved(delivery)
        assert reserved is not None
        line = self.session.line_of(reserved.channel)
        if line is not None:
            line.gauge = line.gauge or self._gauge(line)
        gauge = None if line is None else line.gauge
        money = self.ledger.left(delivery, now, gauge=gauge).charge.money
        return money + self.grants.paid(delivery.item.message.key)

    def give_to_carrier(self, delivery: Delivery, choice: Choice, now: Micros) -> None:
        """Reserve what a delivery will cost that goes through a carrier."""
        # The choice names a route by its place, and no channel.
        self.reserve(delivery, msgspec.structs.replace(choice, channel=0), now)
        self.with_carrier.add(delivery)

    def settle(self, delivery: Delivery, spent: Charge | None, now: Micros) -> Charge | None:
        """Charge what a carrier spent on a delivery, or all that was reserved if that is not known;
        a delivery that can still be taken back does not count towards caps."""
        self.with_carrier.discard(delivery)
        reserved = self.ledger.reserved(delivery)
        charged = self.ledger.settle(delivery, spent, now)
        if reserved is not None and charged != reserved.hold.charge:
            self._refunded(delivery, now)
        return charged

    def refund(self, delivery: Delivery, now: Micros) -> None:
        """Take back the reservation of a delivery that did not leave."""
        if self.ledger.refund(delivery, now):
            self._refunded(delivery, now)

    def _refunded(self, delivery: Delivery, now: Micros) -> None:
        if not delivery.attempts:
            for cap in self.caps.covering(delivery.item.message.queue):
                cap.withdraw(now)
        self.reconsider = True

    def acknowledged(self, delivery: Delivery, now: Micros) -> ChannelState | None:
        """Note that the device has a delivery; return the channel that carried it if its
        measurements are to be logged again, otherwise None."""
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
        """Forget a delivery that has ended, and take back its reservation if it has one; a carrier
        that still has the delivery may spend all of it."""
        if delivery in self.with_carrier:
            self.settle(delivery, None, now)
        if self.ledger.ended(delivery, now):
            self._refunded(delivery, now)
        self.parked.pop(delivery, None)
        self.resting.pop(delivery, None)
        self.grants.paid(delivery.item.message.key)


MOST_GAUGES = 32
"""The largest number of networks whose measurements are kept for one device: more than anybody
visits in a day, and a device may name as many as it likes."""

TELL_EVERY: Micros = 10 * SECOND
"""The time between two events about the measurements of one channel: delays change with the
network, not with the message."""
