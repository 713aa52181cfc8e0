"""What can be wrong with a subscription.

Malformed
└── MalformedXPath      not XPath 1.0, and where
InvalidInput
└── UnsupportedXPath    XPath, but outside of the subset that can be matched in one pass
TooLarge
└── XPathTooLarge       an expression or the whole set is above its limit
"""

from __future__ import annotations

from lasthop_xml.errors import InvalidInput, Malformed, TooLarge


class MalformedXPath(Malformed):
    """`column` counts from 1; `expected` and `found` say the rest."""

    code = "malformed_xpath"


class UnsupportedXPath(InvalidInput):
    """`what` is the construct, `column` where it stands."""

    code = "unsupported_xpath"


class XPathTooLarge(TooLarge):
    """Too long, too deep, or too many."""

    code = "xpath_too_large"
