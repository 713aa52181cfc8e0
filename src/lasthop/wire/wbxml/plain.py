"""Compiles XML text straight to octets, for texts as nearly all publishers write them.

A text is plain if it is short, in ASCII, without comments, sections and references, its values in
double quotes and on one line, with no more in front of its root element than a declaration and a
DOCTYPE. A text that is not plain, or has any fault, is left to `xml_reader`, `validity` and
`encoder`, which accept everything and can say what is wrong; for a plain text they give the same
octets.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lasthop.errors import Malformed
from lasthop.wire.wbxml.encoder import attribute_octets, head_octets
from lasthop.wire.wbxml.language import Language, Model
from lasthop.wire.wbxml.tokens import END, HAS_ATTRIBUTES, HAS_CONTENT
from lasthop.wire.wbxml.validity import check_attribute, holds

MAX_PLAIN = 8 * 1024
"""The largest number of octets in a plain text: so few that no other limit can be reached."""

MAX_REMEMBERED = 32
"""The largest number of characters in an attribute's value that is cached: dates and actions
recur."""

_BLANK = "[ \t\n]"
_VALUE = "[ !#-%'-;=-~]*+"
_START = re.compile(
    r'(?:<\?xml version="1\.0"(?: encoding="(?:UTF|utf)-8")?\?>)?+'
    rf"{_BLANK}*+(?:<!DOCTYPE [a-z]++ PUBLIC \"[\-A-Za-z0-9 /.:]*+\"{_BLANK}++"
    rf"\"[\-A-Za-z0-9 /.:_]*+\">)?+{_BLANK}*+"
)
_PIECE = re.compile(
    rf'<([a-z\-]++)((?:{_BLANK}++[a-z\-]++="{_VALUE}")*+){_BLANK}*+(/?+)>'
    rf"|</([a-z\-]++){_BLANK}*+>"
    r"|([\t\n -%'-;=?-~]++)"
)
_PAIR = re.compile(f'([a-z\\-]++)="({_VALUE})"')


class _Level:
    """An element that is not closed yet."""

    __slots__ = ("at", "children", "model", "tag")

    def __init__(self, tag: str, model: Model, at: int) -> None:
        self.tag = tag
        self.model = model
        self.at = at
        """The position of the element's tag in the output, where flags are added."""
        self.children = ""


def compile_plain(data: bytes, language: Language) -> bytes | None:
    """Return the binary form of a text if it is plain, valid and has tokens for everything;
    otherwise None."""
    if len(data) > MAX_PLAIN or not language.one_page or not data.isascii():
        return None
    text = data.decode("ascii")
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    start = _START.match(text)
    at = start.end() if start is not None else 0
    out = bytearray(head_octets(language))
    above: list[_Level] = []
    level = _Level("", _OUTSIDE, 0)
    for piece in _PIECE.finditer(text, at):
        if piece.start() != at:
            return None
        at = piece.end()
        tag, attributes, empty, closed, characters = piece.groups()
        if tag is not None:
            model = language.models.get(tag)
            if model is None or (not above and level.children):
                return None
            level.children += f"{tag} "
            above.append(level)
            level = _Level(tag, model, len(out))
            out.append(language.tag_octets[tag][1])
            if not _write_attributes(attributes, level, language, out):
                return None
            if not empty:
                continue
        elif characters is not None:
            if level.model.children is None:
                out[level.at] |= HAS_CONTENT
                out += b"\x03%b\0" % characters.encode("ascii")
            elif not characters.isspace():
                return None
            continue
        elif closed != level.tag:
            return None
        if level.children:
            out[level.at] |= HAS_CONTENT
        if out[level.at] & HAS_CONTENT:
            out.append(END)
        if not holds(level.model, level.children):
            return None
        level = above.pop()
    if above or at != len(text) or level.children != f"{language.root} ":
        return None
    return bytes(out)


_OUTSIDE = Model(children="")
"""The model around the root element: nothing but blanks."""


def _write_attributes(text: str, level: _Level, language: Language, out: bytearray) -> bool:
    """Write the attributes of an element; return False if it may not have one of them, or lacks
    one."""
    names = set()
    for name, value in _PAIR.findall(text):
        short = len(value) <= MAX_REMEMBERED
        octets = (_remembered if short else _octets)(language, level.tag, name, value)
        if octets is None or name in names:
            return False
        names.add(name)
        out += octets
    if names:
        out[level.at] |= HAS_ATTRIBUTES
        out.append(END)
    return level.model.required <= names


def _octets(language: Language, tag: str, name: str, value: str) -> bytes | None:
    """Return the octets of a valid attribute; None if it is invalid, or if it depends on others."""
    if name not in language.starts or value == "delete":
        return None
    try:
        check_attribute(tag, name, value, language)
    except Malformed:
        return None
    return attribute_octets(language, name, value)


@lru_cache(maxsize=4096)
def _remembered(language: Language, tag: str, name: str, value: str) -> bytes | None:
    return _octets(language, tag, name, value)
