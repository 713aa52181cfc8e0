"""The tokens of XPath 1.0 (section 3.7), each with its column."""

from __future__ import annotations

import re
from typing import NamedTuple

from lasthop_xml.xas.names import is_ncname
from lasthop_xml.xpath.errors import MalformedXPath

END = "the end"

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+)
    |(?P<literal>"[^"]*"|'[^']*')
    |(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    |(?P<sign>//|::|\.\.|<=|>=|!=|[/@*\[\]().|,<>=+$:-])
    |(?P<name>[^\s/@*\[\]()|,<>=+$:!"']+)""",
    re.VERBOSE,
)


class XPathToken(NamedTuple):
    """A token of an XPath expression; `kind` is literal, number, sign, name or end."""

    kind: str
    value: str
    column: int


def tokens(expression: str) -> list[XPathToken]:
    """Return all tokens of an expression, and one for its end."""
    found: list[XPathToken] = []
    at = 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            detail = (
                "a text does not end"
                if expression[at] in "\"'"
                else "this character is not allowed here"
            )
            raise MalformedXPath(detail, column=at + 1, found=expression[at])
        kind, value = match.lastgroup or "", match.group()
        if kind == "name" and not is_ncname(value):
            raise MalformedXPath("this is not a name", column=at + 1, found=value[:80])
        if kind != "blank":
            found.append(XPathToken(kind, value[1:-1] if kind == "literal" else value, at + 1))
        at = match.end()
    found.append(XPathToken("end", END, at + 1))
    return found
