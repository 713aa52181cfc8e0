"""A device's side of the conversation, sans-I/O: everything that decides or keeps a promise.

A driver (asyncio, or the simulator on a virtual clock) feeds it what happened: a WELCOME, frames,
the loss of a channel, what the application did. It asks for the next `change`, makes it durable in
an inbox and says `committed`; sends the `frames` that may leave now; hands `ready` messages over.
Nothing is acknowledged, and nothing of our own is sent, before the change that it depends on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from lasthop.clock import MILLISECOND, Micros
from lasthop.device.arrivals import Arrivals
from lasthop.device.change import Change, FlowState, Held, State
from lasthop.device.happenings import (
    Accepted,
    Fetched,
    Happening,
    Lapsed,
    LinksWanted,
    Refused,
    Sent,
    StreamStirred,
)
from lasthop.device.message import Message, Refusal
from lasthop.device.outbox import Outbox
from lasthop.device.part import DevicePart, moments
from lasthop.device.pilot import Pilot
from lasthop.device.snapshot import Snapshot
from lasthop.device.steered import SteeredSession
from lasthop.device.steering import Line, Steering
from lasthop.device.terms import Terms
from lasthop.device.transfers import Transfers
from lasthop.device.unsaved import Unsaved
from lasthop.errors import TooLarge
from lasthop.message import KeyMaker, Reliability, key_time
from lasthop.wire.hop.frames import (
    MAX_RANGES,
    Ack,
    Credit,
    Dropped,
    Ending,
    Feature,
    Frame,
    Headers,
    Hello,
    MessageFrame,
    Operation,
    Piece,
    Skip,
    Taken,
    Wanted,
    Welcome,
)
from lasthop.wire.hop.persistence import (
    Continue,
    DeviceSession as Claims,
    Redial,
    StartOver,
    accept,
)
from lasthop.wire.hop.ranges import RangeSet

MAX_WINDOW = 4096
"""`wire.hop.sequence` takes a number farther ahead for nonsense."""


class SessionCore(SteeredSession):
    """The session of one device, as it was held by its inbox, without what its parts do."""

    def __init__(self, terms: Terms, held: Held) -> None:
        if not 1 <= terms.window.messages <= MAX_WINDOW:
            raise ValueError(f"a window has 1 to {MAX_WINDOW} messages")
        if (
            terms.inbox_messages < terms.window.messages or terms.inbox_bytes < terms.window.bytes
        ) or terms.prefetch < 1:
            raise ValueError("an inbox holds a window at least, and one message is fetched ahead")
        state = held.state
        self.terms = terms
        self.unsaved = Unsaved()
        self.arrivals = Arrivals(terms, held, self.unsaved)
        self._outbox = Outbox(terms, held)
        self.transfers = Transfers(terms, held)
        self.lines: dict[int, Line] = {}
        """The channels that are open, by the numbers that the driver gave them."""
        # By the clock of the earlier life, which can only be behind.
        steering = Steering.restore(held.notes, self.lines, key_time(state.last_key))
        self._pilot: Pilot | None = None
        if steering is not None:
            self._pilot = Pilot(steering, self._outbox, self.transfers)
            self._pilot.take_over()
        self._send_ahead(durable=True)
        # Keys are not secret here, so they need no salt.
        self._keys = KeyMaker(node=0, after=state.last_key, random64=lambda: 0)
        self._last_key = state.last_key
        self._incarnation = state.incarnation
        self._epoch = state.epoch
        self._changes = 0
        self._pending: deque[Snapshot] = deque()
        self._durable = Snapshot(0, state, self.arrivals.acknowledgement(), ())
        self._gate = 0
        """The change that must be durable before anything leaves on this channel."""
        self._refusals: list[tuple[int, Refusal]] = []
        """Why messages of ours are not acted on, by their keys, since the owner last looked."""
        self._untold = RangeSet()
        self._open = False
        self._told = Ack(0, 0)
        self._told_window: Credit | None = terms.window
        self._repeat = False
        self._reliable = True
        self._wanted: tuple[str, ...] = ()
        self._notes: dict[str, bytes] = {}

    def attach(self, parts: Iterable[DevicePart], held: Held) -> None:
        """Let these take part, in their order."""
        parts = tuple(parts)
        self._welcomed = moments(parts, "welcomed")
        self._fails = moments(parts, "fails")
        self._refused = moments(parts, "refused")
        self._expire = moments(parts, "expire")
        self._next_expiry = moments(parts, "next_expiry")
        self._before_change = moments(parts, "before_change")
        self._collect = moments(parts, "collect")
        self._happenings = moments(parts, "happenings")
        self.arrivals.attach(parts, held)
        for restored in moments(parts, "restored"):
            restored()
        self._durable = Snapshot(0, held.state, self.arrivals.acknowledgement(), ())

    # The channel.

    def hello(self, *, link: str | None = None, network: str | None = None) -> Hello:
        """What to dial with, when the session is `settled`.

        Only what is durable may be claimed, and to hold more than was claimed is dangerous: a
        gateway that is an older copy of itself may give the same numbers out again.
        """
        if not self.settled:
            raise ValueError("what has happened is made durable before the device dials again")
        return self._hello(link, network, join=False)

    def joining(self, *, link: str | None = None, network: str | None = None) -> Hello | None:
        """What to dial with for one more channel beside those that are open; `None` while there is
        nothing that it could join.

        The gateway grants it only in the conversation that the others are in, so what it claims
        need not be everything.
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
        assigned = state.assigned if self._outbox.waiting else None
        return msgspec.structs.replace(
            claims.claim(hello), dropped=state.dropped, assigned=assigned
        )

    def welcomed(
        self, hello: Hello, welcome: Welcome, now: Micros, *, reliable: bool = True
    ) -> bool:
        """The gateway answered. False: close this channel and dial again, with a new `hello`.

        `reliable` says whether the channel loses nothing while it lasts, and nothing overtakes
        anything on it. Raises a HopError when the
        answer is impossible.
        """
        self._reliable = reliable
        claims = Claims(
            incarnation=self._incarnation, epoch=self._epoch, assigned=self._outbox.assigned
        )
        streams = bool(welcome.features & Feature.STREAMS)
        self.lost()
        self.transfers.again(alone=True)
        match accept(claims, hello, welcome):
            case Continue(ack, closed):
                self.arrivals.close_below(closed, now)
                # WELCOME leaves when what HELLO said is durable at the gateway.
                self.arrivals.told(hello.dropped)
                # Dropped while the HELLO was on its way. What is not durable of it may be told:
                # in another life it would be too late as well.
                self._untold = RangeSet(self.arrivals.dropped)
                self._told = Ack(hello.received, hello.delivered, hello.individual)
                self._gate = 0
                self._outbox.resume(ack, welcome.window, welcome.max_frame, streams=streams)
                if self._pilot is not None and self._pilot.resumed():
                    self._gate, self.unsaved.dirty = self._changes + 1, True
                self._send_ahead(durable=True)
            case StartOver(incarnation, epoch, drop_below):
                related = welcome.superseded is not None or incarnation == hello.incarnation
                self._begin(incarnation, epoch, now, related=related)
                self._outbox.start_over(drop_below)
                self._told = Ack(0, 0)
                self._gate = self._changes + 1
                self._outbox.resume(Ack(0, 0), welcome.window, welcome.max_frame, streams=streams)
                if self._pilot is not None:
                    self._pilot.resumed()
                self._send_ahead(durable=True)
            case Redial(forget):
                if forget:
                    self._begin(None, None, now, related=True)
                return False
        for part_welcomed in self._welcomed:
            part_welcomed(hello, welcome, now)
        self._told_window = hello.window or self.terms.window
        self._open = True
        return True

    def joined(self, hello: Hello, welcome: Welcome) -> bool:
        """The gateway answered a `joining` hello. False: close this channel."""
        ours = self._incarnation, self._epoch
        claimed, offered = (hello.incarnation, hello.epoch), (welcome.incarnation, welcome.epoch)
        if not (self._open and welcome.joined and claimed == offered == ours):
            return False
        # From now on what is said over one channel may overtake what was said over another.
        self._reliable = False
        self.transfers.joined()
        return True

    def rerouted(self, channel: int = 0) -> None:
        """One of several channels has ended, and what was said over it may be lost: say it again
        over another."""
        self.lines.pop(channel, None)
        self._repeat = True
        self._untold = RangeSet(self.arrivals.dropped)
        self._told_window = None
        self._outbox.again()
        self.transfers.again()
        if self._pilot is not None:
            self._pilot.link_lost(channel)

    def _begin(
        self, incarnation: bytes | None, epoch: int | None, now: Micros, *, related: bool
    ) -> None:
        self._incarnation = incarnation
        self._epoch = epoch
        self.arrivals.start_over(now, related=related)
        self._untold = RangeSet()
        self.unsaved.dirty = True

    def lost(self) -> None:
        """The channel has ended; what it still owed is said in the next HELLO."""
        self._open = False
        self._untold = RangeSet()
        self.lines.clear()
        if self._pilot is not None:
            self._pilot.lost()
        self._outbox.lost()

    def received(self, frames: Iterable[Frame], now: Micros) -> None:
        """Frames came in. Raises a HopError when the gateway says something impossible; then the
        channel has to be closed."""
        arrivals = self.arrivals
        duplicates = arrivals.duplicates
        for frame in frames:
            if type(frame) is MessageFrame:
                if frame.headers is not None:
                    whole = self._whole(frame)
                    if whole is None:
                        continue
                    frame = whole  # noqa: PLW2901
                arrivals.take(frame, now)
            elif type(frame) is Piece:
                self.transfers.piece(frame, known=arrivals.knows(frame.transfer))
            elif type(frame) is Taken:
                self.transfers.taken(frame, ours=self._outbox.has_body(frame.transfer))
            elif type(frame) is Ending:
                self.transfers.ending(frame, known=arrivals.knows(frame.transfer))
            elif type(frame) is Ack:
                self._outbox.acknowledge(frame)
            elif type(frame) is Skip:
                arrivals.skip(frame, now)
            elif type(frame) is Credit:
                self._outbox.credit(frame)
                if self._pilot is not None:
                    self._pilot.credit()
            elif type(frame) is Wanted:
                self._wanted = frame.links
        self._hear_of_bodies()
        if self._pilot is not None and self._outbox.settled:
            settled, self._outbox.settled = self._outbox.settled, []
            self._pilot.acknowledged(settled, now)
        self.transfers.announced(self._outbox.accepted)
        if arrivals.duplicates != duplicates:
            # The acknowledgement may have been lost; on a mapping without order that happens.
            self._repeat = True

    def _hear_of_bodies(self) -> None:
        """Bodies of ours that the gateway has, or will not take."""
        pilot = self._pilot
        for key in self.transfers.arrived:
            self._outbox.arrived(key) if pilot is None else pilot.body_arrived(key)
        for key, reason in self.transfers.refused:
            if pilot is None:
                self._outbox.refuse(key, reason)
            else:
                pilot.body_refused(key, Refusal(TooLarge.code, reason))
        self.transfers.arrived, self.transfers.refused = [], []

    def _whole(self, frame: MessageFrame) -> MessageFrame | None:
        """A message with its body, and with the stream that it opens."""
        headers = frame.headers
        assert headers is not None
        if headers.stream and frame.key is not None and not self.arrivals.knows(frame.key):
            self.transfers.open_incoming(frame.key)
        if headers.ahead is None:
            return frame
        known = frame.seq is not None and self.arrivals.has(frame.seq)
        return self.transfers.claim(frame, known=known)

    # The application.

    def queue(
        self,
        now: Micros,
        *,
        topic: str | None = None,
        headers: Headers | None = None,
        body: bytes = b"",
    ) -> int:
        """Take a message for the gateway; returns the key by which its fate is told. Raises
        TooLarge or Overloaded, and then has not taken it."""
        key = self._keys.key(now)
        frame = MessageFrame(None, key, topic, headers, body)
        self._outbox.check([frame])
        casual = headers is not None and headers.reliability is Reliability.BEST_EFFORT
        if self._pilot is not None and self._pilot.takes(frame):
            self._pilot.queue(frame, casual=casual)
        else:
            self._outbox.queue(frame, casual=casual)
        self._last_key = key
        self._send_ahead()
        return key

    def say(
        self, now: Micros, *, topic: str | None = None, headers: Headers, body: bytes = b""
    ) -> None:
        """Tell the gateway something, however full the outbox is: it makes room."""
        self._last_key = key = self._keys.key(now)
        self._outbox.queue(MessageFrame(None, key, topic, headers, body), casual=False)

    @property
    def last_time(self) -> Micros:
        """When the last message was queued."""
        return key_time(self._last_key)

    def refuse(self, key: int, refusal: Refusal) -> None:
        """The gateway will not act on a message of ours, or never gets it."""
        self._refusals.append((key, refusal))
        for refused in self._refused:
            refused(key)

    def _send_ahead(self, *, durable: bool = False) -> None:
        """Let large bodies go ahead of their messages, once those are durable: before, their keys
        could be given out again."""
        items, self._outbox.to_send = self._outbox.to_send, []
        for item in items:
            self.transfers.send_ahead(item.frame, durable=durable, first=item.unsure)

    def open_stream(self, now: Micros, headers: Headers) -> int:
        """Open a stream of ours; returns its key."""
        key = self.queue(now, headers=headers)
        state = FlowState(
            target=headers.to or "",
            content_type=headers.content_type,
            title=headers.title,
            priority=headers.priority,
            queue=headers.queue,
        )
        self.transfers.open_outgoing(key, state)
        return key

    def pull(self, key: int, now: Micros) -> bytes | None:
        """Ask for the body of a message that was left with the gateway; `Fetched` has the answer.
        It may be here already."""
        body = self.transfers.pull(key)
        if body is None:
            self.queue(now, headers=Headers(operation=Operation.PULL, in_reply_to=key))
        return body

    def expire(self, now: Micros) -> None:
        """Let go what is past its deadline and was not read, or was not answered."""
        for expire in self._expire:
            expire(now)

    def next_expiry(self) -> Micros | None:
        """When `expire`, or `steer`, has something to do."""
        due = [next_expiry() for next_expiry in self._next_expiry]
        due.append(None if self._pilot is None else self._pilot.due)
        return min((at for at in due if at is not None), default=None)

    def check(self, frames: Iterable[MessageFrame]) -> None:
        """Raise what `queue` would raise for one of these."""
        self._outbox.check(frames)

    def ready(self, now: Micros) -> list[Message]:
        """What to hand to the application now; `finished` tells when it is done with a message."""
        return self.arrivals.turnstile.ready(now, self._durable.state.offered)

    def fresh(self, now: Micros) -> list[Message]:
        """Like `ready`, for a handler whose work becomes durable together with the next change:
        what has just arrived is not stored first."""
        return self.arrivals.turnstile.fresh(now)

    def put_back(self, messages: Iterable[Message]) -> None:
        """A handler got no further than these of the `fresh` messages; their work was undone."""
        self.arrivals.turnstile.put_back(messages)

    def finished(self, *messages: Message) -> None:
        """The application is done with these; with the next change that is durable."""
        for message in messages:
            self.arrivals.finish(message)
            if message.frame.headers is not None and message.frame.headers.pull is not None:
                self.transfers.forget_body(message.key)

    def lapsed(self, message: Message) -> None:
        """The application had not looked at it when its deadline passed."""
        self.arrivals.drop(message)

    # The driver.

    def change(self, *, flush: bool = False) -> Change | None:
        """What is to be made durable next, if anything; several may be under way, in order."""
        arrivals, outbox = self.arrivals, self._outbox
        transfers = self.transfers
        if not (self._unsettled or flush):
            return None
        for before_change in self._before_change:
            before_change()
        self.unsaved.dirty = False
        self._changes += 1
        change = Change(n=self._changes, state=State())
        arrivals.collect(change)
        outbox.collect(change)
        transfers.collect(change)
        change.notes, self._notes = self._notes, {}
        if self._pilot is not None:
            self._pilot.collect(change)
        for collect in self._collect:
            collect(change)
        change.state = State(
            incarnation=self._incarnation,
            epoch=self._epoch,
            base=arrivals.base,
            received=arrivals.received,
            delivered=arrivals.delivered,
            dropped=arrivals.dropped,
            offered=arrivals.turnstile.offered,
            assigned=outbox.assigned,
            accepted=outbox.received,
            last_key=self._last_key,
            generation=arrivals.generation,
            skipped=arrivals.skipped,
        )
        ack = arrivals.acknowledgement()
        self._pending.append(Snapshot(change.n, change.state, ack, arrivals.news()))
        return change

    def committed(self, n: int) -> None:
        """Change `n`, and all before it, is durable."""
        self.transfers.committed(n)
        if self._pilot is not None:
            self._pilot.committed(n)
        while self._pending and self._pending[0].n <= n:
            self._durable = self._pending.popleft()
            if self._durable.state.epoch == self._epoch:
                for start, stop in self._durable.news:
                    self._untold.add(start, stop)

    def frames(
        self, *, room: bool = True, budget: int | None = None, piece: bool = True
    ) -> list[Frame]:
        """What may leave over the open channel now; without room only what takes next to none.

        With `piece` a piece may be last; the next one is to wait until that has left.

        With a budget in bytes, `more` tells whether messages are left that could leave as well.
        """
        if not self._open or self._durable.n < self._gate:
            return []
        frames: list[Frame] = []
        while self._untold:
            # Before the acknowledgement that covers them (Acknowledgements and credit).
            some = self._untold.ranges(MAX_RANGES)
            self._untold.drop_below(some[-1][1])
            frames.append(Dropped(some))
        ack = self._durable.ack
        if ack != self._told or self._repeat:
            if not self._reliable and self._durable.state.dropped:
                # It may have been lost before: whatever an acknowledgement covers goes with it.
                frames = [Dropped(self._durable.state.dropped)]
            self._told = ack
            self._repeat = False
            frames.append(ack)
        window = self.arrivals.window()
        if window != self._told_window:
            self._told_window = window
            frames.append(window)
        if room:
            frames += self._outbox.frames(self._durable.state.assigned, budget=budget)
            self._hear_refusals()
        if self._outbox.streams:
            frames += self.transfers.frames()
            if piece and room and not self._outbox.more and self._pilot is None:
                next_piece = self.transfers.next_piece()
                if next_piece is not None:
                    frames.append(next_piece)
        return frames

    @property
    def more(self) -> bool:
        """Whether the last `frames` were cut short by their budget, or had consequences."""
        piloted = self._pilot is not None and self._pilot.more
        return self._outbox.more or self.unsaved.dirty or piloted

    def happenings(self) -> list[Happening]:
        """What the application may want to know, since the last time."""
        arrivals, outbox = self.arrivals, self._outbox
        happenings: list[Happening] = [Sent(key) for key in outbox.sent]
        if self._pilot is not None:
            happenings += self._pilot.closed
            self._pilot.closed = []
            if self._pilot.wanted not in ((), self._pilot.told):
                self._pilot.told = self._pilot.wanted
                self._wanted = self._pilot.wanted
        if self._wanted:
            happenings.append(LinksWanted(self._wanted))
            self._wanted = ()
        happenings += [Accepted(key) for key in outbox.accepted]
        for told in self._happenings:
            happenings += told()
        # What is refused after its deadline has ended before.
        happenings += [Refused(key, answer) for key, answer in self._refusals]
        happenings += [Lapsed(message) for message in arrivals.lapsed]
        for lapsed in arrivals.lapsed:
            if lapsed.headers.stream:
                self.transfers.stop(lapsed.key, "it came too late")
        for key, _ in self._refusals:
            self.transfers.refuse(key)
        happenings += [Fetched(*fetched) for fetched in self.transfers.fetched]
        happenings += [StreamStirred(key) for key in dict.fromkeys(self.transfers.stirred)]
        self.transfers.fetched, self.transfers.stirred = [], []
        outbox.sent, outbox.accepted = [], []
        self._refusals, arrivals.lapsed = [], []
        return happenings

    @property
    def held(self) -> int:
        """How many messages the application is not done with."""
        return self.arrivals.held

    @property
    def waiting(self) -> int:
        """How many messages the gateway may not have."""
        return self._outbox.waiting

    @property
    def settled(self) -> bool:
        """Whether every change so far is durable."""
        return not self._pending and not self._unsettled

    @property
    def _unsettled(self) -> bool:
        parts = (self._outbox, self.transfers, self._pilot)
        waiting = any(part.dirty for part in parts if part is not None)
        return bool(self.unsaved.dirty or self._notes or waiting)


def milliseconds(time: Micros) -> int:
    """A duration in the unit of the wire, rounded up: a deadline is not made shorter."""
    return -(-time // MILLISECOND)
