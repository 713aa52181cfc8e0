"""Encodes WBXML: a document becomes octets.

Everything that has a token gets it, the longest match first; all other text is inline, in UTF-8.
Elements and attributes without a token are written as literals, so that every document can be
encoded: `validity` says whether it should be.
"""

from __future__ import annotations

from collections import Counter

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.charsets import UTF_8
from lasthop.wire.uintvar import encode_uintvar
from lasthop.wire.wbxml.dates import pack_date
from lasthop.wire.wbxml.document import (
    DEFAULT_LIMITS,
    NAME,
    NOT_XML,
    WbxmlDocument,
    WbxmlElement,
    WbxmlLimits,
)
from lasthop.wire.wbxml.language import Language
from lasthop.wire.wbxml.tokens import (
    END,
    HAS_ATTRIBUTES,
    HAS_CONTENT,
    LITERAL,
    OPAQUE,
    STR_T,
    SWITCH_PAGE,
)

VERSIONS = {"1.1": 0x01, "1.2": 0x02, "1.3": 0x03}
"""The versions that can be written, which differ only in this octet: 1.0 has no charset and no
OPAQUE."""

DEFAULT_VERSION = "1.3"

_CHARSET = encode_uintvar(UTF_8)
_OPAQUE = bytes((OPAQUE,))


def encode(
    document: WbxmlDocument,
    *,
    version: str = DEFAULT_VERSION,
    string_table: bool = False,
    limits: WbxmlLimits = DEFAULT_LIMITS,
) -> bytes:
    """Encode a document; raise Malformed or TooLarge.

    With `string_table`, strings that occur more than once are written once, where this saves
    octets. Off by default: no client is known to need it.
    """
    if version not in VERSIONS:
        raise ValueError(f"WBXML {version} is not written; choose from {', '.join(VERSIONS)}")
    language = document.language
    writer = _Writer(language, limits.depth)
    writer.element(document.root, 1)
    if string_table and (repeated := _worth_sharing(writer.inline)):
        writer = _Writer(language, limits.depth, repeated)
        writer.element(document.root, 1)
    octets = head_octets(language, version, bytes(writer.table)) + writer.out
    if len(octets) > limits.size:
        raise TooLarge("the encoded document is too large", size=len(octets), limit=limits.size)
    return octets


def _worth_sharing(inline: list[bytes]) -> list[bytes]:
    """Return the strings that cost less in the table: n references of two or three octets and the
    string, against n times the string with its token and its zero."""
    return [
        text
        for text, times in Counter(inline).items()
        if times > 1 and times * (len(text) + 2) > len(text) + 1 + times * 3
    ]


def head_octets(language: Language, version: str = DEFAULT_VERSION, table: bytes = b"") -> bytes:
    """Encode what comes before the root element (WBXML 5.3), with a table of strings."""
    head = bytes((VERSIONS[version],)) + encode_uintvar(language.number) + _CHARSET
    return head + encode_uintvar(len(table)) + table


def attribute_octets(language: Language, name: str, value: str) -> bytes:
    """Encode an attribute with a token, in a language with one code page, where the octets depend
    on nothing else."""
    writer = _Writer(language, 0)
    writer.attribute(name, value)
    return bytes(writer.out)


class _Writer:
    """Encodes one document in one pass."""

    def __init__(self, language: Language, depth: int, shared: list[bytes] | None = None) -> None:
        self.out = bytearray()
        self.table = bytearray()
        self.inline: list[bytes] = []
        self._references: dict[bytes, bytes] = {}
        self._language = language
        self._depth = depth
        self._tag_page = 0
        self._attribute_page = 0
        self._shared = frozenset(shared or ())
        for text in shared or ():
            self._reference(text)

    def element(self, element: WbxmlElement, depth: int) -> None:
        """Write an element: its tag says whether attributes and content follow, each closed by END
        (WBXML 5.8.2)."""
        if depth > self._depth:
            raise TooLarge("elements are nested too deeply", limit=self._depth)
        out = self.out
        flags = (HAS_ATTRIBUTES if element.attributes else 0) | (
            HAS_CONTENT if element.children else 0
        )
        known = self._language.tag_octets.get(element.tag)
        if known is None:
            out.append(LITERAL | flags)
            out += self._name(element.tag)
        else:
            page, octet = known
            if page != self._tag_page:
                out += bytes((SWITCH_PAGE, page))
                self._tag_page = page
            out.append(octet | flags)
        if element.attributes:
            for name, value in element.attributes.items():
                self.attribute(name, value)
            out.append(END)
        if element.children:
            for child in element.children:
                if isinstance(child, str):
                    self._text(child)
                else:
                    self.element(child, depth + 1)
            out.append(END)

    def attribute(self, name: str, value: str) -> None:
        """Write an attribute: a start, which may hold the beginning of the value, then the rest
        (WBXML 5.8.3)."""
        language = self._language
        known = language.exact_starts.get((name, value))
        if known is not None:
            self._attribute_token(*known)
            return
        if name in language.dates:
            self._start(name, "")
            self._date(name, value)
            return
        rest = self._start(name, value)
        pieces = language.value_pieces
        if pieces is None or not pieces.search(rest):
            self._text(rest)
            return
        for at, piece in enumerate(pieces.split(rest)):
            if at % 2:
                self._attribute_token(*language.value_octets[piece])
            else:
                self._text(piece)

    def _start(self, name: str, value: str) -> str:
        """Write the longest start that matches; return the rest of the value, which is still to be
        written."""
        for prefix, page, octet in self._language.starts.get(name, ()):
            if value.startswith(prefix):
                self._attribute_token(page, octet)
                return value[len(prefix) :]
        self.out.append(LITERAL)
        self.out += self._name(name)
        return value

    def _date(self, name: str, value: str) -> None:
        try:
            packed = pack_date(value)
        except ValueError as error:
            raise Malformed("not a date", attribute=name, value=value, reason=str(error)) from None
        self.out += _OPAQUE + encode_uintvar(len(packed)) + packed

    def _attribute_token(self, page: int, octet: int) -> None:
        if page != self._attribute_page:
            self.out += bytes((SWITCH_PAGE, page))
            self._attribute_page = page
        self.out.append(octet)

    def _text(self, text: str) -> None:
        """Write text inline, or as a reference to the table; nothing at all if it is empty (WBXML
        5.8.4.1)."""
        if not text:
            return
        if (bad := NOT_XML.search(text)) is not None:
            raise Malformed("XML does not have this character", character=bad.group())
        octets = text.encode()
        if octets in self._shared:
            self.out.append(STR_T)
            self.out += self._reference(octets)
        else:
            self.inline.append(octets)
            self.out += b"\x03%b\0" % octets

    def _name(self, name: str) -> bytes:
        if NAME.fullmatch(name) is None:
            raise Malformed("not a name of an element or attribute", name=name)
        return self._reference(name.encode())

    def _reference(self, octets: bytes) -> bytes:
        """Return the offset of a string in the table, where it is added if need be (WBXML 5.7)."""
        reference = self._references.get(octets)
        if reference is None:
            reference = self._references[octets] = encode_uintvar(len(self.table))
            self.table += octets + b"\0"
        return reference
