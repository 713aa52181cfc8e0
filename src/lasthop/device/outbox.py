"""The outgoing half of a device's session: the messages that the gateway may not have.

The `OutboxOrder` gives a message its number. The message leaves when it is durable, a channel is
open and the gateway's credit allows it; it is stored until the gateway has acknowledged it.
"""

from __future__ import annotations

from collections.abc import Iterable

from lasthop.device.change import Change, InboxContents, OutboxRow
from lasthop.device.change_mark import ChangeMark
from lasthop.device.message import Refusal
from lasthop.device.outbox_order import OutboxGate, OutboxOrder
from lasthop.device.outgoing import Outgoing, frame_size
from lasthop.device.outgoing_lane import DEFAULT_LANE, OutgoingLane
from lasthop.device.terms import DeviceTerms
from lasthop.errors import Overloaded, TooLarge
from lasthop.wire.hop.credit import admits
from lasthop.wire.hop.frames import (
    DEFAULT_MAX_FRAME,
    DEFAULT_WINDOW,
    Ack,
    Credit,
    Frame,
    MessageFrame,
)

PRUNE = 256
"""The number of acknowledged messages that may wait until another change removes them from the
inbox: a separate commit would be wasted, since after a crash the WELCOME acknowledges them
again."""


class Outbox:
    """The messages that were queued and that the gateway has not acknowledged."""

    def __init__(self, terms: DeviceTerms, held: InboxContents, mark: ChangeMark) -> None:
        state = held.state
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
        self.first = OutgoingLane(0, DEFAULT_LANE)
        """Lane 0, which is always there."""
        self.lanes: dict[int, OutgoingLane] = {0: self.first}
        self.first.restore(
            state.assigned, state.accepted, [item for item in items if not item.lane]
        )
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
        return self.first.outbound.assigned

    @property
    def received(self) -> int:
        """The number of the first message of lane 0 that the gateway may not have; it has all
        before."""
        return self.first.outbound.received

    @property
    def waiting(self) -> int:
        """The number of messages that the gateway may not have."""
        in_flight = sum(lane.outbound.in_flight for lane in self.lanes.values())
        return in_flight + self.order.waiting

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

    def resume(self, ack: Ack, window: Credit | None, max_frame: int) -> None:
        """Start on a new channel: the gateway says which messages it has, and the others are sent
        again."""
        self._reset()
        self._window = window or DEFAULT_WINDOW
        self._max_frame = max_frame
        self.first.resume(ack)
        self.acknowledge(ack)
        self.first.find_skips(ack)
        self.order.resumed()

    def start_over(self, drop_below: int) -> None:
        """Begin a new epoch: number everything from 0, except for messages that the gateway has."""
        old = self.first.outbound
        self.first = OutgoingLane(0, DEFAULT_LANE)
        self.lanes = {0: self.first}
        self._numbered = []
        self._reset()
        again: list[Outgoing] = []
        for number, item in old.unacknowledged():
            if number < drop_below:
                self._accept(item)
            elif not item.taken:
                again.append(item)
        self.order.start_over(again)

    def lost(self) -> None:
        """Note that no channel is open: messages under way must be sent again."""
        self.order.lost()
        self._reset()

    def _reset(self) -> None:
        self.forget_sent()
        for lane in self.lanes.values():
            lane.reset()

    def again(self) -> None:
        """Note that messages under way may have been lost with one of several channels."""
        for lane in self.lanes.values():
            lane.again()
        self.order.again()

    def acknowledge(self, ack: Ack) -> None:
        """Record an ack of the gateway."""
        lane = self.first
        for item in lane.outbound.acknowledge(ack).received:
            if item.sent:
                self._in_flight -= len((item.light or item.frame).body)
            self._accept(item)
        lane.heard(ack.received)

    def credit(self, window: Credit) -> None:
        """Record the credit that the gateway grants."""
        self._window = window
        self.order.credit_changed()

    # For the order.

    def awaited(self, lane: int, number: int) -> Outgoing | None:
        """Return the message of this number if the gateway may not have it; None otherwise."""
        outbound = self.lanes[lane].outbound if lane in self.lanes else None
        return outbound.get(number) if outbound is not None and outbound.awaits(number) else None

    def under_way(self) -> list[Outgoing]:
        """Return all messages with a number that the gateway may not have."""
        return [
            item
            for lane in self.lanes.values()
            for _, item in lane.outbound.unacknowledged()
            if not item.taken
        ]

    def assign(self, item: Outgoing) -> None:
        """Give a message the next number of its lane."""
        lane = self.first
        item.lane = lane.id
        item.number = lane.outbound.push(item)

    def note_number(self, item: Outgoing) -> None:
        """Note that a message has got another number or lost its number, so that the stored number
        is updated."""
        self._numbered.append(item)
        self._mark.dirty = True

    def release(self, item: Outgoing) -> None:
        """Give a message its number, and mark it as sent."""
        self.assign(item)
        self.note_number(item)
        item.sent = True
        self._in_flight += len(item.travels.body)

    def withdraw(self, item: Outgoing) -> None:
        """Take the number of a message back in a new contact, after the gateway has said that it
        lacks the message."""
        number, lane = item.number, self.lanes[item.lane]
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

    def forget_sent(self) -> None:
        """Mark all messages as not sent."""
        for lane in self.lanes.values():
            for _, item in lane.outbound.unacknowledged():
                item.sent = False
        self._in_flight = 0

    def has_credit(self, item: Outgoing) -> bool:
        """Whether the gateway's credit allows this message to be sent next."""
        lane = self.first
        return self._admits(item, lane, lane.outbound.assigned)

    def _admits(self, item: Outgoing, lane: OutgoingLane, number: int) -> bool:
        return admits(
            self._window,
            ahead=number - lane.peer_received,
            bytes_in_flight=self._in_flight,
            size=len(item.travels.body),
        )

    def put(self, item: Outgoing, frames: list[Frame]) -> bool:
        """Let a numbered message leave, or refuse it as too large; return False if it has to wait
        for credit."""
        refusal = self.too_large(item)
        if refusal is not None:
            self.refuse(item, refusal)
            return True
        if not self._admits(item, self.lanes[item.lane], item.number):
            return False
        frames.append(self.leave(item))
        item.sent = True
        weight = len((item.light or item.frame).body)
        self.written += item.size - len(item.frame.body) + weight
        self._in_flight += weight
        return True

    def leave(self, item: Outgoing) -> MessageFrame:
        """Return the frame of a message that leaves now, and note that it was sent."""
        self.sent.append(item.key)
        if item.casual:
            self._bytes -= item.size
            return item.frame
        frame = item.travels
        return MessageFrame(item.number, frame.key, frame.topic, frame.headers, frame.body)

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
            self._skip(self.lanes[item.lane], item.number)

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

    def collect(self, change: Change) -> None:
        """Put the outbox's durable data into `change`."""
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
