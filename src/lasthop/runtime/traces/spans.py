"""A span of a trace, independent of the format in which it is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from lasthop.clock import Micros

Attributes: TypeAlias = dict[str, str | int | float | bool]


@dataclass(slots=True)
class SpanMoment:
    """An event that happened during a span."""

    at: Micros
    name: str
    attributes: Attributes


@dataclass(slots=True, kw_only=True)
class Span:
    """One operation of a trace, from `start` to `end`."""

    trace: bytes
    id: bytes
    parent: bytes
    """The id of the parent span; empty for the first span of a trace."""
    name: str
    start: Micros
    end: Micros
    consumer: bool = False
    """Whether the span handles a message that its parent sent; otherwise it is a part of its
    parent."""
    attributes: Attributes = field(default_factory=dict)
    moments: list[SpanMoment] = field(default_factory=list)
    failure: str | None = None
    """The reason why the operation failed; None if it did not fail."""
