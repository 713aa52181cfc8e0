"""One ranked topic between the real gateway and the real device, over bad links, with crashes of
both sides, and the truth about it beside.

The truth is kept by brute force: everything that was published, less what was seen, what expired
and what a quota evicted. What the gateway decides to show at a look is held against a sort over
that, and what the user then sees against what the gateway decided. An answer that nobody waited for
any more shows nothing, and is not judged: what it would have shown is unread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest

from lasthop.clock import HOUR, SECOND, Micros
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.limits import Limits
from lasthop.core.publishing.submission import Submission
from lasthop.core.ranked.feature import RankedFeature
from lasthop.core.ranked.subscription import Say
from lasthop.device.terms import DeviceTerms
from lasthop.events import Event
from lasthop.message import Target, TargetKind
from lasthop.simulation.device_node import DeviceNode
from lasthop.simulation.disk import MemoryDisk
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.link import Weather
from lasthop.simulation.publisher import APP
from lasthop.simulation.ranked_reader import LOCAL
from lasthop.simulation.schedule import weather
from lasthop.store.commit import Commit
from lasthop.wire.hop.feeds import Look, Report, ShowKept
from lasthop.wire.hop.frames import Credit

TOPIC = "ranked"
FOREVER: Micros = 1 << 60
STEPS = 30
PATIENCE = HOUR


@dataclass
class Truth:
    """One message as it is, whatever anybody knows of it."""

    number: int
    rank: float
    expires_at: Micros


class RankedBench:
    """Plays one trace."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.kernel = Kernel()
        self.begin = self.kernel.now()
        self.crashing = random.random() < 0.6
        self.stream = random.random() < 0.6
        self.terms: dict[str, object] = {
            "policy": random.choice(("on-demand", "on-line", "buffer", "unified", "rate")),
            "threshold": 3.0,
        }
        self.max = random.choice((None, 1, 2, 4))
        self.retention = random.choice((None, None, 6))
        for name, value in (("max", self.max), ("retention", self.retention)):
            if value is not None:
                self.terms[name] = value
        self.gateway = GatewayNode(
            self.kernel,
            random,
            MemoryDisk(),
            Identity(open_house=True, limits=Limits(preserve=HOUR)),
            before_commit=lambda n: self._dies(),
            after_commit=lambda n: self._dies(),
            started=lambda store: self._forget_what_was_not_durable(),
            committed=self._committed,
        )
        self.device = DeviceNode(
            self.kernel,
            random,
            DeviceTerms(
                app=APP,
                name="phone",
                window=Credit(random.choice((3, 64)), 1 << 20),
                storage=random.choice((None, None, 2, 4)),
            ),
            self.gateway,
            transactional=True,
            weather=self._weather,
            crash_at={random.randint(3, 60) for _ in range(random.choice((0, 0, 2)))},
        )
        self.alive: dict[int, Truth] = {}
        """By key, in the order of acceptance: not seen, expired or evicted."""
        self.decided: dict[int, tuple[list[int], list[int]]] = {}
        """By look, what was the best and what the gateway has decided to show."""
        self.said: list[tuple[int, bool, tuple[int, ...]]] = []
        """What was shown by some answer (and so gone for others), or told to be unread after all;
        with the commit that it depends on."""
        self.applied = 0
        self.published = 0
        self.looks = 0
        self.playing = False
        self.problems: list[str] = []

    # The stage.

    def _weather(self) -> tuple[Weather, Interconnect]:
        if self.kernel.now() - self.begin > 90 * SECOND:
            return Weather(), Interconnect.STREAM
        kind = Interconnect.STREAM if self.stream else Interconnect.LOSSY
        return weather(self.random, stream=self.stream), kind

    def _dies(self) -> bool:
        if not (self.playing and self.crashing and self.random.random() < 0.02):
            return False
        self.kernel.after(self.random.randint(0, 2 * SECOND), self.gateway.start)
        return True

    def play(self) -> int:
        """Live through it; returns how many looks were answered in time."""
        self.gateway.start()
        self.device.start()
        self.device.subscribe(TOPIC, self.terms)
        assert self.kernel.run(until=self._ready, limit=PATIENCE)
        self.playing = True
        at = self.kernel.now()
        for _ in range(STEPS):
            at += self.random.randint(0, 2 * SECOND)
            act = self.random.choices((self._publish, self._rerank, self._look), (5, 2, 3))[0]
            self.kernel.at(at, partial(self._attempt, act))
        end = at
        assert self.kernel.run(
            until=lambda: self.kernel.now() > end and self.device.quiet, limit=PATIENCE
        ), "the trace is stuck"
        self._compare()
        assert not self.problems, self.problems
        return self.looks

    def _ready(self) -> bool:
        gateway = self.gateway.gateway
        if gateway is None or gateway.registry.find(APP, "phone") is None:
            return False
        session = gateway.deliveries.named(APP, "phone")
        return bool(gateway.ranked.subscriptions(session)) and self.device.quiet

    def _attempt(self, act: Any) -> None:
        if self.gateway.up:
            act()

    # What happens.

    def _publish(self) -> None:
        ttl = self.random.choice((None, None, self.random.randint(SECOND, 40 * SECOND)))
        rank = float(self.random.randrange(11))
        self.published += 1
        number = self.published

        def act(gateway: Gateway, now: Micros) -> None:
            submission = Submission(
                target=Target(TargetKind.TOPIC, TOPIC),
                body=str(number).encode(),
                rank=rank,
                deliver_before=None if ttl is None else now + ttl,
            )
            receipt = gateway.publish(APP, "publisher:p", [submission], now)
            key = int(receipt.ids[0][:16], 16)
            expires_at = FOREVER if ttl is None else now + ttl
            self.alive[key] = Truth(number, rank, expires_at)

        self.gateway.act(act, lambda: None)

    def _rerank(self) -> None:
        if not self.alive:
            return
        key = self.random.choice(list(self.alive))
        rank = float(self.random.randrange(11))

        def act(gateway: Gateway, now: Micros) -> None:
            item = gateway.deliveries.items.get(key)
            if item is not None:
                gateway.ranked.change_rank(APP, item.message, rank, [], now)

        self.gateway.act(act, lambda: None)

    def _look(self) -> None:
        if not self.device.reader.looking:  # One after the other, as people do.
            self.device.reader.look(TOPIC, self.random.choice((None, 1, 2, 5)))

    def _forget_what_was_not_durable(self) -> None:
        self.said = [row for row in self.said if row[0] <= self.applied]

    def told(self) -> set[int]:
        """What answers have shown and nobody has called unread."""
        told: set[int] = set()
        for _, shown, keys in self.said:
            if shown:
                told.update(keys)
            else:
                told.difference_update(keys)
        return told

    def _note(self, *, shown: bool, keys: tuple[int, ...]) -> None:
        gateway = self.gateway.gateway
        assert gateway is not None
        self.said.append((gateway.horizon, shown, keys))

    def _committed(self, commit: Commit) -> None:
        """What a quota evicts is gone, by the log's word."""
        self.applied = commit.n
        for line in bytes(commit.events).splitlines():
            event = msgspec.json.decode(line, type=Event)
            if event.kind in ("suppressed", "expired") and event.msg in self.alive:
                del self.alive[event.msg]

    # The judge.

    def look_decided(
        self, gateway_feeds: RankedFeature, look: Look, key: int, now: Micros
    ) -> list[int]:
        """What a look has to show, by a sort over everything that the gateway has accepted."""
        items = gateway_feeds._deliveries.items
        had, told = {arrival.key for arrival in self.device.had()}, self.told()
        able = [
            (-item.message.rank, known)
            for known, truth in self.alive.items()
            if (item := items.get(known)) is not None
            and item.message.rank >= 3.0
            and truth.expires_at > now
            and known not in told
            and known not in had
        ]
        limits = [n for n in (look.wanted, self.max) if n is not None]
        return [known for _, known in sorted(able)[: min(limits) if limits else None]]

    def answered(self, key: int, expected: list[int], shown: list[int]) -> None:
        self.decided[key] = (expected, shown)
        self._note(shown=True, keys=tuple(shown))

    def unread(self, report: Report) -> None:
        self._note(shown=False, keys=report.unread)

    def _compare(self) -> None:
        """What users saw is what the gateway decided, less what was too late by then."""
        for looked in self.device.reader.looked:
            if looked.asked == LOCAL or looked.asked not in self.decided:
                continue
            self.looks += 1
            expected, decided = self.decided[looked.asked]
            if decided != expected:
                about = f"look {looked.asked} shows {decided}"
                self.problems.append(f"{about}, and the best are {expected}")
            missing = [key for key in decided if key not in looked.keys]
            kept_order = [key for key in decided if key in looked.keys]
            timeless = [
                k for k in missing if k in self.alive and self.alive[k].expires_at == FOREVER
            ]
            seen = {arrival.key for arrival in self.device.had()}
            if looked.keys != kept_order or any(key not in seen for key in timeless):
                self.problems.append(f"decided {decided}, and the user saw {looked.keys}")
        arrivals = [arrival.key for arrival in self.device.had()]
        if len(arrivals) != len(set(arrivals)):
            self.problems.append("something was shown twice")


def watched(bench: RankedBench, patch: pytest.MonkeyPatch) -> RankedBench:
    """Hold every look that the gateway processes against the truth at that moment."""
    look, report = RankedFeature.look, RankedFeature.report

    def judged(
        self: RankedFeature, session: Any, topic: str, said: Look, key: int | None, now: Micros
    ) -> None:
        assert key is not None
        expected = bench.look_decided(self, said, key, now)
        subscription = self.subscription(session, topic)
        assert subscription is not None
        before = len(subscription.lane)
        look(self, session, topic, said, key, now)
        for step in list(subscription.lane)[before:]:
            if isinstance(step, Say) and isinstance(step.instruction, ShowKept):
                assert step.reply_to == key
                bench.answered(key, expected, list(step.instruction.keys))

    def reported(self: RankedFeature, session: Any, topic: Any, said: Report, now: Micros) -> None:
        bench.unread(said)
        report(self, session, topic, said, now)

    patch.setattr(RankedFeature, "look", judged)
    patch.setattr(RankedFeature, "report", reported)
    return bench
