"""XML messages: a body of elements, SOAP header blocks, and addressing. They are made from XML, or
from names and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from lasthop.errors import InvalidRequest
from lasthop.wire.xml_errors import xml_refusals
from lasthop_xml.soap.addressing import Addressing
from lasthop_xml.soap.envelope import HeaderBlock
from lasthop_xml.xas.events import CONTENT, DOCUMENT_END, DOCUMENT_START, TYPED_CONTENT
from lasthop_xml.xas.names import XSD_NS, XSI_TYPE, Name, is_ncname
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.tree import Element, Tree
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.types.table import PRIMITIVES
from lasthop_xml.xas.writer import TYPED_PREFIXES, Writer
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml

Value: TypeAlias = str | bool | int | float | Decimal | datetime | date | bytes
"""A value of a name in an XML message."""

Pairs: TypeAlias = Mapping[str, "Value | Sequence[Value]"]
"""Names with dots for their levels (`order.goods`), and their values; several values of one name
are in a list."""

MESSAGE = Name("", "message")
"""The name of the element around names and values, unless another name is given."""

MAX_LEVELS = 32
"""The largest number of levels in a name: `a.b.c` has three. Each level is a nested element."""

_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),  # Before int, of which bool is a subclass.
    (int, "integer"),
    (float, "double"),
    (Decimal, "decimal"),
    (datetime, "dateTime"),
    (date, "date"),
    (bytes, "base64Binary"),
)


@dataclass(frozen=True, slots=True)
class XmlMessage:
    """An XML message: the elements of a SOAP body, its header blocks, and its addressing."""

    body: EventList
    """The events of the body's elements, with all namespaces that they need."""
    headers: tuple[HeaderBlock, ...] = ()
    """The SOAP header blocks, except those of addressing."""
    addressing: Addressing | None = None
    _tree: list[Tree] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    @xml_refusals()
    def from_xml(cls, text: str | bytes, *, action: str = "", to: str = "") -> XmlMessage:
        """Return a message whose body is this document; `action` and `to` add addressing headers.
        Raises Rejected if the text is not XML."""
        data = text.encode() if isinstance(text, str) else text
        root = Tree(EventList(typed_sequence(parse_xml(data)))).root
        return cls(root.fragment(), addressing=_addressing(action, to))

    @classmethod
    @xml_refusals()
    def from_pairs(
        cls, pairs: Pairs, *, name: Name = MESSAGE, action: str = "", to: str = ""
    ) -> XmlMessage:
        """Return a message of names and values below an element `name`; `action` and `to` add
        addressing headers. Raises InvalidRequest if a name or a value has no form in XML."""
        levels: dict[str, Any] = {}
        for path, value in pairs.items():
            _enter(levels, path, value)
        events = EventList()
        writer = Writer(events)
        prefixes = {**TYPED_PREFIXES, **({"m": name.ns} if name.ns else {})}
        with writer.element(name, prefixes=prefixes):
            _write(writer, name.ns, levels)
        return cls(events, addressing=_addressing(action, to))

    def pairs(self) -> dict[str, Value | list[Value]]:
        """Return the names and values of the body, as `from_pairs` takes them. Values have the
        types that the message declares; all others are text."""
        found: dict[str, Value | list[Value]] = {}
        for child in self.root:
            _read(child, child.name.local, found)
        return found

    @property
    def root(self) -> Element:
        """The first element of the body. Raises InvalidRequest if the body is empty."""
        if not self._tree:
            self._tree.append(Tree(self.body))
        roots = self._tree[0].roots
        if not roots:
            raise InvalidRequest("the message has an empty body")
        return roots[0]

    def xml(self) -> str:
        """Return the first element of the body as XML text."""
        return serialize_xml([DOCUMENT_START, *self.root.fragment(), DOCUMENT_END]).decode()

    def answer(self, body: XmlMessage, *, action: str = "") -> XmlMessage:
        """Return `body` as the answer to this message. The answer has addressing headers if this
        message has addressing headers and an id."""
        addressing = self.addressing
        if addressing is None or not addressing.message_id:
            return body
        said = body.addressing.action if body.addressing is not None else ""
        way = addressing.answer(action or said or f"{addressing.action}Response")
        return replace(body, addressing=way, _tree=[])


def _addressing(action: str, to: str) -> Addressing | None:
    if not action:
        if to:
            raise InvalidRequest("a message with an address needs an action")
        return None
    return Addressing(action=action, to=to) if to else Addressing(action=action)


def _enter(levels: dict[str, Any], path: str, value: Value | Sequence[Value]) -> None:
    *above, last = path.split(".")
    if len(above) >= MAX_LEVELS:
        raise InvalidRequest("a name has too many levels", name=path[:80], most=MAX_LEVELS)
    for part in (*above, last):
        if not is_ncname(part):
            raise InvalidRequest("this cannot be the name of an element", name=path[:80])
    for part in above:
        levels = levels.setdefault(part, {})
        if not isinstance(levels, dict):
            raise InvalidRequest("a name cannot stand for both a value and a level", name=path[:80])
    if last in levels:
        raise InvalidRequest("a name cannot stand for both a value and a level", name=path[:80])
    levels[last] = value


def _write(writer: Writer, ns: str, levels: dict[str, Any]) -> None:
    for part, value in levels.items():
        name = Name(ns, part)
        if isinstance(value, dict):
            with writer.element(name):
                _write(writer, ns, value)
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
            for one in value:
                _write_value(writer, name, one)
        else:
            _write_value(writer, name, value)


def _write_value(writer: Writer, name: Name, value: Value) -> None:
    if isinstance(value, str):
        writer.text_element(name, value)
        return
    for kind, type_ in _TYPES:
        if isinstance(value, kind):
            writer.typed_element(name, Name(XSD_NS, type_), value)
            return
    raise InvalidRequest("a value of this type has no form in XML", type=type(value).__name__)


def _read(element: Element, path: str, found: dict[str, Value | list[Value]]) -> None:
    children = list(element)
    if children:
        for child in children:
            _read(child, f"{path}.{child.name.local}", found)
        return
    value = _value(element)
    known = found.get(path)
    if known is None:
        found[path] = value
    elif isinstance(known, list):
        known.append(value)
    else:
        found[path] = [known, value]


def _value(element: Element) -> Value:
    texts: list[str] = []
    for event in element.tree.events[element.start : element.end]:
        if event.kind is TYPED_CONTENT:
            value: Value = event.value
            return value
        if event.kind is CONTENT:
            texts.append(event.value)
    return "".join(texts) or _empty(element)


def _empty(element: Element) -> Value:
    """Return the value of an empty element: some declared types have one, otherwise it is empty
    text."""
    declared = element.attributes.get(XSI_TYPE)
    resolved = None if declared is None else element.scope.resolve(declared)
    primitive = None if resolved is None else PRIMITIVES.get(resolved)
    value: Value | None = None if primitive is None else primitive.exactly("")
    return "" if value is None else value
