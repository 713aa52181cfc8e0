"""From the text of a schema to tokens (compact syntax, section 3 and appendix A).

Escapes such as \\x{3B1} may occur anywhere and are replaced first; a line feed from an escape does
not end a line, so it can be in a quoted literal. Positions are those of the text as written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from enum import StrEnum
from typing import Final, NamedTuple

from lasthop_xml.relaxng.errors import SchemaError
from lasthop_xml.xas.names import ILLEGAL, NCNAME

KEYWORDS: Final = frozenset(
    [
        "attribute",
        "default",
        "datatypes",
        "div",
        "element",
        "empty",
        "external",
        "grammar",
        "include",
        "inherit",
        "list",
        "mixed",
        "namespace",
        "notAllowed",
        "parent",
        "start",
        "string",
        "text",
        "token",
    ]
)


class Lexeme(StrEnum):
    """The kind of a token; signs and keywords are told apart by their text."""

    NAME = "a name"
    KEYWORD = "a keyword"
    QUOTED = "a quoted name"
    PREFIXED = "a name with a prefix"
    ANY_IN_NS = "a prefix with a star"
    LITERAL = "a literal"
    SIGN = "a sign"
    DOCUMENTATION = "documentation"
    END = "the end of the schema"


class Position(NamedTuple):
    """A place in a schema: its file, and a line and a column that count from 1."""

    source: str
    line: int
    column: int


class Token(NamedTuple):
    """A token of a schema; `text` is without quotation marks and escapes."""

    lexeme: Lexeme
    text: str
    at: Position


_ESCAPED_NEWLINE = "\0"  # a character that XML does not have
_ESCAPE = re.compile(r"\\x+\{([0-9A-Fa-f]+)\}")
_ILLEGAL = re.compile(f"[{ILLEGAL}]")
_TOKEN = re.compile(
    rf"""
    (?P<blank>[ \t\n\0]+)
  | (?P<documentation>\#\#[^\n\0]*)
  | (?P<comment>\#[^\n\0]*)
  | (?P<star>{NCNAME}:\*)
  | (?P<prefixed>{NCNAME}:{NCNAME})
  | (?P<name>{NCNAME})
  | (?P<quoted>\\{NCNAME})
  | (?P<literal>\"\"\"(?:\"{{0,2}}[^\"])*\"\"\" | '''(?:'{{0,2}}[^'])*''' | "[^"\n]*" | '[^'\n]*')
  | (?P<sign>\|=|&=|>>|[=|&,?*+\-~(){{}}[\]])
    """,
    re.VERBOSE,
)
_LEXEMES: Final = {
    "documentation": Lexeme.DOCUMENTATION,
    "star": Lexeme.ANY_IN_NS,
    "prefixed": Lexeme.PREFIXED,
    "quoted": Lexeme.QUOTED,
    "literal": Lexeme.LITERAL,
    "sign": Lexeme.SIGN,
}


class _Places:
    """The mapping from offsets in the text with escapes replaced to positions in the text as
    written."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._lines = [0]
        self._lines += [found.end() for found in re.finditer("\n", text)]
        self._replaced = [0]  # offsets after replaced escapes,
        self._written = [0]  # and the same places in the text as written

    def escaped(self, replaced: int, written: int) -> None:
        self._replaced.append(replaced)
        self._written.append(written)

    def at(self, offset: int) -> Position:
        latest = bisect_right(self._replaced, offset) - 1
        return self.written(self._written[latest] + offset - self._replaced[latest])

    def written(self, offset: int) -> Position:
        line = bisect_right(self._lines, offset)
        return Position(self._source, line, offset - self._lines[line - 1] + 1)


def tokens(text: str, source: str = "") -> list[Token]:
    """Return all tokens of a schema; the last one is its end."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    places = _Places(text, source)
    illegal = _ILLEGAL.search(text)
    if illegal is not None:
        raise failure("XML does not allow this character", places.at(illegal.start()))
    text = _without_escapes(text, places)
    found: list[Token] = []
    pos = 0
    while pos < len(text):
        match = _TOKEN.match(text, pos)
        if match is None or match.lastgroup is None:
            raise failure(_complaint(text, pos), places.at(pos))
        kind = match.lastgroup
        if kind not in {"blank", "comment"}:
            found.append(_token(kind, match.group(), places.at(pos)))
        pos = match.end()
    found.append(Token(Lexeme.END, "", places.at(len(text))))
    return found


def _without_escapes(text: str, places: _Places) -> str:
    pieces: list[str] = []
    size = behind = 0
    for escape in _ESCAPE.finditer(text):
        digits = escape[1].lstrip("0")
        char = chr(int(digits, 16)) if 0 < len(digits) <= 6 and int(digits, 16) < 0x110000 else "\0"
        if _ILLEGAL.match(char):
            raise failure(
                "XML does not allow this character",
                places.written(escape.start()),
                escape=escape[0][:20],
            )
        before = text[behind : escape.start()]
        pieces += before, _ESCAPED_NEWLINE if char == "\n" else char
        size += len(before) + 1
        behind = escape.end()
        places.escaped(size, behind)
    return "".join([*pieces, text[behind:]])


def _token(kind: str, text: str, at: Position) -> Token:
    if kind == "name":
        return Token(Lexeme.KEYWORD if text in KEYWORDS else Lexeme.NAME, text, at)
    if kind == "quoted":
        text = text[1:]
    elif kind == "literal":
        quotes = 3 if len(text) >= 6 and text[:3] in {'"""', "'''"} else 1
        text = text[quotes:-quotes].replace(_ESCAPED_NEWLINE, "\n")
    return Token(_LEXEMES[kind], text, at)


def _complaint(text: str, pos: int) -> str:
    if text[pos] in "\"'":
        return "a literal has no end"
    return "no token starts like this"


def failure(detail: str, at: Position, **fields: object) -> SchemaError:
    """Return the SchemaError to raise for an error at this place."""
    source = {"source": at.source} if at.source else {}
    return SchemaError(detail, **source, line=at.line, column=at.column, **fields)
