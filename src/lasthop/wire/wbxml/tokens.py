"""The global tokens, which mean the same in every language and on every code page (WBXML 7.1)."""

from __future__ import annotations

from typing import Final

SWITCH_PAGE: Final = 0x00
END: Final = 0x01
ENTITY: Final = 0x02
STR_I: Final = 0x03
LITERAL: Final = 0x04
EXT_I_0: Final = 0x40
EXT_I_2: Final = 0x42
PI: Final = 0x43
LITERAL_C: Final = 0x44
EXT_T_0: Final = 0x80
EXT_T_2: Final = 0x82
STR_T: Final = 0x83
LITERAL_A: Final = 0x84
EXT_0: Final = 0xC0
EXT_2: Final = 0xC2
OPAQUE: Final = 0xC3
LITERAL_AC: Final = 0xC4

HAS_ATTRIBUTES: Final = 0x80
HAS_CONTENT: Final = 0x40
TAG_MASK: Final = 0x3F
"""The two flags of a tag, and the mask for the tag without them (WBXML 5.8.2)."""

FIRST_VALUE: Final = 0x80
"""The first octet of attribute values; attribute starts are below (WBXML 5.8.3)."""

PUBLIC_ID_IN_TABLE: Final = 0
PUBLIC_ID_UNKNOWN: Final = 1
"""Public identifiers that name no language (WBXML 7.2)."""
