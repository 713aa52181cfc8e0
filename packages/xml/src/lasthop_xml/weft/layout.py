"""The kinds of items in a run that is written in full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lasthop_xml.xas.events import SAME_TEXT, Kind
from lasthop_xml.xas.names import Name

# The kind of an item is in the lower three bits of its byte.
END: Final = 0
"""Ends of elements; the item's number is one less than the number of ends."""
START: Final = 1
PREFIX: Final = 2
TYPE: Final = 3
"""An xsi:type attribute, with its value."""
ATTRIBUTE_SLOT: Final = 4
TYPED_SLOT: Final = 5
OTHER_SLOT: Final = 6
"""The end of the run, where the next value is in an event without a name, or the document ends."""

SLOTS: Final[Mapping[tuple[Kind | None, Name | None], int]] = {
    (None, None): 0,
    (Kind.CONTENT, None): 1,
    (Kind.CONTENT, SAME_TEXT): 2,
    (Kind.COMMENT, None): 3,
    (Kind.PROCESSING_INSTRUCTION, None): 4,
    (Kind.ENTITY_REFERENCE, None): 5,
}
SLOT_LIST: Final = tuple(SLOTS)
