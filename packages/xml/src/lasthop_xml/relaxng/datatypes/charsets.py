"""Sets of characters in regular expressions: escapes, categories, blocks, classes in brackets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from lasthop_xml.relaxng.datatypes.blocks import BLOCKS
from lasthop_xml.xas.errors import InvalidValue
from lasthop_xml.xas.names import NAME_CHAR, is_ncname

Test: TypeAlias = Callable[[str], bool]

_SINGLE: Final = {"n": "\n", "r": "\r", "t": "\t"} | {char: char for char in "\\|.-^?*+{}()[]"}
_SPECIAL: Final = frozenset(".\\?*+()|[]{}")
_CATEGORIES: Final = frozenset(
    [
        "L",
        "Lu",
        "Ll",
        "Lt",
        "Lm",
        "Lo",
        "M",
        "Mn",
        "Mc",
        "Me",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Ps",
        "Pe",
        "Pi",
        "Pf",
        "Po",
        "Z",
        "Zs",
        "Zl",
        "Zp",
        "S",
        "Sm",
        "Sc",
        "Sk",
        "So",
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cn",
    ]
)
_NAME_CHAR: Final = re.compile(f"[{NAME_CHAR}:]")
_PROPERTY: Final = re.compile(r"\{(?P<block>Is)?(?P<name>[a-zA-Z0-9\-]+)\}")


class CharSet:
    """A set of characters; `in` caches its answers for the first 256 code points."""

    __slots__ = ("_known", "_test")

    def __init__(self, test: Test) -> None:
        self._test = test
        self._known: dict[str, bool] = {}

    def __contains__(self, char: str) -> bool:
        found = self._known.get(char)
        if found is None:
            found = self._test(char)
            if char < "\u0100":
                self._known[char] = found
        return found


def any_of(tests: Iterable[Test]) -> CharSet:
    """Return the union of some sets of characters."""
    kept = tuple(tests)
    return CharSet(lambda char: any(test(char) for test in kept))


def _exactly(char: str) -> Test:
    return lambda other: other == char


def _between(first: str, last: str) -> Test:
    return lambda char: first <= char <= last


def _not(test: Test) -> Test:
    return lambda char: not test(char)


def _in_category(name: str) -> Test:
    return lambda char: unicodedata.category(char).startswith(name)


def _is_initial(char: str) -> bool:
    return char == ":" or is_ncname(char)


def _is_name_char(char: str) -> bool:
    return _NAME_CHAR.fullmatch(char) is not None


def _is_word(char: str) -> bool:
    return unicodedata.category(char)[0] not in "PZC"


_CLASSES: Final[dict[str, Test]] = {
    "s": lambda char: char in " \t\n\r",
    "i": _is_initial,
    "c": _is_name_char,
    "d": _in_category("Nd"),
    "w": _is_word,
}


class ExpressionReader:
    """Reads the parts of a regular expression that match one character."""

    def __init__(self, source: str) -> None:
        self.pos = 0
        self._source = source

    def at_end(self) -> bool:
        return self.pos >= len(self._source)

    def peek(self) -> str:
        if self.at_end():
            raise self.wrong()
        return self._source[self.pos]

    def next(self) -> str:
        char = self.peek()
        self.pos += 1
        return char

    def take(self, char: str) -> bool:
        if self.at_end() or self._source[self.pos] != char:
            return False
        self.pos += 1
        return True

    def wrong(self) -> InvalidValue:
        """Return the error to raise for a malformed expression at this place."""
        return InvalidValue(
            "an expression is malformed", expression=self._source[:80], offset=self.pos
        )

    def atom(self) -> list[Test]:
        """Read a character, an escape or a class outside of brackets, and return a list with the
        test for that character."""
        char = self.next()
        if char == "\\":
            return [self._escape()]
        if char == "[":
            return [self._class(1)]
        if char == ".":
            return [lambda other: other not in "\n\r"]
        if char in _SPECIAL:
            self.pos -= 1
            raise self.wrong()
        return [_exactly(char)]

    def _escape(self) -> Test:
        char = self.next()
        if char in _SINGLE:
            return _exactly(_SINGLE[char])
        if char.lower() in _CLASSES:
            test = _CLASSES[char.lower()]
            return test if char.islower() else _not(test)
        if char in "pP":
            test = self._property()
            return test if char == "p" else _not(test)
        raise self.wrong()

    def _property(self) -> Test:
        found = _PROPERTY.match(self._source, self.pos)
        if found is None:
            raise self.wrong()
        if found["block"]:
            bounds = BLOCKS.get(found["name"])
            if bounds is None:
                raise self.wrong()
            test = _between(chr(bounds[0]), chr(bounds[1]))
        elif found["name"] in _CATEGORIES:
            test = _in_category(found["name"])
        else:
            raise self.wrong()
        self.pos = found.end()
        return test

    def _class(self, depth: int) -> Test:
        """Read a class up to its closing bracket, after the opening one; return its test."""
        if depth > 20:
            raise self.wrong()
        negative = self.take("^")
        tests: list[Test] = []
        without: Test | None = None
        while not self.take("]"):
            if tests and self._source.startswith("-[", self.pos):
                self.pos += 2
                without = self._class(depth + 1)
                if not self.take("]"):
                    raise self.wrong()
                break
            tests.append(self._member())
        if not tests:
            raise self.wrong()
        chars = any_of(tests)

        def test(char: str) -> bool:
            return (char in chars) != negative and not (without is not None and without(char))

        return test

    def _member(self) -> Test:
        char = self.next()
        if char == "\\":
            escape = self.peek()
            test = self._escape()
            if escape not in _SINGLE:
                return test
            char = _SINGLE[escape]
        elif char == "[":
            self.pos -= 1
            raise self.wrong()
        if self._source.startswith("-", self.pos) and self._source[
            self.pos + 1 : self.pos + 2
        ] not in {"]", "["}:
            self.pos += 1
            last = self._range_end()
            if last < char:
                raise self.wrong()
            return _between(char, last)
        return _exactly(char)

    def _range_end(self) -> str:
        char = self.next()
        if char == "\\":
            escape = self.next()
            if escape not in _SINGLE:
                raise self.wrong()
            return _SINGLE[escape]
        return char
