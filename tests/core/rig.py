"""A gateway on a memory store with a hand-turned crank: commits, crashes and time are verbs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from lasthop.clock import Micros
from lasthop.core.effects import (
    Appeared,
    Carry,
    Changed,
    CloseChannel,
    Consult,
    Effect,
    Fetch,
    MatchFilters,
    Notify,
    Recall,
    Send,
    SendPiece,
    SentElsewhere,
)
from lasthop.core.feature import CoreFeature
from lasthop.core.gateway import FEATURES, Gateway, Identity, Receipt, Submission
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.registry import DeviceRecord
from lasthop.core.spine import Spine
from lasthop.core.surrogates.waiting import SurrogateTerms
from lasthop.decision.routes import Route
from lasthop.delivery.carrier import Outcome
from lasthop.message import Reliability, Target, TargetKind, parse_id
from lasthop.store.commit import Commit, DeliveryRow
from lasthop.store.memory import MemoryStore
from lasthop.store.tables.pushes import PushesInMemory
from lasthop.wire.hop.frames import (
    Ack,
    Frame,
    Headers,
    Hello,
    LaneFrame,
    Last,
    MessageFrame,
    Skip,
    Welcome,
)
from tests.store.peek import rows_of

START: Micros = 1_763_200_000_000_000
APP = "app"
SHOP = "publisher:shop"


def to(name: str, body: bytes = b"hello", **fields: Any) -> Submission:
    """A message for a device, or for `kind:name`."""
    kind, colon, rest = name.partition(":")
    target = Target(TargetKind(kind), rest) if colon else Target(TargetKind.DEVICE, name)
    return Submission(target=target, body=body, **fields)


class Rig:
    """One gateway, its store, and everything that has left it."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        store: MemoryStore | None = None,
        surrogate: SurrogateTerms | None = None,
        features: Sequence[Callable[[Spine], CoreFeature]] = FEATURES,
        **settings: Any,
    ) -> None:
        """`settings` are further fields of the gateway's identity."""
        self.now = START
        self._features = features
        served = {} if surrogate is None else {APP: surrogate}
        self.identity = Identity(
            open_house=True, limits=limits or Limits(), surrogates=served, **settings
        )
        self.store = store or MemoryStore(incarnation=7)
        self.random = Random(1)
        self.sent: dict[int, list[Frame]] = {}
        self.sent_elsewhere: dict[int, list[Frame]] = {}
        self.disconnected: list[CloseChannel] = []
        self.changes: list[Changed] = []
        self.fetches: list[Fetch] = []
        self.appeared: list[Appeared] = []
        self.feeds: list[SendPiece] = []
        """Pieces that have not left the unsent buffer; `drain` lets them."""
        self.carries: list[Carry] = []
        self.gone: set[int] = set()
        """The numbers of parcels of which something has left."""
        self.notifies: list[Notify] = []
        self.consults: list[Consult] = []
        self.matches: list[MatchFilters] = []
        self.in_flight: list[Commit] = []
        self.channels = 0
        self.names: dict[int, str] = {}
        self.gateway = self._start()

    def _start(self) -> Gateway:
        gateway = Gateway(
            self.identity,
            self.store.open(),
            random64=lambda: self.random.getrandbits(64),
            now=self.now,
            features=self._features,
        )
        gateway.air.withdraw = self._withdraw
        return gateway

    def _withdraw(self, variant: str, number: int) -> bool:
        """Take back a parcel that waits inside its carrier."""
        found = [c for c in self.carries if c.parcel.number == number]
        if not found or number in self.gone:
            return False
        assert found[0].parcel.route.variant == variant
        self.carries.remove(found[0])
        return True

    # The driver.

    def crash(self) -> None:
        """Die now; what was applied is kept."""
        self.in_flight = []
        self.fetches = []
        self.carries = []
        self.notifies = []
        self.consults = []
        self.matches = []
        self.store = self.store.crash()
        self.gateway = self._start()

    def settle(self) -> None:
        """Draw the consequences, and note what leaves."""
        self.gateway.wake(self.now)
        self.gateway.settle(self.now)
        self._perform(self.gateway.effects())
        self.check_count()

    def check_count(self) -> None:
        """What is counted as open is what is open, and all of it is in somebody's mailbox."""
        room = self.gateway.deliveries
        scanned = sum(len(item.deliveries) for item in room.items.values())
        assert room.open_deliveries == scanned
        assert scanned == sum(len(session.mailbox) for session in room.sessions())

    def take(self, *, flush: bool = False) -> Commit | None:
        """Begin to write a commit."""
        commit = self.gateway.commit(self.now, flush=flush)
        if commit is not None:
            self.in_flight.append(commit)
        return commit

    def write(self) -> None:
        """The oldest commit that is being written becomes durable."""
        commit = self.in_flight.pop(0)
        self.store.apply(commit)
        self.gateway.written(commit.n)
        self.gateway.proceed(self.now)
        self.settle()

    def run(self, *, flush: bool = True) -> None:
        """Until there is nothing left to do."""
        for _ in range(1000):
            self.settle()
            self.take(flush=flush)
            if not self.in_flight:
                return
            self.write()
        raise AssertionError("the gateway never comes to rest")

    def run_commits(self, count: int) -> None:
        """Make so many commits durable."""
        for _ in range(count):
            self.settle()
            self.take(flush=True)
            if self.in_flight:
                self.write()

    def pass_time(self, micros: Micros) -> None:
        """Let time go by, waking the gateway when it wants to be woken."""
        end = self.now + micros
        while (due := self.gateway.next_wake()) is not None and due <= end:
            self.now = max(self.now, due)
            self.run()
        self.now = end
        self.run()

    def drain(self) -> None:
        """What was handed to the channels leaves them."""
        feeds, self.feeds = self.feeds, []
        for feed in feeds:
            self.gateway.pieces.drained(feed.channel, self.now)
        self.settle()

    def fetch(self) -> None:
        """The store answers."""
        for fetch in self.fetches:
            self.gateway.fetched(self.store.messages(fetch.keys), self.now)
        self.fetches = []
        self.settle()

    def match(self) -> None:
        """The worker reads what it was given, one after the other, until there is nothing left."""
        while self.matches:
            effect = self.matches.pop(0)
            assert not self.matches, "one is with the worker at a time"
            filters = self.gateway.topics.index.filters
            reading = filters.read(effect.app, effect.content_type, effect.body)
            self.gateway.topics.matched(effect.message, reading, self.now)
            self.run()

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.check_durable(effect)
                self.sent.setdefault(effect.channel, []).extend(effect.frames)
            elif isinstance(effect, SendPiece):
                self.sent.setdefault(effect.channel, []).append(effect.piece)
                self.feeds.append(effect)
            elif isinstance(effect, CloseChannel):
                self.disconnected.append(effect)
            elif isinstance(effect, Changed):
                self.changes.append(effect)
            elif isinstance(effect, Carry):
                rows = self.store.deliveries(effect.message)
                assert any(
                    row.device == effect.device and row.state == State.SENDING for row in rows
                ), effect
                self.carries.append(effect)
            elif isinstance(effect, SentElsewhere):
                self.sent_elsewhere.setdefault(effect.channel, []).extend(effect.frames)
            elif isinstance(effect, Notify):
                told = rows_of(self.store, PushesInMemory).notifications
                assert (effect.message, effect.place) in told, effect
                self.notifies.append(effect)
            elif isinstance(effect, Consult):
                self.consults.append(effect)
            elif isinstance(effect, MatchFilters):
                self.matches.append(effect)
            elif isinstance(effect, Recall):
                messages = self.store.messages(effect.keys)
                had = self.store.delivered_to(effect.device, effect.keys)
                self.gateway.recalled(effect.device, messages, had, self.now)
            elif isinstance(effect, Appeared):
                assert effect.key in self.store.messages([effect.key])
                self.appeared.append(effect)
            else:
                self.fetches.append(effect)

    def check_durable(self, send: Send) -> None:
        """Nothing leaves that the store does not know."""
        for frame in send.frames:
            if isinstance(frame, MessageFrame):
                assert frame.key is not None
                epoch = self.welcome(send.channel).epoch
                assert any(
                    row.state > State.PENDING
                    and (
                        frame.seq is None
                        or (row.epoch, row.lane, row.seq) == (epoch, frame.lane, frame.seq)
                    )
                    for row in self.store.deliveries(frame.key)
                ), frame
            if isinstance(frame, Welcome):
                assert any(
                    row.epoch == frame.epoch and row.inbound >= frame.received
                    for row in self.store._kept.sessions.values()
                ), frame
            word: object = frame
            lane = 0
            if isinstance(frame, LaneFrame):
                lane, word = frame.lane, frame.frame
            if isinstance(word, Skip | Last):
                number = word.first if isinstance(word, Skip) else word.number
                device = self.gateway.registry.named(APP, self.names[send.channel]).number
                epoch = self.welcome(send.channel).epoch
                assert not any(
                    (row.device, row.epoch, row.lane, row.seq) == (device, epoch, lane, number)
                    for row in self.store.all_deliveries()
                    if row.open
                ), frame
            if not isinstance(frame, Welcome):
                first = (self.sent.get(send.channel) or send.frames)[0]
                assert isinstance(first, Welcome), "something left before WELCOME"

    # Those outside.

    def publish(self, *submissions: Submission, source: str = SHOP) -> list[int]:
        """Submit; the keys of what was accepted."""
        receipt: Receipt = self.gateway.publish(APP, source, submissions, self.now)
        self.gateway.hurry()
        return [parse_id(text)[0] for text in receipt.ids]

    def connect(
        self, name: str = "phone", *, reliable: bool = True, run: bool = True, **claims: Any
    ) -> int:
        """A device dials; its channel's number."""
        self.channels += 1
        self.names[self.channels] = name
        self.gateway.channel_opened(self.channels, reliable=reliable)
        hello = Hello(app=APP, device=name, **claims)
        self.gateway.frames_received(self.channels, [hello], self.now, local=True)
        if run:
            self.run()
        return self.channels

    def resume(self, name: str = "phone", *, received: int = 0, **claims: Any) -> int:
        """A device comes back that remembers its last WELCOME."""
        welcome = self.welcome(max(self.sent))
        claims = {"delivered": received, **claims}
        return self.connect(
            name,
            incarnation=welcome.incarnation,
            epoch=welcome.epoch,
            received=received,
            **claims,
        )

    def join(self, name: str = "phone", *, received: int = 0, **claims: Any) -> int:
        """A device in contact dials once more."""
        return self.resume(name, received=received, join=True, **claims)

    def hear(self, channel: int, *frames: Frame, run: bool = True) -> None:
        """The device says something."""
        self.gateway.frames_received(channel, frames, self.now)
        if run:
            self.run()

    def ack(self, channel: int, received: int, delivered: int | None = None) -> None:
        """The device acknowledges."""
        self.hear(channel, Ack(received, received if delivered is None else delivered))

    def lose(self, channel: int) -> None:
        """The channel breaks."""
        self.gateway.channel_lost(channel, "broken", self.now)
        self.run()

    def add(self, name: str = "phone", *routes: Route, **fields: Any) -> None:
        """Register a device that is reached over the air."""
        record = DeviceRecord(token_hash=b"x", routes=list(routes), **fields)
        self.gateway.admin.register(APP, name, record, self.now)
        self.run()

    def report(self, outcome: Outcome, at: int = 0) -> Carry:
        """A carrier reports on one of the parcels that it has."""
        carry = self.carries.pop(at)
        self.gateway.air.carried(carry.message, carry.device, outcome, self.now)
        self.run()
        return carry

    # What can be seen.

    def messages(self, channel: int) -> list[MessageFrame]:
        """What was sent over a channel."""
        return [f for f in self.sent.get(channel, []) if isinstance(f, MessageFrame)]

    def bodies(self, channel: int) -> list[bytes]:
        return [frame.body for frame in self.messages(channel)]

    def skips(self, channel: int) -> list[int]:
        """The numbers that were closed over a channel."""
        found = [f for f in self.sent.get(channel, []) if isinstance(f, Skip)]
        return [seq for skip in found for seq in range(skip.first, skip.first + skip.count)]

    def acks(self, channel: int) -> list[int]:
        return [f.received for f in self.sent.get(channel, []) if isinstance(f, Ack)]

    def welcome(self, channel: int) -> Welcome:
        welcome = self.sent[channel][0]
        assert isinstance(welcome, Welcome)
        return welcome

    def row(self, key: int) -> DeliveryRow:
        """The only delivery of a message, as the store has it."""
        (row,) = self.store.deliveries(key)
        return row

    def state(self, key: int) -> State:
        return State(self.row(key).state)

    def states(self) -> Counter[State]:
        """How many deliveries of the store are in each state."""
        return Counter(State(row.state) for row in self.store.all_deliveries())

    def events(self) -> list[dict[str, Any]]:
        """The whole log."""
        pages = self.store.events(0, 1 << 40)
        return [json.loads(line) for page in pages for line in page.lines.splitlines()]

    def story(self, key: int) -> list[str]:
        """What happened to a message, in a word each."""
        return [event["kind"] for event in self.events() if event.get("msg") == key]


def publication(
    seq: int | None, body: bytes = b"up", *, target: str = "device:tablet", **fields: Any
) -> MessageFrame:
    """A message that a device sends."""
    return MessageFrame(seq, None, None, Headers(to=target, **fields), body)


BEST_EFFORT: dict[str, Any] = {"reliability": Reliability.BEST_EFFORT}
AT_LEAST_ONCE_DELIVERY: dict[str, Any] = {"reliability": Reliability.AT_LEAST_ONCE_DELIVERY}
