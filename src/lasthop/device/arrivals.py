"""The incoming half of a device's session: order, duplicates, deadlines.

A message arrives, waits for its turn, and is finished when the application is done with it; a part
of the session may claim it when its turn comes. All data that must survive a restart is collected
for the next change.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from lasthop.clock import MILLISECOND, Micros
from lasthop.device.change import Change, InboxContents, InboxRow
from lasthop.device.change_mark import ChangeMark
from lasthop.device.handover import HandoverQueue
from lasthop.device.keys import KeyMemory
from lasthop.device.message import NO_POSITION, Message
from lasthop.device.part import DevicePart, moments
from lasthop.device.showings import Showing, Showings
from lasthop.device.terms import DeviceTerms
from lasthop.message import DEFAULT_CONTENT_TYPE, Reliability, key_time
from lasthop.wire.hop.accept import preferred
from lasthop.wire.hop.frames import MAX_RANGES, Ack, Credit, Headers, MessageFrame, Ranges, Skip
from lasthop.wire.hop.ranges import RangeSet
from lasthop.wire.hop.sequence import Inbound

PAUSE = Credit(0, 0)


class Arrivals:
    """The messages that came from the gateway and that the application is not done with."""

    def __init__(self, terms: DeviceTerms, held: InboxContents, mark: ChangeMark) -> None:
        state = held.state
        self._terms = terms
        self._mark = mark
        self._default_type = preferred(terms.accept)
        self._inbound: Inbound[Message] = Inbound()
        self._keys = KeyMemory(
            terms.keys, generation=state.generation, old=held.old_keys, young=held.young_keys
        )
        self._open: dict[int, Message] = {}
        """All messages that are not finished, by position."""
        self._known: dict[int, Message] = {}
        """The unfinished messages whose turn has come, by key."""
        self._gapped: dict[int, Message] = {}
        """The messages that arrived beyond a gap, by number."""
        self.handover = HandoverQueue(
            prefetch=terms.prefetch, offered=state.offered, late=self.drop
        )
        self._top = 0
        self.base = state.base
        self.held_bytes = 0
        self._paused = False
        self.lapsed: list[Message] = []
        """The messages that were dropped because their deadline had passed; the owner collects
        them."""
        self._dropped = RangeSet(state.dropped)
        self._skipped = RangeSet(state.skipped)
        self._unstored: list[Message] = []
        self._adopted: list[tuple[int, int]] = []
        self._removed: list[int] = []
        self._news = RangeSet()
        self._detached = False
        self._showings = Showings()
        self.kept_keys: set[int] = set()
        """The keys of messages that the session's parts keep outside the inbox."""

    def attach(self, parts: Iterable[DevicePart], held: InboxContents) -> None:
        """Connect the session's parts, which are asked in this order, and restore the messages in
        the inbox."""
        parts = tuple(parts)
        self._words: dict[int, DevicePart] = {
            part.word: part for part in parts if part.word is not None
        }
        self._claims_late = moments([part for part in parts if part.takes_late], "claims")
        self._claims = moments([part for part in parts if not part.takes_late], "claims")
        self._came_again = moments(parts, "came_again")
        self._cut_off = moments(parts, "cut_off")
        self._started_over = moments(parts, "started_over")
        self._ended = moments(parts, "ended")
        controls = self._restore(held, parts)
        for unread in held.kept:
            kept = self.apart(unread.frame)
            kept.default_type = unread.default_type
            any(part.keeps_again(kept, unread.rank) for part in parts)
        for control in controls:
            part = self._words[control.headers.operation]
            showing = Showing(control, part.partly_shown)
            for key in part.shown_by(control):
                self.look_for(key, showing)
            self.begin_showing(showing)

    def _restore(self, held: InboxContents, parts: tuple[DevicePart, ...]) -> list[Message]:
        """Restore the messages of the inbox; return the gateway's instructions among them."""
        state = held.state
        waiting: list[tuple[int, Message]] = []
        controls: list[Message] = []
        finished = RangeSet()
        at = state.delivered
        numbers = sorted(
            row.number
            for row in held.inbox
            if row.number is not None and row.number < state.received
        )
        for row in _in_order(held.inbox):
            message = self._message(row.frame, row.position, row.number)
            message.default_type = row.default_type or DEFAULT_CONTENT_TYPE
            message.stored = True
            message.redelivered = message.redelivered or row.position < state.offered
            self._hold(message)
            self._top = max(self._top, row.position + 1)
            if row.number is not None and row.number >= state.received:
                waiting.append((row.number, message))
                self._gapped[row.number] = message
                continue
            self._recognise(message)
            message.offered = row.position < state.offered
            if self._instructs(message):
                controls.append(message)
            elif not any(part.takes_back(message) for part in parts):
                self.handover.add(message)
        for number in numbers:
            if at < number < state.received:
                finished.add(at, number)
            at = number + 1
        if at < state.received:
            finished.add(at, state.received)
        self._inbound.restore(received=state.received, delivered=state.delivered, waiting=waiting)
        for start, stop in finished.ranges():
            self._inbound.deliver(start, stop - start)
        for start, stop in state.skipped:
            self._inbound.skip(start, stop - start)
        return controls

    @property
    def held(self) -> int:
        """The number of messages that are not finished."""
        return len(self._open)

    @property
    def received(self) -> int:
        """The number of the first message that has not arrived; all before it have."""
        return self._inbound.received

    @property
    def delivered(self) -> int:
        """The number of the first message that is not finished; all before it are."""
        return self._inbound.delivered

    @property
    def duplicates(self) -> int:
        """How many times a message came whose number had come before."""
        return self._inbound.duplicates

    @property
    def dropped(self) -> Ranges:
        """The numbers of dropped messages of which the gateway may not know yet: the newest, as
        many as fit into a HELLO."""
        return self._dropped.ranges()[-MAX_RANGES:]

    @property
    def skipped(self) -> Ranges:
        """The numbers after a gap that the gateway said it will not use. They have been
        acknowledged, so they must be stored."""
        return self._skipped.ranges()

    @property
    def generation(self) -> int:
        """The number of the present generation of remembered keys: see `KeyMemory`."""
        return self._keys.generation

    def has(self, number: int) -> bool:
        """Whether the message of this number has arrived, or the gateway will not use the
        number."""
        return self._inbound.has(number)

    def knows(self, key: int) -> bool:
        """Whether a message with this key is in the inbox, or was there before."""
        return key in self._known or key in self._keys

    def known(self, key: int) -> Message | None:
        """Return the unfinished message of this key, if its turn has come."""
        return self._known.get(key)

    def has_had(self, key: int) -> bool:
        """Whether the application is done with the message of this key."""
        return key in self._keys

    def acknowledgement(self) -> Ack:
        """Return the ack, which tells the gateway which numbers have arrived and which are
        finished."""
        return self._inbound.acknowledgement()

    def room(self) -> Credit:
        """Return how much the gateway may send after a HELLO. Messages that were under way when the
        last channel ended come again and were promised a place, even if the device has asked for a
        pause since."""
        terms = self._terms
        # Credit counts numbers: messages beyond a gap that are here already need no more room.
        room = terms.inbox_messages - self.held + len(self._gapped)
        messages = min(terms.window.messages, room)
        size = min(terms.window.bytes, terms.inbox_bytes - self.held_bytes)
        return Credit(messages, size) if messages > 0 and size > 0 else PAUSE

    def window(self) -> Credit:
        """Return how much the gateway may send now: nothing while the next window might not fit
        into the inbox."""
        terms = self._terms
        messages = terms.inbox_messages - terms.window.messages
        size = terms.inbox_bytes - terms.window.bytes
        if self._paused:
            # Open again only at half, so that a full inbox does not pause and resume all the time.
            messages //= 2
            size //= 2
        self._paused = self.held > max(0, messages) or self.held_bytes > max(0, size)
        return PAUSE if self._paused else terms.window

    # What the gateway says.

    def take(self, frame: MessageFrame, now: Micros) -> None:
        """Handle a message frame that the gateway sends."""
        number = frame.seq
        if number is None:
            message = self._message(frame, NO_POSITION, None)
            if frame.headers is not None and self._claimed(message, frame.headers, now):
                return
            # Best effort: above the window the message is dropped, since credit does not limit
            # them.
            if self.handover.casual < self._terms.window.messages:
                self.handover.add(message)
            return
        message = self._message(frame, self.base + number, number)
        if self._instructs(message):
            # An unreadable instruction raises before its number counts as received: it comes again.
            self._words[message.headers.operation].shown_by(message)
        duplicates = self._inbound.duplicates
        ready = self._inbound.receive(number, message)
        if ready:
            self._hold(message)
            self._arrive(message, now)
            if len(ready) > 1:
                self._move_up(ready[1:], now)
            self._mark.dirty = True
        elif self._inbound.duplicates == duplicates:
            # Beyond a gap, and not a repeat: hold the message until the gap is filled.
            self._hold(message)
            self._gapped[number] = message
            self._top = max(self._top, message.position + 1)
            self._unstored.append(message)
            self._mark.dirty = True

    def skip(self, skip: Skip, now: Micros) -> None:
        """Acknowledge the numbers that the gateway says it will not use."""
        # This comes first: if it raises because of an impossible number, nothing has changed.
        ready = self._inbound.skip(skip.first, skip.count)
        for number in [n for n in self._gapped if skip.first <= n < skip.first + skip.count]:
            self.close(self._gapped.pop(number))
        self._skipped.add(skip.first, skip.first + skip.count)
        self._skipped.drop_below(self._inbound.received)
        self._move_up(ready, now)

    def close_below(self, count: int, now: Micros) -> None:
        """Acknowledge the missing numbers below `count`, which the gateway will not send."""
        if count > self._inbound.received:
            self._move_up(self._inbound.close_below(count), now)

    def told(self, ranges: Ranges) -> None:
        """Forget the numbers of dropped messages that the gateway now knows to be dropped."""
        if not self._dropped:
            return
        known = RangeSet(ranges)
        left = RangeSet()
        for start, stop in self._dropped.ranges():
            for low, high in _without(start, stop, known):
                left.add(low, high)
        self._dropped = left
        self._mark.dirty = True

    def start_over(self, now: Micros, *, related: bool) -> None:
        """Begin a new epoch, in which messages are numbered from 0 again; unfinished messages of
        the old epoch keep their places before the new ones.

        A message behind a gap comes again, in its place, from a gateway that knows the old
        numbering (`related`), unless its delivery was complete on arrival; any other gateway does
        not know the message, and will not fill the gap.
        """
        self.base = max(self.base + self._inbound.received, self._top)
        for started_over in self._started_over:
            started_over(related=related)
        for number in sorted(self._gapped):
            message = self._gapped[number]
            if any(cut_off(message, related=related) for cut_off in self._cut_off):
                continue
            comes_again = related and message.reliability is not Reliability.AT_LEAST_ONCE_DELIVERY
            if comes_again or self._instructs(message):
                self.close(message)
                continue
            self._recognise(message)
            headers = message.frame.headers
            if headers is None or not self._claimed(message, headers, now):
                self.handover.add(message)
        self._gapped.clear()
        for message in self._open.values():
            message.number = None
        self._inbound = Inbound()
        self._adopted.clear()
        self._dropped = RangeSet()
        self._skipped = RangeSet()
        self._news = RangeSet()
        self._detached = True
        self._mark.dirty = True

    # What the application does.

    def finish(self, message: Message) -> None:
        """Note that the application is done with a message. A second call for the same message
        changes nothing."""
        if message.finished:
            return
        if message.frame.key is not None and message.position != NO_POSITION:
            self._keys.add(message.frame.key)
        self.close(message)
        self._end(message, had=True)

    def drop(self, message: Message) -> None:
        """Drop a message that is too late for the application, and tell the gateway."""
        if message.finished:
            return
        self.lapsed.append(message)
        self.let_go(message)
        self._end(message, had=False)

    def _end(self, message: Message, *, had: bool) -> None:
        for ended in self._ended:
            ended(message, had=had)
        for showing in self._showings.ended(message.key, had=had):
            self._showed(showing)

    def collect(self, change: Change) -> None:
        """Put the data to be stored into `change`, and mark the messages that the application may
        see once it is durable."""
        self.handover.offer()
        change.detached, self._detached = self._detached, False
        for message in self._unstored:
            if not message.finished and not message.stored:
                message.stored = True
                change.stored.append(_row(message))
        self._unstored = []
        change.adopted, self._adopted = self._adopted, []
        change.removed, self._removed = self._removed, []
        change.keys = self._keys.take_added()
        self._skipped.drop_below(self._inbound.received)
        if len(self._dropped.ranges()) > MAX_RANGES:
            self._dropped = RangeSet(self.dropped)

    def news(self) -> Ranges:
        """Return the numbers that were dropped since the last change."""
        news, self._news = self._news.ranges(), RangeSet()
        return news

    # For parts.

    def apart(self, frame: MessageFrame) -> Message:
        """Return a frame as a message that is not stored in the inbox."""
        return self._message(frame, NO_POSITION, None)

    def place(self, frame: MessageFrame) -> Message:
        """Put a message that has no number at the end of the inbox."""
        place = max(self._top, self.base + self._inbound.received)
        self._top = place + 1
        self.base = place + 1 - self._inbound.received
        message = self._message(frame, place, None)
        self._hold(message)
        self.store(message)
        self._mark.dirty = True
        return message

    def move_in(self, kept: Message, *, in_time: bool = False) -> Message:
        """Move a message that was kept outside the inbox into it, so that the application sees it.
        With `in_time` the gateway considers the message as read before its deadline; the deadline
        is removed, so that the application gets the message even if a crash delays it."""
        frame = kept.frame
        if in_time and frame.headers is not None and frame.headers.deliver_within is not None:
            headers = replace(frame.headers, deliver_within=None)
            frame = replace(frame, headers=headers)
        message = self.place(frame)
        message.default_type = kept.default_type
        self._recognise(message)
        return message

    def store(self, message: Message) -> None:
        """Store a message of the inbox with the next change."""
        if not message.stored:
            self._unstored.append(message)

    def close(self, message: Message) -> None:
        """Remove a message, whether or not the application got it, and acknowledge its number."""
        message.finished = True
        if message.position == NO_POSITION:
            return
        del self._open[message.position]
        self.held_bytes -= len(message.frame.body)
        key = message.frame.key
        if key is not None and self._known.get(key) is message:
            del self._known[key]
        self.handover.finished(message)
        if message.stored:
            self._removed.append(message.position)
        number = message.number
        if number is not None and number < self._inbound.received:
            self._inbound.deliver(number)
        self._mark.dirty = True

    def let_go(self, message: Message) -> None:
        """Remove a message, and tell the gateway that the application did not get it."""
        if message.number is not None:
            self._dropped.add(message.number, message.number + 1)
            self._news.add(message.number, message.number + 1)
        self.close(message)

    def look_for(self, key: int, showing: Showing) -> None:
        """Note in `showing` what became of a message that should be shown but is no longer kept
        outside the inbox."""
        if key in self._known:
            showing.left.add(key)  # The message is being shown already.
        elif key in self._keys:
            showing.had.append(key)
        else:
            showing.partly = True

    def begin_showing(self, showing: Showing) -> None:
        """Keep track of an instruction of the gateway to show messages; the instruction is
        acknowledged as finished when the application is done with all of the messages."""
        self._showings.add(showing)
        if showing.left:
            self.store(showing.control)
        else:
            self._showed(showing)

    # Within.

    def _showed(self, showing: Showing) -> None:
        control = showing.control
        if control.finished:
            return
        if showing.partly:
            showing.report(showing.had)
            self.let_go(control)
        else:
            self.close(control)

    def _instructs(self, message: Message) -> bool:
        """Whether the message is an instruction of the gateway to a part."""
        headers = message.frame.headers
        return headers is not None and headers.operation in self._words

    def _claimed(self, message: Message, headers: Headers, now: Micros) -> bool:
        return any(claims(message, headers, now) for claims in self._claims)

    def _message(self, frame: MessageFrame, position: int, number: int | None) -> Message:
        message = Message(frame, self._default_type, position, number)
        headers = frame.headers
        if headers is not None:
            message.redelivered = headers.redelivered
            if headers.deliver_within is not None and frame.key is not None:
                # The same arithmetic as the sender's, so that both compute the same deadline.
                message.deadline = key_time(frame.key) + headers.deliver_within * MILLISECOND
        return message

    def _move_up(self, messages: list[Message], now: Micros) -> None:
        """Let messages arrive that waited behind a gap which is now closed."""
        for message in messages:
            assert message.number is not None
            del self._gapped[message.number]
            self._arrive(message, now)
        self._mark.dirty = True

    def _arrive(self, message: Message, now: Micros) -> None:
        """Treat a message whose turn has come: as a repeat, as too late, or as new."""
        headers, key = message.frame.headers, message.frame.key
        if headers is not None and headers.operation in self._words:
            self._words[headers.operation].follow(message, now)
            return
        if key is not None:
            if key in self._keys:
                # The application is done with it: a gateway in a new epoch sends it under another
                # number.
                for came_again in self._came_again:
                    came_again(message)
                self.close(message)
                return
            # A part keeps the message outside the inbox already; the repeat adds nothing.
            if key in self.kept_keys:
                self.close(message)
                return
            known = self._known.get(key)
            if known is not None:
                self._adopt(known, message)
                return
            self._known[key] = message
        if headers is not None:
            # Before the deadline is checked: for these messages the gateway decides what is too
            # late.
            for claims in self._claims_late:
                if claims(message, headers, now):
                    return
            if message.deadline is not None and now >= message.deadline:
                self.drop(message)
                return
            for claims in self._claims:
                if claims(message, headers, now):
                    return
        if not message.stored:
            self._unstored.append(message)
        self.handover.add(message)

    def _adopt(self, known: Message, again: Message) -> None:
        """Give a message that waits in the inbox the number under which it came again; that number
        is finished with the message. Its old number is closed: the gateway took it back to send the
        message again."""
        assert again.number is not None
        known.number, again.number = again.number, known.number
        if known.stored:
            self._adopted.append((known.position, known.number))
        self.close(again)

    def _hold(self, message: Message) -> None:
        self._open[message.position] = message
        self.held_bytes += len(message.frame.body)

    def _recognise(self, message: Message) -> None:
        if message.frame.key is not None:
            self._known[message.frame.key] = message


def _in_order(rows: list[InboxRow]) -> list[InboxRow]:
    """Return rows by position, but those with a number by number: a message behind a gap may have a
    position from before a shown message got one."""
    numbered = iter(sorted((r for r in rows if r.number is not None), key=lambda r: r.number or 0))
    return [row if row.number is None else next(numbered) for row in rows]


def _without(start: int, stop: int, known: RangeSet) -> list[tuple[int, int]]:
    """Return the ranges of numbers from `start` to below `stop` that are not in `known`."""
    left = []
    for low, high in known.ranges():
        if start < low < stop:
            left.append((start, low))
        if low < stop:
            start = max(start, high)
    if start < stop:
        left.append((start, stop))
    return left


def _row(message: Message) -> InboxRow:
    plain = message.default_type == DEFAULT_CONTENT_TYPE
    return InboxRow(
        message.position, message.number, message.frame, None if plain else message.default_type
    )
