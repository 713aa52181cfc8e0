"""The items of a run that is written in full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lasthop_xml.xas.events import SAME_TEXT, Kind
from lasthop_xml.xas.names import Name

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
