"""A cursor over the tokens of an expression, and the errors that it can report there."""

from __future__ import annotations

from lasthop_xml.xpath.errors import MalformedXPath, UnsupportedXPath
from lasthop_xml.xpath.lexer import XPathToken


class Cursor:
    """A cursor that reads the tokens of an expression from left to right."""

    def __init__(self, source: list[XPathToken]) -> None:
        self._tokens = source
        self._at = 0

    @property
    def _next(self) -> XPathToken:
        return self._tokens[self._at]

    def _is(self, *values: str) -> bool:
        return self._next.value in values and self._next.kind in {"sign", "name"}

    def _accept(self, *values: str) -> XPathToken | None:
        token = self._next
        if not self._is(*values):
            return None
        self._at += 1
        return token

    def _expect(self, value: str) -> None:
        if self._accept(value) is None:
            raise self._unexpected(value)

    def _unexpected(self, expected: str) -> MalformedXPath:
        token = self._next
        return MalformedXPath(
            "something else was expected",
            column=token.column,
            expected=expected,
            found=token.value[:80],
        )

    def _unsupported(self, what: str, token: XPathToken | None = None) -> UnsupportedXPath:
        column = (token or self._next).column
        return UnsupportedXPath("this cannot be matched in one pass", what=what, column=column)

    def _follows(self, sign: str) -> bool:
        """Return whether a name comes next and this sign after it."""
        after = self._tokens[self._at + 1 : self._at + 2]
        return self._next.kind == "name" and bool(after) and after[0].value == sign
