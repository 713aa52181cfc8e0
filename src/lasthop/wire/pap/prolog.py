"""The encoding of a control entity, and what comes before its root element.

The DOCTYPE is read here and never passed on, so that nothing declared in a document can have an
effect: no entities, no defaults, no fetching. Two things are taken from it: the version of PAP and
the versions that the sender understands.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from lasthop.errors import PapInvalid, PapMalformed
from lasthop.wire.pap.versions import declared_version, parse_supported

CHARSETS: dict[str, str] = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "latin-1",
    "latin1": "latin-1",
    "windows-1252": "cp1252",
    "utf-16": "utf-16-be",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
}
"""The character sets that are read, by the names that initiators use. XML requires UTF-8 and UTF-16
only; Python knows a hundred more, some of which can be used to smuggle markup."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(rb"""<\?xml[^>]{1,200}?encoding\s*=\s*["']([A-Za-z0-9._\-]{1,40})["']""")

BLANK = "[ \t\r\n]"
COMMENT = "<!--[^-]*+(?:-[^-]++)*+-->"
INSTRUCTION = r"<\?[^?]*+(?:\?(?!>)[^?]*+)*+\?>"
MISC = re.compile(f"(?:{BLANK}++|{COMMENT}|{INSTRUCTION})*+")
"""What may occur anywhere between elements and means nothing. Quantifiers are possessive: the time
is proportional to the length."""

_DOCTYPE = re.compile(
    rf"""<!DOCTYPE{BLANK}++([^ \t\r\n>\["']++)
    (?:{BLANK}++PUBLIC{BLANK}++(?:"([^"]*+)"|'([^']*+)')
       (?:{BLANK}*+(?:"([^"]*+)"|'([^']*+)'))?+
     | {BLANK}++SYSTEM{BLANK}++(?:"([^"]*+)"|'([^']*+)')
    )?+{BLANK}*+""",
    re.VERBOSE,
)
_OFFERED = re.compile(
    rf"""<\?wap-pap-ver{BLANK}[^?]*?supported-versions{BLANK}*={BLANK}*["']([^"'?]*)"""
)


class Prolog(NamedTuple):
    version: str | None
    """The version as declared, known to us or not; None if the document shows no number."""
    supported: tuple[str, ...]
    root: int
    """The position where the root element begins."""


def decode(data: bytes, encoding: str) -> str:
    """Decode the characters of an entity; raise PapMalformed."""
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise PapMalformed(
            f"a byte of the document is not {encoding}", line=data.count(b"\n", 0, error.start) + 1
        ) from None


def encoding_of(data: bytes, charset: str | None = None) -> str:
    """Return the encoding of an entity: by its byte order mark, else by the charset of its MIME
    header, else by its XML declaration, else UTF-8 (RFC 7303, section 3). Raise PapMalformed."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    # Without a mark, the first character of a document shows the width and order of the rest.
    wide = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}.get(data[:2])
    if wide:
        return wide
    if not charset:
        declared = _DECLARED.match(data)
        charset = declared[1].decode("ascii") if declared else "utf-8"
    known = CHARSETS.get(charset.strip().lower())
    if known is None:
        raise PapMalformed("the character set is not supported", charset=charset[:40])
    return known


def read_prolog(text: str) -> Prolog:
    """Parse up to the root element; raise PapInvalid for a document that declares anything of its
    own."""
    at = _skip(text, 0)
    version: str | None = None
    supported: tuple[str, ...] = ()
    found = _DOCTYPE.match(text, at)
    if found is not None:
        name, public, public_, system, system_, only, only_ = found.groups()
        if name != "pap":
            raise PapInvalid("the document type is not pap", line=line_at(text, at))
        version = declared_version(public or public_, system or system_ or only or only_)
        at = found.end()
        if text[at : at + 1] == "[":
            end = _skip(text, at + 1)
            if text[end : end + 1] != "]":
                raise _unexpected_declaration(text, end)
            offer = _OFFERED.search(text, at, end)
            supported = parse_supported(offer[1]) if offer else ()
            at = _skip(text, end + 1)
        if text[at : at + 1] != ">":
            raise PapMalformed("the DOCTYPE does not end", line=line_at(text, at))
        at = _skip(text, at + 1)
    if text[at : at + 1] != "<" or text[at + 1 : at + 2] in ("!", "?", ""):
        raise PapMalformed("no root element", line=line_at(text, at))
    return Prolog(version, supported, at)


def line_at(text: str, position: int) -> int:
    """Return the line of a position, from 1."""
    return text.count("\n", 0, position) + 1


def _skip(text: str, at: int) -> int:
    found = MISC.match(text, at)
    return found.end() if found else at


def _unexpected_declaration(text: str, at: int) -> PapInvalid | PapMalformed:
    line = line_at(text, at)
    if text.startswith("<!ENTITY", at) or text.startswith("%", at):
        return PapInvalid("a document may not declare entities", line=line)
    if text.startswith("<!", at) and not text.startswith("<!--", at):
        return PapInvalid("a document may not change its document type", line=line)
    return PapMalformed("the DOCTYPE does not end", line=line)
