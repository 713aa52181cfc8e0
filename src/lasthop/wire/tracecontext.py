"""The trace that a message belongs to, as W3C's Trace Context writes it in a `traceparent` header.

A publisher that traces its requests says in this header which trace, and which span of the trace, a
message comes from. The header stays with the message unchanged: what the gateway and the device do
for the message become further spans, with that span as their parent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

Headers: TypeAlias = tuple[tuple[str, str], ...]
"""The headers of a message: pairs of name and value."""

NAME = "traceparent"

# Section 3.2.2: version, trace-id, parent-id and flags, in lower case. An unknown version may have
# more after them; ff is not a version, and neither id may be all zeros.
_FORM = re.compile(
    r"(?!ff)(?!00-.{53})([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
    r"(?:-.*)?",
    re.ASCII,
)
_SAMPLED = 1


class TraceContext(NamedTuple):
    """The trace of a message and the span that the message came from."""

    trace: bytes
    """The trace-id of the message, 16 bytes."""
    span: bytes
    """The parent-id, 8 bytes: the span that the message came from."""
    sampled: bool
    """Whether the publisher records this trace and asks others to record it."""

    def __str__(self) -> str:
        return f"00-{self.trace.hex()}-{self.span.hex()}-{int(self.sampled):02x}"


def parse(value: str) -> TraceContext | None:
    """Return the context that a `traceparent` value states; None when the value is invalid, which
    counts as no header at all."""
    found = _FORM.fullmatch(value.strip())
    if found is None:
        return None
    _, trace, span, flags = found.groups()
    return TraceContext(bytes.fromhex(trace), bytes.fromhex(span), bool(int(flags, 16) & _SAMPLED))


def of_request(headers: Mapping[bytes, bytes]) -> Headers:
    """Return the `traceparent` header, if any, that a message takes over from its HTTP request."""
    value = headers.get(b"traceparent")
    found = None if value is None else parse(value.decode("latin-1"))
    return () if found is None else ((NAME, str(found)),)


def of_message(headers: Iterable[tuple[str, str]]) -> str:
    """Return the trace context among a message's headers as text; empty when there is none."""
    for name, value in headers:
        if name.lower() == NAME:
            found = parse(value)
            return "" if found is None else str(found)
    return ""


def without(headers: Headers) -> Headers:
    """Return a message's headers without `traceparent`, for links on which every byte counts."""
    return tuple(pair for pair in headers if pair[0].lower() != NAME)
