"""How messages of an app behave: the developer's choice, kept at the gateway (Odin, table 3).

A behaviour has defaults for fields that a message leaves out (handling, reliability, pull) and
limits for bodies. Messages may choose otherwise, unless the developer has fixed the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

from lasthop.errors import InvalidRequest, TooLarge, UnsupportedMedia
from lasthop.message import Handling, Reliability
from lasthop.store.commit import MemoryRow
from lasthop.wire.hop.frames import MAX_WAY, MAX_WAYS

MEMORY = "behaviour:"
"""The prefix of an app's name in the store's table of memories."""

MAX_TYPES = 64

_Type = Annotated[
    str, Meta(pattern=r"^[^\s/;]+/[^\s/;]+$", max_length=128, examples=["image/png", "image/*"])
]
WayText = Annotated[
    str,
    Meta(
        pattern=r"^([^\s=:/]{1,64}=)?[a-z0-9+]+:\S+$",
        max_length=MAX_WAY,
        examples=["wss://push.example.org/hop", "mno=tcps://mobile.example.org"],
    ),
]
_Link = Annotated[str, Meta(min_length=1, max_length=64)]

HANDLING_WORDS = {handling.name.lower(): handling for handling in Handling}
RELIABILITY_WORDS = {r.name.lower().replace("_", "-"): r for r in Reliability}


def split_ways(ways: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Split texts like `LINK=URL` into links and URLs; the link of a plain URL is empty."""
    found = []
    for way in ways:
        link, equals, url = way.partition("=")
        found.append((link, url) if equals and ":" not in link else ("", way))
    return tuple(found)


class BehaviourSubject(Protocol):
    """The fields of a submission that a behaviour looks at."""

    body: bytes
    content_type: str
    handling: Handling
    reliability: Reliability
    pull: bool
    unsaid: frozenset[str]
    """The names of the fields that the sender left out, for the app's behaviour to fill in."""


class Behaviour(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The behaviour of all messages of one app: defaults, limits and fixed fields."""

    handling: Annotated[
        Literal["foreground", "notify", "background", "silent"],
        Meta(description="How the device treats a message that does not choose a handling"),
    ] = "foreground"
    reliability: Annotated[
        Literal[
            "best-effort", "at-least-once-delivery", "at-least-once-processing", "exactly-once"
        ],
        Meta(description="How reliably a message is delivered that does not choose a reliability"),
    ] = "exactly-once"
    pull: Annotated[
        bool, Meta(description="Devices get a poke, and pull the body when they want it")
    ] = False
    pull_on: Annotated[
        tuple[_Link, ...],
        Meta(description="Links over which large bodies are left to be pulled", max_length=16),
    ] = ()
    content_types: Annotated[
        tuple[_Type, ...],
        Meta(
            description="Content types that bodies may have; type/* is any of a type. Empty: all",
            max_length=MAX_TYPES,
        ),
    ] = ()
    max_size: Annotated[int, Meta(ge=0, description="Bytes that a body may have")] | None = None
    fixed: Annotated[
        tuple[Literal["handling", "reliability", "pull"], ...],
        Meta(description="Fields that a message may not choose for itself", max_length=3),
    ] = ()

    ways: Annotated[
        tuple[WayText, ...],
        Meta(
            description="Ways to the gateway that its devices are told: URL, or LINK=URL",
            max_length=MAX_WAYS,
        ),
    ] = ()

    def other_ways(self) -> tuple[tuple[str, str], ...]:
        """Return the ways that devices are told, each a link and a URL."""
        return split_ways(self.ways)

    def apply(self, asked: BehaviourSubject, *, limit: int) -> None:
        """Fill in the fields that a submission leaves out, and raise an error for what the app does
        not allow."""
        size, most = len(asked.body), self.most(limit)
        if size > most:
            raise TooLarge("body too large for this app", size=size, limit=most)
        if self.content_types and not self._permits(asked.content_type):
            raise UnsupportedMedia(
                "this app does not permit this content type",
                content_type=asked.content_type,
                permitted=", ".join(self.content_types),
            )
        self._choose(asked, "handling", HANDLING_WORDS[self.handling])
        self._choose(asked, "reliability", RELIABILITY_WORDS[self.reliability])
        self._choose(asked, "pull", self.pull)

    def most(self, limit: int) -> int:
        """Return the size of the largest body in bytes: the app's own limit, or `limit` if the app
        sets none."""
        return limit if self.max_size is None else self.max_size

    def _permits(self, content_type: str) -> bool:
        media = content_type.partition(";")[0].strip().lower()
        kind = media.partition("/")[0]
        return any(
            permitted.lower() in (media, f"{kind}/*", "*/*") for permitted in self.content_types
        )

    def _choose(self, asked: BehaviourSubject, name: str, value: object) -> None:
        # The sender left it out, so that the default of the app counts.
        if name in asked.unsaid:
            setattr(asked, name, value)
        elif name in self.fixed and getattr(asked, name) != value:
            raise InvalidRequest(f"{name} is fixed for this app, and messages cannot choose it")


_decode = msgspec.json.Decoder(Behaviour).decode


class Behaviours:
    """The behaviour of each app: the one that was last set, else the configured one."""

    def __init__(self, configured: Mapping[str, Behaviour]) -> None:
        self._configured = dict(configured)
        self._set: dict[str, Behaviour] = {}
        self._in_force = dict(configured)

    def restore(self, memories: Iterable[MemoryRow]) -> None:
        """Restore the behaviours that were set before a restart."""
        for row in memories:
            if row.device == 0 and row.name.startswith(MEMORY):
                self.set(row.name.removeprefix(MEMORY), _decode(row.state))

    def get(self, app: str) -> Behaviour | None:
        """Return the behaviour in force; None for an app without one."""
        return self._in_force.get(app)

    def set(self, app: str, behaviour: Behaviour | None) -> MemoryRow:
        """Set an app's behaviour, or with None restore the configured one; return the row for the
        store."""
        if behaviour is None:
            self._set.pop(app, None)
            self._in_force.pop(app, None)
            if app in self._configured:
                self._in_force[app] = self._configured[app]
        else:
            self._set[app] = self._in_force[app] = behaviour
        state = b"" if behaviour is None else msgspec.json.encode(behaviour)
        return MemoryRow(0, f"{MEMORY}{app}", state)

    @property
    def overridden(self) -> list[str]:
        """The apps whose configured behaviour is not in force, because another one was set."""
        return sorted(self._configured.keys() & self._set.keys())
