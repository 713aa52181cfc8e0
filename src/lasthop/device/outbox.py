"""The outgoing half of a device's session: what the gateway may not have yet.

A message has its number from the moment it is queued, leaves when it is durable, the gateway has
credit for it and a channel is open, and is kept until the gateway has acknowledged it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec.structs import replace

from lasthop.device.change import Change, Held, OutboxRow
from lasthop.device.message import Refusal
from lasthop.device.outgoing import Outgoing, frame_size, ordinary, priority_of
from lasthop.device.terms import Terms
from lasthop.errors import Overloaded, TooLarge
from lasthop.wire.hop.credit import admits
from lasthop.wire.hop.frames import (
    DEFAULT_MAX_FRAME,
    DEFAULT_WINDOW,
    Ack,
    Credit,
    Frame,
    Headers,
    MessageFrame,
    Skip,
)
from lasthop.wire.hop.ranges import RangeSet
from lasthop.wire.hop.sequence import DEFAULT_WINDOW as FARTHEST, Outbound

PRUNE = 256
"""Acknowledged messages that may wait to be removed with some other change: after a crash the
WELCOME tells again that they were taken, so a commit of their own is not worth a disk's effort."""


class Outbox:
    """What was queued and the gateway has not acknowledged."""

    def __init__(self, terms: Terms, held: Held) -> None:
        state = held.state
        self._terms = terms
        self._outbound: Outbound[Outgoing] = Outbound()
        self.streams = True
        """Whether the gateway takes bodies in pieces; until it says otherwise."""
        items = sorted(
            ((row.number, self._item(row.frame, row.number)) for row in held.outbox),
            key=lambda pair: (pair[0], pair[1].frame.key or 0),
        )
        for _, item in items:
            item.stored = True
        self._behind = [item for number, item in items if number < 0]
        """What has no number yet: large ones whose body is on its way, and what must not overtake
        them."""
        self._large = {item.frame.key for _, item in items if item.large}
        self.to_send = [item for item in self._behind if item.large]
        """Large ones whose body is to go ahead, since the owner last looked."""
        self._outbound.restore(
            assigned=state.assigned,
            received=state.accepted,
            delivered=state.accepted,
            items=[(number, item) for number, item in items if number >= state.accepted],
        )
        self._bytes = sum(item.size for _, item in items)
        self._casual: deque[Outgoing] = deque()
        self._unstored: list[Outgoing] = []
        self._taken: list[int] = []
        self._unsure: dict[int, Outgoing] = {}
        self._numbered: list[Outgoing] = []
        """What has got its number since the last change."""
        self._renumbered = False
        self.accepted: list[int] = []
        self.sent: list[int] = []
        """Keys of what was acknowledged, and of what left, since the owner last looked."""
        self.refusals: list[tuple[Outgoing, Refusal]] = []
        """What will never leave, and why."""
        self.steered = False
        """Whether a pilot numbers messages for others and chooses their links."""
        self.aside = 0
        """Messages that wait with the pilot."""
        self._plain: deque[Outgoing] = deque()
        """When steered, what is for the gateway itself and is to leave, in order."""
        self._unskipped = RangeSet()
        """When steered, numbers that the gateway is still to be told to wait for no longer."""
        self.settled: list[Outgoing] = []
        """When steered, what was acknowledged since the pilot last looked."""
        self._withdrawn: list[Outgoing] = []
        self.more = False
        self._written = 0
        self._window = DEFAULT_WINDOW
        self._max_frame = DEFAULT_MAX_FRAME
        self.lost()

    @property
    def assigned(self) -> int:
        """How many numbers were given out."""
        return self._outbound.assigned

    @property
    def received(self) -> int:
        """How many of them the gateway has."""
        return self._outbound.received

    @property
    def waiting(self) -> int:
        """How many messages the gateway may not have."""
        return self._outbound.in_flight + len(self._casual) + len(self._behind) + self.aside

    @property
    def dirty(self) -> bool:
        """Whether something must be made durable before long."""
        waiting = self._unstored or self._numbered or self._renumbered
        return bool(waiting) or len(self._taken) >= PRUNE

    def check(self, frames: Iterable[MessageFrame]) -> None:
        """Raise if one of these is too large, or too many wait already."""
        waiting, waiting_bytes = self.waiting, self._bytes
        for frame in frames:
            size = frame_size(frame)
            waiting += 1
            waiting_bytes += size
            if self._is_large(frame):
                if len(frame.body) > self._terms.max_body:
                    raise TooLarge(
                        "the body is above what travels in pieces; send it as a stream",
                        size=len(frame.body),
                        most=self._terms.max_body,
                    )
            elif size > self._max_frame:
                raise TooLarge(
                    "the message is above what a frame holds", size=size, most=self._max_frame
                )
            if waiting > self._terms.outbox_messages or waiting_bytes > self._terms.outbox_bytes:
                raise Overloaded(
                    "the outbox is full", retry_after=60, messages=self.waiting, bytes=self._bytes
                )

    def queue(self, frame: MessageFrame, *, casual: bool) -> None:
        """Take a message that was checked."""
        item = self.admit(frame, casual=casual)
        if casual:
            self._casual.append(item)
            return
        self._place(item)
        if item.large:
            self.to_send.append(item)

    def admit(self, frame: MessageFrame, *, casual: bool) -> Outgoing:
        """Keep a message that was checked, from the next change on."""
        item = self._item(frame)
        self._bytes += item.size
        if casual:
            item.large, item.casual = False, True
            return item
        self._unstored.append(item)
        if item.large:
            self._large.add(frame.key)
        return item

    def has_body(self, key: int) -> bool:
        """Whether this is a message with a large body that the gateway may not have."""
        return key in self._large

    def _item(self, frame: MessageFrame, number: int = -1) -> Outgoing:
        return Outgoing(frame, frame_size(frame), number, large=self._is_large(frame))

    def _is_large(self, frame: MessageFrame) -> bool:
        return self.streams and len(frame.body) > self._terms.segment and ordinary(frame)

    def _place(self, item: Outgoing) -> None:
        """Give it a number, unless its body has to be there first, or it would overtake one of its
        lane."""
        priority = priority_of(item.frame)
        waits = item.large or (
            bool(self._behind)
            and ordinary(item.frame)
            and any(priority_of(other.frame) == priority for other in self._behind)
        )
        if waits:
            item.number = -1
            self._behind.append(item)
        else:
            item.number = self._outbound.push(item)
            if self.steered:
                self._plain.append(item)

    def arrived(self, key: int) -> None:
        """The gateway has a body: its message may follow, and what waited behind it."""
        unsure = self._unsure.pop(key, None)
        if unsure is not None:
            unsure.unsure = False
            return
        behind, self._behind = self._behind, []
        blocked: set[int] = set()
        for item in behind:
            priority = priority_of(item.frame)
            item.there = item.there or item.frame.key == key
            ready = not item.large or item.there or not self.streams
            if ready and priority not in blocked:
                item.number = self._outbound.push(item)
                self._numbered.append(item)
            else:
                blocked.add(priority)
                self._behind.append(item)

    def refuse(self, key: int, reason: str) -> None:
        """The gateway will not take a body."""
        unsure = self._unsure.pop(key, None)
        if unsure is not None:
            self.refusals.append((unsure, Refusal(TooLarge.code, reason)))
            self._forget(unsure)
            self._skips.add(unsure.number, unsure.number + 1)
            return
        for item in self._behind:
            if item.frame.key == key:
                self._behind.remove(item)
                self.refusals.append((item, Refusal(TooLarge.code, reason)))
                self._forget(item)
                self.arrived(0)
                return

    # The channel.

    def resume(
        self, ack: Ack, window: Credit | None, max_frame: int, *, streams: bool = True
    ) -> None:
        """A channel is open and the gateway says what it has: the rest goes again."""
        self.lost()
        self.streams = streams
        if self._behind and not streams:
            self.arrived(0)
        self._window = window or DEFAULT_WINDOW
        self._max_frame = max_frame
        self._peer_received = self._confirmed = ack.received
        self.acknowledge(ack)
        if not self.steered:
            self._ask_for_bodies()
        self._cursor = ack.received
        # What it lacks and we no longer have (it is an older copy of itself) it must not wait for.
        there = RangeSet(ack.individual)
        for number, item in self._outbound.unacknowledged():
            if not item.taken:
                there.add(number, number + 1)
        there.add(self._outbound.assigned, self._outbound.assigned + 1)
        self._skips = RangeSet(there.gaps(ack.received))
        self._say_again()

    def _say_again(self) -> None:
        """When steered: what is for the gateway itself goes again, and so do skips."""
        if not self.steered:
            return
        self._unskipped = RangeSet(self._skips.ranges())
        self._unskipped.drop_below(self._confirmed)
        self._plain = deque(item for item in self.under_way() if not ordinary(item.frame))
        for item in self._plain:
            if item.sent:
                item.sent = False
                self._in_flight -= self._weight(item)

    def _ask_for_bodies(self) -> None:
        """The gateway may be an older copy of itself, without what went ahead of these."""
        self._unsure = {}
        for _, item in self._outbound.unacknowledged():
            item.unsure = item.large and self.streams and not item.taken
            if item.unsure:
                self._unsure[item.frame.key or 0] = item
                self.to_send.append(item)

    def start_over(self, drop_below: int) -> None:
        """Number everything from 0, without what the gateway has."""
        old, behind = self._outbound, self._behind
        self._outbound, self._behind, self._unsure = Outbound(), [], {}
        self._plain.clear()
        for number, item in old.unacknowledged():
            if number < drop_below:
                self._accept(item)
            elif not item.taken:
                self._place_again(item)
        for item in behind:
            self._place_again(item)
        self._numbered = list(self._withdrawn)
        self._renumbered = True
        self.lost()

    def _place_again(self, item: Outgoing) -> None:
        item.unsure = item.there = False
        if self.steered and ordinary(item.frame):
            item.number = -1
            self._withdrawn.append(item)
            return
        self._place(item)
        if item.large:
            self.to_send.append(item)

    def lost(self) -> None:
        """No channel is open: what is under way must be sent again."""
        for _, item in self._outbound.unacknowledged():
            item.sent = False
        self._cursor = self._outbound.received
        self._peer_received = self._confirmed = self._outbound.received
        self._in_flight = 0
        self._skips = RangeSet()

    def again(self) -> None:
        """What is under way may have been lost with one of several channels."""
        if self.steered:
            self._peer_received = self._confirmed
            self._say_again()
            return
        for _, item in self._outbound.unacknowledged():
            item.sent = False
        # A skip that was sent counts as received for the window, but it may be what was lost.
        self._cursor = self._peer_received = self._confirmed
        self._in_flight = 0

    def acknowledge(self, ack: Ack) -> None:
        """The gateway has these."""
        for item in self._outbound.acknowledge(ack).received:
            if item.sent:
                self._in_flight -= self._weight(item)
            self._accept(item)
        self._peer_received = max(self._peer_received, ack.received)
        self._confirmed = max(self._confirmed, ack.received)

    def credit(self, window: Credit) -> None:
        """The gateway takes more, or less, at a time."""
        self._window = window

    def frames(self, durable: int, *, budget: int | None = None) -> list[Frame]:
        """What goes out now, of the numbers below `durable`: no more than `budget` bytes, and one
        message. `more` tells whether it was cut short by that."""
        if self.steered:
            return [*self._skip_frames(), *self._plain_frames(durable)]
        frames: list[Frame] = []
        end = None if budget is None else self._written + budget
        self.more = False
        while self._casual:
            item = self._casual.popleft()
            self._bytes -= item.size
            frames.append(item.frame)
            self.sent.append(item.frame.key or 0)
        while self._cursor < durable:
            if end is not None and self._written >= end:
                self.more = True
                break
            number = self._cursor
            item_or_none = self._outbound.get(number)
            if item_or_none is None or item_or_none.taken:
                if not self._pass(number, frames):
                    break
                continue
            if not self._put(number, item_or_none, frames):
                break
        return frames

    def _pass(self, number: int, frames: list[Frame]) -> bool:
        """Nothing is left under this number: skip it if the gateway waits for it."""
        if number not in self._skips:
            self._cursor += 1
            return True
        if number >= self._peer_received + FARTHEST:
            return False
        stop = next(stop for start, stop in self._skips.ranges() if start <= number < stop)
        count = min(stop, number + FARTHEST) - number
        frames.append(Skip(number, count))
        self._cursor = number + count
        if self._peer_received == number:
            self._peer_received += count
        return True

    def _put(self, number: int, item: Outgoing, frames: list[Frame]) -> bool:
        if item.unsure:
            return False
        refusal = self.too_large(item)
        if refusal is not None:
            self.refusals.append((item, refusal))
            self._forget(item)
            self._skips.add(number, number + 1)
            self._unskipped.add(number, number + 1)
            return True
        size = self._weight(item)
        ahead = number - self._peer_received
        if not admits(self._window, ahead=ahead, bytes_in_flight=self._in_flight, size=size):
            return False
        frames.append(self.leave(item))
        item.sent = True
        self._written += item.size - len(item.frame.body) + size
        self._in_flight += size
        self._cursor += 1
        return True

    def too_large(self, item: Outgoing) -> Refusal | None:
        """Why the gateway would not take its frame."""
        if item.size - len(item.frame.body) + self._weight(item) <= self._max_frame:
            return None
        return Refusal(TooLarge.code, f"the gateway takes frames of {self._max_frame} bytes")

    def leave(self, item: Outgoing) -> MessageFrame:
        """It leaves: as the frame that travels."""
        self.sent.append(item.key)
        if item.casual:
            self._bytes -= item.size
            return item.frame
        headers, body = item.frame.headers, item.frame.body
        if item.large and self.streams:
            headers, body = replace(headers or Headers(), ahead=len(body)), b""
        return MessageFrame(item.number, item.frame.key, item.frame.topic, headers, body)

    # With a pilot.

    def give_up_order(self) -> list[Outgoing]:
        """A pilot takes over: returns what has no number, the oldest first. What has one goes on
        as it is, or is withdrawn in the next contact."""
        self.steered = True
        waiting = [*self._behind, *self._casual]
        self._behind, self.to_send = [], []
        self._casual.clear()
        self._unsure = {}
        plain = (item for item in self.under_way() if not ordinary(item.frame))
        self._plain = deque(item for item in plain if not item.sent)
        return sorted(waiting, key=lambda item: item.key)

    @property
    def stranded(self) -> bool:
        """Whether a message for others has its number and has not left: it was numbered before
        there was a pilot, who must not take that back while the gateway may have it."""
        return any(not item.sent and ordinary(item.frame) for item in self.under_way())

    def resume_order(self, items: Iterable[Outgoing]) -> None:
        """There is no pilot any more: these are numbered as they come, and all leaves again over
        the one channel that is spoken over."""
        self.steered = False
        self._plain.clear()
        self.again()
        for item in items:
            if item.casual:
                self._casual.append(item)
                continue
            item.channel, item.there = 0, False
            self._place(item)
            self._numbered.append(item)
            if item.large:
                self.to_send.append(item)

    def has_credit(self, item: Outgoing) -> bool:
        """Whether the gateway would take one more message now."""
        ahead = self._outbound.assigned - self._peer_received
        size = self._weight(item)
        return admits(self._window, ahead=ahead, bytes_in_flight=self._in_flight, size=size)

    def number(self, item: Outgoing) -> None:
        """It is released."""
        item.number = self._outbound.push(item)
        item.sent = True
        self._in_flight += self._weight(item)
        self._numbered.append(item)

    def numbered(self, number: int) -> Outgoing | None:
        """What the gateway may not have of this number."""
        return self._outbound.get(number) if self._outbound.awaits(number) else None

    def under_way(self) -> list[Outgoing]:
        """Everything with a number that the gateway may not have."""
        return [item for _, item in self._outbound.unacknowledged() if not item.taken]

    def withdraw(self) -> list[Outgoing]:
        """In a new contact, take back the numbers of messages that the gateway lacks: it is told
        not to wait for them, once that is durable. Returns the messages, the oldest first."""
        found, self._withdrawn = self._withdrawn, []
        for item in self.under_way():
            if not ordinary(item.frame):
                continue
            number = item.number
            self._outbound.replace(number, Outgoing(item.frame, 0, number, taken=True))
            self._skips.add(number, number + 1)
            self._unskipped.add(number, number + 1)
            item.number = -1
            item.sent = item.there = item.unsure = False
            found.append(item)
            self._numbered.append(item)
        return sorted(found, key=lambda item: item.key)

    def drop(self, item: Outgoing, refusal: Refusal) -> None:
        """A message without a number will never leave."""
        self.refusals.append((item, refusal))
        if item.casual:
            self._bytes -= item.size
        else:
            self._forget(item)

    def _skip_frames(self) -> list[Frame]:
        frames: list[Frame] = []
        for start, stop in self._unskipped.ranges():
            if start >= self._peer_received + FARTHEST:
                break
            count = min(stop, start + FARTHEST, self._peer_received + FARTHEST) - start
            frames.append(Skip(start, count))
            self._unskipped.drop_below(start + count)
            if self._peer_received == start:
                self._peer_received += count
        return frames

    def _plain_frames(self, durable: int) -> list[Frame]:
        frames: list[Frame] = []
        while self._plain and self._plain[0].number < durable:
            item = self._plain[0]
            if not item.taken and not self._put(item.number, item, frames):
                break
            self._plain.popleft()
        return frames

    def _weight(self, item: Outgoing) -> int:
        """Bytes of the body, as the gateway's window counts them."""
        return 0 if item.large and self.streams else len(item.frame.body)

    def _accept(self, item: Outgoing) -> None:
        """The gateway has it."""
        if not item.taken:
            self.accepted.append(item.key)
            self._forget(item)
            if self.steered:
                self.settled.append(item)

    def _forget(self, item: Outgoing) -> None:
        item.taken = True
        self._bytes -= item.size
        if item.large:
            self._large.discard(item.frame.key)
        if item.stored:
            self._taken.append(item.frame.key or 0)

    def collect(self, change: Change) -> None:
        """Put into `change` what has to survive."""
        if self._renumbered:
            change.renumbered = [
                (item.frame.key or 0, number)
                for number, item in (
                    *self._outbound.unacknowledged(),
                    *((-1, item) for item in self._behind),
                )
                if item.stored
            ]
            self._renumbered = False
        change.renumbered += [
            (item.frame.key or 0, item.number)
            for item in self._numbered
            if item.stored and not item.taken
        ]
        self._numbered = []
        for item in self._unstored:
            if not item.taken:
                item.stored = True
                change.queued.append(OutboxRow(item.number, item.frame))
        self._unstored = []
        change.taken, self._taken = self._taken, []
