"""What a table of expressions finds in the body of a message, or why the body cannot be read.

The body comes from a stranger: it is read within limits, and whatever is wrong with it is an
outcome, not an error.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from lasthop_xml.errors import TooLarge, XmlError
from lasthop_xml.formats import FORMATS, decode_alone
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xpath.subscriptions import Subscriptions

LONGEST_REASON: Final = 120


class Outcome(StrEnum):
    """How reading a body for its filters ended."""

    READ = "read"
    NO_XML = "no_xml"
    """The content type says that there is nothing for an expression to select."""
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    FAILED = "failed"
    """Nobody got to the end of it: it took too long, or the worker ended."""


class Reading(msgspec.Struct, frozen=True, array_like=True):
    """The outcome of reading one body."""

    outcome: Outcome
    matched: frozenset[str] = frozenset()
    """The expressions that select something of it."""
    events: int = 0
    reason: str = ""
    """Why it could not be read."""

    @property
    def unread(self) -> bool:
        """Whether nobody can say what the expressions select."""
        return self.outcome not in (Outcome.READ, Outcome.NO_XML)


NO_XML: Final = Reading(Outcome.NO_XML)


def reads(content_type: str) -> bool:
    """Whether bodies of this type are XML, in whichever form."""
    return _form(content_type) in FORMATS


def read(table: Subscriptions[str], content_type: str, body: bytes, limits: Limits) -> Reading:
    """Match a body with all expressions of a table, which are their own keys."""
    if not reads(content_type):
        return NO_XML
    try:
        events = decode_alone(_form(content_type), body, limits)
        matched = table.matching(events, limits=limits)
    except TooLarge as error:
        return Reading(Outcome.TOO_LARGE, reason=_reason(error))
    except XmlError as error:
        return Reading(Outcome.MALFORMED, reason=_reason(error))
    return Reading(Outcome.READ, frozenset(matched), len(events))


def _form(content_type: str) -> str:
    """Every type that ends in `+xml` is XML (RFC 7303)."""
    essence = content_type.partition(";")[0].strip().lower()
    return "application/xml" if essence.endswith("+xml") else essence


def _reason(error: XmlError) -> str:
    """An error with its numbers, but without texts, which may quote the message: the reason is
    for the event log."""
    numbers = [f"{name}={value}" for name, value in error.fields.items() if isinstance(value, int)]
    facts = f" ({', '.join(numbers)})" if numbers else ""
    return error.detail[:LONGEST_REASON] + facts
