"""Events to XML: a sink that declares namespaces and refuses everything that XML cannot contain.

Prefixes come from PREFIX_MAPPING events. A name whose namespace has no prefix in scope gets one
declared on its element, so that any sequence of well-formed elements can be written.
"""

from __future__ import annotations

import re

from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    COMMENT,
    CONTENT,
    DOCUMENT_END_KIND,
    DOCUMENT_START_KIND,
    ELEMENT_END,
    ELEMENT_START,
    ENTITY_REFERENCE,
    PREFIX_MAPPING,
    PROCESSING_INSTRUCTION,
    TYPED_CONTENT,
    Event,
)
from lasthop_xml.xas.names import (
    ILLEGAL,
    XML_NS,
    XMLNS_NS,
    Name,
    check_name,
    check_text,
    is_ncname,
)
from lasthop_xml.xas.scope import Scope, outermost
from lasthop_xml.xas.sequence import EventSequence
from lasthop_xml.xas.types.table import lexical

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'

_IN_TEXT = re.compile(f"[&<>\r{ILLEGAL}]")
_IN_VALUE = re.compile(f'[&<"\t\n\r{ILLEGAL}]')
_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "\t": "&#x9;",
    "\n": "&#xA;",
    "\r": "&#xD;",
}


def _escape(found: re.Match[str]) -> str:
    try:
        return _ESCAPES[found.group()]
    except KeyError:
        raise MalformedEvents(
            "a text has a character that XML does not allow", char=found.group()
        ) from None


def escape_text(text: str) -> str:
    """Return text escaped for the content of an element."""
    return _IN_TEXT.sub(_escape, text)


def escape_value(text: str) -> str:
    """Return text escaped for an attribute value in double quotation marks."""
    return _IN_VALUE.sub(_escape, text)


class XmlSerializer:
    """A sink that writes one document, or one fragment if the document events are left out."""

    def __init__(self, *, declaration: bool = False) -> None:
        self._parts: list[str] = [DECLARATION] if declaration else []
        self._scope: Scope = outermost()
        # Open elements: the name, the end tag and the scope around each.
        self._open: list[tuple[Name, str, Scope]] = []
        self._mappings: list[Name] = []
        self._in_tag = False
        # Of the open tag: its last attribute, and all earlier ones if there are several.
        self._last: Name | None = None
        self._attributes: set[Name] = set()
        self._generated = 0
        self._roots = 0

    def append(self, event: Event) -> None:
        """Write one event to the document."""
        self.write((event,))

    def write(self, events: EventSequence) -> None:
        """Write events to the document. After an error the serializer cannot be used any more."""
        add = self._parts.append
        stack = self._open
        scope = self._scope
        in_tag = self._in_tag
        for kind, name, value in events:
            if kind is ATTRIBUTE:
                key = scope.attributes.get(name)  # type: ignore[arg-type]
                # A name that was written in this scope before needs no checks, unless it may be
                # repeated.
                if key is None or self._last is not None or not in_tag:
                    self._in_tag = in_tag
                    key = self._attribute(name)
                    scope = self._scope
                self._last = name
                add(key)
                add(_IN_VALUE.sub(_escape, value))
                add('"')
            elif kind is ELEMENT_START:
                if in_tag:
                    add(">")
                tags = scope.elements.get(name)  # type: ignore[arg-type]
                if tags is None or self._mappings:
                    self._start(name)
                    scope = self._scope
                else:
                    add(tags[0])
                    stack.append((name, tags[1], scope))  # type: ignore[arg-type]
                    self._last = None
                    if self._attributes:
                        self._attributes = set()
                in_tag = True
            elif kind is ELEMENT_END:
                if not stack or self._mappings:
                    raise MalformedEvents("an element ends that is not open", name=str(name))
                opened, tag, self._scope = stack.pop()
                if opened is not name and opened != name:
                    raise MalformedEvents("an element ends that is not open", name=str(name))
                scope = self._scope
                add("/>" if in_tag else tag)
                in_tag = False
                if not stack:
                    self._roots += 1
            else:
                if in_tag:
                    add(">")
                    in_tag = False
                if kind is TYPED_CONTENT and stack:
                    add(_IN_TEXT.sub(_escape, lexical(name, value)))
                elif kind is CONTENT and stack:
                    add(_IN_TEXT.sub(_escape, value))
                elif kind is PREFIX_MAPPING and name is not None:
                    self._mappings.append(name)
                else:
                    self._other(kind, value)
        self._in_tag = in_tag

    def text(self) -> str:
        """Return the document as text; raise MalformedEvents if an element is still open."""
        if self._open or self._mappings:
            raise MalformedEvents("the events end inside an element")
        return "".join(self._parts)

    def finish(self) -> bytes:
        """Return the document in UTF-8; raise MalformedEvents if an element is still open."""
        return self.text().encode()

    def _start(self, name: Name | None) -> None:
        if name is None:
            raise MalformedEvents("an element has no name")
        outer = self._scope
        declared = self._mappings
        if declared:
            self._check_mappings(declared)
            self._scope = outer.declare(declared)
        opening, closing = self._scope.elements.get(name) or self._tags(name, declared)
        add = self._parts.append
        add(opening)
        if declared:
            for ns, prefix in declared:
                add(f' xmlns{":" if prefix else ""}{prefix}="{escape_value(ns)}"')
            self._mappings = []
        self._open.append((name, closing, outer))
        self._last = None
        self._attributes = set()

    def _tags(self, name: Name, declared: list[Name]) -> tuple[str, str]:
        """Return the start tag (still open) and the end tag of an element, declaring a prefix if
        its namespace has none."""
        prefix = self._scope.prefix_for(check_name(name).ns)
        if prefix is None:
            # A name without a namespace cannot have a prefix: it needs the default namespace
            # undeclared (Namespaces in XML 1.0, section 6.2).
            prefix = self._generate() if name.ns else ""
            if any(taken == prefix for _, taken in declared):
                raise MalformedEvents(
                    "an element without a namespace cannot declare a default namespace"
                )
            declared.append(Name(name.ns, prefix))
            self._scope = self._scope.declare(declared[-1:])
        tag = f"{prefix}:{name.local}" if prefix else name.local
        tags = self._scope.elements[name] = f"<{tag}", f"</{tag}>"
        return tags

    def _attribute(self, name: Name | None) -> str:
        """Return the attribute's name with the characters before its value; raise MalformedEvents
        if the attribute stands outside a tag or is repeated."""
        if self._last is not None:
            self._attributes.add(self._last)
        if not self._in_tag or name is None or name in self._attributes:
            raise MalformedEvents(
                "an attribute is outside of a start tag, or repeated", name=str(name)
            )
        return self._scope.attributes.get(name) or self._attribute_name(name)

    def _attribute_name(self, name: Name) -> str:
        check_name(name)
        if not name.ns and name.local == "xmlns":
            raise MalformedEvents("a prefix mapping is not an attribute")
        # The default namespace does not apply to attributes (Namespaces in XML 1.0, section 6.2).
        prefix = self._scope.prefix_for(name.ns, default=False) if name.ns else ""
        if prefix is None:
            prefix = self._generate()
            self._scope = self._scope.declare((Name(name.ns, prefix),))
            self._parts.append(f' xmlns:{prefix}="{escape_value(name.ns)}"')
        key = f' {prefix}:{name.local}="' if prefix else f' {name.local}="'
        self._scope.attributes[name] = key
        return key

    def _generate(self) -> str:
        while (prefix := f"ns{self._generated}") in self._scope.prefixes:
            self._generated += 1
        return prefix

    def _check_mappings(self, mappings: list[Name]) -> None:
        # Namespaces in XML 1.0, section 3 (reserved prefixes) and section 5 (no prefix undeclared).
        seen = set()
        for ns, prefix in mappings:
            if (
                prefix in seen
                or (prefix and (not ns or not is_ncname(prefix) or prefix == "xmlns"))
                or (prefix == "xml") != (ns == XML_NS)
                or ns == XMLNS_NS
            ):
                raise MalformedEvents("this prefix mapping is not allowed", prefix=prefix, ns=ns)
            seen.add(prefix)

    def _other(self, kind: int, value: str) -> None:
        if self._mappings and kind is not DOCUMENT_START_KIND:
            raise MalformedEvents("a prefix mapping is not followed by an element")
        if kind is COMMENT:
            # XML 1.0, section 2.5: no "--" in a comment.
            if "--" in value or value.endswith("-"):
                raise MalformedEvents("a comment has two hyphens in a row")
            self._literally(f"<!--{check_text(value)}-->")
        elif kind is PROCESSING_INSTRUCTION:
            target, _, data = value.partition(" ")
            # XML 1.0, section 2.6: "xml" in any case is reserved as a target.
            if not is_ncname(target) or target.lower() == "xml" or "?>" in data:
                raise MalformedEvents(
                    "this processing instruction cannot be written", target=target
                )
            self._literally(f"<?{check_text(value)}?>")
        elif kind is ENTITY_REFERENCE and self._open:
            if not is_ncname(value):
                raise MalformedEvents("this is not a valid name of an entity", name=value[:80])
            self._parts.append(f"&{value};")
        elif kind is not DOCUMENT_START_KIND and kind is not DOCUMENT_END_KIND:
            raise MalformedEvents("content stands outside of all elements")
        elif self._open or self._roots != (kind is DOCUMENT_END_KIND):
            raise MalformedEvents("a document must have exactly one root element")

    def _literally(self, markup: str) -> None:
        # A parser turns a carriage return into a line feed (XML 1.0, section 2.11), and comments
        # and processing instructions cannot escape it.
        if "\r" in markup:
            raise MalformedEvents("a carriage return cannot be written here")
        self._parts.append(markup)


def serialize_xml(events: EventSequence, *, declaration: bool = False) -> bytes:
    """Return a document or a fragment as XML in UTF-8."""
    serializer = XmlSerializer(declaration=declaration)
    serializer.write(events)
    return serializer.finish()
