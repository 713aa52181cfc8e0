"""A policy: what the pipeline has learned, as the gateway reads it.

A version is one JSON file, decoded and checked as a whole before anything of it is used. It says
for devices and topics how to forward, for devices when which link is likely, and for networks how
long a connection may stay idle. For an unknown device its segment is used, then the fleet, then the
built-in default; `Found.level` says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any, Literal, TypeAlias

import msgspec

from lasthop.clock import HOUR, SECOND, Micros
from lasthop.errors import InvalidRequest

FORMAT = 1
"""The version of the file's format. A reader refuses any other: a policy is used as a whole."""

MAX_DEVICES = 1_000_000
"""The largest number of entries of one file; a gateway keeps all of them in memory, a kilobyte each
at worst."""

LONGEST_INTERVAL: Micros = 2 * HOUR
SHORTEST_INTERVAL: Micros = 10 * SECOND
"""The bounds of heartbeat intervals: below the shortest a radio never sleeps, above the longest a
dead connection goes unnoticed."""

Level: TypeAlias = Literal["device", "segment", "fleet", "default"]


class Forwarding(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How much of a topic is sent to a device ahead of being read: a policy, and its tuning.

    `prefetch_limit` counts unread messages, `expiration_threshold` is in microseconds; `price` is
    how many messages sent in vain one lost message is worth.
    """

    policy: str = "unified"
    """The name; a file that names none means the unified policy, as it always did."""
    prefetch_limit: int | None = None
    expiration_threshold: Micros | None = None
    price: float = 1.0
    memory: dict[str, Any] = {}
    """The policy's initial knowledge, in the form of `decision.policies.memory`."""
    confidence: float = 0.0
    """How much observation supports this entry, from 0 to 1."""

    def __post_init__(self) -> None:
        if not self.policy:
            raise InvalidRequest("a forwarding policy must have a name")
        if self.prefetch_limit is not None and self.prefetch_limit < 0:
            raise InvalidRequest("a prefetch limit cannot be negative", limit=self.prefetch_limit)
        if self.expiration_threshold is not None and self.expiration_threshold < 0:
            raise InvalidRequest(
                "a threshold cannot be negative", threshold=self.expiration_threshold
            )
        if not (isfinite(self.price) and self.price >= 0):
            raise InvalidRequest("a price cannot be negative", price=self.price)
        if not 0 <= self.confidence <= 1:
            raise InvalidRequest("confidence must be between 0 and 1", confidence=self.confidence)


class Calendar(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The chance of each link in the 168 hours of a local week, in percent, from Monday 0:00 on."""

    zone: str
    hours: dict[str, tuple[int, ...]]

    def __post_init__(self) -> None:
        for link, week in self.hours.items():
            if len(week) != 168 or not all(0 <= chance <= 100 for chance in week):
                raise InvalidRequest(
                    "a link must have 168 chances of 0 to 100, one for each hour of a week",
                    link=link,
                )


class TopicPolicy(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The forwarding of one topic to one device, segment or fleet."""

    app: str
    name: str
    """The name of the device or the segment; empty for the fleet."""
    topic: str
    forwarding: Forwarding


class DevicePolicy(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The segment and the calendar of one device."""

    app: str
    name: str
    segment: str = ""
    calendar: Calendar | None = None


class Lineage(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The origin of a policy version: the code and the log that it was learned from."""

    code: str
    """The version of lasthop that learned the policy."""
    made_at: Micros
    first_day: str = ""
    last_day: str = ""
    """The last day of the log that the policy was learned from; `first_day` and this one are
    included."""
    events: int = 0
    held_out: dict[str, float] = {}
    """The results on the last part of the log, which was not used for learning; `live_` marks those
    of the policy in force at that time, `predictive_` those of the predictive policy with its
    defaults. `agreement` is the share of messages that the model of the live policies treats as the
    log does, `refused` the number of devices for which that is too little to learn from."""
    budgets: dict[str, float] = {}
    """The share of messages that each app may lose."""
    over_budget: tuple[str, ...] = ()
    """The apps for which no choice stays within the budget; theirs loses least."""
    refused: tuple[str, ...] = ()
    """Some of the devices that nothing was learned from."""
    note: str = ""


class Policies(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One version of the policy, for all devices and networks."""

    format: int
    version: str
    lineage: Lineage
    default: Forwarding = Forwarding()
    fleet: tuple[TopicPolicy, ...] = ()
    segments: tuple[TopicPolicy, ...] = ()
    devices: tuple[TopicPolicy, ...] = ()
    about: tuple[DevicePolicy, ...] = ()
    heartbeats: dict[str, Micros] = {}
    """The idle interval in microseconds that connections survive, by network."""

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise InvalidRequest(
                "the format of the policy is unknown", format=self.format, known=FORMAT
            )
        if not self.version:
            raise InvalidRequest("a policy must have a version")
        if len(self.devices) + len(self.about) > MAX_DEVICES:
            raise InvalidRequest("too many devices in a policy", most=MAX_DEVICES)
        for network, interval in self.heartbeats.items():
            if not SHORTEST_INTERVAL <= interval <= LONGEST_INTERVAL:
                raise InvalidRequest(
                    "a heartbeat interval must be between 10 seconds and 2 hours",
                    network=network,
                    interval=interval,
                )


class Found(msgspec.Struct, frozen=True):
    """The forwarding of a topic to a device, the level it was found at, and the policy's
    version."""

    forwarding: Forwarding
    level: Level
    version: str


class PolicyIndex:
    """A policy version, indexed so that every answer takes a few look-ups."""

    def __init__(self, policies: Policies) -> None:
        self.version = policies.version
        self.policies = policies
        self._default = policies.default
        self._devices = {(t.app, t.name, t.topic): t.forwarding for t in policies.devices}
        self._segments = {(t.app, t.name, t.topic): t.forwarding for t in policies.segments}
        self._fleet = {(t.app, t.topic): t.forwarding for t in policies.fleet}
        self._about = {(d.app, d.name): d for d in policies.about}

    def forwarding(self, app: str, device: str, topic: str) -> Found:
        """Return how to forward a topic to a device."""
        if (found := self._devices.get((app, device, topic))) is not None:
            return Found(found, "device", self.version)
        about = self._about.get((app, device))
        if about is not None and about.segment:
            segment = self._segments.get((app, about.segment, topic))
            if segment is not None:
                return Found(segment, "segment", self.version)
        # A topic without data of its own is treated like the others of its app.
        fleet = self._fleet.get((app, topic)) or self._fleet.get((app, ""))
        if fleet is not None:
            return Found(fleet, "fleet", self.version)
        return Found(self._default, "default", self.version)

    def calendar(self, app: str, device: str) -> Calendar | None:
        """Return when which link of a device is likely; None if that is unknown."""
        about = self._about.get((app, device))
        return None if about is None else about.calendar

    def heartbeat(self, network: str) -> Micros | None:
        """Return how long a connection over this network may stay idle; None if that is unknown."""
        return self.policies.heartbeats.get(network)

    def forwardings(self) -> Iterator[Forwarding]:
        """Yield all forwarding entries of the version, the default first."""
        yield self._default
        for topics in (self.policies.fleet, self.policies.segments, self.policies.devices):
            for topic in topics:
                yield topic.forwarding


BUILT_IN = Policies(FORMAT, "built-in", Lineage(code="", made_at=0))
"""The version before anything was learned: it says nothing, so that settings and subscriptions
decide."""

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Policies).decode


def encode(policies: Policies) -> bytes:
    """Return the content of a policy version's file."""
    return _encode(policies) + b"\n"


def decode(data: bytes) -> Policies:
    """Return the policy version of a file's content. Raises InvalidRequest if it is invalid."""
    try:
        return _decode(data)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"this is not a policy: {error}") from None
