"""Reads XML text as a document, and refuses everything that an attacker could use.

No entity can be declared, since no internal subset is accepted, and nothing is ever fetched. What
remains is bounded by the size of the text.
"""

from __future__ import annotations

import re
from xml.parsers import expat

from lasthop.errors import LasthopError, Malformed, TooLarge
from lasthop.wire.charsets import UTF_8, Charset, charset as charset_of, named
from lasthop.wire.wbxml.document import (
    DEFAULT_LIMITS,
    Node,
    WbxmlDocument,
    WbxmlElement,
    WbxmlLimits,
)
from lasthop.wire.wbxml.language import Language
from lasthop.wire.wbxml.languages import LANGUAGES, with_public_id

_MARKS = ((b"\xef\xbb\xbf", UTF_8), (b"\xfe\xff", 1013), (b"\xff\xfe", 1014))
"""Byte order marks, with the character sets that they are for (XML 1.0, appendix F)."""

_DECLARED = re.compile(rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']")

_UNDECLARED = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
    r"|(&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);)[^;<]{0,20})",
    re.DOTALL,
)
"""A reference to an entity that XML itself does not define. When a DOCTYPE names an external
subset, which is never read, expat silently drops such a reference in a value."""


def read_xml(
    data: bytes | str,
    *,
    language: Language | None = None,
    charset: Charset | None = None,
    limits: WbxmlLimits = DEFAULT_LIMITS,
) -> WbxmlDocument:
    """Return the document in an XML text; raise Malformed or TooLarge.

    `language` overrides what the document says of itself; otherwise the public identifier of its
    DOCTYPE decides, or else its root element. `charset` is that of the content type, which takes
    precedence (RFC 7303, section 3).
    """
    if len(data) > limits.size:
        raise TooLarge("the document is too large", size=len(data), limit=limits.size)
    text = data if isinstance(data, str) else _decoded(data, charset)
    builder = _Builder(limits)
    builder.parse(text)
    if "&" in text:
        _refuse_undeclared(text)
    found = language or _language(builder)
    return WbxmlDocument(found, builder.root(found.without_text))


def _decoded(data: bytes, charset: Charset | None) -> str:
    for mark, number in _MARKS:
        if data.startswith(mark):
            data = data[len(mark) :]
            charset = charset_of(number)
            break
    if charset is None and (declared := _DECLARED.match(data)) is not None:
        name = declared.group(1).decode()
        charset = named(name)
        if charset is None:
            raise Malformed("the character set is not known", charset=name)
    codec = charset or charset_of(UTF_8)
    assert codec is not None
    try:
        return codec.decode(data)
    except UnicodeDecodeError as error:
        raise Malformed(f"the text is not {codec.name}", offset=error.start) from None


def _refuse_undeclared(text: str) -> None:
    for found in _UNDECLARED.finditer(text):
        if found.group(1) is not None:
            line = text.count("\n", 0, found.start()) + 1
            raise Malformed("an entity that is not declared", entity=found.group(1)[1:], line=line)


def _language(builder: _Builder) -> Language:
    """Return the language by the public identifier or else by the root element: initiators write
    wrong public identifiers, or none; the root element is always right."""
    found = None
    if builder.public_id is not None:
        found = with_public_id(builder.public_id)
    found = found or LANGUAGES.get(builder.root_tag)
    if found is None:
        raise Malformed(
            "the document type is not known", root=builder.root_tag, public_id=builder.public_id
        )
    return found


class _Builder:
    """Builds a tree from what expat reports."""

    def __init__(self, limits: WbxmlLimits) -> None:
        self.public_id: str | None = None
        self._limits = limits
        self._elements_left = limits.elements
        self._top: list[Node] = []
        self._siblings = self._top
        self._open: list[tuple[str, dict[str, str], list[Node]]] = []
        self._parser = expat.ParserCreate()

    def parse(self, text: str) -> None:
        parser = self._parser
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.SkippedEntityHandler = self._skipped
        try:
            parser.Parse(text, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise Malformed(
                f"not well-formed: {reason}", line=error.lineno, column=error.offset + 1
            ) from None
        except UnicodeEncodeError:
            raise Malformed("the text has an unpaired surrogate") from None
        finally:
            # The handlers refer to the builder, and the builder to the parser: break the reference
            # cycle at once.
            parser.StartDoctypeDeclHandler = None
            parser.StartElementHandler = None
            parser.EndElementHandler = None
            parser.CharacterDataHandler = None
            parser.SkippedEntityHandler = None

    @property
    def root_tag(self) -> str:
        (root,) = self._top
        assert isinstance(root, WbxmlElement)
        return root.tag

    def root(self, without_text: frozenset[str]) -> WbxmlElement:
        """Return the root element, without the white space that only lays out the text."""
        (root,) = self._top
        assert isinstance(root, WbxmlElement)
        return _trimmed(root, without_text)

    def _doctype(self, name: str, system: str | None, public: str | None, inside: int) -> None:
        if inside:
            raise self._refused(Malformed, "a DOCTYPE with declarations is not accepted")
        if "<" in (system or "") or "<" in (public or ""):
            raise self._refused(Malformed, "not an identifier of a document type")
        self.public_id = public

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._elements_left -= 1
        if self._elements_left < 0:
            raise self._refused(TooLarge, "too many elements", limit=self._limits.elements)
        if len(self._open) >= self._limits.depth:
            raise self._refused(
                TooLarge, "elements are nested too deeply", limit=self._limits.depth
            )
        self._open.append((tag, attributes, self._siblings))
        self._siblings = []

    def _end(self, tag: str) -> None:
        children = tuple(self._siblings)
        tag, attributes, self._siblings = self._open.pop()
        self._siblings.append(WbxmlElement(tag, attributes, children))

    def _text(self, text: str) -> None:
        siblings = self._siblings
        if siblings and isinstance(siblings[-1], str):
            siblings[-1] += text  # A comment was between them, or the buffer was full.
        else:
            siblings.append(text)

    def _skipped(self, name: str, is_parameter: bool) -> None:
        raise self._refused(Malformed, "an entity that is not declared", entity=name)

    def _refused(self, kind: type[LasthopError], detail: str, **fields: object) -> LasthopError:
        return kind(detail, **fields, line=self._parser.CurrentLineNumber)


def _trimmed(element: WbxmlElement, without_text: frozenset[str]) -> WbxmlElement:
    if not element.children:
        return element
    children = tuple(
        _trimmed(child, without_text) if isinstance(child, WbxmlElement) else child
        for child in element.children
        if isinstance(child, WbxmlElement)
        or element.tag not in without_text
        or child.strip(" \t\r\n")
    )
    return WbxmlElement(element.tag, element.attributes, children)
