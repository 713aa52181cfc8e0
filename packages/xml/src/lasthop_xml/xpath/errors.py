"""The errors of XPath subscriptions.

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
    """The expression is not XPath 1.0; `column` counts from 1, `expected` and `found` give the
    reason."""

    code = "malformed_xpath"


class UnsupportedXPath(InvalidInput):
    """The expression is XPath, but outside of the supported subset; `what` is the construct,
    `column` its place."""

    code = "unsupported_xpath"


class XPathTooLarge(TooLarge):
    """An expression is too long or too deeply nested, or there are too many subscriptions."""

    code = "xpath_too_large"
