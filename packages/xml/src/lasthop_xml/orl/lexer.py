"""The tokens of a description, each with its line and column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from lasthop_xml.orl.errors import MalformedOrl

END = "the end of the file"

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+|\#[^\n]*)
    |(?P<text>"[^"\n]*")
    |(?P<sign>[{}?*])
    |(?P<word>[^\s{}?*"\#]+)""",
    re.VERBOSE,
)


class OrlToken(NamedTuple):
    """A token of a description; `kind` is text, sign, word or end."""

    kind: str
    value: str
    line: int
    column: int

    def refuse(self, detail: str, **fields: object) -> MalformedOrl:
        """Return an error with the line and column of this token."""
        return MalformedOrl(detail, line=self.line, column=self.column, **fields)


def tokens(source: str) -> Iterator[OrlToken]:
    """Yield all tokens of a description, and one for its end."""
    at, line, line_start = 0, 1, 0
    while at < len(source):
        found = _TOKEN.match(source, at)
        if found is None:
            # The only character that matches nothing is a quotation mark without a second one on
            # its line.
            raise MalformedOrl(
                "a text does not end on its line", line=line, column=at - line_start + 1
            )
        kind, value = found.lastgroup or "", found.group()
        if kind != "blank":
            yield OrlToken(
                kind, value.strip('"') if kind == "text" else value, line, at - line_start + 1
            )
        at = found.end()
        if newlines := value.count("\n"):
            line += newlines
            line_start = at - len(value) + value.rfind("\n") + 1
    yield OrlToken("end", END, line, at - line_start + 1)
