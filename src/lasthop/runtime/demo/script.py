"""Makes the demo's script from a seed: everything that publishers, users and links do, second by
second.

The same script is played before and after the learned policies are switched on: the same messages
with the same ranks at the same moments, the same outages, the same looks of the same users. Only
the gateway's decisions may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from lasthop.runtime.demo.profiles import PROFILES, LinkProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTopic:
    """A ranked topic, and the terms on which every device subscribes to it."""

    name: str
    interval: float
    """Mean seconds between two messages of the topic."""
    lifetime: float
    """Seconds after which a message of the topic expires."""
    most: int
    """The largest number of messages that the user sees at one look: the subscription's Max."""
    threshold: float
    policy: str | None = None
    """The subscriber's own choice of policy, which no learned policy overrides."""


TOPICS = (
    DemoTopic(name="news", interval=0.8, lifetime=4.0, most=4, threshold=2.0),
    DemoTopic(name="offers", interval=1.2, lifetime=6.0, most=3, threshold=1.0),
    DemoTopic(name="scores", interval=1.5, lifetime=5.0, most=4, threshold=0.0, policy="buffer"),
)
"""The ranked topics, in which everything takes seconds that would take hours in reality: a user
looks every few seconds, and a message that was not seen by then is stale."""

LONGEST_LIFE = max(topic.lifetime for topic in TOPICS)

HIGHEST_RANK = 5.0

NOTICES = "notices"
"""A plain topic: every device gets every message, exactly once and in order."""

NOTICE_INTERVAL = 2.5
ORDER_INTERVAL = 0.5
"""Mean seconds between two messages to all devices, and between two messages of one publisher to
one device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPerson:
    """A device of the demo and its user."""

    name: str
    profile: LinkProfile
    interval: float
    """Mean seconds between two looks of the user."""


def people(count: int, random: Random) -> list[DemoPerson]:
    """Return this number of devices with users; the kinds of links are used in turn, and some users
    look more often than others."""
    made = []
    for number in range(count):
        profile = PROFILES[number % len(PROFILES)]
        name = f"{profile.name}-{number // len(PROFILES) + 1}"
        made.append(DemoPerson(name=name, profile=profile, interval=random.uniform(2.5, 4.5)))
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Everything that happens in one run. Times are in seconds from its beginning, ascending."""

    seconds: float
    news: Sequence[tuple[float, DemoTopic, float]]
    """The messages for ranked topics: time, topic and rank."""
    notices: Sequence[float]
    orders: Sequence[tuple[float, str]]
    """The messages to single devices over REST: time and device."""
    pushes: Sequence[tuple[float, str]]
    """The messages to single devices over PAP: time and device."""
    looks: dict[str, Sequence[float]]
    outages: dict[str, Sequence[tuple[float, float]]]
    """The outages of each device's link: start and end."""


def write(fleet: Sequence[DemoPerson], seconds: float, random: Random) -> Script:
    """Make a script of this length for these devices."""
    news = [
        (at, topic, round(random.uniform(0.0, HIGHEST_RANK), 2))
        for topic in TOPICS
        for at in _times(topic.interval, seconds, random)
    ]
    names = [person.name for person in fleet]
    return Script(
        seconds=seconds,
        news=sorted(news, key=lambda entry: entry[0]),
        notices=_times(NOTICE_INTERVAL, seconds, random),
        orders=[(at, random.choice(names)) for at in _times(ORDER_INTERVAL, seconds, random)],
        pushes=[(at, random.choice(names)) for at in _times(ORDER_INTERVAL, seconds, random)],
        looks={person.name: _times(person.interval, seconds, random) for person in fleet},
        outages={person.name: _outages(person.profile, seconds, random) for person in fleet},
    )


def _times(mean: float, seconds: float, random: Random) -> list[float]:
    """Return independent random times with this mean distance."""
    times = []
    at = random.expovariate(1 / mean)
    while at < seconds:
        times.append(at)
        at += random.expovariate(1 / mean)
    return times


def _outages(profile: LinkProfile, seconds: float, random: Random) -> list[tuple[float, float]]:
    outages = []
    at = random.expovariate(1 / profile.up)
    while at < seconds:
        until = at + random.expovariate(1 / profile.down)
        outages.append((at, min(until, seconds)))
        at = until + random.expovariate(1 / profile.up)
    return outages
