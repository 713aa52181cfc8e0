"""The outgoing half of a device's session: the messages that the gateway may not have.

The `OutboxOrder` gives a message its number. The message leaves when it is durable, a channel is
open and the gateway's credit allows it; it is stored until the gateway has acknowledged it.
"""

from __future__ import annotations

from collections.abc import Iterable

from lasthop.clock import Micros
from lasthop.device.change import Change, InboxContents, OutboxRow
from lasthop.device.change_mark import ChangeMark
from lasthop.device.message import Refusal
from lasthop.device.outbox_order import OutboxGate, OutboxOrder
from lasthop.device.outgoing import Outgoing, frame_size
from lasthop.device.outgoing_lane import OutgoingLane
from lasthop.device.outgoing_lanes import OutgoingLanes, claimed_ack
from lasthop.device.terms import DeviceTerms
from lasthop.errors import Overloaded, TooLarge
from lasthop.wire.hop.credit import admits
from lasthop.wire.hop.frames import (
    DEFAULT_MAX_FRAME,
    DEFAULT_WINDOW,
    Ack,
    Credit,
    Frame,
    LaneClaims,
    MessageFrame,
    Ranges,
)
from lasthop.wire.hop.lane_credit import ROOM
from lasthop.wire.hop.ranges import RangeSet

PRUNE = 256
"""The number of acknowledged messages that may wait until another change removes them from the
inbox: a separate commit would be wasted, since after a crash the WELCOME acknowledges them
again."""


class Outbox:
    """The messages that were queued and that the gateway has not acknowledged."""

    def __init__(self, terms: DeviceTerms, held: InboxContents, mark: ChangeMark) -> None:
        self._terms = terms
        self._mark = mark
        self.order = OutboxOrder()
        self.gate = OutboxGate()
        items = sorted(
            (
                Outgoing(row.frame, frame_size(row.frame), row.number, row.lane)
                for row in held.outbox
            ),
            key=lambda item: (item.number >= 0, item.lane, item.number, item.key),
        )
        for item in items:
            item.stored = True
        self.restored = items
        """The messages left from before a restart: those without a number first, then by lane and
        number."""
        self.lanes = OutgoingLanes(held, items)
        self._bytes = sum(item.size for item in items)
        self._unstored: list[Outgoing] = []
        self._taken: list[int] = []
        self._numbered: list[Outgoing] = []
        """The messages whose number has changed since the last change."""
        self.accepted: list[int] = []
        self.sent: list[int] = []
        """Keys of messages that were acknowledged (`accepted`) or have left (`sent`); the owner
        collects them."""
        self.acknowledged: list[Outgoing] = []
        """The acknowledged messages of which the `OutboxOrder` has not been told yet."""
        self.refusals: list[tuple[Outgoing, Refusal]] = []
        """The messages that will never leave, and why."""
        self.written = 0
        """The number of bytes that have left."""
        self._window = DEFAULT_WINDOW
        self._max_frame = DEFAULT_MAX_FRAME
        self._reset()

    @property
    def assigned(self) -> int:
        """The count of numbers that were given to messages in lane 0."""
        return self.lanes.first.outbound.assigned

    @property
    def received(self) -> int:
        """The number of the first message of lane 0 that the gateway may not have; it has all
        before."""
        return self.lanes.first.outbound.received

    @property
    def waiting(self) -> int:
        """The number of messages that the gateway may not have."""
        return sum(lane.waiting for lane in self.lanes) + self.order.waiting

    def use(self, order: OutboxOrder) -> None:
        """Let another `OutboxOrder` decide from now on, also about messages that were queued
        before."""
        waiting, self.order = self.order.end(), order
        order.begin(waiting)

    def check(self, frames: Iterable[MessageFrame]) -> None:
        """Raise TooLarge if one of these frames is too large, Overloaded if too many messages wait
        already."""
        waiting, waiting_bytes = self.waiting, self._bytes
        for frame in frames:
            size = frame_size(frame)
            waiting += 1
            waiting_bytes += size
            if not self.gate.carries(frame) and size > self._max_frame:
                raise TooLarge(
                    "the message is larger than a frame may be", size=size, most=self._max_frame
                )
            if waiting > self._terms.outbox_messages or waiting_bytes > self._terms.outbox_bytes:
                raise Overloaded(
                    "the outbox is full", retry_after=60, messages=self.waiting, bytes=self._bytes
                )

    def queue(self, frame: MessageFrame, *, casual: bool) -> None:
        """Queue a message that was checked; unless it is `casual`, it is stored with the next
        change."""
        item = Outgoing(frame, frame_size(frame), casual=casual)
        self._bytes += item.size
        if not casual:
            self._unstored.append(item)
            self._mark.dirty = True
            self.gate.admitted(item)
        self.order.place(item)

    # The channel.

    def resume(
        self,
        ack: Ack,
        window: Credit | None,
        max_frame: int,
        claims: LaneClaims | None = None,
        now: Micros = 0,
    ) -> None:
        """Start on a new channel: the gateway says which messages it has, in lane 0 and (`claims`)
        in the others, and all that it lacks are sent again."""
        self._reset()
        self._window = window or DEFAULT_WINDOW
        self._max_frame = max_frame
        for lane in list(self.lanes):
            there = ack if not lane.id else claimed_ack(claims, lane)
            lane.resume(there)
            self.acknowledge(there, lane.id, now)
            lane.find_skips(there)
        self.order.resumed()

    def start_over(self, drop_below: int, in_lanes: Iterable[tuple[int, int, Ranges]] = ()) -> None:
        """Begin a new epoch: number everything from 0, except for messages that the gateway has:
        those below `drop_below` in lane 0, and in others below another count or in ranges beyond
        it."""
        old = list(self.lanes)
        has = {lane: RangeSet(((0, count), *ranges)) for lane, count, ranges in in_lanes}
        has[0] = RangeSet(((0, drop_below),))
        nothing = RangeSet()
        self.lanes.start_over()
        self._numbered = []
        self._reset()
        again: list[Outgoing] = []
        for lane in old:
            for number, item in lane.outbound.unacknowledged():
                if number in has.get(lane.id, nothing):
                    self._accept(item)
                elif not item.taken:
                    item.sent = False
                    again.append(item)
        self.order.start_over(again)

    def lost(self) -> None:
        """Note that no channel is open: messages under way must be sent again."""
        self.order.lost()
        self._reset()
        if self.lanes.several and self.lanes.forget_idle():
            self._mark.dirty = True

    def _reset(self) -> None:
        self.forget_sent()
        for lane in self.lanes:
            lane.reset()

    def again(self) -> None:
        """Note that messages under way may have been lost with one of several channels."""
        for lane in self.lanes:
            lane.again()
        self.order.again()

    def acknowledge(self, ack: Ack, lane_id: int = 0, now: Micros = 0) -> None:
        """Record an ack of the gateway for one lane."""
        lane = self.lanes.by_id.get(lane_id)
        if lane is None:
            return  # The lane is closed, and this is an old ack.
        for item in lane.outbound.acknowledge(ack).received:
            if item.sent:
                self._in_flight -= len((item.light or item.frame).body)
                lane.flight -= 1
            self._accept(item)
        lane.heard(ack.received)
        if lane_id and lane.idle:
            lane.idle_since = now
            if lane.last is not None:
                self.lanes.forget(lane)
                self._mark.dirty = True

    def credit(self, window: Credit, lane_id: int = 0) -> None:
        """Record the credit that the gateway grants: to the session, or to one lane."""
        if not lane_id:
            self._window = window
        elif lane_id in self.lanes.by_id:
            self.lanes.by_id[lane_id].window = window
        self.order.credit_changed()

    def close_idle(self, now: Micros) -> None:
        """Close the lanes that have been idle for long."""
        if self.lanes.several and self.lanes.close_idle(now):
            self._mark.dirty = True

    # For the order.

    def awaited(self, lane: int, number: int) -> Outgoing | None:
        """Return the message of this number if the gateway may not have it; None otherwise."""
        there = self.lanes.by_id.get(lane)
        if there is None or not there.outbound.awaits(number):
            return None
        return there.outbound.get(number)

    def under_way(self) -> list[Outgoing]:
        """Return all messages with a number that the gateway may not have."""
        return [
            item
            for lane in self.lanes
            for _, item in lane.outbound.unacknowledged()
            if not item.taken
        ]

    def assign(self, item: Outgoing) -> None:
        """Give a message the next number of its lane."""
        self.lanes.push(item)

    def note_number(self, item: Outgoing) -> None:
        """Note that a message has got another number or lost its number, so that the stored number
        is updated."""
        self._numbered.append(item)
        self._mark.dirty = True

    def release(self, item: Outgoing) -> None:
        """Give a message its number, and mark it as sent."""
        self.assign(item)
        self.note_number(item)
        self._count_sent(item)

    def _count_sent(self, item: Outgoing) -> None:
        item.sent = True
        self._in_flight += len(item.travels.body)
        self.lanes.by_id[item.lane].flight += 1

    def withdraw(self, item: Outgoing) -> None:
        """Take the number of a message back in a new contact, after the gateway has said that it
        lacks the message."""
        number, lane = item.number, self.lanes.by_id[item.lane]
        # A placeholder keeps the number, so that acks still count, and the gateway is told to skip
        # it.
        lane.outbound.replace(number, Outgoing(item.frame, 0, number, item.lane, taken=True))
        self._skip(lane, number)
        item.number = -1
        item.sent = False
        self.note_number(item)

    def mark_unsent(self, item: Outgoing) -> None:
        """Mark a message that may have been sent as not sent."""
        if item.sent:
            item.sent = False
            self._in_flight -= len(item.travels.body)
            self.lanes.by_id[item.lane].flight -= 1

    def forget_sent(self) -> None:
        """Mark all messages as not sent."""
        for lane in self.lanes:
            lane.flight = 0
            for _, item in lane.outbound.unacknowledged():
                item.sent = False
        self._in_flight = 0

    def has_credit(self, item: Outgoing) -> bool:
        """Whether the gateway's credit allows this message to be sent next."""
        name = self.lanes.name_of(item)
        lane = self.lanes.find(name) or OutgoingLane(0, name)
        return self._admits(item, lane, lane.outbound.assigned)

    def _admits(self, item: Outgoing, lane: OutgoingLane, number: int) -> bool:
        window, size = self._window, len(item.travels.body)
        ahead = number - lane.peer_received
        if not self.lanes.several:
            return admits(window, ahead=ahead, bytes_in_flight=self._in_flight, size=size)
        # docs/hop-protocol.md, "Lanes": a lane has a window of its own below the session's, and
        # room for one small message whatever the others have under way.
        if not window.messages or ahead >= lane.most(window):
            return False
        flight = sum(each.flight for each in self.lanes)
        if not flight or (not lane.flight and size <= ROOM):
            return True
        return flight < window.messages and self._in_flight + size <= window.bytes

    def put(self, item: Outgoing, frames: list[Frame]) -> bool:
        """Let a numbered message leave, or refuse it as too large; return False if it has to wait
        for credit."""
        refusal = self.too_large(item)
        if refusal is not None:
            self.refuse(item, refusal)
            return True
        if not self._admits(item, self.lanes.by_id[item.lane], item.number):
            return False
        frames.append(self.leave(item))
        self._count_sent(item)
        self.written += item.size - len(item.frame.body) + len(item.travels.body)
        return True

    def leave(self, item: Outgoing) -> MessageFrame:
        """Return the frame of a message that leaves now, and note that it was sent."""
        self.sent.append(item.key)
        if item.casual:
            self._bytes -= item.size
            return item.frame
        frame = item.travels
        return MessageFrame(
            item.number, frame.key, frame.topic, frame.headers, frame.body, item.lane
        )

    def too_large(self, item: Outgoing) -> Refusal | None:
        """Return why the message's frame is too large for the gateway; None if it is not."""
        if self._frame_size(item) <= self._max_frame:
            return None
        return Refusal(TooLarge.code, f"the gateway takes frames of {self._max_frame} bytes")

    def _frame_size(self, item: Outgoing) -> int:
        return item.size - len(item.frame.body) + len(item.travels.body)

    def refuse(self, item: Outgoing, refusal: Refusal) -> None:
        """Remove a message that will never leave, and report why."""
        self.refusals.append((item, refusal))
        if item.casual:
            self._bytes -= item.size
            return
        self._forget(item)
        if item.number >= 0:
            self._skip(self.lanes.by_id[item.lane], item.number)

    def _skip(self, lane: OutgoingLane, number: int) -> None:
        lane.skips.add(number, number + 1)
        self.order.skipped(lane, number)

    # Within.

    def _accept(self, item: Outgoing) -> None:
        if not item.taken:
            self.accepted.append(item.key)
            self._forget(item)
            self.acknowledged.append(item)

    def _forget(self, item: Outgoing) -> None:
        item.taken = True
        self._bytes -= item.size
        self.gate.forgotten(item)
        if item.stored:
            self._taken.append(item.key)
            if len(self._taken) >= PRUNE:
                self._mark.dirty = True

    def collect(self, change: Change) -> list[tuple[OutgoingLane, int]]:
        """Put the outbox's durable data into `change`; return the lanes, except lane 0, with the
        count of numbers that becomes durable with it."""
        change.renumbered = [
            (item.key, item.lane, item.number)
            for item in self._numbered
            if item.stored and not item.taken
        ]
        self._numbered = []
        for item in self._unstored:
            if not item.taken:
                item.stored = True
                change.queued.append(OutboxRow(item.number, item.frame, item.lane))
        self._unstored = []
        change.taken, self._taken = self._taken, []
        return self.lanes.collect(change)
