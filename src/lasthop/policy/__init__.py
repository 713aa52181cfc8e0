"""A policy: what the pipeline has learned, as the gateway reads it.

A version is one JSON file, decoded and checked as a whole before anything of it is used. It says
for devices and topics how to forward, for devices when which link is likely, and for networks how
long a connection may stay idle. Where a device is not known its segment is asked, then the fleet,
then the built-in default; `Found.level` says which of them answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any, Literal, TypeAlias

import msgspec

from lasthop.clock import HOUR, SECOND, Micros
from lasthop.errors import InvalidRequest

FORMAT = 1
"""Of the file. A reader refuses one that it does not know: half of a policy is none."""

MAX_DEVICES = 1_000_000
"""Entries of one file; a gateway keeps all of them in memory, a kilobyte each at worst."""

LONGEST_INTERVAL: Micros = 2 * HOUR
SHORTEST_INTERVAL: Micros = 10 * SECOND
"""Of heartbeats: below the first a radio never sleeps, beyond the second nobody notices a death."""

Level: TypeAlias = Literal["device", "segment", "fleet", "default"]


class Forwarding(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How much of a topic goes to a device before anybody asks: a policy, and its tuning."""

    policy: str = "unified"
    prefetch_limit: int | None = None
    expiration_threshold: Micros | None = None
    price: float = 1.0
    memory: dict[str, Any] = {}
    """What the policy is to know from its first moment on, as `decision.policies.memory` has it."""
    confidence: float = 0.0
    """0 to 1: how much observation is behind it."""

    def __post_init__(self) -> None:
        if not self.policy:
            raise InvalidRequest("a forwarding policy has a name")
        if self.prefetch_limit is not None and self.prefetch_limit < 0:
            raise InvalidRequest("a prefetch limit is not negative", limit=self.prefetch_limit)
        if self.expiration_threshold is not None and self.expiration_threshold < 0:
            raise InvalidRequest("a threshold is not negative", threshold=self.expiration_threshold)
        if not (isfinite(self.price) and self.price >= 0):
            raise InvalidRequest("a price is not negative", price=self.price)
        if not 0 <= self.confidence <= 1:
            raise InvalidRequest("confidence lies between 0 and 1", confidence=self.confidence)


class Calendar(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The chance of each link in the 168 hours of a local week, in percent, from Monday 0:00 on."""

    zone: str
    hours: dict[str, tuple[int, ...]]

    def __post_init__(self) -> None:
        for link, week in self.hours.items():
            if len(week) != 168 or not all(0 <= chance <= 100 for chance in week):
                raise InvalidRequest("a week has 168 chances of 0 to 100", link=link)


class TopicPolicy(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What holds for one topic of one device, segment or fleet."""

    app: str
    name: str
    """Of the device or the segment; empty for the fleet."""
    topic: str
    forwarding: Forwarding


class DevicePolicy(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What holds for a device as a whole."""

    app: str
    name: str
    segment: str = ""
    calendar: Calendar | None = None


class Lineage(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a version comes from."""

    code: str
    """Version of lasthop that learned it."""
    made_at: Micros
    first_day: str = ""
    last_day: str = ""
    """The days of the log that it was learned from, both included."""
    events: int = 0
    held_out: dict[str, float] = {}
    """What it achieved on the last part of the log, which had no say in the choice; `live_` is the
    policy of the log."""
    note: str = ""


class Policies(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One version."""

    format: int
    version: str
    lineage: Lineage
    default: Forwarding = Forwarding()
    fleet: tuple[TopicPolicy, ...] = ()
    segments: tuple[TopicPolicy, ...] = ()
    devices: tuple[TopicPolicy, ...] = ()
    about: tuple[DevicePolicy, ...] = ()
    heartbeats: dict[str, Micros] = {}
    """For each network the idle interval that its connections survive."""

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise InvalidRequest("unknown format of a policy", format=self.format, known=FORMAT)
        if not self.version:
            raise InvalidRequest("a policy has a version")
        if len(self.devices) + len(self.about) > MAX_DEVICES:
            raise InvalidRequest("too many devices in a policy", most=MAX_DEVICES)
        for network, interval in self.heartbeats.items():
            if not SHORTEST_INTERVAL <= interval <= LONGEST_INTERVAL:
                raise InvalidRequest(
                    "a heartbeat interval lies between 10 seconds and 2 hours",
                    network=network,
                    interval=interval,
                )


class Found(msgspec.Struct, frozen=True):
    """An answer, where it came from, and the version that gave it."""

    forwarding: Forwarding
    level: Level
    version: str


class PolicyIndex:
    """A version, ready to be asked: every answer is a few look-ups."""

    def __init__(self, policies: Policies) -> None:
        self.version = policies.version
        self.policies = policies
        self._default = policies.default
        self._devices = {(t.app, t.name, t.topic): t.forwarding for t in policies.devices}
        self._segments = {(t.app, t.name, t.topic): t.forwarding for t in policies.segments}
        self._fleet = {(t.app, t.topic): t.forwarding for t in policies.fleet}
        self._about = {(d.app, d.name): d for d in policies.about}

    def forwarding(self, app: str, device: str, topic: str) -> Found:
        """How to forward a topic to a device."""
        if (found := self._devices.get((app, device, topic))) is not None:
            return Found(found, "device", self.version)
        about = self._about.get((app, device))
        if about is not None and about.segment:
            segment = self._segments.get((app, about.segment, topic))
            if segment is not None:
                return Found(segment, "segment", self.version)
        # A topic that nobody has read yet is like the others of its app.
        fleet = self._fleet.get((app, topic)) or self._fleet.get((app, ""))
        if fleet is not None:
            return Found(fleet, "fleet", self.version)
        return Found(self._default, "default", self.version)

    def calendar(self, app: str, device: str) -> Calendar | None:
        """When which link is likely."""
        about = self._about.get((app, device))
        return None if about is None else about.calendar

    def heartbeat(self, network: str) -> Micros | None:
        """How long a connection over this network may stay idle."""
        return self.policies.heartbeats.get(network)

    def forwardings(self) -> Iterator[Forwarding]:
        """Everything that is said about forwarding."""
        yield self._default
        for topics in (self.policies.fleet, self.policies.segments, self.policies.devices):
            for topic in topics:
                yield topic.forwarding


BUILT_IN = Policies(FORMAT, "built-in", Lineage(code="", made_at=0))
"""What holds where nothing was learned: the unified algorithm."""

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Policies).decode


def encode(policies: Policies) -> bytes:
    """The content of a version's file."""
    return _encode(policies) + b"\n"


def decode(data: bytes) -> Policies:
    """A version from its file, or a reason why it is none."""
    try:
        return _decode(data)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"not a policy: {error}") from None
