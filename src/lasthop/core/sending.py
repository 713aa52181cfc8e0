"""How deliveries leave for a device without preferences: best first, over the channel that it spoke
over last, unless a publisher requires another one."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from lasthop.clock import Micros
from lasthop.core.contacts.channel_state import ChannelState
from lasthop.core.contacts.retransmission import patience
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.feature import Leaving, Sender, WaitReason
from lasthop.core.lane import LaneName
from lasthop.core.lane_set import Lanes
from lasthop.core.lifecycle import SENDING, Step
from lasthop.core.outbound_lanes import OutboundLanes
from lasthop.core.session import Session
from lasthop.core.transfer import Transfer
from lasthop.decision.decide import Action, decide
from lasthop.decision.routes import RouteRefusal
from lasthop.events import Event
from lasthop.message import Reliability
from lasthop.wire.hop.roundtrip import RoundTrip
from lasthop.wire.hop.transfer import LARGEST_PIECE

# Local names: looking up a member of an enum costs as much as a call, for every message.
HOLD, EXPIRE = Action.HOLD, Action.EXPIRE
GO, ASIDE = Leaving.GO, Leaving.ASIDE
RELEASE, BEST_EFFORT = Step.RELEASE, Reliability.BEST_EFFORT


def release(
    deliveries: Deliveries, session: Session, delivery: Delivery, now: Micros, reason: str
) -> Event:
    """Count a delivery as under way, so that it can no longer be taken back, and return the event
    that records the release."""
    message = delivery.item.message
    decider = delivery.decider
    if decider is deliveries.plain:
        session.depart(delivery, numbered=message.reliability is not BEST_EFFORT)
        event = deliveries.step(delivery, RELEASE, now, reason)
    else:
        session.depart(delivery, numbered=decider.numbers(delivery))
        event = decider.released(delivery, now, reason)
    if message.replace_key is not None:
        session.not_replaceable(delivery)
    if session.lanes is not None and delivery.seq >= 0:
        folded = session.lanes.out.why_folded(delivery)
        if folded:
            event.reason = f"{event.reason}; {folded}" if event.reason else folded
    return event


def leaving(delivery: Delivery, now: Micros, channel: int = 0) -> Leaving:
    """Ask the gates of a delivery whether it may be released; return the answer of the first gate
    that objects."""
    for gate in delivery.item.gates:
        said = gate.leaving(delivery, channel, now)
        if said is not GO:
            return said
    return GO


def weight_of(delivery: Delivery) -> int:
    """Return the bytes of a delivery's body that are still to leave."""
    for gate in delivery.item.gates:
        weight = gate.weight(delivery)
        if weight is not None:
            return weight
    return delivery.item.size


def divert(delivery: Delivery, now: Micros) -> bool:
    """Find another way for a delivery whose publisher requires a quality that no channel has.
    Return False if a channel has it."""
    quality = delivery.item.message.quality
    against = None if quality is None else delivery.session.unmet(quality)
    if against is None:
        return False
    delivery.session.away_sender.divert(delivery, against, now)
    return True


class NoAwaySender:
    """The away sender of devices that have to connect to get their messages: it sends nothing."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries

    def reaches(self, session: Session) -> bool:
        """Return False: nothing leaves without contact."""
        return False

    def pump(self, session: Session, now: Micros) -> None:
        """Do nothing: every delivery waits for the device to connect."""

    def waiting(self, delivery: Delivery) -> WaitReason | None:
        """Return None: no carrier has anything."""
        return None

    def divert(self, delivery: Delivery, refusal: RouteRefusal, now: Micros) -> None:
        """Give a delivery up: there is no other way to the device."""
        self._deliveries.give_up(delivery, Step.GIVE_UP, now, refusal.reason, code=refusal.code)


class PlainSender(Sender):
    """Sends to devices that have no preferences."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries

    def pump(self, session: Session, now: Micros) -> list[Delivery]:
        released: list[Delivery] = []
        deliveries = self._deliveries
        if session.lanes is not None:
            return self._pump_lanes(session, session.lanes, now)
        greeted, has_credit = session.greeted, session.lane.has_credit
        takes_more = not session.paused
        while (delivery := session.best()) is not None:
            item = delivery.item
            message = item.message
            decision = decide(
                deliver_after=message.deliver_after,
                deliver_before=message.deliver_before,
                in_contact=greeted,
                has_credit=takes_more and has_credit(item.size),
                now=now,
            )
            if decision.action is HOLD:
                break
            if decision.action is EXPIRE:
                session.take_best()
                deliveries.give_up(delivery, Step.EXPIRE, now, decision.reason)
                continue
            if item.gates and (message.quality is None or session.unmet(message.quality) is None):
                said = leaving(delivery, now)
                if said is ASIDE:
                    session.take_best()
                    continue
                if said is not GO:
                    break  # It keeps its place: deliveries of higher priority still overtake it.
            session.take_best()
            if message.quality is not None and divert(delivery, now):
                continue
            release(deliveries, session, delivery, now, decision.reason)
            released.append(delivery)
        return released

    def _pump_lanes(self, session: Session, lanes: Lanes[Delivery], now: Micros) -> list[Delivery]:
        """Release what may leave, the best lane first: what cannot leave holds up its own lane and
        no other."""
        released: list[Delivery] = []
        out = lanes.out
        while (delivery := session.best()) is not None:
            session.take_best()
            out.line_up(session.name_of(delivery), delivery)
        heads: list[tuple[int, int, Delivery, LaneName | None]] = []
        for name in list(out.queues):
            self._look_at(out, name, heads)
        while heads:
            _, _, delivery, name = heapq.heappop(heads)
            said = self._offer(session, delivery, now, lanes.admits(name, delivery.item.size))
            if said is not None:
                out.take_head(name)
                released += said
                self._look_at(out, name, heads)
        return released

    @staticmethod
    def _look_at(
        out: OutboundLanes[Delivery],
        name: LaneName | None,
        heads: list[tuple[int, int, Delivery, LaneName | None]],
    ) -> None:
        """Add the first delivery of a name to those that may leave next."""
        head = out.head(name)
        if head is not None:
            heapq.heappush(heads, (-head.priority, head.place, head, name))

    def _offer(
        self, session: Session, delivery: Delivery, now: Micros, admitted: bool
    ) -> list[Delivery] | None:
        """Decide about the first delivery of a lane; return what was released, or None if it keeps
        its place."""
        deliveries, item = self._deliveries, delivery.item
        message = item.message
        decision = decide(
            deliver_after=message.deliver_after,
            deliver_before=message.deliver_before,
            in_contact=session.greeted,
            has_credit=admitted and not session.paused,
            now=now,
        )
        if decision.action is HOLD:
            return None
        if decision.action is EXPIRE:
            deliveries.give_up(delivery, Step.EXPIRE, now, decision.reason)
            return []
        if item.gates and (message.quality is None or session.unmet(message.quality) is None):
            said = leaving(delivery, now)
            if said is not GO:
                return [] if said is ASIDE else None
        if message.quality is not None and divert(delivery, now):
            return []
        release(deliveries, session, delivery, now, decision.reason)
        return [delivery]

    def channel(
        self, session: Session, delivery: Delivery, usual: ChannelState, now: Micros
    ) -> ChannelState:
        return session.line_for(usual, delivery.item.message.quality)

    def acknowledged(self, session: Session, received: Iterable[object], now: Micros) -> None:
        """Measure how long receipts take over each channel, if the device has several or the
        channel is lossy. A delivery that left twice is not measured: its receipt may be for either
        transmission (Karn)."""
        if session.retransmission is None:
            return
        for delivery in received:
            if not isinstance(delivery, Delivery) or delivery.attempts != 1:
                continue
            line = session.line_of(delivery.sent_over)
            if line is not None and delivery.state is SENDING and now >= delivery.changed_at:
                line.receipts = line.receipts or RoundTrip(now)
                line.receipts.sample(now - delivery.changed_at)

    def patience(self, channel: ChannelState) -> Micros:
        return patience(channel.receipts)

    def allowance(self, session: Session, transfer: Transfer) -> tuple[ChannelState | None, int]:
        return session.line_for(session.open_line(), transfer.source.quality), LARGEST_PIECE
