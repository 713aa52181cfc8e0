"""Dates of SI and EMN: `1999-06-30T00:00:00Z`, packed as `19 99 06 30`.

The binary form is the fourteen digits, two to an octet, without the zero octets at its end. Every
date has one text and one binary form; anything else is refused, since it would fail on the client.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

_TEXT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z", re.ASCII)
OCTETS = 7


@lru_cache(maxsize=1024)
def pack_date(text: str) -> bytes:
    """Return the binary form of a date; raise ValueError.

    >>> pack_date("1999-06-30T00:00:00Z").hex()
    '19990630'
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError("a date must have the form YYYY-MM-DDThh:mm:ssZ")
    _check(found.groups())
    return bytes.fromhex("".join(found.groups())).rstrip(b"\0")


def unpack_date(octets: bytes) -> str:
    """Return the text form of a binary date; raise ValueError."""
    if not 1 <= len(octets) <= OCTETS:
        raise ValueError(f"a date must have one to {OCTETS} octets")
    digits = octets.ljust(OCTETS, b"\0").hex()
    if not digits.isdecimal():
        raise ValueError("a date must consist of decimal digits")
    fields = digits[:4], digits[4:6], digits[6:8], digits[8:10], digits[10:12], digits[12:]
    _check(fields)
    return "{}-{}-{}T{}:{}:{}Z".format(*fields)


def _check(fields: tuple[str, ...]) -> None:
    year, month, day, hour, minute, second = map(int, fields)
    datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - only to refuse 30 February
