"""What can go wrong between two ends of a Xebu session.

Malformed
└── XebuFormatError     the bytes are not Xebu, or not in step with our token tables
    └── XebuStateError    this state cannot be used: it is poisoned, or a snapshot does not fit
TooLarge
└── XebuLimitError      a size, a depth or a count is above its limit
"""

from __future__ import annotations

from lasthop_xml.errors import Malformed, TooLarge


class XebuFormatError(Malformed):
    """The bytes are not a Xebu message. `offset` is where they stop making sense."""

    code = "xebu_format"


class XebuStateError(XebuFormatError):
    """The two ends may have different tokens; `epoch` is the one that has to be left by a reset."""

    code = "xebu_state"


class XebuLimitError(TooLarge):
    """A message asks for more than we are ready to spend."""

    code = "xebu_limit"
