"""Decodes WBXML: octets become a document.

Reads versions 1.0 to 1.3 in every character set that Python knows. Anything that has no meaning in
the document's language (unknown tokens, extensions, opaque data) is refused with its offset, since
guessing would show a person something that was never sent.
"""

from __future__ import annotations

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.charsets import UTF_8, Charset, charset as charset_of
from lasthop.wire.uintvar import read_uintvar
from lasthop.wire.wbxml.dates import unpack_date
from lasthop.wire.wbxml.document import (
    DEFAULT_LIMITS,
    NAME,
    NOT_XML,
    Node,
    WbxmlDocument,
    WbxmlElement,
    WbxmlLimits,
)
from lasthop.wire.wbxml.language import Language
from lasthop.wire.wbxml.languages import BY_NUMBER, with_public_id
from lasthop.wire.wbxml.tokens import (
    END,
    ENTITY,
    EXT_0,
    EXT_2,
    EXT_I_0,
    EXT_I_2,
    EXT_T_0,
    EXT_T_2,
    FIRST_VALUE,
    HAS_ATTRIBUTES,
    HAS_CONTENT,
    LITERAL,
    LITERAL_A,
    LITERAL_AC,
    LITERAL_C,
    OPAQUE,
    PI,
    PUBLIC_ID_IN_TABLE,
    PUBLIC_ID_UNKNOWN,
    STR_I,
    STR_T,
    SWITCH_PAGE,
    TAG_MASK,
)

LAST_VERSION = 0x03

_EXTENSIONS = frozenset(
    (
        *range(EXT_I_0, EXT_I_2 + 1),
        *range(EXT_T_0, EXT_T_2 + 1),
        *range(EXT_0, EXT_2 + 1),
    )
)
_STRINGS = frozenset((STR_I, STR_T, ENTITY))
_LITERALS = frozenset((LITERAL, LITERAL_A, LITERAL_C, LITERAL_AC))


def decode(
    data: bytes,
    *,
    language: Language | None = None,
    charset: Charset | None = None,
    limits: WbxmlLimits = DEFAULT_LIMITS,
) -> WbxmlDocument:
    """Decode the document in `data`, which must hold nothing else; raise Malformed or TooLarge.

    `language` overrides what the document says of itself; `charset` is used when it says nothing
    (from the content type, for example).
    """
    if len(data) > limits.size:
        raise TooLarge("the document is too large", size=len(data), limit=limits.size)
    return _Reader(data, limits).document(language, charset)


class _OpenElement:
    """An element whose end has not been read yet."""

    __slots__ = ("attributes", "children", "tag", "texts")

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Node] = []
        self.texts: list[str] = []

    def close_text(self) -> None:
        """Join the text so far into one child, because something else follows."""
        if text := "".join(self.texts):
            self.children.append(text)
        self.texts.clear()

    def element(self) -> WbxmlElement:
        self.close_text()
        return WbxmlElement(self.tag, self.attributes, tuple(self.children))


class _Reader:
    """Decodes one document in one pass."""

    def __init__(self, data: bytes, limits: WbxmlLimits) -> None:
        self._data = data
        self._limits = limits
        self._pos = 0
        self._text_left = limits.text
        self._elements_left = limits.elements
        self._tag_page = 0
        self._attribute_page = 0
        self._table = b""
        self._table_start = 0
        self._version = 0
        self._charset: Charset
        self._language: Language

    def document(self, language: Language | None, charset: Charset | None) -> WbxmlDocument:
        """Decode version, public identifier, character set, string table and body (WBXML 5.3)."""
        self._version = self._octet("the version")
        if self._version > LAST_VERSION:
            major, minor = (self._version >> 4) + 1, self._version & 0x0F
            raise Malformed(f"WBXML {major}.{minor} is not known", offset=0)
        number = self._number()
        named_at = self._number() if number == PUBLIC_ID_IN_TABLE else None
        self._charset = self._read_charset(charset)
        length = self._number()
        self._table_start = self._pos
        self._table = self._take(length, "the string table")
        self._language = language or self._find_language(number, named_at)
        return WbxmlDocument(self._language, self._body())

    def _read_charset(self, otherwise: Charset | None) -> Charset:
        """Read the character set (WBXML 5.6). Version 1.0 has no such field; 0 is "unknown"."""
        at = self._pos
        number = self._number() if self._version else 0
        found = (otherwise or charset_of(UTF_8)) if number == 0 else charset_of(number)
        if found is None:
            raise Malformed(f"character set {number} is not known", offset=at)
        return found

    def _find_language(self, number: int, named_at: int | None) -> Language:
        """Return the language by its number, or by a name in the string table (WBXML 5.5)."""
        if named_at is not None:
            name = self._table_string(named_at, 1)
            found, shown = with_public_id(name), repr(name)
        elif number == PUBLIC_ID_UNKNOWN:
            raise Malformed("the document does not say what type it has", offset=1)
        else:
            found, shown = BY_NUMBER.get(number), f"{number:#04x}"
        if found is None:
            raise Malformed(f"document type {shown} is not known", offset=1)
        return found

    def _body(self) -> WbxmlElement:
        """Read processing instructions, one element, processing instructions (WBXML 5.3)."""
        root: WbxmlElement | None = None
        while self._pos < len(self._data):
            at = self._pos
            token = self._octet("a token")
            if token == SWITCH_PAGE:
                self._tag_page = self._octet("a code page")
            elif token == PI:
                self._skip_instruction()
            elif root is not None:
                raise Malformed("there are octets behind the end of the document", offset=at)
            else:
                root = self._element(token, at)
        if root is None:
            raise Malformed("the document has no element", offset=self._pos)
        return root

    def _element(self, token: int, at: int) -> WbxmlElement:
        """Read the element whose tag is `token`, with all that is in it.

        A loop with a stack of its own: a deep document must not exhaust Python's call stack.
        """
        stack: list[_OpenElement] = []
        while True:
            if len(stack) >= self._limits.depth:
                raise TooLarge(
                    "elements are nested too deeply", limit=self._limits.depth, offset=at
                )
            opened = self._open(token, at)
            if token & HAS_CONTENT:
                stack.append(opened)
            elif stack:
                stack[-1].children.append(opened.element())
            else:
                return opened.element()
            while (tag := self._content(stack[-1])) is None:
                closed = stack.pop().element()
                if not stack:
                    return closed
                stack[-1].children.append(closed)
            token, at = tag

    def _open(self, token: int, at: int) -> _OpenElement:
        self._elements_left -= 1
        if self._elements_left < 0:
            raise TooLarge("too many elements", limit=self._limits.elements, offset=at)
        if token in _LITERALS:
            name = self._literal(at)
        else:
            found = self._language.tags.get(self._tag_page, {}).get(token & TAG_MASK)
            if found is None:
                raise self._unknown("tag", token & TAG_MASK, self._tag_page, at)
            name = found
        return _OpenElement(name, self._attributes() if token & HAS_ATTRIBUTES else {})

    def _content(self, parent: _OpenElement) -> tuple[int, int] | None:
        """Read up to the next tag and return it with its offset; None at the parent's end."""
        while True:
            at = self._pos
            token = self._octet("the end of an element")
            if token == END:
                return None
            if token in _STRINGS:
                parent.texts.append(self._string(token, at))
            elif token == SWITCH_PAGE:
                self._tag_page = self._octet("a code page")
            elif token == PI:
                self._skip_instruction()
            elif token == OPAQUE or token in _EXTENSIONS:
                raise self._meaningless(token, at)
            else:
                parent.close_text()
                return token, at

    def _attributes(self) -> dict[str, str]:
        """Read attribute starts and values up to END; a value belongs to the last start (WBXML
        5.8.3)."""
        attributes: dict[str, str] = {}
        name: str | None = None
        parts: list[str] = []
        while True:
            at = self._pos
            token = self._octet("the end of the attributes")
            if token == SWITCH_PAGE:
                self._attribute_page = self._octet("a code page")
            elif token == END:
                if name is None:
                    raise Malformed("a list of attributes is empty", offset=at)
                attributes[name] = "".join(parts)
                return attributes
            elif token in _STRINGS or token >= FIRST_VALUE:
                if name is None:
                    raise Malformed("a value comes before its attribute", offset=at)
                parts.append(self._value(token, name, at))
            else:
                if name is not None:
                    attributes[name] = "".join(parts)
                name, prefix = self._attribute_start(token, at)
                if name in attributes:
                    raise Malformed(f"an element has the attribute {name} twice", offset=at)
                parts = [prefix]

    def _attribute_start(self, token: int, at: int) -> tuple[str, str]:
        if token == LITERAL:
            return self._literal(at), ""
        if token in _EXTENSIONS or token in (PI, LITERAL_C):
            raise self._meaningless(token, at)
        start = self._language.attribute_starts.get(self._attribute_page, {}).get(token)
        if start is None:
            raise self._unknown("attribute", token, self._attribute_page, at)
        name, _, prefix = start.partition("=")
        self._spend(len(prefix), at)
        return name, prefix

    def _value(self, token: int, name: str, at: int) -> str:
        if token in _STRINGS:
            return self._string(token, at)
        if token == OPAQUE and self._version and name in self._language.dates:
            return self._date(at)
        if token == OPAQUE or token in _EXTENSIONS or token in _LITERALS:
            raise self._meaningless(token, at)
        piece = self._language.attribute_values.get(self._attribute_page, {}).get(token)
        if piece is None:
            raise self._unknown("attribute value", token, self._attribute_page, at)
        self._spend(len(piece), at)
        return piece

    def _date(self, at: int) -> str:
        octets = self._take(self._number(), "a date")
        try:
            text = unpack_date(octets)
        except ValueError as error:
            raise Malformed(f"not a date: {error}", offset=at) from None
        self._spend(len(text), at)
        return text

    def _string(self, token: int, at: int) -> str:
        """Read a string: inline, in the string table, or one character by number (WBXML 5.8.4.1 and
        5.8.4.3)."""
        if token == STR_T:
            return self._table_string(self._number(), at)
        if token == ENTITY:
            number = self._number()
            if number > 0x10FFFF or NOT_XML.match(chr(number)):
                raise Malformed(f"character {number:#x} cannot be in a document", offset=at)
            self._spend(1, at)
            return chr(number)
        end = self._charset.end_of_string(self._data, self._pos)
        if end < 0:
            raise Malformed("the document ends inside a string", offset=at)
        text = self._text(self._data[self._pos : end], at)
        self._pos = end + self._charset.width
        return text

    def _literal(self, at: int) -> str:
        name = self._table_string(self._number(), at)
        if NAME.fullmatch(name) is None:
            raise Malformed(f"{name!r} is not a name", offset=at)
        return name

    def _table_string(self, start: int, at: int) -> str:
        if start >= len(self._table):
            raise Malformed(f"the string table has no octet {start}", offset=at)
        end = self._charset.end_of_string(self._table, start)
        if end < 0:
            raise Malformed("the string table ends inside a string", offset=at)
        return self._text(self._table[start:end], at)

    def _text(self, octets: bytes, at: int) -> str:
        self._spend(len(octets), at)
        try:
            text = self._charset.decode(octets)
        except UnicodeDecodeError:
            raise Malformed(f"the text is not {self._charset.name}", offset=at) from None
        if (bad := NOT_XML.search(text)) is not None:
            raise Malformed(f"character {ord(bad.group()):#x} cannot be in a document", offset=at)
        return text

    def _skip_instruction(self) -> None:
        """Skip a processing instruction (WBXML 5.8.4.4), since none of our languages gives one a
        meaning."""
        self._attributes()

    def _octet(self, what: str) -> int:
        try:
            octet = self._data[self._pos]
        except IndexError:
            raise Malformed(f"the document ends before {what}", offset=self._pos) from None
        self._pos += 1
        return octet

    def _number(self) -> int:
        value, self._pos = read_uintvar(self._data, self._pos)
        return value

    def _take(self, length: int, what: str) -> bytes:
        start = self._pos
        if length > len(self._data) - start:
            raise Malformed(f"the document ends inside {what}", offset=start)
        self._pos += length
        return self._data[start : self._pos]

    def _spend(self, length: int, at: int) -> None:
        self._text_left -= length
        if self._text_left < 0:
            raise TooLarge("the text is too long", limit=self._limits.text, offset=at)

    def _unknown(self, what: str, token: int, page: int, at: int) -> Malformed:
        on = f" on code page {page}" if page else ""
        return Malformed(f"{self._language.name} has no {what} {token:#04x}{on}", offset=at)

    def _meaningless(self, token: int, at: int) -> Malformed:
        return Malformed(f"token {token:#04x} means nothing here", offset=at)
