"""The numbers of Weft's bytes, and the values that numbers stand for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lasthop.wire.xas.events import SAME_TEXT, Kind
from lasthop.wire.xas.names import Name

# The items of a run that is written in full: the lower three bits of a byte.
END: Final = 0
"""So many elements end, less one."""
START: Final = 1
PREFIX: Final = 2
TYPE: Final = 3
"""An xsi:type."""
ATTRIBUTE_SLOT: Final = 4
TYPED_SLOT: Final = 5
OTHER_SLOT: Final = 6
"""What comes next, without a name."""

SLOTS: Final[Mapping[tuple[Kind | None, Name | None], int]] = {
    (None, None): 0,
    (Kind.CONTENT, None): 1,
    (Kind.CONTENT, SAME_TEXT): 2,
    (Kind.COMMENT, None): 3,
    (Kind.PROCESSING_INSTRUCTION, None): 4,
    (Kind.ENTITY_REFERENCE, None): 5,
}
SLOT_LIST: Final = tuple(SLOTS)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


def seconds(value: Any) -> int | None:
    """The number of an instant in UTC, if it is a whole second."""
    if type(value) is not datetime or value.microsecond:
        return None
    return (value - _EPOCH) // _SECOND


def instant(number: int) -> datetime:
    """The instant of a number; OverflowError if there is none."""
    return _EPOCH + timedelta(seconds=number)


def decimal_parts(value: float) -> tuple[int, int, int]:
    """Sign, digits and scale of a fraction; the scale is -1 if it has no short form."""
    text = repr(value)
    whole, point, rest = text.partition(".")
    if not point or "e" in rest or len(rest) > 15 or len(text) > 18:
        return 0, 0, -1
    sign = 1 if whole[0] == "-" else 0
    if rest == "0":
        return sign, int(whole[sign:]), 0
    return sign, int(whole[sign:] + rest), len(rest)


def from_parts(sign: int, digits: int, scale: int) -> float:
    """The fraction of these parts."""
    text = str(digits).rjust(scale + 1, "0")
    number = float(f"{text[:-scale]}.{text[-scale:]}" if scale else text)
    return -number if sign else number
