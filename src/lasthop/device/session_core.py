"""A device's side of the session, without I/O: it makes all decisions and keeps the promises to the
gateway and the application.

A driver (asyncio, or the simulator on a virtual clock) reports what happened: a WELCOME, frames,
the loss of a channel, an act of the application. It asks for the next `change`, makes it durable in
an inbox and calls `committed`; sends the `frames` that may leave now; hands over the `ready`
messages. Nothing is acknowledged, and no message is sent, before the change that it depends on is
durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.device.arrivals import Arrivals
from lasthop.device.change import Change, InboxContents, SessionNumbers
from lasthop.device.change_mark import ChangeMark
from lasthop.device.message import Message, Refusal
from lasthop.device.outbox import Outbox
from lasthop.device.outgoing_lanes import last_frames
from lasthop.device.part import DevicePart, moments
from lasthop.device.plain_order import PlainOrder
from lasthop.device.session_events import (
    Lapsed,
    MessageAccepted,
    MessageSent,
    Refused,
    SessionEvent,
)
from lasthop.device.snapshot import SessionSnapshot
from lasthop.device.terms import DeviceTerms
from lasthop.message import KeyMaker, Reliability, key_time
from lasthop.wire.hop.frames import (
    MAX_RANGES,
    Ack,
    Credit,
    Dropped,
    Feature,
    Frame,
    Headers,
    Hello,
    LaneFrame,
    Last,
    MessageFrame,
    Skip,
    Welcome,
)
from lasthop.wire.hop.persistence import (
    Continue,
    Redial,
    StartOver,
    StoredSession as Claims,
    accept,
)
from lasthop.wire.hop.ranges import RangeSet

MAX_WINDOW = 4096
"""The largest window, in messages: `wire.hop.sequence` refuses a number that is farther ahead."""


class SessionCore:
    """The session of one device, restored from its inbox, without its parts."""

    def __init__(self, terms: DeviceTerms, held: InboxContents) -> None:
        if not 1 <= terms.window.messages <= MAX_WINDOW:
            raise ValueError(f"a window must have 1 to {MAX_WINDOW} messages")
        if (
            terms.inbox_messages < terms.window.messages or terms.inbox_bytes < terms.window.bytes
        ) or terms.prefetch < 1:
            raise ValueError("the inbox must hold a window, and prefetch must be at least 1")
        state = held.state
        self.terms = terms
        self.mark = ChangeMark()
        self.arrivals = Arrivals(terms, held, self.mark)
        self.outbox = Outbox(terms, held, self.mark)
        plain = self.outbox.order = PlainOrder(self.outbox)
        plain.restore(item for item in self.outbox.restored if item.number < 0)
        # A device's own keys need not be hard to guess, so they have no salt.
        self._keys = KeyMaker(node=0, after=state.last_key, random64=lambda: 0)
        self._last_key = state.last_key
        self._incarnation = state.incarnation
        self._epoch = state.epoch
        self._changes = 0
        self._pending: deque[SessionSnapshot] = deque()
        self._durable = SessionSnapshot(0, state, self.arrivals.first.acknowledgement(), ())
        self._gate = 0
        """The number of the change that must be durable before anything leaves on this channel."""
        self._refusals: list[tuple[int, Refusal]] = []
        """The refusals of this device's messages, with their keys, until the owner takes them."""
        self._untold = RangeSet()
        self._open = False
        self._told = Ack(0, 0)
        self._told_window: Credit | None = terms.window
        self._repeat = False
        self._reliable = True
        self._agreed = False
        """Whether the gateway has agreed to several lanes in this contact."""
        self._windows_again = False
        self._closed_lanes: list[tuple[int, int]] = []
        """Lanes that the gateway has closed, with the number of the LAST to acknowledge."""

    def attach(self, parts: Iterable[DevicePart], held: InboxContents) -> None:
        """Connect the session's parts, which are asked in this order, and restore the contents of
        the inbox."""
        parts = tuple(parts)
        self._takers = {kind: take for part in parts for kind, take in part.frames_taken().items()}
        self._whole = moments(parts, "whole")
        self._frames = moments(parts, "frames")
        self._welcomed = moments(parts, "welcomed")
        self._joined = moments(parts, "joined")
        self._rerouted = moments(parts, "rerouted")
        self._lost = moments(parts, "lost")
        self._link_up = moments(parts, "link_up")
        self._link_paused = moments(parts, "link_paused")
        self._accepted = moments(parts, "accepted")
        self._committed = moments(parts, "committed")
        self._fails = moments(parts, "fails")
        self._refused = moments(parts, "refused")
        self._expire = moments(parts, "expire")
        self._next_expiry = moments(parts, "next_expiry")
        self._before_change = moments(parts, "before_change")
        self._collect = moments(parts, "collect")
        self._session_events = moments(parts, "session_events")
        self.arrivals.attach(parts, held)
        for restored in moments(parts, "restored"):
            restored()
        self._durable = SessionSnapshot(0, held.state, self.arrivals.first.acknowledgement(), ())

    # The channel.

    def hello(self, *, link: str | None = None, network: str | None = None) -> Hello:
        """Return the HELLO to dial with; the session must be `settled`.

        The HELLO may claim only numbers that are durable, and it must claim all numbers that the
        device has: a gateway that was restored from a backup could use an unclaimed number for
        another message.
        """
        if not self.settled:
            raise ValueError("the device cannot dial again while a change is not durable")
        return self._hello(link, network, join=False)

    def joining(self, *, link: str | None = None, network: str | None = None) -> Hello | None:
        """Return the HELLO for one more channel beside the open ones; None while no channel is
        open.

        The gateway grants the channel only in the session of the open ones, so the HELLO need not
        claim all numbers.
        """
        if not self._open or self._durable.n < self._gate:
            return None
        return self._hello(link, network, join=True)

    def _hello(self, link: str | None, network: str | None, *, join: bool) -> Hello:
        terms = self.terms
        hello = Hello(
            app=terms.app,
            device=terms.name,
            token=terms.token,
            accept=terms.accept,
            window=self.arrivals.room(),
            preserve=terms.preserve,
            max_frame=terms.max_frame,
            link=link,
            network=network,
            join=join,
            storage=terms.storage,
            features=Feature.LANES if terms.lanes or self._used_lanes else 0,
        )
        state, ack = self._durable.state, self._durable.ack
        if state.epoch is None:
            return hello
        claims = Claims(
            incarnation=state.incarnation,
            epoch=state.epoch,
            assigned=state.assigned,
            received=ack.received,
            delivered=ack.delivered,
            individual=ack.individual,
        )
        assigned = state.assigned if self.outbox.waiting else None
        lanes = self.arrivals.lanes
        return msgspec.structs.replace(
            claims.claim(hello),
            dropped=state.dropped,
            assigned=assigned,
            lanes=lanes.claims(),
            lane_dropped=lanes.dropped(),
            # A lane that is newer than this could overtake the HELLO on another channel.
            sending=() if join else self.outbox.lanes.sending(),
        )

    @property
    def _used_lanes(self) -> bool:
        """Whether there has been any lane besides lane 0 in this epoch."""
        return self.arrivals.lanes.used or self.outbox.lanes.opened > 0

    def welcomed(
        self, hello: Hello, welcome: Welcome, now: Micros, *, reliable: bool = True
    ) -> bool:
        """Handle the gateway's WELCOME. If the result is False, close this channel and dial again
        with a new `hello`.

        `reliable` says whether the channel loses and reorders nothing while it lasts. Raises a
        HopError if the answer is impossible.
        """
        self._reliable = reliable
        claims = Claims(
            incarnation=self._incarnation, epoch=self._epoch, assigned=self.outbox.assigned
        )
        self.lost()
        agreed = bool(hello.features & welcome.features & Feature.LANES)
        answer = accept(claims, hello, welcome)
        if isinstance(answer, Continue) and not self._lanes_go_on(welcome, agreed=agreed):
            answer = Redial(forget=True)
        match answer:
            case Continue(ack, closed):
                self.outbox.lanes.allowed = agreed
                self.arrivals.close_below(closed, now)
                if agreed:
                    self.arrivals.go_on(hello, welcome, now)
                # The gateway sends WELCOME when the content of HELLO is durable there.
                self.arrivals.told(hello)
                # Messages dropped while the HELLO was on its way. They may be told before they are
                # durable: after a crash they would be too late as well.
                self._untold = RangeSet(self.arrivals.first.dropped)
                self._told = Ack(hello.received, hello.delivered, hello.individual)
                self._gate = 0
                self.outbox.resume(ack, welcome.window, welcome.max_frame, welcome.lanes, now)
            case StartOver(incarnation, epoch, drop_below):
                related = welcome.superseded is not None or incarnation == hello.incarnation
                self._begin(incarnation, epoch, now, related=related)
                self.outbox.lanes.allowed = agreed
                self.outbox.start_over(drop_below, welcome.lane_superseded)
                self._told = Ack(0, 0)
                self.wait_for_change()
                self.outbox.resume(Ack(0, 0), welcome.window, welcome.max_frame)
            case Redial(forget):
                if forget:
                    self._begin(None, None, now, related=True)
                return False
        for part_welcomed in self._welcomed:
            part_welcomed(hello, welcome, now)
        self._told_window = hello.window or self.terms.window
        self._agreed = agreed
        self._open = True
        return True

    def _lanes_go_on(self, welcome: Welcome, *, agreed: bool) -> bool:
        """Whether the lanes of this device can go on after a WELCOME that resumes its session."""
        if not agreed:
            return not self._used_lanes
        return self.outbox.lanes.accepts(welcome.lanes)

    def joined(self, hello: Hello, welcome: Welcome) -> bool:
        """Handle the WELCOME that answers a `joining` HELLO. If the result is False, close this
        channel."""
        ours = self._incarnation, self._epoch
        claimed, offered = (hello.incarnation, hello.epoch), (welcome.incarnation, welcome.epoch)
        # The session may have begun a new epoch while the channel was dialled.
        if not (self._open and welcome.joined and claimed == offered == ours):
            return False
        if bool(hello.features & welcome.features & Feature.LANES) != self._agreed:
            return False
        # From now on a frame on one channel may overtake a frame on another.
        self._reliable = False
        for part_joined in self._joined:
            part_joined()
        return True

    def wait_for_change(self) -> None:
        """Let nothing leave on this channel before the next change is durable."""
        self._gate, self.mark.dirty = self._changes + 1, True

    @property
    def in_contact(self) -> bool:
        """Whether the gateway has welcomed the device and a channel is still open."""
        return self._open

    def rerouted(self, channel: int = 0) -> None:
        """Send everything again that may have been lost with one of several channels."""
        self._repeat = True
        self._untold = RangeSet(self.arrivals.first.dropped)
        for lane in self.arrivals.lanes:
            lane.unsaid = RangeSet(lane.dropped)
        self._told_window = None
        self._windows_again = True
        self.outbox.again()
        for part_rerouted in self._rerouted:
            part_rerouted(channel)

    def _begin(
        self, incarnation: bytes | None, epoch: int | None, now: Micros, *, related: bool
    ) -> None:
        self._incarnation = incarnation
        self._epoch = epoch
        self.arrivals.start_over(now, related=related)
        self._untold = RangeSet()
        self.mark.dirty = True

    def lost(self) -> None:
        """Note that the last channel has ended; the next HELLO makes up for everything that was not
        sent over it."""
        self._open = False
        self._untold = RangeSet()
        self._closed_lanes = []
        for part_lost in self._lost:
            part_lost()
        self.outbox.lost()

    def link_up(self, channel: int, label: str, *, round_trip: Micros | None = None) -> None:
        """Note that messages may leave over this channel, which has a number above 0."""
        for part_link_up in self._link_up:
            part_link_up(channel, label, round_trip)

    def link_paused(self, channel: int, paused: bool) -> None:
        """Note that a channel's unsent buffer is full, or has room again."""
        for part_link_paused in self._link_paused:
            part_link_paused(channel, paused)

    def received(self, frames: Iterable[Frame], now: Micros) -> None:
        """Handle frames that the gateway sends. Raises a HopError if a frame breaks the protocol;
        the channel must then be closed."""
        arrivals = self.arrivals
        duplicates = arrivals.duplicates
        for frame in frames:
            if type(frame) is MessageFrame:
                whole: MessageFrame | None = frame
                for made_whole in self._whole:
                    if whole is not None and whole.headers is not None:
                        whole = made_whole(whole, whole.headers)
                if whole is not None:
                    arrivals.take(whole, now)
            elif type(frame) is Ack:
                self.outbox.acknowledge(frame)
            elif type(frame) is LaneFrame:
                self._received_in_lane(frame, now)
            elif type(frame) is Skip:
                arrivals.skip(frame, now)
            elif type(frame) is Credit:
                self.outbox.credit(frame)
            elif type(frame) in self._takers:
                self._takers[type(frame)](frame, now)
        if self.outbox.acknowledged:
            items, self.outbox.acknowledged = self.outbox.acknowledged, []
            self.outbox.order.acknowledged(items, now)
            for accepted in self._accepted:
                accepted(items, now)
        if arrivals.duplicates != duplicates:
            # A repeat means that our ack may have been lost, which an unordered mapping allows.
            self._repeat = True

    def _received_in_lane(self, frame: LaneFrame, now: Micros) -> None:
        match frame.frame:
            case Ack():
                self.outbox.acknowledge(frame.frame, frame.lane, now)
            case Credit():
                self.outbox.credit(frame.frame, frame.lane)
            case Skip():
                self.arrivals.skip(frame.frame, now, frame.lane)
            case Last(number):
                self.arrivals.last(frame.lane, number, now)
            case Dropped():
                pass  # Only a device drops messages.

    # The application.

    def queue(
        self,
        now: Micros,
        *,
        topic: str | None = None,
        headers: Headers | None = None,
        body: bytes = b"",
    ) -> int:
        """Queue a message for the gateway; return the key under which its outcome is reported. If
        it raises TooLarge or Overloaded, nothing was queued."""
        key = self._keys.key(now)
        frame = MessageFrame(None, key, topic, headers, body)
        self.outbox.check([frame])
        casual = headers is not None and headers.reliability is Reliability.BEST_EFFORT
        self.outbox.queue(frame, casual=casual)
        self._last_key = key
        return key

    def say(
        self, now: Micros, *, topic: str | None = None, headers: Headers, body: bytes = b""
    ) -> None:
        """Queue a message of the session itself, even if the outbox is full: such messages help the
        gateway to free room."""
        self._last_key = key = self._keys.key(now)
        self.outbox.queue(MessageFrame(None, key, topic, headers, body), casual=False)

    @property
    def last_time(self) -> Micros:
        """The time at which the last message was queued."""
        return key_time(self._last_key)

    def refuse(self, key: int, refusal: Refusal) -> None:
        """Report that the gateway will not act on a message of this device, or that the message
        will never be sent."""
        self._refusals.append((key, refusal))
        for refused in self._refused:
            refused(key)

    def expire(self, now: Micros) -> None:
        """Drop messages and requests that are past their deadline, unread or unanswered."""
        for expire in self._expire:
            expire(now)

    def next_expiry(self) -> Micros | None:
        """Return the time at which `expire` or `decide` has something to do; None if there is
        none."""
        lanes = self.outbox.lanes
        closing = lanes.next_close() if lanes.several and self._open else None
        due = [
            self.outbox.order.due,
            closing,
            *(next_expiry() for next_expiry in self._next_expiry),
        ]
        return min((at for at in due if at is not None), default=None)

    def check(self, frames: Iterable[MessageFrame]) -> None:
        """Raise the error that `queue` would raise for one of these frames."""
        self.outbox.check(frames)

    def ready(self, now: Micros) -> list[Message]:
        """Return the messages to hand to the application now; `finished` is called when it is done
        with one."""
        return self.arrivals.handover.ready(now)

    def fresh(self, now: Micros) -> list[Message]:
        """Return messages like `ready`, for a handler whose work becomes durable with the next
        change: new arrivals need not be stored first."""
        return self.arrivals.handover.fresh(now)

    def put_back(self, messages: Iterable[Message]) -> None:
        """Take back the `fresh` messages that a handler did not get to, or whose work was
        undone."""
        self.arrivals.handover.put_back(messages)

    def finished(self, *messages: Message) -> None:
        """Note that the application is done with these messages; durable with the next change."""
        for message in messages:
            self.arrivals.finish(message)

    def lapsed(self, message: Message) -> None:
        """Note that a message's deadline passed before the application looked at it."""
        self.arrivals.drop(message)

    # The driver.

    def decide(self, now: Micros, *, budget: int | None = None) -> None:
        """Choose the waiting messages that leave after the next change. They have at most `budget`
        bytes, except that the last message may exceed that."""
        self.outbox.close_idle(now)
        self.outbox.order.decide(now, budget=budget)
        self._hear_refusals()

    def _hear_refusals(self) -> None:
        refusals, self.outbox.refusals = self.outbox.refusals, []
        for item, against in refusals:
            if not any(fails(item, against) for fails in self._fails):
                self.refuse(item.key, against)

    def change(self, *, flush: bool = False) -> Change | None:
        """Return the next change to make durable, or None; several may be under way, in order. With
        `flush` a change is returned even if nothing is urgent."""
        arrivals, outbox = self.arrivals, self.outbox
        if not (self.mark.dirty or flush):
            return None
        for before_change in self._before_change:
            before_change()
        self.mark.dirty = False
        self._changes += 1
        change = Change(n=self._changes, state=SessionNumbers())
        arrivals.collect(change)
        sent_in = outbox.collect(change)
        lanes = arrivals.lanes.collect(change) if arrivals.lanes.several else ()
        for collect in self._collect:
            collect(change)
        first = arrivals.first
        change.state = SessionNumbers(
            incarnation=self._incarnation,
            epoch=self._epoch,
            base=first.base,
            received=first.inbound.received,
            delivered=first.inbound.delivered,
            dropped=first.dropped,
            offered=first.handover.offered,
            assigned=outbox.assigned,
            accepted=outbox.received,
            last_key=self._last_key,
            generation=arrivals.generation,
            skipped=first.skipped,
            before=arrivals.before,
            seen_lanes=arrivals.lanes.seen,
            closed_lanes=arrivals.lanes.closed,
            opened_lanes=outbox.lanes.opened,
        )
        ack = first.acknowledgement()
        last = arrivals.lanes.take_last()
        self._pending.append(
            SessionSnapshot(change.n, change.state, ack, first.news(), lanes, last, sent_in)
        )
        return change

    def committed(self, n: int) -> None:
        """Note that change `n`, and all before it, is durable."""
        for part_committed in self._committed:
            part_committed(n)
        while self._pending and self._pending[0].n <= n:
            self._durable = self._pending.popleft()
            self.arrivals.first.handover.durable = self._durable.state.offered
            self.outbox.lanes.first.durable = self._durable.state.assigned
            for lane in self._durable.lanes:
                lane.committed()
            for out_lane, assigned in self._durable.sent_in:
                out_lane.durable = assigned
            if self._durable.state.epoch == self._epoch:
                for start, stop in self._durable.news:
                    self._untold.add(start, stop)
                self._closed_lanes += self._durable.last

    def frames(
        self, *, room: bool = True, budget: int | None = None, piece: bool = True
    ) -> list[Frame]:
        """Return the frames that may leave over the open channel now; without `room`, only very
        small ones.

        With `piece` the last frame may be a piece of a transfer; the next piece waits until that
        one has left. With a `budget` in bytes, `more` tells whether messages are left that could
        leave as well.
        """
        if not self._open or self._durable.n < self._gate:
            return []
        frames: list[Frame] = []
        while self._untold:
            # DROPPED precedes the ack that covers it (hop protocol, "Acknowledgements and credit").
            some = self._untold.ranges(MAX_RANGES)
            self._untold.drop_below(some[-1][1])
            frames.append(Dropped(some))
        repeat, ack = self._repeat, self._durable.ack
        if ack != self._told or repeat:
            if not self._reliable and self._durable.state.dropped:
                # An earlier DROPPED may have been lost: send all that this ack covers with it.
                frames = [Dropped(self._durable.state.dropped)]
            self._told = ack
            self._repeat = False
            frames.append(ack)
        if self.arrivals.lanes.several or self._closed_lanes:
            frames += self._lane_frames(repeat=repeat)
        window = self.arrivals.window()
        if window != self._told_window:
            self._told_window = window
            frames.append(window)
        if self.outbox.lanes.several:
            frames += last_frames(self.outbox.lanes)
        if room:
            frames += self.outbox.order.frames(budget=budget)
            self._hear_refusals()
        for part_frames in self._frames:
            frames += part_frames(room=room, piece=piece)
        return frames

    def _lane_frames(self, *, repeat: bool) -> list[Frame]:
        """Return what the gateway is to hear of its lanes except lane 0."""
        frames: list[Frame] = []
        for lane in self.arrivals.lanes:
            if lane.id and not lane.closed:
                frames += lane.said(repeat=repeat, reliable=self._reliable)
                if self._windows_again and lane.window is not None:
                    frames.append(LaneFrame(lane.id, lane.window))
        self._windows_again = False
        for lane, window in self.arrivals.lane_credit():
            lane.window = window
            frames.append(LaneFrame(lane.id, window))
        closed, self._closed_lanes = self._closed_lanes, []
        # The LAST of a closed lane is acknowledged from itself.
        frames += [LaneFrame(lane, Ack(last + 1, last + 1)) for lane, last in closed]
        return frames

    def routed(self, *, piece: bool = True) -> dict[int, list[Frame]]:
        """Return the frames that may leave now over particular channels, besides `frames`."""
        if not self._open or self._durable.n < self._gate:
            return {}
        return self.outbox.order.routed(piece=piece)

    @property
    def stuck(self) -> bool:
        """Whether nothing more can leave until the device connects again."""
        return self.outbox.order.stuck

    @property
    def more(self) -> bool:
        """Whether the last call of `frames` was cut short by its budget, or made a change."""
        return self.outbox.order.more or self.mark.dirty

    def session_events(self) -> list[SessionEvent]:
        """Return the events for the application since the last call."""
        arrivals, outbox = self.arrivals, self.outbox
        session_events: list[SessionEvent] = [MessageSent(key) for key in outbox.sent]
        session_events += [MessageAccepted(key) for key in outbox.accepted]
        for told in self._session_events:
            session_events += told()
        # After the parts' events: a request that timed out had its outcome before the refusal.
        session_events += [Refused(key, answer) for key, answer in self._refusals]
        session_events += [Lapsed(message) for message in arrivals.lapsed]
        outbox.sent, outbox.accepted = [], []
        self._refusals, arrivals.lapsed = [], []
        return session_events

    @property
    def held(self) -> int:
        """The number of messages that the application is not done with."""
        return self.arrivals.held

    @property
    def waiting(self) -> int:
        """The number of messages that the gateway may not have."""
        return self.outbox.waiting

    @property
    def settled(self) -> bool:
        """Whether every change so far is durable."""
        return not self._pending and not self.mark.dirty


def milliseconds(time: Micros) -> int:
    """Return a duration in milliseconds, the unit on the wire, rounded up so that no deadline is
    shortened."""
    return -(-time // MILLISECOND)
