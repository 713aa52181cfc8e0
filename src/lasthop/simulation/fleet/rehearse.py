"""One device of the fleet, simulated with the real feeds; every step is an event of the log.

The feed and the device's queue are the product's own. The rest is modelled: the link takes a
message at once, and the device stores it and acknowledges it a round trip later.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple, TypeAlias

import msgspec

from lasthop.clock import DAY, MILLISECOND, Micros
from lasthop.decision.heartbeat import AGAIN, NetworkPatience, Networks, step_of
from lasthop.decision.policies import POLICIES, Policy, Tuning
from lasthop.decision.reasons import EXPIRED
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import DropEvent, Effect, Forward, Hold, Rerank, Retract, Show
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import (
    Arrived,
    ContactDown,
    ContactUp,
    Input,
    RankChanged,
    Woken,
)
from lasthop.decision.volume.subscription import Subscription
from lasthop.events import SCHEMA_VERSION, Event, Kind
from lasthop.policy import PolicyIndex
from lasthop.simulation.fleet.world import (
    BEGINS,
    DeviceOwner,
    Interest,
    PublishedMessage,
    arrivals,
    forgets,
    looks,
    stretches,
)

APP = "fleet"
OVERHEAD = 8
"""Bytes that the hop protocol adds to a body."""

LATENCY = {"wifi": 40 * MILLISECOND, "mno": 300 * MILLISECOND}
THROUGHPUT = {"wifi": 2_000_000, "mno": 120_000}
MNO_PRICE = 5000 / 1e6
"""Price of a byte on the mobile network in millionths of a dollar: 30 dollars for 6 gigabytes."""

UP, DOWN, WOKEN = ContactUp(), ContactDown(), Woken()


class FleetLogLine(NamedTuple):
    """An event before it has its place in the log: the time, the device, the message, and the rest
    of its JSON."""

    t: Micros
    order: int
    """The position among the events of the device, in the order of writing."""
    device: int
    life: int
    """The message whose delivery the event belongs to; 0 for none."""
    begins: bool
    rest: bytes


_encode = msgspec.json.Encoder().encode
_HEAD = len(_encode(Event(SCHEMA_VERSION, "", 0, 0, 0, "")).split(b'"t"')[0])


class FleetTopic:
    """One topic of one device: the gateway's feed and the device's queue."""

    def __init__(self, interest: Interest, policy: str) -> None:
        self.name = interest.topic
        self.subscription = Subscription(max=interest.max, threshold=0.0)
        self.tuning = {} if interest.max is None else {"max": interest.max}
        self.policy = policy
        chosen = POLICIES[policy](msgspec.convert(self.tuning, Tuning))
        self.feed = Feed(self.subscription, chosen, now=BEGINS)
        self.device = DeviceQueue(max_per_read=interest.max)
        self.known: dict[int, PublishedMessage] = {}

    def terms(self) -> str:
        """Return the terms of the feed as JSON, as the log has them."""
        options: dict[str, object] = {"threshold": 0.0}
        if self.subscription.max is not None:
            options["max"] = self.subscription.max
        value = {"subscription": options, "policy": self.policy, "tuning": self.tuning}
        return msgspec.json.encode(value).decode()


Choose: TypeAlias = Callable[[PolicyIndex, str, FleetTopic], tuple[Policy, str]]
"""Returns the policy for a topic of a device, and its terms as they are logged."""


class FleetDevice:
    """One device that goes through its days and writes the events of the log."""

    def __init__(
        self, seed: int, person: DeviceOwner, days: int, *, policy: str, told: PolicyIndex | None
    ) -> None:
        self._seed = seed
        self._person = person
        self._days = days
        self._told = told
        """The learned policies, for the heartbeats that the fleet has found; None: nothing is
        known."""
        self._topics = {i.topic: FleetTopic(i, policy) for i in person.interests}
        self._random = Random(f"fleet/{seed}/{person.number}/link")
        self._networks = Networks()
        self._patience = NetworkPatience()
        """What the device knows about the patience of the present network."""
        self._trial: tuple[Micros, Micros] | None = None
        """The present heartbeat trial on a connection of its own: when it ends, and how long it is
        idle."""
        self._link = self._network = ""
        self._channel = 0
        self._quiet_since: Micros = 0
        self._next_key = (person.number + 1) << 32
        self._switch: tuple[Micros, PolicyIndex, Choose, bool] | None = None
        self.lines: list[FleetLogLine] = []
        self.version = ""
        self.read: dict[int, Micros] = {}
        self.forwarded: dict[int, Micros] = {}
        self.arrived: dict[int, Micros] = {}
        self.published: dict[int, PublishedMessage] = {}
        """All messages as they were published, by key."""
        self._counting: Micros = 0
        self.pings = 0
        self.deaths = 0

    def live(self, write: bool = True) -> None:
        """Simulate all days of the device; with `write` False without writing events."""
        tell = self._tell if write else self._silent
        self._write: Callable[..., None] = tell
        self._write(BEGINS, Kind.REGISTERED)
        for topic in self._topics.values():
            self._write(BEGINS, Kind.SUBSCRIBED, topic=topic.name, terms=topic.terms())
        for at, _, do, given in self._agenda():
            self._advance(at)
            do(at, given)

    def _advance(self, until: Micros) -> None:
        """Do what is due before `until`: timers of the feeds, heartbeats and trials."""
        while True:
            topic, wake = self._next_wake()
            beat = self._quiet_since + self._patience.interval() if self._link else until
            trial = self._trial[0] if self._trial is not None else until
            if topic is not None and wake <= min(until, beat, trial):
                self._write(wake, Kind.TIMER_FIRED, topic=topic.name)
                self._take(topic, WOKEN, wake)
            elif min(beat, trial) >= until:
                return
            elif trial <= beat:
                self._try(trial)
            else:
                self._beat(beat)

    def _next_wake(self) -> tuple[FleetTopic | None, Micros]:
        first, when = None, 0
        for topic in self._topics.values():
            wake = topic.feed.next_wake()
            if wake is not None and (first is None or wake < when):
                first, when = topic, wake
        return first, when

    def count_from(self, day: int) -> None:
        """Count pings and lost connections only from this day on."""
        self._counting = BEGINS + day * DAY

    def switch(
        self, day: int, policies: PolicyIndex, choose: Choose, *, networks: bool = True
    ) -> None:
        """Use learned policies from this day on; `networks`: also what was learned about
        heartbeats."""
        self._switch = (BEGINS + day * DAY, policies, choose, networks)

    def _adopt(self, at: Micros, given: Any) -> None:
        assert self._switch is not None
        _, policies, choose, networks = self._switch
        self._told = policies if networks else None
        self.version = policies.version
        for topic in self._topics.values():
            policy, terms = choose(policies, self._person.name, topic)
            topic.feed.follow(policy)
            self._write(at, Kind.POLICY_CHANGED, topic=topic.name, policy=self.version, terms=terms)

    def _agenda(self) -> list[tuple[Micros, int, Callable[[Micros, Any], None], Any]]:
        """Return everything that will happen from outside, in order of time."""
        seed, person, days = self._seed, self._person, self._days
        end = BEGINS + days * DAY
        plan: list[tuple[Micros, int, Callable[[Micros, Any], None], Any]] = []
        for interest in person.interests:
            topic = self._topics[interest.topic]
            for arrival in arrivals(seed, person, interest, days):
                key = self._next_key = self._next_key + 1
                plan.append((arrival.at, 0, self._arrive, (topic, key, arrival)))
                if 0 < arrival.falls_at < end:
                    plan.append((arrival.falls_at, 1, self._fall, (topic, key)))
        for stretch in stretches(seed, person, days):
            plan.append((stretch.start, 2, self._connect, (stretch.link, stretch.network)))
            plan.append((stretch.end, 3, self._disconnect, "the link broke"))
        for at in looks(seed, person, days):
            plan.append((at, 4, self._look, None))
        if self._switch is not None:
            plan.append((self._switch[0], -1, self._adopt, None))
        plan.sort(key=lambda step: step[:2])
        return plan

    def _arrive(self, at: Micros, given: Any) -> None:
        topic, key, arrival = given
        topic.known[key] = arrival
        self.arrived[key] = at
        self.published[key] = arrival
        self._write(
            at,
            Kind.ACCEPTED,
            msg=key,
            state="PENDING",
            reason="no contact" if not self._link else "in contact",
            source="publisher:desk",
            target=f"topic:{topic.name}",
            topic=topic.name,
            size=arrival.size,
            rank=arrival.rank,
            priority=5,
            before=arrival.before,
            reliability=3,
        )
        self._take(topic, Arrived(key, arrival.rank, arrival.before or None), at)

    def _fall(self, at: Micros, given: Any) -> None:
        topic, key = given
        self._write(at, Kind.RANK_CHANGED, msg=key, topic=topic.name, rank=-1.0)
        topic.known[key] = topic.known[key]._replace(rank=-1.0)
        self._take(topic, RankChanged(key, -1.0), at)

    def _connect(self, at: Micros, given: Any) -> None:
        self._link, self._network = given
        self._channel += 1
        self._quiet_since = at
        self._patience = self._networks.on(self._network)
        told = self._told.heartbeat(self._network) if self._told is not None else None
        if told is not None and step_of(told) > self._patience.alive:
            self._trust(step_of(told), at)
        self._begin_trial(at)
        self._write(
            at,
            Kind.CONTACT_STARTED,
            epoch=1,
            link=self._link,
            network=self._network,
            channel=self._channel,
            resumed=self._channel > 1,
            count=256,
            size=1 << 20,
        )
        for topic in self._topics.values():
            up = topic.device.contact()
            for read in up.reads:
                wanted = -1 if read.wanted is None else read.wanted
                self._write(
                    at, Kind.READ, topic=topic.name, count=wanted, keys=read.keys, at=read.at
                )
                for key in read.keys:
                    self._write(at, Kind.READ, topic=topic.name, msg=key, at=read.at)
                self._take(topic, read, at)
            self._write(at, Kind.REPORTED, topic=topic.name, count=len(up.reads))
            self._take(topic, UP, at)

    def _disconnect(self, at: Micros, given: Any) -> None:
        self._write(
            at, Kind.CONTACT_LOST, reason=str(given), link=self._link, channel=self._channel
        )
        self._link = self._network = ""
        self._trial = None
        for topic in self._topics.values():
            self._take(topic, DOWN, at)

    def _look(self, at: Micros, given: Any) -> None:
        for topic in self._topics.values():
            wanted = topic.subscription.max
            if self._link:
                ask = topic.device.ask(wanted, at)
                self._write(
                    at,
                    Kind.READ,
                    topic=topic.name,
                    count=-1 if wanted is None else wanted,
                    queue_size=ask.queue_size,
                    keys=tuple(held.key for held in ask.client_events),
                )
                self._quiet_since = at
                self._take(topic, ask, at)
            else:
                for key in topic.device.read_offline(wanted, at):
                    self.read[key] = at

    def _take(self, topic: FleetTopic, given: Input, now: Micros) -> None:
        for effect in topic.feed.take(given, now):
            self._do(topic, effect, now)

    def _do(self, topic: FleetTopic, effect: Effect, now: Micros) -> None:
        facts = {"topic": topic.name, "policy": self.version}
        if isinstance(effect, Forward):
            arrival = topic.known[effect.key]
            topic.device.forward(effect, rank=arrival.rank, expires_at=arrival.before or None)
            self.forwarded[effect.key] = now
            self._transmit(effect, arrival, now, facts)
        elif isinstance(effect, Show):
            for key in topic.device.show(effect):
                self.read[key] = now
                self._write(now, Kind.READ, msg=key, reason=effect.reason, **facts)
        elif isinstance(effect, Retract):
            topic.device.retract(effect)
            self._write(now, Kind.RETRACTED, msg=effect.key, reason=effect.reason, **facts)
        elif isinstance(effect, Rerank):
            topic.device.rerank(effect)
        elif isinstance(effect, Hold):
            self._write(
                now, Kind.HELD, msg=effect.key, state="PENDING", reason=effect.reason, **facts
            )
        elif isinstance(effect, DropEvent):
            if effect.key in self.forwarded:
                return  # The delivery ended when the device had received it.
            kind = Kind.EXPIRED if effect.reason == EXPIRED else Kind.SUPPRESSED
            self._write(now, kind, msg=effect.key, state=kind.name, reason=effect.reason, **facts)

    def _transmit(
        self, effect: Forward, arrival: PublishedMessage, now: Micros, facts: dict[str, str]
    ) -> None:
        link, key = self._link, effect.key
        size = arrival.size + OVERHEAD
        latency = int(LATENCY[link] * (0.5 + self._random.random()))
        self._write(now, Kind.RELEASED, msg=key, state="SENDING", reason=effect.reason, **facts)
        self._write(
            now,
            Kind.TRANSMITTED,
            msg=key,
            state="SENDING",
            reason="in contact",
            link=link,
            network=self._network,
            channel=self._channel,
            bytes=size,
            cost=size * MNO_PRICE if link == "mno" else 0.0,
            attempt=1,
        )
        # Messages arrive in the order in which they left.
        there = self._quiet_since = max(now + latency, self._quiet_since)
        self._write(there, Kind.DELIVERED, msg=key, state="DELIVERED", link=link)
        if self._random.random() < 0.1:
            busy = 1.0 + max(0.0, self._random.gauss(0.1, 0.2))
            self._write(
                there,
                Kind.MEASURED,
                link=link,
                network=self._network,
                channel=self._channel,
                rtt=latency,
                bytes=int(THROUGHPUT[link] / busy),
                contention=round(busy, 3),
            )

    def _survives(self, interval: Micros) -> bool:
        remembered = forgets(self._seed, self._network) * (0.98 + 0.04 * self._random.random())
        return interval < remembered

    def _ping(self, at: Micros, channel: int, interval: Micros, *, alive: bool) -> None:
        self.pings += at >= self._counting
        self._write(
            at,
            Kind.HEARTBEAT,
            reason="answered" if alive else "missed",
            link=self._link,
            network=self._network,
            channel=channel,
            interval=interval,
            rtt=int(LATENCY[self._link] * (0.5 + self._random.random())) if alive else -1,
        )

    def _beat(self, at: Micros) -> None:
        """Send a heartbeat after the working connection was silent for an interval."""
        interval = self._patience.interval()
        alive = self._survives(interval)
        self._ping(at, self._channel, interval, alive=alive)
        self._quiet_since = at
        if not alive:
            # The device notices the loss, and dials again over the same network.
            self._patience.missed(interval)
            self.deaths += at >= self._counting
            link, network = self._link, self._network
            self._disconnect(at, "no answer to a heartbeat")
            self._connect(at, (link, network))

    def _try(self, at: Micros) -> None:
        """End a trial and begin the next one."""
        assert self._trial is not None
        interval = self._trial[1]
        alive = self._survives(interval)
        self._ping(at, 0, interval, alive=alive)
        self._patience.tried(interval, survived=alive, now=at)
        self._begin_trial(at)

    def _trust(self, step: int, at: Micros) -> None:
        """Use the interval that the fleet has found, as if this device had found it; a lost
        connection is still noticed."""
        known = self._patience
        if step < known.dead and known.doubted < 0:
            known.alive, known.settled, known.again_at = step, True, at + AGAIN

    def _begin_trial(self, at: Micros) -> None:
        interval = self._patience.next_trial(at)
        self._trial = None if interval is None else (at + interval, interval)

    def _silent(self, t: Micros, kind: Kind, **facts: object) -> None:
        """Write no event, when only the result is wanted."""

    def _tell(self, t: Micros, kind: Kind, **facts: object) -> None:
        event = Event(SCHEMA_VERSION, "", 0, 0, t, kind, APP, self._person.name)
        for name, value in facts.items():
            setattr(event, name, value)
        life = event.msg if event.state else 0
        number = self._person.number
        rest = _encode(event)[_HEAD:]
        self.lines.append(
            FleetLogLine(t, len(self.lines), number, life, kind == Kind.ACCEPTED, rest)
        )
