"""The errors of the two ends of a Xebu session.

Malformed
└── XebuFormatError     the bytes are not Xebu, or do not match the decoder's token tables
    └── XebuStateError    this state cannot be used: it is poisoned, or a snapshot does not fit
TooLarge
└── XebuLimitError      a size, a depth or a count is above its limit
"""

from __future__ import annotations

from lasthop_xml.errors import Malformed, TooLarge


class XebuFormatError(Malformed):
    """The bytes are not a Xebu message; `offset` is the place of the first error."""

    code = "xebu_format"


class XebuStateError(XebuFormatError):
    """The token tables of the two ends may differ; `epoch` is the epoch that a reset must end."""

    code = "xebu_state"


class XebuLimitError(TooLarge):
    """A message has a size, a depth or a count above its limit."""

    code = "xebu_limit"
