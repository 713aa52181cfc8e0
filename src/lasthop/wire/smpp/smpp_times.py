"""Times as SMPP writes them: `YYMMDDhhmmsstnnp`, absolute or relative."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lasthop.clock import DAY, SECOND, Micros
from lasthop.errors import Malformed

LONGEST: Micros = 63 * DAY
"""The longest relative time that is written: SMSCs keep a message for a few days."""


def relative(duration: Micros) -> str:
    """Return a duration, rounded up to seconds, as a relative time.

    >>> relative(86_400 * 1_000_000)
    '000001000000000R'
    """
    seconds = -(-min(duration, LONGEST) // SECOND)
    days, rest = divmod(max(1, seconds), 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"0000{days:02}{hours:02}{minutes:02}{seconds:02}000R"


def absolute(at: Micros) -> str:
    """Return a moment as an absolute time in UTC.

    >>> absolute(1_709_193_600_000_000)
    '240229080000000+'
    """
    moment = datetime.fromtimestamp(at // SECOND, UTC)
    return f"{moment:%y%m%d%H%M%S}{at % SECOND * 10 // SECOND}00+"


def parse_time(text: str, now: Micros) -> Micros:
    """Return the moment that an absolute or relative time stands for; raise Malformed."""
    if len(text) != 16 or not text[:15].isdigit() or text[15] not in "+-R":
        raise Malformed("a time has 15 digits and +, - or R", offset=0, time=text[:20])
    fields = [int(text[at : at + 2]) for at in range(0, 12, 2)]
    tenths, quarters = int(text[12]), int(text[13:15])
    if text[15] == "R":
        years, months, days, hours, minutes, seconds = fields
        span = timedelta(365 * years + 30 * months + days, seconds, 0, 0, minutes, hours)
        return now + int(span.total_seconds()) * SECOND + tenths * SECOND // 10
    try:
        year, month, day, hour, minute, second = fields
        moment = datetime(2000 + year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise Malformed("there is no such date", offset=0, time=text) from None
    ahead = timedelta(minutes=15 * quarters) * (1 if text[15] == "+" else -1)
    return int((moment - ahead).timestamp()) * SECOND + tenths * SECOND // 10
