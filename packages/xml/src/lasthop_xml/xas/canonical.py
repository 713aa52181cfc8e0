"""The canonical form, which is the same for all sequences that mean the same: signatures of
fragments are made over it.

This is Canonical XML 2.0 with sequential prefixes (n0, n1, ... in the order in which names need
them) and xsi:type as a QName: XAS does not keep which prefix a name had, so a form that depends on
prefixes would not survive it. Values are in their lexical form, neighbouring texts are one.
"""

from __future__ import annotations

from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    COMMENT,
    CONTENT,
    ELEMENT_END,
    ELEMENT_START,
    PREFIX_MAPPING,
    PROCESSING_INSTRUCTION,
    TYPED_CONTENT,
    Event,
)
from lasthop_xml.xas.names import XML_NS, XSI_TYPE, Name
from lasthop_xml.xas.scope import Scope, outermost
from lasthop_xml.xas.sequence import EventSequence
from lasthop_xml.xas.types.table import lexical
from lasthop_xml.xas.xmlserialize import escape_text, escape_value


def canonical(events: EventSequence, *, comments: bool = False) -> bytes:
    """Return the canonical form of a document, or of a fragment that declares all its prefixes."""
    form = _Canonical(comments=comments)
    for event in events:
        form.append(event)
    return form.finish()


class _Canonical:
    def __init__(self, *, comments: bool) -> None:
        self._comments = comments
        self._out: list[str] = []
        self._scope = outermost()
        self._mappings: list[Name] = []
        self._start: Name | None = None
        self._attributes: list[tuple[Name, str]] = []
        # Open elements: the tag, the scope around it, and the namespaces declared on it.
        self._open: list[tuple[str, Scope, list[str]]] = []
        self._prefixes: dict[str, str] = {XML_NS: "xml"}
        self._declared: dict[str, int] = {XML_NS: 1, "": 1}
        self._seen_root = False

    def append(self, event: Event) -> None:
        kind, name, value = event
        if kind is ATTRIBUTE and name is not None:
            if self._start is None:
                raise MalformedEvents("an attribute is outside of a start tag", name=str(name))
            self._attributes.append((name, value))
            return
        self._finish_tag()
        if kind is ELEMENT_START:
            self._start = name
        elif kind is ELEMENT_END:
            if not self._open:
                raise MalformedEvents("an element ends that is not open", name=str(name))
            tag, self._scope, declared = self._open.pop()
            for ns in declared:
                self._declared[ns] -= 1
            self._out.append(f"</{tag}>")
            self._seen_root = self._seen_root or not self._open
        elif kind is PREFIX_MAPPING and name is not None:
            self._mappings.append(name)
        elif kind is CONTENT:
            self._out.append(escape_text(value))
        elif kind is TYPED_CONTENT:
            self._out.append(escape_text(lexical(name, value)))
        elif kind is PROCESSING_INSTRUCTION:
            self._outside(f"<?{value}?>")
        elif kind is COMMENT and self._comments:
            self._outside(f"<!--{value}-->")

    def finish(self) -> bytes:
        self._finish_tag()
        if self._open:
            raise MalformedEvents("the events end inside an element")
        return "".join(self._out).encode()

    def _outside(self, markup: str) -> None:
        """Write a comment or a processing instruction, on a line of its own if it is outside of the
        root element."""
        if self._open:
            self._out.append(markup)
        else:
            self._out.append(f"\n{markup}" if self._seen_root else f"{markup}\n")

    def _finish_tag(self) -> None:
        if self._start is None:
            return
        outer = self._scope
        if self._mappings:
            self._scope = outer.declare(self._mappings)
            self._mappings = []
        types = {
            name: type_
            for name, value in self._attributes
            if name == XSI_TYPE and (type_ := self._scope.resolve(value)) is not None
        }
        names = [self._start, *(name for name, _ in self._attributes), *types.values()]
        declared = self._declare({name.ns for name in names})
        tag = self._qualified(self._start)
        self._out.append(f"<{tag}")
        mappings = sorted((self._prefixes[ns], ns) for ns in declared)
        self._out += [f' xmlns:{to}="{escape_value(ns)}"' for to, ns in mappings]
        for name, value in sorted(self._attributes):
            text = self._qualified(types[name]) if name in types else value
            self._out.append(f' {self._qualified(name)}="{escape_value(text)}"')
        self._out.append(">")
        self._open.append((tag, outer, declared))
        self._start, self._attributes = None, []

    def _declare(self, used: set[str]) -> list[str]:
        """Return the namespaces that an element must declare, in alphabetical order, and number the
        new ones."""
        declared = sorted(ns for ns in used if not self._declared.get(ns))
        for ns in declared:
            self._prefixes.setdefault(ns, f"n{len(self._prefixes) - 1}")
            self._declared[ns] = 1
        return declared

    def _qualified(self, name: Name) -> str:
        return f"{self._prefixes[name.ns]}:{name.local}" if name.ns else name.local
