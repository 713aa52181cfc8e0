"""The reading of a message's body for a table of expressions, or the reason why it cannot be read.

The body comes from an unknown sender: it is read within limits, and an error in it is an outcome,
not an exception.
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
    """How the reading of a body for its filters ended."""

    READ = "read"
    NO_XML = "no_xml"
    """The content type is not XML, so there is nothing that an expression could select."""
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    FAILED = "failed"
    """The reading was not completed: it took too long, or the worker process ended."""


class Reading(msgspec.Struct, frozen=True, array_like=True):
    """The result of matching one body with the expressions of a table."""

    outcome: Outcome
    matched: frozenset[str] = frozenset()
    """The expressions that select something in the body."""
    events: int = 0
    reason: str = ""
    """Why the body could not be read; empty if it was."""

    @property
    def unread(self) -> bool:
        """Return whether it is unknown what the expressions select, because the body was not
        read."""
        return self.outcome not in (Outcome.READ, Outcome.NO_XML)


NO_XML: Final = Reading(Outcome.NO_XML)


def reads(content_type: str) -> bool:
    """Return whether bodies of this content type are XML, in any of its forms."""
    return _form(content_type) in FORMATS


def read(table: Subscriptions[str], content_type: str, body: bytes, limits: Limits) -> Reading:
    """Match a body with all expressions of a table whose keys are the expressions themselves."""
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
    """Return the MIME type to decode with; every type that ends in `+xml` is XML (RFC 7303, section
    4.2)."""
    essence = content_type.partition(";")[0].strip().lower()
    return "application/xml" if essence.endswith("+xml") else essence


def _reason(error: XmlError) -> str:
    """Return an error's message with its numbers but without its texts, which may quote the body:
    the reason is written to the event log."""
    numbers = [f"{name}={value}" for name, value in error.fields.items() if isinstance(value, int)]
    facts = f" ({', '.join(numbers)})" if numbers else ""
    return error.detail[:LONGEST_REASON] + facts
