"""Links, limits and calendars for the tests: those of the thesis, and random ones from a seed."""

from __future__ import annotations

from random import Random

from lasthop.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from lasthop.decision.budgets import Budgets, Limit, Measure
from lasthop.decision.choice import Attempt, MessageToPlace, QueueTerms
from lasthop.decision.cost import Weights
from lasthop.decision.link_calendar import HOURS, LinkCalendar
from lasthop.decision.links import SMS_BYTES, Link, Tariff
from lasthop.decision.localtime import Period

MONDAY = 1_767_571_200 * SECOND
"""2026-01-05T00:00:00Z"""

PLAN = Tariff(per_volume=30_000_000, volume=6 << 30)
"""30 $ for 6 GB, in millionths."""

SMS = Link(
    "sms",
    Tariff(per_unit=1_500, unit=SMS_BYTES),
    energy=600,
    latency=10 * SECOND,
    coverage=1000,
)
MNO = Link("mno", PLAN, energy=1500, latency=500 * MILLISECOND, coverage=1000)
WIFI = Link("wifi", Tariff(), energy=1000, latency=250 * MILLISECOND, coverage=100)
BLUETOOTH = Link("bluetooth", Tariff(), energy=120, latency=250 * MILLISECOND, coverage=10)

LABELS = ("wifi", "mno", "sms", "bluetooth", "satellite")
QUEUES = ("urgent", "news", "mail")


def limits(*every: Limit, zone: str = "UTC") -> Budgets:
    return Budgets(every, zone_name=zone)


def random_link(random: Random, label: str, channel: int) -> Link:
    tariff = random.choice(
        [
            Tariff(),
            Tariff(per_unit=random.randrange(3000), unit=random.choice([0, 140])),
            Tariff(per_volume=random.randrange(1, 10**8), volume=random.choice([1 << 20, 6 << 30])),
            Tariff(per_unit=5, per_volume=7, volume=1000),
        ]
    )
    return Link(
        label,
        tariff,
        energy=random.choice([None, 0, random.randrange(3000)]),
        latency=random.choice([None, 0, random.randrange(15_000) * MILLISECOND]),
        coverage=random.choice([None, 0, random.randrange(3000)]),
        throughput=random.choice([None, None, random.randrange(1, 100_000)]),
        contention=random.choice([1.0, 1.0, 1 + 5 * random.random()]),
        channel=channel,
    )


def random_weights(random: Random) -> Weights:
    shares = [random.choice([0.0, random.random(), 1.0]) for _ in range(4)]
    total = sum(shares)
    return Weights(*(share / total for share in shares)) if total else Weights()


def random_limit(random: Random) -> Limit:
    measure = random.choice(list(Measure))
    return Limit(
        amount=random.randrange({"bytes": 4000, "money": 20_000}.get(measure, 12)),
        measure=measure,
        period=random.choice(list(Period)),
        queues=tuple(random.sample(QUEUES, random.choice([0, 0, 1, 2]))),
        link=random.choice([None, *LABELS]),
    )


def random_calendar(random: Random) -> LinkCalendar | None:
    if random.random() < 0.3:
        return None
    zone = random.choice(["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu"])
    return LinkCalendar(
        zone,
        {
            label: tuple(random.choice([0.0, random.random()]) for _ in range(HOURS))
            for label in random.sample(LABELS, random.randrange(1, 5))
        },
    )


def random_queue(random: Random) -> QueueTerms:
    return QueueTerms(
        random.choice(QUEUES),
        random_weights(random),
        max_delay=random.choice([0, random.randrange(1, 120) * MINUTE]),
        links=random.choice([None, None, tuple(random.sample(LABELS, 3))]),
    )


def random_message(random: Random, now: int, links: list[Link]) -> MessageToPlace:
    since = now - random.choice([0, random.randrange(HOUR)])
    attempts = tuple(
        Attempt(
            link.label, link.channel, now - random.randrange(60) * SECOND, now + offset * SECOND
        )
        for link in links
        if random.random() < 0.15
        for offset in [random.randrange(-20, 20)]
    )
    return MessageToPlace(
        size=random.choice([0, 1, 140, 141, 512, random.randrange(20_000)]),
        since=since,
        deliver_before=random.choice([None, now + random.randrange(-2, 30) * SECOND]),
        delay_tolerance=random.choice([None, None, random.randrange(HOUR)]),
        attempts=attempts,
    )


def random_now(random: Random) -> int:
    return MONDAY + random.randrange(DAY * 365)
