"""A step of a trace, as all tracers know it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from lasthop.clock import Micros

Attributes: TypeAlias = dict[str, str | int | float | bool]


@dataclass(slots=True)
class SpanMoment:
    """Something that happened during a span."""

    at: Micros
    name: str
    attributes: Attributes


@dataclass(slots=True, kw_only=True)
class Span:
    """What took from `start` to `end`."""

    trace: bytes
    id: bytes
    parent: bytes
    """Empty for the first of a trace."""
    name: str
    start: Micros
    end: Micros
    consumer: bool = False
    """It takes up what somebody else has sent before, rather than being a part of its parent."""
    attributes: Attributes = field(default_factory=dict)
    moments: list[SpanMoment] = field(default_factory=list)
    failure: str | None = None
    """Why it came to a bad end."""
