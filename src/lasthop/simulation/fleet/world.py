"""The owners of the fleet's devices: when they read, what they are sent, where they have a link.
Everything is drawn from the fleet's seed and the device's number alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import NamedTuple

from lasthop.clock import DAY, HOUR, MINUTE, SECOND, Micros

BEGINS: Micros = 20_700 * DAY
"""The first moment of every fleet: midnight of 2026-09-04, a Friday."""

READING_HOURS = {
    "early": (0, 0, 0, 0, 0, 2, 8, 9, 6, 3, 2, 2, 4, 3, 1, 1, 2, 3, 3, 3, 2, 1, 0, 0),
    "office": (0, 0, 0, 0, 0, 0, 1, 5, 9, 3, 2, 2, 8, 4, 2, 2, 2, 6, 5, 3, 2, 2, 1, 0),
    "evening": (0, 0, 0, 0, 0, 0, 0, 2, 2, 1, 1, 1, 2, 1, 1, 1, 1, 2, 4, 7, 9, 9, 6, 2),
    "night": (6, 4, 2, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 3, 4, 5, 7, 9, 8),
}
"""How often people of each kind look, by hour of the day, as weights."""

OPERATORS = {"op:north": 300, "op:south": 600, "op:east": 900, "op:west": 1680}
"""Seconds after which each operator's address translator forgets an idle connection."""

CAFE_NETWORKS = 60
HOME_FORGETS = (900, 1800, 3600)


@dataclass(frozen=True, slots=True)
class Interest:
    """A topic that one person subscribes to, and how its messages behave."""

    topic: str
    per_day: float
    lifetime: float | None
    """Mean lifetime of a message in hours; None: messages do not expire."""
    max: int | None
    falls: float
    """The share of the topic's messages whose rank falls."""


@dataclass(frozen=True, slots=True)
class DeviceOwner:
    """The owner of one device: habits, interests and networks."""

    number: int
    reading_hours: str
    looks: float
    """How often the owner looks at the device per day, on average."""
    interests: tuple[Interest, ...]
    operator: str
    coverage: float
    """The share of hours in which the owner has mobile coverage."""
    home: bool
    """Whether the owner has a network at home."""
    office: bool
    cafe_chance: float
    """The probability that the owner spends an hour out in a café with a network."""

    @property
    def name(self) -> str:
        return f"phone-{self.number:06d}"


class Stretch(NamedTuple):
    """A time span in which the device has one link."""

    start: Micros
    end: Micros
    link: str
    network: str


def person(seed: int, number: int) -> DeviceOwner:
    """Draw the owner of the device with this number."""
    r = Random(f"fleet/{seed}/{number}/person")
    interests = [
        Interest(
            "news",
            r.choice((6.0, 12.0, 24.0)),
            r.choice((None, 2.0, 6.0, 24.0)),
            r.choice((4, 8, 8, None)),
            0.0,
        )
    ]
    if r.random() < 0.4:
        interests.append(Interest("offers", 6.0, r.choice((4.0, 24.0)), 4, 0.15))
    return DeviceOwner(
        number=number,
        reading_hours=r.choice(tuple(READING_HOURS)),
        looks=r.choice((0.5, 1.0, 2.0, 4.0, 8.0)),
        interests=tuple(interests),
        operator=r.choice(tuple(OPERATORS)),
        coverage=r.choice((0.02, 0.05, 0.1, 0.3, 0.7, 0.95)),
        home=r.random() < 0.5,
        office=r.random() < 0.3,
        cafe_chance=r.choice((0.0, 0.0, 0.1)),
    )


@lru_cache(maxsize=4096)
def forgets(seed: int, network: str) -> Micros:
    """Return how long a network remembers an idle connection, in microseconds."""
    if network in OPERATORS:
        return OPERATORS[network] * SECOND
    return Random(f"fleet/{seed}/{network}").choice(HOME_FORGETS) * SECOND


def looks(seed: int, p: DeviceOwner, days: int) -> Iterator[Micros]:
    """Draw when the owner looks at the device, in order."""
    r = Random(f"fleet/{seed}/{p.number}/looks")
    hours, weights = range(24), READING_HOURS[p.reading_hours]
    left_over = 0.0
    for day in range(days):
        wanted = left_over + max(0.0, r.gauss(p.looks, p.looks / 5))
        count = int(wanted)
        left_over = wanted - count
        for hour in sorted(r.choices(hours, weights, k=count)):
            yield BEGINS + day * DAY + hour * HOUR + int(r.random() * HOUR)


def stretches(seed: int, p: DeviceOwner, days: int) -> Iterator[Stretch]:
    """Draw when and over which network the device can be reached, in order and without overlap."""
    r = Random(f"fleet/{seed}/{p.number}/links")
    now: Stretch | None = None
    for number in range(24 * days):
        start = BEGINS + number * HOUR
        place = _place(r, p, number)
        # Links come and go a few minutes around the hour, and fail for a while now and then.
        start += int(r.random() * 10 * MINUTE)
        if now is not None and place is not None and place == (now.link, now.network):
            if r.random() < 0.9:
                continue
            start += 5 * MINUTE
        if now is not None:
            yield now._replace(end=max(now.start + SECOND, start - 5 * MINUTE))
            now = None
        if place is not None:
            now = Stretch(start, 0, *place)
    if now is not None:
        yield now._replace(end=BEGINS + days * DAY)


def _place(r: Random, p: DeviceOwner, number: int) -> tuple[str, str] | None:
    """Return link and network of the owner's place in an hour; None: no network."""
    hour, weekday = number % 24, (4 + number // 24) % 7
    chance, reached = r.random(), r.random() < p.coverage
    at_work = weekday < 5 and 9 <= hour < 17
    if p.home and (hour < 7 or hour >= 19 or (weekday >= 5 and hour < 12)):
        return ("wifi", f"ssid:home-{p.number}") if chance < 0.9 else None
    if p.office and at_work:
        return ("wifi", f"ssid:office-{p.number % 40}") if chance < 0.95 else None
    if chance < p.cafe_chance:
        return "wifi", f"ssid:cafe-{r.randrange(CAFE_NETWORKS)}"
    return ("mno", p.operator) if reached else None


class PublishedMessage(NamedTuple):
    """A message that is published for the owner of a device."""

    at: Micros
    rank: float
    before: Micros
    """When the message expires, in microseconds; 0: never."""
    size: int
    falls_at: Micros
    """When the message loses its rank, in microseconds; 0: never."""


def arrivals(
    seed: int, p: DeviceOwner, interest: Interest, days: int
) -> Iterator[PublishedMessage]:
    """Draw the messages of a topic, more of them by day than by night."""
    r = Random(f"fleet/{seed}/{p.number}/{interest.topic}")
    at, end = float(BEGINS), BEGINS + days * DAY
    rate = interest.per_day / DAY
    while True:
        at += r.expovariate(rate)
        if at >= end:
            return
        now = int(at)
        if now % DAY < 6 * HOUR and r.random() < 0.7:
            continue
        before = 0
        if interest.lifetime is not None:
            before = now + 1 + int(r.expovariate(1.0) * interest.lifetime * HOUR)
        falls_at = 0
        if r.random() < interest.falls:
            falls_at = now + int(r.expovariate(1.0) * HOUR)
        yield PublishedMessage(now, round(r.random(), 6), before, r.randrange(80, 1200), falls_at)
