"""The errors of the two ends of a Weft session.

Malformed
└── WeftFormatError     the bytes are not Weft
    └── WeftStateError    the two ends do not know the same: reset, or use a state that fits
TooLarge
└── WeftLimitError      a size, a depth or a count is above its limit
"""

from __future__ import annotations

from lasthop_xml.errors import Malformed, TooLarge


class WeftFormatError(Malformed):
    """The bytes are not a Weft message; `offset` is the place of the first error."""

    code = "weft_format"


class WeftStateError(WeftFormatError):
    """The two ends have learned different things; `epoch` is the epoch that a reset must end."""

    code = "weft_state"


class WeftLimitError(TooLarge):
    """A message has a size, a depth or a count above its limit."""

    code = "weft_limit"
