"""When a message is to be sent, in all the spellings of ntfy: a time, a duration, or English."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from lasthop.access.ntfy.ntfy_errors import NtfyError
from lasthop.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Micros

SHORTEST: Micros = 10 * SECOND
LONGEST: Micros = 3 * DAY
"""The bounds of a delay: those of ntfy. `deliver_after` over REST has none."""

_GO = re.compile(r"-?(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+")
_GO_PART = re.compile(r"(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)")
_GO_UNITS: Final = {
    "ns": 0.001,
    "us": 1.0,
    "µs": 1.0,
    "ms": float(MILLISECOND),
    "s": float(SECOND),
    "m": float(MINUTE),
    "h": float(HOUR),
}
_WORDS = re.compile(
    r"(\d{1,9})\s?(s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?|d|days?)", re.IGNORECASE
)
_WORD_UNITS: Final = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}

_WEEKDAYS: Final = (
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
)
_CLOCK = re.compile(r"(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*(am|pm)?", re.IGNORECASE)


def deliver_after(text: str, now: Micros) -> Micros:
    """Return the time that a delay stands for; raise an error for one that is out of bounds."""
    at = _point(text, now)
    if at is None:
        raise NtfyError(40004, "the delay cannot be read", field="delay", value=text[:100])
    if at < now + SHORTEST:
        raise NtfyError(40005, "the delay is too small: at least 10 seconds", field="delay")
    if at > now + LONGEST:
        raise NtfyError(40006, "the delay is too large: at most 3 days", field="delay")
    return at


def _point(text: str, now: Micros) -> Micros | None:
    text = text.strip()
    if len(text) > 100:
        return None
    if text.isascii() and text.isdigit():
        at = int(text) * SECOND
        return at if at >= now else None
    if _GO.fullmatch(text):
        span = sum(float(number) * _GO_UNITS[unit] for number, unit in _GO_PART.findall(text))
        return now + round(-span if text.startswith("-") else span)
    words = _WORDS.fullmatch(text)
    if words is not None:
        return now + int(words[1]) * _WORD_UNITS[words[2][0].lower()]
    return _english(text.lower(), now)


def _english(text: str, now: Micros) -> Micros | None:
    """Read `10am`, `8:30pm`, `tomorrow, 3pm`, `Tuesday, 7am` in UTC; a time of day that has passed
    is tomorrow's."""
    today = datetime.fromtimestamp(now / SECOND, UTC)
    day, _, rest = (part.strip() for part in text.replace(",", " , ").partition(","))
    if not rest:
        first, _, after = text.partition(" ")
        day, rest = (
            (first, after.strip()) if first in ("tomorrow", "today", *_WEEKDAYS) else ("", text)
        )
    clock = _clock(rest) if rest else (today.hour, today.minute)
    if clock is None:
        return None
    at = today.replace(hour=clock[0], minute=clock[1], second=0, microsecond=0)
    if day in _WEEKDAYS:
        at += timedelta(days=(_WEEKDAYS.index(day) - today.weekday()) % 7)
        if at <= today:
            at += timedelta(days=7)
    elif day == "tomorrow":
        at += timedelta(days=1)
    elif day in ("", "today"):
        if at <= today:
            at += timedelta(days=1)
    else:
        return None
    return round(at.timestamp()) * SECOND


def _clock(text: str) -> tuple[int, int] | None:
    found = _CLOCK.fullmatch(text)
    if found is None or (found[2] is None and found[3] is None):
        return None
    hour, minute = int(found[1]), int(found[2] or 0)
    if found[3] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found[3].lower() == "pm" else 0)
    return (hour, minute) if hour < 24 and minute < 60 else None
