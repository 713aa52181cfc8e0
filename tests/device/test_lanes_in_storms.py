"""Several lanes in any order of loss, crash and return: every lane is a pair of its own.

About `device/session_core.py`, with a gateway that is no more than its numbers. Frames overtake one
another, links break, the device loses what it had not committed, and the gateway begins new epochs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest
from msgspec.structs import replace

from lasthop.clock import SECOND
from lasthop.decision.links import Link, Tariff
from lasthop.decision.preferences import Preferences
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.message import Message
from lasthop.device.session import DeviceSession
from lasthop.message import first_key_at
from lasthop.wire.hop.frames import (
    Ack,
    Feature,
    Frame,
    Headers,
    Hello,
    LaneClaim,
    LaneClaims,
    LaneFrame,
    Last,
    MessageFrame,
    Skip,
    Welcome,
)
from lasthop.wire.hop.sequence import Inbound, Outbound
from tests.device.peer import INCARNATION, NOW, TERMS

SEEDS = int(os.environ.get("LASTHOP_LANE_STORMS", "60"))
TERMS_IN_STORMS = replace(TERMS, lanes=True, prefetch=3)
QUEUES: tuple[str | None, ...] = (None, "a", "b", "any")
UNORDERED = frozenset({"any"})
PREFERENCES = Preferences(links=(Link("wifi", Tariff()),))


class ModelGateway:
    """What a gateway knows: numbers, lane by lane, in both directions; all of it is durable."""

    def __init__(self) -> None:
        self.epoch = 0
        self.key = first_key_at(NOW)
        self.came: list[str] = []
        self.keys: set[int] = set()
        self.undelivered: dict[int, tuple[str | None, str]] = {}
        """What the application of the device may not have, by key."""
        self.old: dict[int, Inbound[str]] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a new epoch."""
        self.old = {} if not self.epoch else self.up
        self.epoch += 1
        self.up: dict[int, Inbound[str]] = {0: Inbound()}
        self.closed_up: set[int] = set()
        self.seen = 1
        self.down: dict[int, Outbound[int]] = {0: Outbound()}
        self.lanes: dict[str | None, int] = {None: 0}
        self.opened = 0
        self.last: dict[int, int] = {}
        self.unsent: list[tuple[int, int]] = []
        for key in sorted(self.undelivered):
            self._number(key)

    def publish(self, queue: str | None, body: str) -> None:
        self.key += 1
        self.undelivered[self.key] = queue, body
        self._number(self.key)

    def _number(self, key: int) -> None:
        queue = self.undelivered[key][0]
        lane = self.lanes.get(queue)
        if lane is None:
            self.opened += 1
            lane = self.lanes[queue] = self.opened << 1 | (queue in UNORDERED)
            self.down[lane] = Outbound()
        self.unsent.append((lane, self.down[lane].push(key)))

    def frames(self) -> list[Frame]:
        """What leaves now."""
        unsent, self.unsent = self.unsent, []
        frames: list[Frame] = [self._frame(lane, number) for lane, number in unsent]
        frames += [LaneFrame(lane, Last(number)) for lane, number in self.last.items()]
        for lane, inbound in self.up.items():
            if inbound.dirty:
                ack = replace(inbound.acknowledgement(), delivered=inbound.received)
                if not lane & 1:
                    # What waits behind a gap is dropped at the next HELLO.
                    ack = replace(ack, individual=())
                frames.append(LaneFrame(lane, ack) if lane else ack)
        return frames

    def _frame(self, lane: int, number: int) -> Frame:
        key = self.down[lane].get(number)
        if key is None or key not in self.undelivered:
            skip = Skip(number)
            return LaneFrame(lane, skip) if lane else skip
        queue, body = self.undelivered[key]
        headers = Headers(queue=queue, priority=9 if queue == "b" else 4)
        return MessageFrame(number, key, None, headers, body.encode(), lane)

    def close_idle(self) -> None:
        """Close the lanes in which everything was delivered."""
        for queue, lane in list(self.lanes.items()):
            outbound = self.down[lane]
            if lane and outbound.delivered == outbound.assigned:
                del self.lanes[queue]
                self.last[lane] = outbound.push(0)

    def hear(self, frame: Frame) -> None:
        if isinstance(frame, MessageFrame):
            self._take(frame)
        elif isinstance(frame, Ack):
            self._acknowledged(0, frame)
        elif isinstance(frame, LaneFrame):
            inner = frame.frame
            if isinstance(inner, Ack):
                self._acknowledged(frame.lane, inner)
            elif isinstance(inner, Skip):
                inbound = self._inbound(frame.lane)
                if inbound is not None:
                    self.came += inbound.skip(inner.first, inner.count)
            elif isinstance(inner, Last):
                inbound = self._inbound(frame.lane)
                if inbound is None or inbound.received == inner.number:
                    self._close_up(frame.lane)
                    self.answer.append(
                        LaneFrame(frame.lane, Ack(inner.number + 1, inner.number + 1))
                    )
        elif isinstance(frame, Skip):
            self.came += self.up[0].skip(frame.first, frame.count)

    answer: list[Frame]

    def _take(self, frame: MessageFrame) -> None:
        inbound = self._inbound(frame.lane)
        assert frame.seq is not None
        if inbound is not None:
            body = frame.body.decode()
            for each in inbound.receive(frame.seq, body, reorder=not frame.lane & 1):
                if each not in self.came:  # A repeat in a new epoch is known by its key.
                    self.came.append(each)

    def _inbound(self, lane: int) -> Inbound[str] | None:
        if lane >> 1 in self.closed_up:
            return None
        if lane not in self.up:
            self.up[lane] = Inbound()
            self.seen = max(self.seen, (lane >> 1) + 1)
        return self.up[lane]

    def _close_up(self, lane: int) -> None:
        self.closed_up.add(lane >> 1)
        self.seen = max(self.seen, (lane >> 1) + 1)
        self.up.pop(lane, None)

    def _acknowledged(self, lane: int, ack: Ack) -> None:
        outbound = self.down.get(lane)
        if outbound is None:
            return
        for key in outbound.acknowledge(ack).delivered:
            self.undelivered.pop(key, None)
        for start, stop in ack.finished:
            for number in range(start, stop):
                self.undelivered.pop(outbound.get(number) or 0, None)
        if self.last.get(lane, ack.received) < ack.received:
            del self.last[lane], self.down[lane]

    def welcome(self, hello: Hello, *, new_epoch: bool) -> Welcome:
        """Answer a HELLO."""
        self.answer = []
        resumes = hello.epoch == self.epoch and not new_epoch
        if not resumes:
            known = hello.epoch == self.epoch
            old = [
                (lane, i.received, i.acknowledgement().individual if lane & 1 else ())
                for lane, i in sorted(self.up.items())
            ]
            self.begin()
            self.unsent = []
            self._send_again()
            return Welcome(
                incarnation=INCARNATION,
                epoch=self.epoch,
                features=Feature.LANES,
                superseded=old[0][1] if known else None,
                lane_superseded=tuple(old[1:]) if known else (),
            )
        self._acknowledged(0, Ack(hello.received, hello.delivered, hello.individual))
        claims = hello.lanes or LaneClaims(1)
        named = {claim.lane for claim in claims.lanes}
        for lane in [n for n in self.down if n and n >> 1 < claims.seen and n not in named]:
            if lane | 1 in named or lane & ~1 in named:
                continue
            assert lane in self.last, "the device has closed what was open"
            del self.last[lane], self.down[lane]
        for claim in claims.lanes:
            ack = Ack(claim.received, claim.delivered, claim.individual, claim.finished)
            self._acknowledged(claim.lane, ack)
        for lane in [n for n in self.up if n and n not in hello.sending]:
            self._close_up(lane)
        for lane in [n for n in self.down if n and self.down[n].delivered == self.down[n].assigned]:
            del self.down[lane]
            self.lanes = {queue: n for queue, n in self.lanes.items() if n != lane}
        for lane, inbound in self.up.items():
            if not lane & 1:
                inbound.drop_beyond()
            inbound.acknowledgement()
        self._send_again()
        return Welcome(
            incarnation=INCARNATION,
            epoch=self.epoch,
            resumed=True,
            features=Feature.LANES,
            received=self.up[0].received,
            individual=self.up[0].acknowledgement().individual,
            closed=self.down[0].received,
            lanes=LaneClaims(self.seen, self._claims()),
            lane_closed=tuple(sorted((n, o.received) for n, o in self.down.items() if n)),
            sending=tuple(sorted(n for n in self.down if n)),
        )

    def _claims(self) -> tuple[LaneClaim, ...]:
        there = {lane >> 1: lane for lane in self.up if lane}
        return tuple(
            LaneClaim(
                there.get(n, n << 1),
                self.up[there[n]].received if n in there else 0,
                0,
                self.up[there[n]].acknowledgement().individual if n in there else (),
            )
            for n in range(1, self.seen)
            if n not in self.closed_up
        )

    def _send_again(self) -> None:
        self.unsent = [
            (lane, number)
            for lane, outbound in self.down.items()
            for number, _ in outbound.unacknowledged()
            if number != self.last.get(lane)
        ]


class Storm:
    """One device, the gateway, and frames on their way, which overtake one another."""

    def __init__(self, seed: int, *, preferring: bool = False) -> None:
        self.random = Random(seed)
        self.preferring = preferring
        """Whether the user has preferences, so that messages get their numbers when they leave."""
        self.now = NOW
        self.gateway = ModelGateway()
        self.inbox = MemoryInbox()
        self.session = self._start()
        self.up: list[Frame] = []
        self.down: list[Frame] = []
        self.published: list[tuple[str | None, str]] = []
        self.sent: list[tuple[str | None, str]] = []
        self.safe = 0
        self.seen: list[str] = []
        self.unfinished: list[Message] = []
        self.finished: set[str] = set()
        self.count = 0
        self.links = 0

    def _start(self) -> DeviceSession:
        session = DeviceSession(TERMS_IN_STORMS, self.inbox.load())
        session.outbox.lanes.unordered = UNORDERED
        if self.preferring:
            session.preferences.prefer(PREFERENCES)
        return session

    def publish(self) -> None:
        self.count += 1
        queue, body = self.random.choice(QUEUES), f"down{self.count}"
        self.published.append((queue, body))
        self.gateway.publish(queue, body)

    def send(self) -> None:
        self.count += 1
        queue, body = self.random.choice(QUEUES), f"up{self.count}"
        headers = Headers(to="device:x", queue=queue, priority=9 if queue == "b" else 4)
        self.session.queue(self.now, headers=headers, body=body.encode())
        self.sent.append((queue, body))

    def commit(self) -> None:
        change = self.session.change()
        if change is not None:
            self.inbox.apply(change)
            self.session.committed(change.n)
            self.safe = len(self.sent)
            self.finished |= {m.text for m in self.unfinished if m.finished}
            self.unfinished = [m for m in self.unfinished if not m.finished]

    def settle(self) -> None:
        while not self.session.settled:
            self.commit()

    def speak(self) -> None:
        if self.session.in_contact:
            self.session.decide(self.now)
            self.commit()
            self.up += self.session.frames()
            for frames in self.session.routed().values():
                self.up += frames
            self.session.session_events()
            self.down += self.gateway.frames()

    def carry(self) -> None:
        for _ in range(self.random.randint(1, 6)):
            if self.up and self.session.in_contact:
                self.gateway.hear(self.up.pop(self._which(self.up)))
                self.down += self.gateway.answer
                self.gateway.answer = []
            if self.down and self.session.in_contact:
                self.session.received([self.down.pop(self._which(self.down))], self.now)

    def _which(self, frames: list[Frame]) -> int:
        return self.random.randrange(min(len(frames), 4)) if self.random.random() < 0.5 else 0

    def dial(self) -> None:
        self.up, self.down = [], []
        self.session.lost()
        self.settle()
        hello = self.session.hello()
        if self.random.random() < 0.1:
            self.send()  # It gets its number while the HELLO is on its way.
        welcome = self.gateway.welcome(hello, new_epoch=self.random.random() < 0.1)
        if self.random.random() < 0.9:
            assert self.session.welcomed(hello, welcome, self.now, reliable=False)
            self.links += 1
            self.session.link_up(self.links, "wifi")

    def cut(self) -> None:
        self.up, self.down = [], []
        self.session.lost()

    def crash(self) -> None:
        self.up, self.down = [], []
        self.inbox = self.inbox.crash()
        self.session = self._start()
        self.sent = self.sent[: self.safe]
        self.unfinished = []

    def take(self) -> None:
        for message in self.session.ready(self.now):
            assert message.text not in self.finished, "handed over after it was finished for good"
            if message.text in self.seen:
                assert message.redelivered, "seen before without a word of warning"
            else:
                self.seen.append(message.text)
            self.unfinished.append(message)

    def finish(self) -> None:
        for message in self.unfinished:
            if self.random.random() < 0.7:
                self.session.finished(message)

    def wait(self) -> None:
        self.now += self.random.randint(1, 90) * SECOND
        self.gateway.close_idle()

    def run(self, steps: int) -> None:
        acts: list[tuple[Callable[[], None], int]] = [
            (self.publish, 6),
            (self.send, 6),
            (self.commit, 8),
            (self.speak, 8),
            (self.carry, 12),
            (self.take, 4),
            (self.finish, 4),
            (self.wait, 1),
            (self.dial, 1),
            (self.cut, 1),
            (self.crash, 1),
        ]
        weights = [weight for _, weight in acts]
        for _ in range(steps):
            (act,) = self.random.choices([act for act, _ in acts], weights)
            act()
        self.calm()

    def calm(self) -> None:
        """The storm is over: everybody talks until nothing is left to say."""
        for _ in range(3):
            self.cut()
            while not self.session.in_contact:
                self.dial()
            for _ in range(60):
                for act in (self.commit, self.speak, self.carry, self.take, self.finish):
                    act()
                while self.up or self.down:
                    self.carry()

    def check(self) -> None:
        assert sorted(self.seen) == sorted(body for _, body in self.published)
        assert sorted(self.gateway.came) == sorted(body for _, body in self.sent)
        for queue in set(QUEUES) - UNORDERED:
            down = [body for name, body in self.published if name == queue]
            assert [body for body in self.seen if body in down] == down, queue
            up = [body for name, body in self.sent if name == queue]
            assert [body for body in self.gateway.came if body in up] == up, queue
        assert not self.gateway.undelivered
        assert not self.session.held
        assert not self.session.waiting


@pytest.mark.parametrize("preferring", [False, True])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_lane_is_a_pair_of_its_own(seed: int, preferring: bool) -> None:
    storm = Storm(seed, preferring=preferring)
    storm.run(150)
    storm.check()


def test_an_idle_session_has_lane_0_only() -> None:
    storm = Storm(1)
    storm.run(80)
    storm.dial()
    storm.settle()
    assert storm.inbox.load().lanes == []
    assert storm.session.hello().sending == ()
