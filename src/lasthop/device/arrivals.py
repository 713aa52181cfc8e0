"""The incoming half of a device's session: order, duplicates, deadlines.

A message arrives, waits for its turn, and is finished when the application is done with it; a part
of the session may claim it when its turn comes. All data that must survive a restart is collected
for the next change.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from lasthop.clock import MILLISECOND, Micros
from lasthop.device.change import (
    Change,
    InboxContents,
    InboxRow,
    IncomingLaneNumbers,
    SessionNumbers,
)
from lasthop.device.change_mark import ChangeMark
from lasthop.device.handover import HandoverQueue
from lasthop.device.incoming_lane import IncomingLane, in_order
from lasthop.device.incoming_lanes import IncomingLanes
from lasthop.device.keys import KeyMemory
from lasthop.device.message import NO_POSITION, Message
from lasthop.device.part import DevicePart, moments
from lasthop.device.showings import Showing, Showings
from lasthop.device.terms import DeviceTerms
from lasthop.message import DEFAULT_CONTENT_TYPE, Reliability, key_time
from lasthop.wire.hop.accept import preferred
from lasthop.wire.hop.frames import MAX_LANES, Credit, Headers, Hello, MessageFrame, Skip, Welcome
from lasthop.wire.hop.lane_credit import ROOM

PAUSE = Credit(0, 0)


class Arrivals:
    """The messages that came from the gateway and that the application is not done with."""

    def __init__(self, terms: DeviceTerms, held: InboxContents, mark: ChangeMark) -> None:
        state = held.state
        self._terms = terms
        self._mark = mark
        self._default_type = preferred(terms.accept)
        self._keys = KeyMemory(
            terms.keys, generation=state.generation, old=held.old_keys, young=held.young_keys
        )
        self._known: dict[int, Message] = {}
        """The unfinished messages whose turn has come, by key."""
        self.handover = HandoverQueue(
            prefetch=terms.prefetch, offered=state.offered, late=self.drop, before=state.before
        )
        self.lanes = IncomingLanes(state, self.handover)
        self.first = self.lanes.first
        """Lane 0, which is always there."""
        self.before = state.before
        """The position in lane 0 below which messages of earlier epochs stand."""
        self.held = 0
        """The number of messages that are not finished."""
        self.held_bytes = 0
        self._paused = False
        self._repeats = 0
        """How many frames came of lanes that were closed."""
        self.lapsed: list[Message] = []
        """The messages that were dropped because their deadline had passed; the owner collects
        them."""
        self._unstored: list[Message] = []
        self._adopted: list[Message] = []
        self._removed: dict[int, list[int]] = {}
        self._moved: list[tuple[int, int, int | None]] = []
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
        self._shows_at_last = moments(parts, "shows_at_last")
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
        controls: list[Message] = []
        rows: dict[int, list[InboxRow]] = {0: []}
        numbered: dict[int, list[int]] = {}
        for lane_row in held.lanes:
            if lane_row.incoming:
                self.lanes.restore(lane_row)
                rows[lane_row.id] = []
        for row in held.inbox:
            rows[row.lane].append(row)
            if row.number is not None:
                numbered.setdefault(row.numbered_in, []).append(row.number)
        for lane in self.lanes:
            counts = self.lanes.counts(lane.id, state)
            waiting = self._restore_lane(lane, counts, rows[lane.id], parts, controls)
            lane.restore(counts, numbered.get(lane.id, ()), waiting)
        return controls

    def _restore_lane(
        self,
        lane: IncomingLane,
        counts: SessionNumbers | IncomingLaneNumbers,
        rows: list[InboxRow],
        parts: tuple[DevicePart, ...],
        controls: list[Message],
    ) -> list[tuple[int, Message]]:
        """Restore the messages of one lane; return those that wait behind a gap."""
        waiting: list[tuple[int, Message]] = []
        for row in rows if lane.unordered else in_order(rows):
            message = self._message(row.frame, row.position, row.number)
            message.lane, message.numbered_in = row.lane, row.numbered_in
            message.default_type = row.default_type or DEFAULT_CONTENT_TYPE
            message.stored = True
            message.redelivered = message.redelivered or row.position < counts.offered
            self._hold(message, lane)
            lane.next_free = max(lane.next_free, row.position + 1)
            own = row.number is not None and row.numbered_in == lane.id and not lane.unordered
            if own and row.number is not None and row.number >= counts.received:
                waiting.append((row.number, message))
                lane.beyond[row.number] = message
                continue
            self._recognise(message)
            message.offered = row.position < counts.offered
            if self._instructs(message):
                controls.append(message)
            elif not any(part.takes_back(message) for part in parts):
                self.handover.add(message)
        return waiting

    @property
    def duplicates(self) -> int:
        """How many times a message came whose number had come before."""
        return self._repeats + sum(lane.inbound.duplicates for lane in self.lanes)

    @property
    def generation(self) -> int:
        """The number of the present generation of remembered keys: see `KeyMemory`."""
        return self._keys.generation

    def has(self, number: int, lane: int = 0) -> bool:
        """Whether the message of this number has arrived, or the gateway will not use the
        number."""
        known = self.lanes.get(lane)
        return known is not None and known.inbound.has(number)

    def knows(self, key: int) -> bool:
        """Whether a message with this key is in the inbox, or was there before."""
        return key in self._known or key in self._keys

    def known(self, key: int) -> Message | None:
        """Return the unfinished message of this key, if its turn has come."""
        return self._known.get(key)

    def has_had(self, key: int) -> bool:
        """Whether the application is done with the message of this key."""
        return key in self._keys

    def room(self) -> Credit:
        """Return how much the gateway may send after a HELLO. Messages that were under way when the
        last channel ended come again and were promised a place, even if the device has asked for a
        pause since."""
        terms = self._terms
        # Credit counts numbers: messages beyond a gap that are here already need no more room.
        beyond = sum(len(lane.beyond) for lane in self.lanes)
        room = terms.inbox_messages - self.held + beyond
        messages = min(terms.window.messages, room)
        size = min(terms.window.bytes, terms.inbox_bytes - self.held_bytes)
        return Credit(messages, size) if messages > 0 and size > 0 else PAUSE

    def window(self) -> Credit:
        """Return how much the gateway may send now: nothing while the next window might not fit
        into the inbox."""
        terms = self._terms
        messages, size = self._limits()
        if self._paused:
            # Open again only at half, so that a full inbox does not pause and resume all the time.
            messages //= 2
            size //= 2
        self._paused = self.held > max(0, messages) or self.held_bytes > max(0, size)
        return PAUSE if self._paused else terms.window

    def _limits(self) -> tuple[int, int]:
        """Return the messages and bytes above which the next window might not fit."""
        terms = self._terms
        messages = terms.inbox_messages - terms.window.messages
        size = terms.inbox_bytes - terms.window.bytes
        if self.lanes.several:
            # Every lane may send one small message whatever the others have sent; a small inbox
            # cannot keep room for all of them.
            messages -= min(MAX_LANES, messages // 2)
            size -= min(MAX_LANES * ROOM, size // 2)
        return messages, size

    def lane_credit(self) -> list[tuple[IncomingLane, Credit]]:
        """Return the windows of single lanes that are to be changed: when half of the room is used,
        the lane that holds most is paused, so that the others need not be."""
        messages, size = self._limits()
        lanes = [lane for lane in self.lanes if lane.id and not lane.closed]
        if self.held * 4 <= messages and self.held_bytes * 4 <= size:
            paused = [lane for lane in lanes if lane.window == PAUSE]
            return [(lane, self._terms.window) for lane in paused]
        if self.held * 2 <= messages and self.held_bytes * 2 <= size:
            return []
        fullest = max(lanes, key=lambda lane: len(lane.open), default=None)
        if fullest is None or not fullest.open or fullest.window == PAUSE:
            return []
        return [(fullest, PAUSE)]

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
        lane = self.first if not frame.lane else self.lanes.find(frame.lane)
        if lane is None:
            self._repeats += 1  # The lane is closed, so everything of it was here.
            return
        message = self._message(frame, lane.position_of(number), number)
        message.lane = message.numbered_in = lane.id
        if self._instructs(message):
            # An unreadable instruction raises before its number counts as received: it comes again.
            self._words[message.headers.operation].shown_by(message)
        inbound = lane.inbound
        duplicates = inbound.duplicates
        ready = inbound.receive(number, message, reorder=not lane.unordered)
        if ready:
            self._hold(message, lane)
            lane.next_free = max(lane.next_free, message.position + 1)
            self._arrive(message, now)
            if len(ready) > 1:
                self._move_up(lane, ready[1:], now)
            self._mark.dirty = True
        elif inbound.duplicates == duplicates:
            # Beyond a gap, and not a repeat: hold the message until the gap is filled.
            self._hold(message, lane)
            lane.beyond[number] = message
            lane.next_free = max(lane.next_free, message.position + 1)
            self._unstored.append(message)
            self._mark.dirty = True

    def skip(self, skip: Skip, now: Micros, lane_id: int = 0) -> None:
        """Acknowledge the numbers that the gateway says it will not use."""
        lane = self.lanes.find(lane_id)
        if lane is None:
            self._repeats += 1
            return
        # This comes first: if it raises because of an impossible number, nothing has changed.
        ready = lane.inbound.skip(skip.first, skip.count)
        stop = skip.first + skip.count
        for number in [n for n in lane.beyond if skip.first <= n < stop]:
            self.close(lane.beyond.pop(number))
        lane.skip(skip.first, stop)
        self._move_up(lane, ready, now)

    def close_below(self, count: int, now: Micros, lane_id: int = 0) -> None:
        """Acknowledge the missing numbers below `count`, which the gateway will not send."""
        lane = self.lanes.find(lane_id)
        if lane is not None and count > lane.inbound.received:
            self._move_up(lane, lane.inbound.close_below(count), now)

    def go_on(self, hello: Hello, welcome: Welcome, now: Micros) -> None:
        """Go on with the lanes on a new channel: the gateway has closed those in which it does not
        send, and waits for none of the numbers that it had acknowledgements for."""
        for lane_id, count in welcome.lane_closed:
            self.close_below(count, now, lane_id)
        for lane_id in self.lanes.left_by(welcome.sending):
            self.close_lane(lane_id, now)
        self.lanes.begin(hello.lanes)

    def close_lane(self, lane_id: int, now: Micros) -> None:
        """Note that the gateway has closed a lane: what waits in it behind a gap waits no more."""
        lane = self.lanes.get(lane_id)
        if lane is not None and not lane.closed:
            if lane.beyond:
                self._move_up(lane, lane.inbound.close_below(max(lane.beyond) + 1), now)
            for message in lane.open.values():
                if message.numbered_in == lane_id:
                    message.number = None
                    message.numbered_in = 0
                    self._restore_number(message)
        self.lanes.close(lane_id)
        self._mark.dirty = True

    def last(self, lane_id: int, number: int, now: Micros) -> None:
        """Close a lane of which the gateway has sent the last number."""
        if self.lanes.find(lane_id) is not None:
            self.close_lane(lane_id, now)
        self.lanes.last(lane_id, number)
        self._mark.dirty = True

    def told(self, hello: Hello) -> None:
        """Forget the numbers of dropped messages that the gateway knows from this HELLO."""
        named = (0, hello.dropped), *hello.lane_dropped
        for lane_id, ranges in named:
            lane = self.lanes.get(lane_id)
            if lane is not None and lane.told(ranges):
                self._mark.dirty = True

    def start_over(self, now: Micros, *, related: bool) -> None:
        """Begin a new epoch, in which there is only lane 0 and messages are numbered from 0 again;
        unfinished messages of the old epoch keep their places before the new ones of all lanes.

        A message behind a gap comes again, in its place, from a gateway that knows the old
        numbering (`related`), unless its delivery was complete on arrival; any other gateway does
        not know the message, and will not fill the gap.
        """
        for started_over in self._started_over:
            started_over(related=related)
        released: list[Message] = []
        for lane in self.lanes:
            released += self._cut_gaps(lane, related=related)
        self._gather_lanes()
        for message in released:
            self._recognise(message)
            headers = message.frame.headers
            if headers is None or not self._claimed(message, headers, now):
                self.handover.add(message)
        self._adopted.clear()
        self._detached = True
        self._mark.dirty = True

    def _cut_gaps(self, lane: IncomingLane, *, related: bool) -> list[Message]:
        """Decide about the messages behind gaps of a lane; return those whose turn has come."""
        released: list[Message] = []
        for number in sorted(lane.beyond):
            message = lane.beyond[number]
            if any(cut_off(message, related=related) for cut_off in self._cut_off):
                continue
            comes_again = related and message.reliability is not Reliability.AT_LEAST_ONCE_DELIVERY
            if comes_again or self._instructs(message):
                self.close(message)
            else:
                released.append(message)
        return released

    def _gather_lanes(self) -> None:
        """Move all unfinished messages to lane 0, those that the application may have seen
        first."""
        first = self.first
        before = first.end
        offered = first.handover.offered
        if self.lanes.several:
            # In the new epoch the lanes may be used again, so this cannot wait for the change's
            # removals.
            gone = self._removed
            self._removed = {0: gone.pop(0, [])}
            self._moved += [(lane, place, None) for lane, there in gone.items() for place in there]
            unfinished = [
                message
                for lane in self.lanes
                for _, message in sorted(lane.open.items(), key=lambda item: item[0])
            ]
            unfinished.sort(key=lambda message: not message.offered)
            first.open = {}
            for message in unfinished:
                if message.stored:
                    self._moved.append((message.lane, message.position, before))
                message.lane, message.position = 0, before
                first.open[before] = message
                before += 1
                if message.offered:
                    offered = before
        self.lanes.start_over()
        first.start_over(before)
        for message in first.open.values():
            message.number = None
            message.numbered_in = 0
        self.before = before
        self.handover.start_over(before, offered)

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
        change.moved, self._moved = self._moved, []
        change.adopted = [
            (message.lane, message.position, message.numbered_in, message.number)
            for message in self._adopted
            if not message.finished
        ]
        self._adopted = []
        change.removed, self._removed = self._removed, {}
        change.keys = self._keys.take_added()
        self.first.trim()

    # For parts.

    def apart(self, frame: MessageFrame) -> Message:
        """Return a frame as a message that is not stored in the inbox."""
        return self._message(frame, NO_POSITION, None)

    def place(self, frame: MessageFrame, lane: int = 0) -> Message:
        """Put a message that has no number at the end of a lane of the inbox."""
        at = self.lanes.get(lane) or self.first
        message = self._message(frame, at.next_place(), None)
        message.lane = at.id
        self._hold(message, at)
        self.store(message)
        self._mark.dirty = True
        return message

    def move_in(self, kept: Message, *, lane: int = 0, in_time: bool = False) -> Message:
        """Move a message that was kept outside the inbox into it, so that the application sees it.
        With `in_time` the gateway considers the message as read before its deadline; the deadline
        is removed, so that the application gets the message even if a crash delays it."""
        frame = kept.frame
        if in_time and frame.headers is not None and frame.headers.deliver_within is not None:
            headers = replace(frame.headers, deliver_within=None)
            frame = replace(frame, headers=headers)
        message = self.place(frame, lane)
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
        position, lane = message.position, message.lane
        if position == NO_POSITION:
            return
        del self.lanes.by_id[lane].open[position]
        self.held -= 1
        self.held_bytes -= len(message.frame.body)
        key = message.frame.key
        if key is not None and self._known.get(key) is message:
            del self._known[key]
        self.handover.finished(message)
        if message.stored:
            removed = self._removed.get(lane)
            if removed is None:
                self._removed[lane] = [position]
            else:
                removed.append(position)
        number = message.number
        if number is not None:
            self.lanes.by_id[message.numbered_in].finish(number)
        self._mark.dirty = True

    def let_go(self, message: Message) -> None:
        """Remove a message, and tell the gateway that the application did not get it."""
        if message.number is not None:
            self.lanes.by_id[message.numbered_in].drop(message.number)
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

    def _move_up(self, lane: IncomingLane, messages: list[Message], now: Micros) -> None:
        """Let messages arrive that waited behind a gap which is now closed."""
        for message in messages:
            assert message.number is not None
            del lane.beyond[message.number]
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
            # A part keeps the message outside the inbox already; the repeat adds nothing, unless it
            # is to be shown.
            if key in self.kept_keys and not any(shown(message) for shown in self._shows_at_last):
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
        known.numbered_in, again.numbered_in = again.numbered_in, known.numbered_in
        self._restore_number(known)
        self.close(again)

    def _restore_number(self, message: Message) -> None:
        """Let the inbox have the present number of a message that it has."""
        if message.stored:
            self._adopted.append(message)

    def _hold(self, message: Message, lane: IncomingLane) -> None:
        lane.open[message.position] = message
        self.held += 1
        self.held_bytes += len(message.frame.body)

    def _recognise(self, message: Message) -> None:
        if message.frame.key is not None:
            self._known[message.frame.key] = message


def _row(message: Message) -> InboxRow:
    plain = message.default_type == DEFAULT_CONTENT_TYPE
    return InboxRow(
        message.position,
        message.number,
        message.frame,
        None if plain else message.default_type,
        message.lane,
        message.numbered_in,
    )
