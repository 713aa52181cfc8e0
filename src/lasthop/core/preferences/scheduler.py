"""The choice of links, lane by lane, for devices that have preferences.

A delivery that may not leave yet holds up its own lane and no other: order is kept within a lane. A
release reserves the price, and the price is paid when the message is handed to its link.
"""

from __future__ import annotations

import heapq

from lasthop.clock import Micros
from lasthop.core.contacts.channel_state import ChannelState
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.effects import Send
from lasthop.core.feature import Leaving, OrderKey
from lasthop.core.lifecycle import PENDING, Step
from lasthop.core.preferences.device_preferences import DevicePreferences, HeldQueue
from lasthop.core.sending import divert, leaving, release, weight_of
from lasthop.core.session import Session
from lasthop.decision.choice import Choice
from lasthop.decision.decide import Action
from lasthop.decision.reasons import in_words
from lasthop.decision.schedule import Unsatisfiable
from lasthop.events import Kind
from lasthop.wire.hop.frames import Wanted

AHEAD = "its body goes ahead of it"
NO_CREDIT = "the device accepts no more of its lane for now"


class PreferenceScheduler:
    """Decides about deliveries to devices that have preferences, and keeps their budgets."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._changed: dict[DevicePreferences, None] = {}
        """The devices whose budgets are to be written."""

    def pump(
        self, session: Session, device_preferences: DevicePreferences, now: Micros
    ) -> list[Delivery]:
        """Release the deliveries that may leave now, the best lane first."""
        released: list[Delivery] = []
        if device_preferences.reconsider:
            device_preferences.reconsider = False
            lanes = sorted(
                device_preferences.held, key=lambda lane: device_preferences.held[lane].order
            )
            for lane in lanes:
                self._go_on(session, device_preferences, lane, released, now)
        while (delivery := session.best()) is not None:
            lane = delivery.decider.order(delivery)
            held = device_preferences.held.get(lane)
            if held is None and not session.admits(delivery):
                if session.lanes is None:
                    break
                # Only its lane waits for credit.
                held = device_preferences.held[lane] = HeldQueue(NO_CREDIT)
                device_preferences.reconsider = True
            session.take_best()
            if held is not None:
                held.add(delivery)
            else:
                self._offer(session, device_preferences, delivery, released, now)
        self._arm(device_preferences, device_preferences.grants.give(self._deliveries, now))
        self.settle(session, device_preferences, now)
        return released

    def _go_on(
        self,
        session: Session,
        device_preferences: DevicePreferences,
        lane: OrderKey,
        released: list[Delivery],
        now: Micros,
    ) -> None:
        """Look again at a lane that was held."""
        held = device_preferences.held.pop(lane)
        while held.queue:
            if lane in device_preferences.held:
                # The first delivery is held again: the others wait behind it in its new queue.
                device_preferences.held[lane].take_over(held)
                return
            _, place, delivery = held.queue[0]
            if delivery.state is not PENDING or delivery.place != place:
                # Its decider may have taken it back, and may have queued it again since at another
                # place.
                heapq.heappop(held.queue)
                continue
            if not session.admits(delivery):
                device_preferences.held[lane] = held
                device_preferences.reconsider = True
                return
            heapq.heappop(held.queue)
            self._offer(session, device_preferences, delivery, released, now, before=held.reason)

    def _offer(
        self,
        session: Session,
        device_preferences: DevicePreferences,
        delivery: Delivery,
        released: list[Delivery],
        now: Micros,
        before: str = "",
    ) -> None:
        deliveries = self._deliveries
        body = None if delivery.ahead else session.transfers.get(delivery.item.message.key)
        if body is not None and device_preferences.grants.covers(body):
            self._let_ahead(device_preferences, delivery)
            return
        if divert(delivery, now):
            return
        choice = device_preferences.choice(delivery, weight_of(delivery), now)
        if isinstance(choice, Unsatisfiable):
            deliveries.give_up(delivery, Step.SUPPRESS, now, str(choice.reason()))
        elif choice.action is Action.EXPIRE:
            deliveries.give_up(delivery, Step.EXPIRE, now, in_words(choice.reasons))
        elif choice.action is Action.HOLD:
            self._hold(device_preferences, delivery, choice, now, before)
        elif (said := leaving(delivery, now, choice.channel)) is not Leaving.GO:
            if said is Leaving.ASIDE:
                return
            body = session.transfers.get(delivery.item.message.key)
            if body is not None:
                # Reserve the bytes of this body before another delivery is asked about the rest of
                # the budget.
                self._arm(device_preferences, device_preferences.grants.ask(body, deliveries, now))
            self._let_ahead(device_preferences, delivery)
        else:
            device_preferences.reserve(delivery, choice, now)
            words = in_words(choice.reasons)
            event = release(deliveries, session, delivery, now, words)
            if choice.link is not None:
                event.link = choice.link
            released.append(delivery)

    def _let_ahead(self, device_preferences: DevicePreferences, delivery: Delivery) -> None:
        """Hold a delivery's lane until its body has arrived."""
        held = HeldQueue(AHEAD)
        held.add(delivery)
        device_preferences.held[delivery.decider.order(delivery)] = held

    def _hold(
        self,
        device_preferences: DevicePreferences,
        delivery: Delivery,
        choice: Choice,
        now: Micros,
        before: str,
    ) -> None:
        by_rank = bool(device_preferences.caps.covering(delivery.item.message.queue))
        held = HeldQueue(in_words(choice.reasons), by_rank=by_rank, until=choice.until)
        held.add(delivery)
        device_preferences.held[delivery.decider.order(delivery)] = held
        self._arm(device_preferences, choice.until)
        if held.reason != before:
            event = self._deliveries.commits.record_step(delivery, Kind.HELD, now, held.reason)
            event.at = choice.until or 0

    def line(
        self,
        session: Session,
        device_preferences: DevicePreferences,
        delivery: Delivery,
        now: Micros,
    ) -> ChannelState | None:
        """Return the channel for a released delivery; None if no link may carry it at present, or
        if it leaves later, once its price is durably reserved."""
        device_preferences.parked.pop(delivery, None)
        reserved = device_preferences.ledger.reserved(delivery)
        if reserved is not None:
            line = session.line_of(reserved.channel)
            if line is not None and line.greeted:
                return None if delivery in device_preferences.promised else line
            device_preferences.refund(delivery, now)
            device_preferences.promised.pop(delivery, None)
        choice = device_preferences.choice(delivery, weight_of(delivery), now)
        if isinstance(choice, Choice) and choice.action is Action.SEND:
            device_preferences.reserve(delivery, choice, now)
            reserved = device_preferences.ledger.reserved(delivery)
            assert reserved is not None
            device_preferences.promised[delivery] = reserved
            return None
        if isinstance(choice, Choice) and choice.action is Action.HOLD:
            device_preferences.parked[delivery] = None
            self._arm(device_preferences, choice.until)
            return None
        return session.line  # It is late: the dispatcher ends it.

    def settle(self, session: Session, device_preferences: DevicePreferences, now: Micros) -> None:
        """Note what was spent, close links that have reached their limits, and tell the device
        which links it could open."""
        self.note_spending(device_preferences)
        if device_preferences.spent and not session.in_flight:
            # Not while anything is in flight: it would be sent again, for money, over another link.
            device_preferences.spent = False
            device_preferences.look_for_closures(now)
        wanted = session.contacts, device_preferences.wanted
        if device_preferences.wanted and device_preferences.told != wanted:
            device_preferences.told = wanted
            self._deliveries.effects.append(
                Send(session.channel, [Wanted(device_preferences.wanted)])
            )

    def note_spending(self, device_preferences: DevicePreferences) -> None:
        """Note that budgets are to be written, if something was reserved or spent."""
        if device_preferences.ledger.changed:
            device_preferences.ledger.changed = False
            self._changed[device_preferences] = None
            device_preferences.spent = True

    def _arm(self, device_preferences: DevicePreferences, until: Micros | None) -> None:
        if until is not None and (device_preferences.due is None or until < device_preferences.due):
            device_preferences.due = until
            self._deliveries.timers.add(until, device_preferences)

    def note(self) -> None:
        """Write the budgets that have changed with the open commit."""
        for device_preferences in self._changed:
            device_preferences.write()
        self._changed = {}
