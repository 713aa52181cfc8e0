"""Deliveries through carriers: the choice of a route, the release, and what the carrier's outcome
means.

A device with routes needs no contact. A release chooses the route; when it is durable the parcel
goes to the driver, whose carrier reports one outcome. A parcel without an answer is sent again a
few times, one that could not leave for as long as `carried_patience` lasts; a crash in between
counts as no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lasthop.clock import MINUTE, SECOND, Micros
from lasthop.core.air.expected_receipts import ExpectedReceipts
from lasthop.core.air.hosts import HostIndex
from lasthop.core.air.spending import CarriedDelivery, bound, count, most_of
from lasthop.core.contacts.replies import note_reply
from lasthop.core.delivery import Delivery
from lasthop.core.effects import Carry, Fetch
from lasthop.core.feature import CoreFeature, WaitReason
from lasthop.core.lifecycle import DELIVERED, PENDING, SENDING, Step
from lasthop.core.publishing.submission import Submission
from lasthop.core.registry import Device, DeviceRecord
from lasthop.core.session import Session
from lasthop.core.spine import Spine
from lasthop.decision.choice import Choice
from lasthop.decision.decide import Action, decide
from lasthop.decision.links import Charge
from lasthop.decision.reasons import in_words
from lasthop.decision.routes import (
    Route,
    RouteRefusal,
    RouteSelection,
    check_variant,
    link_of,
    select,
)
from lasthop.delivery.carrier import (
    Aborted,
    Confirmed,
    NeedsMore,
    NotReached,
    Outcome,
    Parcel,
    ReturnedContent,
    Sent,
    Spent,
    Unanswered,
    Unfit,
)
from lasthop.errors import Rejected
from lasthop.events import Kind
from lasthop.message import DeliveryMethod, Message, Reliability, Target, TargetKind
from lasthop.store.commit import Restored
from lasthop.wire import tracecontext
from lasthop.wire.pap.codes import abort_code

FIRST_PAUSE: Micros = 10 * SECOND
"""The pause before a second attempt: a phone that comes out of a lift is back by then."""

LONGEST_PAUSE: Micros = 15 * MINUTE
"""The longest pause: a device that has been away for hours is tried four times an hour."""

NO_ANSWER = 4000
"""PAP's status code for a push that the gateway has given up and that its publisher may submit
again."""

_STRICT = frozenset({DeliveryMethod.CONFIRMED, DeliveryMethod.CONFIRMED_WITH_RESPONSE})

SWEEP = 1024
"""The number of remembered failures at which the failures of ended deliveries are first removed."""


class AirFeature(CoreFeature):
    """Moves deliveries from the mailbox to carriers."""

    def __init__(self, spine: Spine) -> None:
        self._deliveries = spine.deliveries
        self._acceptance = spine.acceptance
        self.hosts = HostIndex()
        self.receipts = ExpectedReceipts(spine.deliveries)
        spine.deliveries.registry.index(self.hosts)
        self._variants = spine.identity.variants
        """The variants that this gateway has carriers for."""
        self.withdraw: Callable[[str, int], bool] = lambda variant, number: False
        """The driver's function that takes the parcel of a number back from the carrier of a
        variant; it returns False if it is too late."""
        self._needed: dict[Delivery, int] = {}
        """Octets that a carrier has asked for, by delivery, where more was needed than reserved."""
        self._leaving: dict[Delivery, RouteSelection] = {}
        """The deliveries that are released, and are with no carrier yet."""
        self._under_way: dict[tuple[int, int], CarriedDelivery] = {}
        """The deliveries that are with a carrier, by message and device."""
        self._parcels = 0
        """The number of parcels since the start."""
        self._failures: dict[Delivery, Counter[Route]] = {}
        """Failed attempts since the start, by delivery and route."""
        self._again_at: dict[Delivery, Micros] = {}
        """When a delivery is tried again whose carrier failed, at the latest."""
        self._sweep_at = SWEEP
        self._fetching: dict[int, list[tuple[Delivery, RouteSelection]]] = {}
        """The deliveries that wait for their body from the store, by its key."""

    def check_device(self, app: str, record: DeviceRecord, device: Device | None) -> None:
        # A route that was registered while its carrier was configured stays, whatever else is
        # changed.
        known = () if device is None else device.record.routes
        for route in record.routes:
            if route not in known:
                check_variant(route.variant)

    def pump(self, session: Session, now: Micros) -> None:
        """Release the deliveries that may leave now, best first."""
        session.sender.stir(now)
        released: list[tuple[Delivery, RouteSelection]] = []
        most = self._deliveries.limits.carried_per_device
        kept: list[Delivery] = []
        while (delivery := session.best()) is not None:
            if not delivery.decider.carried:
                # A delivery that needs the device's answer waits for the device itself.
                session.take_best()
                kept.append(delivery)
                continue
            message = delivery.item.message
            decision = decide(
                deliver_after=message.deliver_after,
                deliver_before=message.deliver_before,
                in_contact=True,
                has_credit=session.lane.leaving < most,
                now=now,
            )
            if decision.action is Action.HOLD:
                break
            session.take_best()
            if decision.action is Action.EXPIRE:
                self._deliveries.give_up(delivery, Step.EXPIRE, now, decision.reason)
                continue
            if session.sender.rests(delivery, now):
                continue
            selected = self._release(delivery, now)
            if selected is not None:
                released.append((delivery, selected))
        for delivery in kept:
            session.enqueue(delivery)
        if released:
            self._deliveries.commits.when_durable(partial(self._leave, released))

    def divert(self, delivery: Delivery, refusal: RouteRefusal, now: Micros) -> None:
        """Send a delivery over one of the device's routes, because none of its channels has the
        quality that the publisher requires; give the delivery up if there is no route."""
        if not delivery.decider.carried:
            # No answer comes back over the air, so a delivery that needs one cannot leave.
            self._deliveries.give_up(delivery, Step.GIVE_UP, now, refusal.reason, code=refusal.code)
            return
        if delivery.session.sender.rests(delivery, now):
            return
        selected = self._release(delivery, now)
        if selected is not None:
            self._deliveries.commits.when_durable(partial(self._leave, [(delivery, selected)]))

    def _release(self, delivery: Delivery, now: Micros) -> RouteSelection | None:
        """Release a delivery over the best route; return None if there is none, or none now."""
        deliveries = self._deliveries
        session = delivery.session
        message = delivery.item.message
        served = [r for r in session.device.record.routes if r.variant in self._variants]
        selected = select(
            served,
            method=message.method,
            size=delivery.item.size,
            now=now,
            quality=message.quality,
            deliver_before=message.deliver_before,
            failures=self._failures.get(delivery),
            place=session.sender.route_choice(delivery, self._size(delivery, served), now),
        )
        if isinstance(selected, RouteRefusal):
            deliveries.give_up(delivery, Step.GIVE_UP, now, selected.reason, code=selected.code)
            return None
        if isinstance(selected, Choice):
            if selected.action is Action.EXPIRE:
                deliveries.give_up(delivery, Step.EXPIRE, now, in_words(selected.reasons))
            else:
                session.sender.waits(delivery, selected, now)
            return None
        if selected.choice is not None:
            session.sender.given_to_carrier(delivery, selected.choice, now)
        session.depart(delivery, numbered=False)
        deliveries.step(delivery, Step.RELEASE, now, selected.reason)
        self._leaving[delivery] = selected
        return selected

    def _size(self, delivery: Delivery, routes: Sequence[Route]) -> int:
        return max(bound(delivery.item, routes), self._needed.get(delivery, 0))

    def _leave(self, released: list[tuple[Delivery, RouteSelection]], now: Micros) -> None:
        """Hand over deliveries whose release is durable, and fetch the bodies that are missing."""
        missing: list[int] = []
        for delivery, selected in released:
            if delivery.item.resident:
                self._hand_over(delivery, selected, now)
                continue
            key = delivery.item.stored_key
            if key not in self._fetching:
                self._fetching[key] = []
                missing.append(key)
            self._fetching[key].append((delivery, selected))
        if missing:
            self._deliveries.effects.append(Fetch(missing))

    def fetched(self, messages: Mapping[int, Message], now: Micros) -> None:
        for key, message in messages.items():
            for delivery, selected in self._fetching.pop(key, ()):
                self._deliveries.refill(delivery.item, message.body)
                self._hand_over(delivery, selected, now)

    def _hand_over(self, delivery: Delivery, selected: RouteSelection, now: Micros) -> None:
        # It may have been taken back meanwhile, and perhaps released again.
        if self._leaving.get(delivery) is not selected:
            return
        del self._leaving[delivery]
        if delivery.state is not SENDING:
            return  # The device was removed meanwhile.
        deliveries = self._deliveries
        message = delivery.item.message
        device = delivery.session.device
        if message.deliver_before is not None and now >= message.deliver_before:
            late = "deliver_before passed before it could leave"
            deliveries.give_up(delivery, Step.EXPIRE, now, late)
            return
        route = selected.route
        delivery.attempts += 1
        event = deliveries.commits.departed(delivery, now, "")
        event.bytes = delivery.item.size
        event.attempt = delivery.attempts
        event.link = route.variant
        self._parcels += 1
        self._under_way[message.key, device.number] = CarriedDelivery(
            delivery, route, self._parcels
        )
        parcel = Parcel(
            number=self._parcels,
            route=route,
            content_type=message.content_type,
            headers=tracecontext.without(message.headers),
            body=message.body,
            confirmed=selected.confirmed,
            strict=message.method in _STRICT,
            response=message.method is DeliveryMethod.CONFIRMED_WITH_RESPONSE,
            deliver_before=message.deliver_before,
            once=message.method is DeliveryMethod.ONESHOT,
            priority=message.priority,
            capabilities=device.record.capabilities,
            most=most_of(selected.choice),
        )
        deliveries.effects.append(Carry(message.key, device.number, parcel))

    def carried(self, message: int, device: int, outcome: Outcome, now: Micros) -> None:
        """Handle a carrier's report on the parcel that it had for this message and device."""
        delivery, route, _ = self._under_way.pop((message, device))
        if delivery.state is not SENDING:
            return  # The device was removed meanwhile.
        deliveries = self._deliveries
        if isinstance(outcome, NotReached | NeedsMore | Unfit):
            # Nothing of it has left, so that it can still be taken back reliably.
            delivery.attempts -= 1
        count(self._deliveries.commits, delivery, link_of(route), outcome, now)
        match outcome:
            case Sent():
                deliveries.step(delivery, Step.HAND_OVER, now, "handed to the link")
                if outcome.receipts:
                    self.receipts.expect(delivery, outcome.receipts, now)
            case Confirmed():
                if outcome.content is not None:
                    self._answer(delivery, outcome.content, now)
                deliveries.step(delivery, Step.DELIVER, now, "confirmed by the client")
            case Aborted():
                why = f"the client refused it with reason {outcome.reason:#04x}"
                deliveries.step(delivery, Step.REFUSE, now, why, code=abort_code(outcome.reason))
            case NeedsMore():
                self._needs_more(delivery, route, outcome.needed, now)
            case Unfit():
                deliveries.give_up(delivery, Step.GIVE_UP, now, outcome.reason, code=outcome.code)
            case Unanswered():
                self._unanswered(delivery, route, outcome.reason, now)
            case NotReached():
                self._unreached(delivery, route, outcome.reason, now)
        deliveries.touch(delivery.session)

    def _needs_more(self, delivery: Delivery, route: Route, needed: Spent, now: Micros) -> None:
        """Reserve what the carrier needs, and release the delivery once more; a carrier that asks
        for what was reserved has failed."""
        link = link_of(route)
        octets = max(needed.octets, needed.units * link.tariff.unit)
        if octets <= self._needed.get(delivery, 0):
            self._unreached(delivery, route, "its carrier asks for more than it may need", now)
            return
        self._needed[delivery] = octets
        reason = f"{link.label} needs {octets} bytes, and less was reserved"
        self._deliveries.step(delivery, Step.REQUEUE, now, reason)
        delivery.session.enqueue(delivery)

    def recall(self, delivery: Delivery, now: Micros) -> bool:
        """Take a delivery back from its carrier, or from the way there."""
        at = delivery.item.message.key, delivery.session.device.number
        carried = self._under_way.get(at)
        if carried is not None:
            # After an earlier attempt the client may have the push, whatever this carrier says.
            if delivery.attempts > 1 or not self._withdrawn(at, carried):
                return False
            del self._under_way[at]
            delivery.attempts -= 1
            delivery.session.sender.carried(delivery, Charge(), now)
        elif delivery.attempts or self._leaving.pop(delivery, None) is None:
            return False
        else:
            delivery.session.sender.carried(delivery, Charge(), now)
        self._deliveries.step(delivery, Step.REQUEUE, now, "taken back before it left")
        delivery.session.enqueue(delivery)
        self._deliveries.touch(delivery.session)
        return True

    def _withdrawn(self, at: tuple[int, int], carried: CarriedDelivery) -> bool:
        """Return whether a parcel could be taken back: its carrier has it, or the driver has not
        yet given it to its carrier."""
        effects = self._deliveries.effects
        for n, effect in enumerate(effects):
            if isinstance(effect, Carry) and (effect.message, effect.device) == at:
                del effects[n]
                return True
        return self.withdraw(carried.route.variant, carried.number)

    def _unanswered(self, delivery: Delivery, route: Route, reason: str, now: Micros) -> None:
        message = delivery.item.message
        late = message.deliver_before is not None and now >= message.deliver_before
        # The client may have shown it: what needs no confirmation is not sent a second time.
        once = message.reliability is Reliability.BEST_EFFORT
        if late or once or delivery.attempts >= self._deliveries.limits.carried_attempts:
            self._deliveries.step(delivery, Step.TIME_OUT, now, reason, code=NO_ANSWER)
            return
        delivery.redelivered = True
        self._again(delivery, route, reason, now)

    def _unreached(self, delivery: Delivery, route: Route, reason: str, now: Micros) -> None:
        message = delivery.item.message
        deliveries = self._deliveries
        patience = deliveries.limits.carried_patience
        if message.deliver_before is not None and now >= message.deliver_before:
            deliveries.give_up(delivery, Step.EXPIRE, now, "deliver_before has passed")
        elif (
            message.immediate
            or message.method is DeliveryMethod.ONESHOT
            or now >= message.accepted_at + patience
        ):
            deliveries.give_up(delivery, Step.GIVE_UP, now, reason, code=NO_ANSWER)
        else:
            self._again(delivery, route, reason, now)

    def _again(self, delivery: Delivery, route: Route, reason: str, now: Micros) -> None:
        """Requeue a delivery: at once if a route is left that has not failed, else after a
        pause."""
        failures = self._failures.setdefault(delivery, Counter())
        failures[route] += 1
        self._deliveries.step(delivery, Step.REQUEUE, now, reason)
        routes = delivery.session.device.record.routes
        served = [each for each in routes if each.variant in self._variants] or [route]
        rounds = min(failures[each] for each in served)
        pause = min(FIRST_PAUSE << min(rounds - 1, 16), LONGEST_PAUSE) if rounds else 0
        self._deliveries.timers.add(now + pause, delivery)
        self._again_at[delivery] = now + pause
        if len(self._failures) > self._sweep_at:
            open_ones = {d: f for d, f in self._failures.items() if d.state < DELIVERED}
            self._failures = open_ones
            self._again_at = {d: t for d, t in self._again_at.items() if d.state < DELIVERED}
            self._needed = {d: n for d, n in self._needed.items() if d.state < DELIVERED}
            self._sweep_at = SWEEP + 2 * len(open_ones)

    def restore(self, restored: Restored, now: Micros) -> None:
        self.receipts.restore(restored.memories)

    def removed(self, session: Session, now: Micros) -> None:
        self.receipts.removed(session.device.number)

    def reachable_at(self, host: str, now: Micros) -> None:
        """Note that the client at this host has opened a session or a connection."""
        for device in self.hosts.at(host):
            self.reachable(self._deliveries.session(device), now)

    def waiting(self, delivery: Delivery) -> WaitReason | None:
        """Return what a delivery waits for that is with a carrier, or whose carrier failed."""
        at = delivery.item.message.key, delivery.session.device.number
        carried = self._under_way.get(at)
        if carried is not None:
            return WaitReason(f"its carrier over {carried.route.variant} has yet to report")
        if delivery in self._leaving:
            return WaitReason("it is on the way to its carrier")
        if delivery in self._failures and delivery.state is PENDING:
            return WaitReason("its carrier could not deliver it", self._again_at.get(delivery))
        return None

    def reaches(self, session: Session) -> bool:
        """Return whether the device has a route."""
        return bool(session.device.record.routes)

    def opened(self, session: Session) -> None:
        if session.device.record.routes:
            session.away_sender = self

    def amended(self, session: Session, changes: Mapping[str, object], now: Micros) -> None:
        routes = session.device.record.routes
        session.away_sender = self if routes else self._deliveries.away_sender
        self.reachable(session, now)

    def greeted(self, session: Session, now: Micros, *, joined: bool) -> None:
        if not joined and self.reaches(session):
            self.reachable(session, now)

    def reachable(self, session: Session, now: Micros) -> None:
        """Try the failed deliveries of a device again at once, because the device can be reached
        now."""
        for delivery in session.mailbox.values():
            if delivery.state is PENDING and self._failures.pop(delivery, None) is not None:
                session.enqueue(delivery)
                self._deliveries.touch(session)

    def _answer(self, delivery: Delivery, content: ReturnedContent, now: Micros) -> None:
        """Accept the content that a client returned as an answer, if the publisher asked for
        one."""
        message = delivery.item.message
        session = delivery.session
        if message.method is not DeliveryMethod.CONFIRMED_WITH_RESPONSE:
            return
        answer = Submission(
            target=Target(TargetKind.PUBLISHER, ""),
            body=content.body,
            content_type=content.content_type,
            headers=content.headers,
            in_reply_to=message.key,
        )
        source = f"device:{session.device.name}"
        try:
            (reply,) = self._acceptance.accept(session.device.app, source, [answer], now)
        except Rejected:
            return  # The answer is too large; the push was confirmed all the same.
        note_reply(self._deliveries, session, message.key, reply.key)
        self._deliveries.commits.record(
            Kind.REPLIED, now, session, msg=message.key, other=reply.key
        )
