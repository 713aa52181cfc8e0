"""Why a decision came out as it did: a code with facts, put into words only when somebody asks.

A reason is a value: it is logged with the decision, compared in a replay, and costs no formatting
on the message path. All sentences stand in one table, so that every code has exactly one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from string import Formatter
from typing import Any, Final, TypeAlias

import msgspec

from lasthop.clock import SECOND

Fact: TypeAlias = str | int | float | None

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Code(StrEnum):
    """The kind of a reason; the values are stable, for machines and metrics."""

    # Reasons for the choice of a link.
    CHOSEN = "chosen"
    DEARER = "dearer"
    TOO_SLOW = "too_slow"
    LATE_ANYWAY = "late_anyway"
    NOT_ALLOWED = "not_allowed"
    OVER_LIMIT = "over_limit"
    NEVER_FITS = "never_fits"
    LINK_CLOSED = "link_closed"
    NO_LINK = "no_link"
    WAITS_FOR_LINK = "waits_for_link"
    WAITED_ENOUGH = "waited_enough"
    AWAITS_RECEIPT = "awaits_receipt"
    NO_RECEIPT = "no_receipt"
    EXPIRED = "expired"
    BEHIND = "behind"
    LINK_CONFLICT = "link_conflict"
    # Reasons for the choice of a moment.
    TOO_EARLY = "too_early"
    TOO_LATE = "too_late"
    QUIET = "quiet"
    CAPPED = "capped"
    DIGEST = "digest"
    CONFLICT = "conflict"


SENTENCES: dict[Code, str] = {
    Code.CHOSEN: "{link} has the lowest cost, {cost:.3f}",
    Code.DEARER: "{link} costs {cost:.3f}",
    Code.TOO_SLOW: "{link} needs {transit:span} and would miss {deadline:time}",
    Code.LATE_ANYWAY: "every allowed link would be late; {link} is the fastest",
    Code.NOT_ALLOWED: "{queue} does not use {link}",
    Code.OVER_LIMIT: "{link}: {used} of {limit} used, {charge} more would break it;"
    " it ends {until:time}",
    Code.NEVER_FITS: "{link}: {charge} is more than all of {limit}",
    Code.LINK_CLOSED: "{link} has reached {limit} and stays closed until {until:time}",
    Code.NO_LINK: "no link is up",
    Code.WAITS_FOR_LINK: "{link} is better and comes with probability {probability:.2f}:"
    " wait {delay:span} for it",
    Code.WAITED_ENOUGH: "{link} is better but not waited for any longer, after {delay:span}",
    Code.AWAITS_RECEIPT: "sent over {link}, the device's receipt is due by {until:time}",
    Code.NO_RECEIPT: "sent over {link}, no receipt from the device",
    Code.EXPIRED: "{deadline:time} has passed",
    Code.BEHIND: "the message waits behind {message}",
    Code.LINK_CONFLICT: "no link satisfies: {names}",
    Code.TOO_EARLY: "{name}: not before {at:time}",
    Code.TOO_LATE: "{name}: only until {at:time}",
    Code.QUIET: "{name}: quiet until {at:time}",
    Code.CAPPED: "{name}: its turn comes {at:time}",
    Code.DIGEST: "{name}: collected until {at:time}",
    Code.CONFLICT: "no moment satisfies: {names}",
}


# Where an event of a ranked topic is. These reasons have no facts, so the sentence is the reason.
ASKED: Final = "asked for by a read"
CAUGHT_UP: Final = "shown as soon as it could be"
AHEAD: Final = "sent ahead of a read"
INTERRUPTS: Final = "ranked high enough to interrupt"
BELOW_THRESHOLD: Final = "ranked below Threshold"
SETTLING: Final = "waiting for its rank to settle"
NO_CONTACT: Final = "no contact"
ENOUGH: Final = "the device has enough to read"
NO_BETTER: Final = "no better than what fills the device"
NO_ROOM: Final = "the device needed the room"
LOST: Final = "lost with the device's session"
EXPIRED: Final = "expired"
OUTRANKED: Final = "the quota is full, and it is outranked"
WITHDRAWN: Final = "withdrawn by its publisher"
OVER: Final = "read, or over"
UNKNOWN: Final = "not known here"


class _Words(Formatter):
    """A formatter that knows `time` (an instant) and `span` (a duration) besides the usual
    formats."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return "never"
        if format_spec == "time":
            moment = EPOCH + timedelta(microseconds=value)
            return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        if format_spec == "span":
            return f"{value / SECOND:g} s"
        return str(super().format_field(value, format_spec))


_WORDS = _Words()


class Reason(msgspec.Struct, frozen=True, array_like=True):
    """A code with its facts; `str()` returns the sentence."""

    code: Code
    facts: dict[str, Fact] = {}

    def __str__(self) -> str:
        return _WORDS.vformat(SENTENCES[self.code], (), self.facts)


def because(code: Code, **facts: Fact) -> Reason:
    """Return a reason with these facts, given by name."""
    return Reason(code, facts)


def in_words(reasons: Iterable[Reason]) -> str:
    """Return the reasons as one line for the log."""
    return "; ".join(map(str, reasons))
