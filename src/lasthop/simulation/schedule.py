"""One random fault schedule: who publishes what, and everything that goes wrong meanwhile.

A schedule is drawn from its seed alone, so a failing one is reproduced by its number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.decision.budgets import Limit, Measure
from lasthop.decision.choice import QueueTerms
from lasthop.decision.link_calendar import CalendarEntry, LinkCalendar
from lasthop.decision.links import Link, Tariff
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Preferences
from lasthop.message import Binding, DeliveryMethod, Reliability
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.link import Weather

LANES = (4, 4, 4, 4, 7, 1)
"""Priorities to draw from: mostly the usual one, so that long lanes arise."""

LOOSE = "loose"
"""The queue whose messages need no order."""

STREAMS = (Interconnect.STREAM,)
DIALLED = (STREAMS, STREAMS, (Interconnect.STREAM, Interconnect.LOSSY), (Interconnect.LOSSY,))
"""Kinds of channels to draw from; the module `interconnects` has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMessage:
    """One message that a publisher or a device will send."""

    number: int
    source: str
    """The sender: `publisher:NAME`, or `device:NAME` for a message that a device sends."""
    target: str
    priority: int
    reliability: Reliability
    delay: Micros | None = None
    ttl: Micros | None = None
    replace_key: str | None = None
    cancel_after: Micros | None = None
    rank: float = 0.0
    reranks: tuple[tuple[Micros, float], ...] = ()
    """New ranks, each with the time to wait after the previous one was confirmed."""
    size: int = 20
    method: DeliveryMethod = DeliveryMethod.NOT_SPECIFIED
    binding: Binding = Binding.NONE
    queue: str | None = None
    pull: bool = False
    """Whether the body stays at the gateway until the device pulls it."""

    @property
    def may_reach_nobody(self) -> bool:
        """Whether the message may be accepted and go to no device at all."""
        if self.target.startswith("group:"):
            return self.withdrawable
        late = self.target.startswith("queue:") and (self.withdrawable or self.ttl is not None)
        return late or self.target.startswith("topic:")

    @property
    def withdrawable(self) -> bool:
        """Whether the message may be cancelled or replaced."""
        return self.cancel_after is not None or self.replace_key is not None

    @property
    def body(self) -> bytes:
        return f"{self.number}".encode().ljust(self.size, b".")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLook:
    """A look of a user at a ranked topic, at a given time."""

    at: Micros
    device: str
    wanted: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A device joins a group or queue, or leaves it."""

    at: Micros
    device: str
    target: str
    joins: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The messages that a publisher sends in one request, and when."""

    at: Micros
    plans: list[PlannedMessage]


@dataclass(slots=True, kw_only=True)
class Schedule:
    """Everything about one rehearsal that is drawn beforehand."""

    seed: int
    devices: list[str]
    topic_members: list[str]
    batches: list[Batch]
    crash_before: set[int]
    """Commits of the gateway that never become durable: it dies while it writes them."""
    crash_after: set[int]
    """Commits of the gateway that become durable although it dies before it tells anyone."""
    device_crashes: dict[str, set[int]] = field(default_factory=dict)
    """By device, the inbox commits at which it dies (even: before the commit is durable, odd:
    after)."""
    plain: set[str] = field(default_factory=set)
    """Devices whose application does not commit with its inbox."""
    copy_at: int | None = None
    """The commit after which a backup is taken; the next crash goes back to this backup."""
    plans: dict[str, Preferences] = field(default_factory=dict)
    """By device, its preferences: which links it prefers and what it can afford."""
    another: float = 0.0
    """The probability that a device opens one more channel beside the one that it has."""
    kinds: tuple[Interconnect, ...] = STREAMS
    """The kinds of channels that devices dial."""
    switches: list[tuple[Micros, str]] = field(default_factory=list)
    """When which device changes to a new channel."""
    tight: bool = False
    """Whether the inboxes of devices are so small that they pause the gateway when they are
    full."""
    window: int = 64
    resident: int = 1 << 20
    ranked: dict[str, dict[str, object]] = field(default_factory=dict)
    """By device, the terms of its subscription to the ranked topic."""
    storage: dict[str, int] = field(default_factory=dict)
    """By device, how many messages of the ranked topic it has room for."""
    looks: list[PlannedLook] = field(default_factory=list)
    memberships: dict[str, list[str]] = field(default_factory=dict)
    """By group or queue, the devices that belong to it from the beginning."""
    moves: list[Move] = field(default_factory=list)
    patience: Micros = 60 * SECOND
    """How long a device may take over a message of the queue before another one gets it."""
    prefetch: int = 16
    lanes: bool = False
    """Whether gateway and devices use the lanes of the hop protocol."""

    @property
    def messages(self) -> int:
        return sum(len(batch.plans) for batch in self.batches)


def draw(seed: int, *, messages: int = 50, lossy: bool = True) -> Schedule:
    """Draw the schedule with this seed."""
    random = Random(seed)
    devices = [f"device-{n}" for n in range(random.choice((1, 1, 2, 3)))]
    members = [name for name in devices if random.random() < 0.7]
    batches: list[Batch] = []
    number = 0
    at = 0
    while number < messages:
        at += random.randint(0, 400 * MILLISECOND)
        size = random.choice((1, 1, 2, 3, 5, 8, 20))
        source = random.choice(["publisher:p", "publisher:p", "publisher:q", *_senders(devices)])
        plans = [_plan(random, number + n, source, devices, members) for n in range(size)]
        number += size
        batches.append(Batch(at=at, plans=plans))
    choosy = {name: preferences(random) for name in devices if random.random() < 0.3}
    crashes = random.choice((0, 0, 1, 2, 4))
    span = 2 * len(batches) + 10
    return Schedule(
        seed=seed,
        devices=devices,
        topic_members=members,
        batches=batches,
        crash_before={random.randint(1, span) for _ in range(crashes)},
        crash_after={random.randint(1, span) for _ in range(random.choice((0, 0, 1, 2)))},
        device_crashes={
            name: {random.randint(1, 40) for _ in range(random.choice((0, 0, 1, 3)))}
            for name in devices
        },
        plain={name for name in devices if random.random() < 0.2},
        copy_at=random.randint(1, span) if random.random() < 0.25 else None,
        kinds=random.choice(DIALLED) if lossy else STREAMS,
        window=random.choice((1, 3, 16, 64, 1024)),
        resident=random.choice((0, 200, 1 << 20)),
        another=1.0 if choosy else random.choice((0.0, 0.0, 0.5, 1.0)),
        plans=choosy,
    )


def preferences(random: Random) -> Preferences:
    """Draw preferences that can hold a message up, but never for longer than a rehearsal lasts: the
    first link is always allowed."""
    others = [f"sim{n}" for n in range(1, 3)]
    links = tuple(
        Link(
            label,
            Tariff(per_unit=1000 if label == "sim" else random.choice((0, 10, 2000))),
            latency=random.choice((10, 100, 900)) * MILLISECOND,
            energy=random.choice((None, 100, 1000)),
        )
        for label in ("sim", *others)
    )
    limits = tuple(
        Limit(random.choice((1, 3, 8, 20)), Measure.MESSAGES, Period.DAY, link=label)
        for label in others
        if random.random() < 0.6
    )
    entries = [CalendarEntry(label, tuple(range(7)), 0, 24, random.random()) for label in others]
    patience = random.choice((0, SECOND, 20 * SECOND))
    return Preferences(
        links=links,
        limits=limits,
        queues=(QueueTerms("", max_delay=patience),),
        calendar=LinkCalendar.of(entries, zone_name="UTC"),
    )


def weather(random: Random, *, stream: bool) -> Weather:
    """Draw the weather of the next channel; a long rehearsal sees many kinds."""
    delay = random.choice((1, 10, 50, 400)) * MILLISECOND
    fair = random.random() < 0.3
    return Weather(
        delay=delay,
        jitter=random.choice((0, delay, 3 * delay)),
        loss=0.0 if stream or fair else random.choice((0.0, 0.05, 0.3)),
        duplication=0.0 if stream else random.choice((0.0, 0.1, 0.4)),
        reorder=0.0 if stream else random.choice((0.0, 0.1, 0.3)),
        reset_after=random.randint(1, 4000) if stream and not fair else None,
        lives=random.randint(SECOND // 10, 20 * SECOND) if not fair else None,
        silent=random.choice((0, SECOND, 20 * SECOND)),
    )


def _senders(devices: list[str]) -> list[str]:
    return [f"device:{name}" for name in devices]


def _plan(
    random: Random, number: int, source: str, devices: list[str], members: list[str]
) -> PlannedMessage:
    target = f"device:{random.choice(devices)}"
    if members and random.random() < 0.2:
        target = "topic:news"
    reliability = Reliability.EXACTLY_ONCE
    if random.random() < 0.15:
        reliability = random.choice(list(Reliability))
    by_publisher = source.startswith("publisher:")
    return PlannedMessage(
        number=number,
        source=source,
        target=target,
        priority=random.choice(LANES),
        reliability=reliability,
        delay=random.randint(0, 5 * SECOND) if by_publisher and random.random() < 0.08 else None,
        ttl=random.randint(SECOND, 40 * SECOND) if random.random() < 0.12 else None,
        replace_key=random.choice("ab") if by_publisher and random.random() < 0.06 else None,
        cancel_after=random.randint(0, 2 * SECOND)
        if by_publisher and random.random() < 0.08
        else None,
        size=random.choice((20, 20, 20, 300, 2000)),
    )
