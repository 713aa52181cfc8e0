"""The trace that a message belongs to, as W3C's Trace Context writes it in a `traceparent` header.

A publisher that traces its requests says in this header which trace and which step of it a message
comes from. It stays with the message as it is: what the gateway and the device do for the message
are further steps, caused by that one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

Headers: TypeAlias = tuple[tuple[str, str], ...]
"""Of a message."""

NAME = "traceparent"

# Section 3.2.2: version, trace-id, parent-id and flags, in lower case. A version that we do not
# know may go on after them; ff is none, and neither id may be all zeros.
_FORM = re.compile(
    r"(?!ff)(?!00-.{53})([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
    r"(?:-.*)?",
    re.ASCII,
)
_SAMPLED = 1


class TraceContext(NamedTuple):
    """Which trace, and what in it came before."""

    trace: bytes
    """16 bytes."""
    span: bytes
    """8 bytes."""
    sampled: bool
    """Whether the one before records it, and wants others to."""

    def __str__(self) -> str:
        return f"00-{self.trace.hex()}-{self.span.hex()}-{int(self.sampled):02x}"


def parse(value: str) -> TraceContext | None:
    """What a header says; None when it makes no sense, which is as if there were none."""
    found = _FORM.fullmatch(value.strip())
    if found is None:
        return None
    _, trace, span, flags = found.groups()
    return TraceContext(bytes.fromhex(trace), bytes.fromhex(span), bool(int(flags, 16) & _SAMPLED))


def of_request(headers: Mapping[bytes, bytes]) -> Headers:
    """The header that a message gets from the HTTP request that it came in: one or none."""
    value = headers.get(b"traceparent")
    found = None if value is None else parse(value.decode("latin-1"))
    return () if found is None else ((NAME, str(found)),)


def of_message(headers: Iterable[tuple[str, str]]) -> str:
    """The context among a message's headers; empty when there is none."""
    for name, value in headers:
        if name.lower() == NAME:
            found = parse(value)
            return "" if found is None else str(found)
    return ""


def without(headers: Headers) -> Headers:
    """A message's headers for ways on which every byte counts, and nobody traces."""
    return tuple(pair for pair in headers if pair[0].lower() != NAME)
