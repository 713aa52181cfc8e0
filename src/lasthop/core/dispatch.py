"""From pending to the link: which delivery is next, its release, its transmission, and the end of
deliveries that are too late.

A release gives a delivery its sequence number; the frame leaves when that is durable. Between the
two nothing can be taken back, and after the deadline nothing leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import msgspec

from lasthop.clock import Micros
from lasthop.core.contacts.channel_state import AWAY, ChannelState
from lasthop.core.contacts.retransmission import Retransmission
from lasthop.core.deliveries import NOBODY_THERE, Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.effects import Fetch, Send
from lasthop.core.envelope import ENVELOPE, frame_of, too_large
from lasthop.core.lane import ALL, Lane
from lasthop.core.lane_set import Lanes
from lasthop.core.lifecycle import DELIVERED, PENDING, SENDING, State, Step
from lasthop.core.outbound_lanes import OpenLane
from lasthop.core.sending import weight_of
from lasthop.core.session import Session, UnderWay
from lasthop.message import Message, Reliability
from lasthop.wire.hop.frames import Frame, LaneFrame, Last, MessageFrame, Skip

# Local names: looking up a member of an enum costs as much as a call, for every message.
RECEIVED = State.RECEIVED
BEST_EFFORT = Reliability.BEST_EFFORT

MILLION = 1_000_000
"""The divisor of costs: senders count money in millionths."""


class Dispatcher:
    """Moves deliveries from the mailbox to the link."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._fetching: dict[int, dict[Delivery, None]] = {}
        """Deliveries that wait for their message's body from the store, by its key."""

    def pump(self, session: Session, now: Micros) -> None:
        """Release the deliveries that the device accepts now, best first, and send each when its
        release is durable."""
        # What left in an earlier contact has the lower numbers, so it goes first.
        if session.lanes is not None:
            for lane in session.every_lane():
                if lane.sent_to != ALL and session.greeted and not session.paused:
                    self._go_on(session, lane, now)
        elif session.lane.sent_to != ALL and session.greeted and not session.paused:
            self._go_on(session, session.lane, now)
        released = session.sender.pump(session, now)
        if released:
            lanes: Lanes[Delivery] | None = session.lanes
            leave = partial(
                self._leave,
                session,
                session.contacts,
                session.lane.outbound.assigned,
                released,
                () if lanes is None else tuple((d.lane, d.seq + 1) for d in released if d.lane.id),
            )
            self._deliveries.commits.when_durable(leave)
        if session.lanes is not None:
            self._close_lanes(session, session.lanes, now)

    def _close_lanes(self, session: Session, lanes: Lanes[Delivery], now: Micros) -> None:
        """Give idle lanes their last number, once that is durable: those that were idle for long,
        and one if another name wants its place."""
        for lane in lanes.closing(now):
            last = partial(self._send_last, session, session.contacts, lane)
            self._deliveries.commits.when_durable(last)

    def _send_last(self, session: Session, contact: int, lane: OpenLane, now: Micros) -> None:
        # In a later contact the number is sent again like any other.
        if session.contacts == contact and session.greeted and lane.last >= 0:
            lane.sendable = lane.outbound.assigned
            self._send_skips(session, contact, [lane.about(Last(lane.last))], now)

    def _leave(
        self,
        session: Session,
        contact: int,
        sendable: int,
        released: list[Delivery],
        others: tuple[tuple[Lane[UnderWay], int], ...],
        now: Micros,
    ) -> None:
        """Send deliveries whose release is durable, in the contact for which it was decided.

        If that contact is over, the next one begins with everything that is unacknowledged.
        """
        if session.contacts == contact and session.greeted:
            session.lane.sendable = sendable
            for lane, numbers in others:
                lane.sendable = max(lane.sendable, numbers)
            self.transmit(session, released, now)
        else:
            self._take_back(session, released, now)

    def _take_back(self, session: Session, deliveries: Iterable[Delivery], now: Micros) -> None:
        """Queue unnumbered deliveries again: they were not sent, and no number remembers them."""
        for delivery in deliveries:
            if delivery.seq < 0 and delivery.state is SENDING:
                self._deliveries.step(
                    delivery, Step.REQUEUE, now, "the link was lost before it left"
                )
                session.sender.refund(delivery, now)
                if delivery.item.message.immediate and not session.reachable:
                    self._deliveries.give_up(delivery, Step.GIVE_UP, now, NOBODY_THERE)
                    continue
                session.enqueue(delivery)
                self._deliveries.touch(session)

    def resume(self, session: Session, now: Micros) -> None:
        """Send everything that the device has not acknowledged, as far as its window allows, and
        tell it to skip the numbers of deliveries that have ended."""
        lanes = list(session.every_lane())
        for lane in lanes:
            lane.sendable = lane.outbound.assigned
            lane.sent_to = lane.outbound.received
        for lane in lanes:
            lane.sent_to = 0
            self._go_on(session, lane, now)

    def _go_on(self, session: Session, lane: Lane[UnderWay], now: Micros) -> None:
        """Send again what left in an earlier contact in a lane, up to the device's present
        window."""
        outbound = lane.outbound
        limit = outbound.received + session.lane.window.messages
        if session.lanes is not None:
            limit = session.lanes.out.again_below(lane, session.lane.window)
        sent_to, lane.sent_to = lane.sent_to, ALL
        skips: list[Frame] = []
        again: list[Delivery] = []
        for seq, item in outbound.unacknowledged():
            if seq < sent_to:
                continue
            if not isinstance(item, Delivery) or item.state >= DELIVERED:
                skips.append(_instead(lane, seq, item))
            elif seq < limit:
                again.append(item)
            else:
                lane.sent_to = seq
                break
        self._close(session, skips)
        self.transmit(session, again, now)

    def reroute(self, session: Session, channel: int, now: Micros) -> None:
        """Send unacknowledged deliveries again that left over a channel which has ended, over the
        device's other channels."""
        skips: list[Frame] = []
        again: list[Delivery] = []
        for lane in session.every_lane():
            for seq, item in lane.outbound.unacknowledged():
                if seq >= min(lane.sendable, lane.sent_to):
                    break
                if not isinstance(item, Delivery) or item.state >= DELIVERED:
                    skips.append(_instead(lane, seq, item))
                elif item.sent_over == channel:
                    again.append(item)
        self._close(session, skips)
        self.transmit(session, again, now, "the link that it left over is gone")

    def transmit(
        self,
        session: Session,
        deliveries: Iterable[Delivery],
        now: Micros,
        reason: str = "",
        line: ChannelState | None = None,
    ) -> None:
        """Hand deliveries whose release is durable to a channel. Those whose bodies are in the
        store only follow later: the device puts messages in order."""
        effects = self._deliveries.effects
        sender = session.sender
        plain = sender is self._deliveries.sender
        line = line or session.open_line()
        frames: list[Frame] = []
        by_channel = {line.channel: frames}
        missing: list[int] = []
        ended: list[Frame] = []
        for delivery in deliveries:
            item = delivery.item
            if delivery.state is not SENDING and delivery.state is not RECEIVED:
                # The device waits for the number of a delivery that ended before it left.
                if delivery.state >= DELIVERED and delivery.lane.outbound.awaits(delivery.seq):
                    skip = delivery.decider.skip(delivery)
                    if skip is not None:
                        ended.append(delivery.lane.about(skip))
                continue
            again = delivery.state is RECEIVED or (delivery.attempts and delivery.seq >= 0)
            if again and not delivery.lane.outbound.awaits(delivery.seq):
                continue  # Acknowledged while its body was fetched, or while no link could have it.
            # A body that the device has, or will pull, need not be in memory.
            if item.resident or (item.gates and not weight_of(delivery)):
                if plain and item.message.quality is None:
                    self._put(session, line, delivery, frames, now, reason)
                    continue
                chosen = sender.channel(session, delivery, line, now)
                if chosen is not None:
                    theirs = by_channel.setdefault(chosen.channel, [])
                    self._put(session, chosen, delivery, theirs, now, reason)
                continue
            key = item.stored_key
            # Deliveries of one message share one read of its body.
            if key not in self._fetching:
                self._fetching[key] = {}
                missing.append(key)
            self._fetching[key][delivery] = None
        self._close(session, ended)
        if missing:
            effects.append(Fetch(missing))
        for channel, leaving in by_channel.items():
            if leaving:
                effects.append(Send(channel, leaving))
                self._await_acknowledgement(session, channel, leaving, now)
        if not plain:
            sender.sent(session, reason, now)

    def resend(self, session: Session, delivery: Delivery, now: Micros, reason: str) -> None:
        """Send a delivery once more, if the device is in contact."""
        if session.greeted:
            self.transmit(session, [delivery], now, reason)

    def fetched(self, messages: Mapping[int, Message], now: Micros) -> None:
        """Send the deliveries that waited for bodies from the store."""
        for key, message in messages.items():
            for delivery in self._fetching.pop(key, ()):
                self._deliveries.refill(delivery.item, message.body)
                session = delivery.session
                if session.greeted:
                    self.transmit(session, [delivery], now)
                else:
                    self._take_back(session, [delivery], now)

    def wake(self, now: Micros) -> list[Session]:
        """Act on everything that is due: delays that are over, deadlines, retries. Return the
        sessions whose channel has lost too many frames."""
        hopeless: list[Session] = []
        for due in self._deliveries.timers.due(now):
            if isinstance(due, Delivery):
                self._due(due, now)
            elif isinstance(due, Session):
                self._preservation_ends(due, now)
            elif not isinstance(due, Retransmission):
                due.woken(now)
            elif not self._repeat(due, now):
                hopeless.append(due.session)
        return hopeless

    def _due(self, delivery: Delivery, now: Micros) -> None:
        before = delivery.item.message.deliver_before
        late = before is not None and now >= before
        session = delivery.session
        if delivery.decider is not self._deliveries.plain and delivery.decider.due(delivery, now):
            return
        if delivery.state is State.PARKED:
            return  # The queue that parked it has its own timer.
        if delivery.state is PENDING:
            if late:
                self._deliveries.give_up(delivery, Step.EXPIRE, now, "deliver_before has passed")
            elif not any(gate.due(delivery) for gate in delivery.item.gates):
                session.enqueue(delivery)
                self._deliveries.touch(session)
        elif delivery.seq < 0:
            return  # Without a number its carrier, or its decider, ends it.
        elif late and delivery.state < DELIVERED and not session.channel:
            # Released and late: only the device knows whether it was in time. In contact its next
            # acknowledgement tells; it drops what is late and says so.
            if now >= session.lost_at + session.preserve:
                self._time_out(delivery, now)
            else:
                self.preserve(session)

    def preserve(self, session: Session) -> None:
        """Wait for the device to come back and report, as long as its session is preserved."""
        if not session.preserved:
            session.preserved = True
            self._deliveries.timers.add(session.lost_at + session.preserve, session)

    def _preservation_ends(self, session: Session, now: Micros) -> None:
        session.preserved = False
        if session.channel:
            return
        if now < session.lost_at + session.preserve:
            self.preserve(session)  # The device has been back in between.
            return
        kept = (delivery for part in session.parts for delivery in part.on_device())
        for delivery in (*session.under_way(), *kept):
            before = delivery.item.message.deliver_before
            if before is not None and now >= before:
                self._time_out(delivery, now)

    def _time_out(self, delivery: Delivery, now: Micros) -> None:
        self._deliveries.step(delivery, Step.TIME_OUT, now, "the device has not come back to say")

    def _patience(self, session: Session, channel: int) -> Micros:
        """Return the microseconds to wait for the receipt of a delivery that left over a
        channel."""
        return session.sender.patience(session.line_of(channel) or AWAY)

    def _await_acknowledgement(
        self, session: Session, channel: int, frames: Iterable[Frame], now: Micros
    ) -> None:
        timer = session.retransmission
        if timer is None:
            return
        if session.lane.outbound.in_flight:
            timer.sent(now, self._patience(session, channel))
            self._arm(timer)
        if session.lanes is not None:
            for number in {number for frame in frames if (number := _lane_of(frame))}:
                lane = session.lanes.out.open.get(number)
                if lane is not None and lane.outbound.in_flight:
                    lane.retransmission = lane.retransmission or Retransmission(session, lane)
                    lane.retransmission.sent(now, self._patience(session, channel))
                    self._arm(lane.retransmission)

    def advanced(self, session: Session, now: Micros, lane: OpenLane | None = None) -> None:
        """Restart the retransmission timer of a lane: its oldest number under way has been
        acknowledged."""
        timer = session.retransmission if lane is None else lane.retransmission
        if timer is not None:
            outbound = session.lane.outbound if lane is None else lane.outbound
            oldest = outbound.get(outbound.received)
            channel = oldest.sent_over if isinstance(oldest, Delivery) else session.channel
            wait = self._patience(session, channel)
            timer.advanced(now, wait, done=not outbound.in_flight)
            self._arm(timer)

    def _arm(self, timer: Retransmission[Session]) -> None:
        if timer.due is not None and (timer.armed is None or timer.due < timer.armed):
            timer.armed = timer.due
            self._deliveries.timers.add(timer.due, timer)

    def _repeat(self, timer: Retransmission[Session], now: Micros) -> bool:
        """Send again what a lossy channel may have lost; return False if it has lost too much."""
        session = timer.session
        # Timers are never removed: this entry may be of an earlier contact, or of an earlier due
        # time.
        lane: Lane[UnderWay] = session.lane
        present = session.retransmission
        if timer.lane is not None and present is not None:
            lane, present = timer.lane, timer.lane.retransmission
        if present is not timer or timer.armed is None or now < timer.armed:
            return True
        timer.armed = None
        if timer.due is None:
            return True
        if now >= timer.due:
            if not timer.again(now):
                return False
            self._send_again(session, lane, now)
        self._arm(timer)
        return True

    def _send_again(self, session: Session, lane: Lane[UnderWay], now: Micros) -> None:
        """Send again what was not acknowledged in time; what has just left for the first time still
        has its time."""
        skips: list[Frame] = []
        again: list[Delivery] = []
        for seq, item in lane.outbound.unacknowledged():
            if seq >= min(lane.sendable, lane.sent_to):
                break
            if not isinstance(item, Delivery) or item.state >= DELIVERED:
                skips.append(_instead(lane, seq, item))
            elif item.changed_at + self._patience(session, item.sent_over) <= now:
                again.append(item)
        self._close(session, skips)
        by_channel: dict[int, list[Delivery]] = {}
        for delivery in again:
            by_channel.setdefault(delivery.sent_over, []).append(delivery)
        for channel, deliveries in by_channel.items():
            line = session.line_besides(channel)
            self.transmit(session, deliveries, now, "not acknowledged in time", line)

    def _close(self, session: Session, skips: list[Frame]) -> None:
        """Tell the device not to wait for these numbers, once it is durable why: the device will
        acknowledge them like any other, and after a crash the gateway could not tell the
        difference."""
        if skips:
            send = partial(self._send_skips, session, session.contacts, skips)
            self._deliveries.commits.when_durable(send)

    def _send_skips(self, session: Session, contact: int, skips: list[Frame], now: Micros) -> None:
        if session.contacts == contact and session.greeted:
            self._deliveries.effects.append(Send(session.channel, skips))
            self._await_acknowledgement(session, session.channel, skips, now)

    def _put(
        self,
        session: Session,
        line: ChannelState,
        delivery: Delivery,
        frames: list[Frame],
        now: Micros,
        reason: str,
    ) -> None:
        deliveries = self._deliveries
        message = delivery.item.message
        if message.deliver_before is not None and now >= message.deliver_before:
            late = "deliver_before passed before it could leave"
            here = delivery.sent_in == session.contacts or delivery.state is RECEIVED
            if here or delivery.redelivered:
                # The device may have it, perhaps under an earlier number.
                deliveries.give_up(delivery, Step.EXPIRE, now, late)
            else:
                # It never left, or the device has come back and said that it does not have it.
                deliveries.step(delivery, Step.EXPIRE, now, late)
            if delivery.seq >= 0:
                self._close(session, [delivery.lane.about(Skip(delivery.seq))])
            return
        frame = frame_of(delivery, deliveries.moments.words)
        lane = delivery.lane.id
        if lane and delivery.seq >= 0:
            frame = msgspec.structs.replace(frame, lane=lane)
        for gate in delivery.item.gates:
            frame = gate.frame(delivery, line, frame)
        if len(frame.body) + ENVELOPE > line.max_frame and too_large(frame, line.max_frame):
            deliveries.step(delivery, Step.GIVE_UP, now, "larger than the device accepts")
            if delivery.seq >= 0:
                self._close(session, [delivery.lane.about(Skip(delivery.seq))])
            deliveries.touch(session)
            return
        frames.append(frame)
        delivery.attempts += 1
        delivery.sent_over = line.channel
        delivery.sent_in = session.contacts
        event = deliveries.commits.departed(delivery, now, reason)
        event.bytes = delivery.item.size
        event.attempt = delivery.attempts
        event.link = line.link
        event.channel = line.channel
        event.seq = delivery.seq
        event.lane = lane
        event.epoch = session.epoch
        if session.sender is not deliveries.sender:
            event.cost = session.sender.left(delivery, now) / MILLION
        if message.reliability is BEST_EFFORT and delivery.seq < 0:
            deliveries.step(delivery, Step.HAND_OVER, now, "best effort")
            deliveries.touch(session)  # Its credit is free again.


def _instead(lane: Lane[UnderWay], seq: int, item: UnderWay) -> Frame:
    """Return the frame for a number that stands for no delivery that is under way."""
    return lane.about(item if isinstance(item, Last) else Skip(seq))


def _lane_of(frame: Frame) -> int:
    return frame.lane if isinstance(frame, MessageFrame | LaneFrame) else 0
