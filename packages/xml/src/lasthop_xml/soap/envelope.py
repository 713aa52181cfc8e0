"""SOAP messages (part 1, section 5): an envelope with header blocks and a body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lasthop_xml.soap.fault import FaultCode, MalformedSoap, SoapFault
from lasthop_xml.soap.names import (
    BODY,
    ENVELOPE,
    HEADER,
    MUST_UNDERSTAND,
    RELAY,
    ROLE,
    SOAP_11_NS,
    SOAP_NS,
    ULTIMATE,
)
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    ELEMENT_END,
    ELEMENT_START,
    ENTITY_REFERENCE,
    PREFIX_MAPPING,
    PROCESSING_INSTRUCTION,
    Event,
    attribute,
    content,
)
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.tree import Element, Tree
from lasthop_xml.xas.writer import TYPED_PREFIXES, Writer

MAX_BLOCKS = 64
"""The largest number of header blocks of a message, since every node on its path looks at each."""

_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_PREFIXES = {"env": SOAP_NS, **TYPED_PREFIXES}
_DECLARED = {Name(ns, to) for to, ns in _PREFIXES.items()}
_OURS = (ROLE, MUST_UNDERSTAND, RELAY)


@dataclass(frozen=True, slots=True)
class HeaderBlock:
    """One header block: an element, the role that it is for, and how a node must treat it."""

    element: EventList
    """The block's element, without the attributes that the other fields of this class stand for."""
    role: str = ULTIMATE
    must_understand: bool = False
    relay: bool = False
    """Whether an intermediary that does not know the block passes it on."""

    @property
    def name(self) -> Name:
        """Return the name of the block's element."""
        return next(event.name for event in self.element if event.kind is ELEMENT_START) or Name(
            "", ""
        )

    @property
    def text(self) -> str:
        """Return all text inside the block's element."""
        return Tree(self.element).root.text

    @property
    def root(self) -> Element:
        """Return the block's element as the root of a tree."""
        return Tree(self.element).root


@dataclass(slots=True)
class Envelope:
    """A SOAP message: its header blocks in order, and the content of its body."""

    body: EventList = field(default_factory=EventList)
    """The elements of the body, each with the prefix declarations that it needs."""
    headers: list[HeaderBlock] = field(default_factory=list)

    def header(self, name: Name) -> HeaderBlock | None:
        """Return the first header block of this name, or None."""
        return next((block for block in self.headers if block.name == name), None)


def block(
    name: Name,
    text: str = "",
    *,
    role: str = ULTIMATE,
    must_understand: bool = False,
    relay: bool = False,
    attributes: Mapping[Name, str] | None = None,
) -> HeaderBlock:
    """Return a header block that contains only text."""
    element = EventList()
    writer = Writer(element)
    prefixes = {"h": name.ns} if name.ns else {}
    with writer.element(name, attributes or {}, prefixes=prefixes):
        if text:
            writer.event(content(text))
    return HeaderBlock(element, role, must_understand, relay)


def write_envelope(envelope: Envelope) -> EventList:
    """Return the document of a SOAP message; raise MalformedSoap if it has too many header
    blocks."""
    if len(envelope.headers) > MAX_BLOCKS:
        raise MalformedSoap("a message has too many header blocks", most=MAX_BLOCKS)
    events = EventList()
    writer = Writer(events)
    with writer.document(), writer.element(ENVELOPE, prefixes=_PREFIXES):
        if envelope.headers:
            with writer.element(HEADER):
                for one in envelope.headers:
                    events.extend(_lean(_marked(one)))
        with writer.element(BODY):
            writer.events(_lean(envelope.body))
    return events


def _lean(elements: list[Event]) -> Iterator[Event]:
    """Yield elements without the prefix declarations that the envelope makes for all of them."""
    depth = 0
    for event in elements:
        if event.kind is ELEMENT_START:
            depth += 1
        elif event.kind is ELEMENT_END:
            depth -= 1
        elif not depth and event.kind is PREFIX_MAPPING and event.name in _DECLARED:
            continue
        yield event


def read_envelope(events: EventSequence) -> Envelope:
    """Read a SOAP message from the events of a document. Raise MalformedSoap if the document is not
    a SOAP message, and a SoapFault if the message is of another version of SOAP (part 1, section
    2.8)."""
    document = EventList(events)
    _check_infoset(document)
    root = Tree(document).root
    if root.name != ENVELOPE:
        if root.name.local == "Envelope":
            older = " (this is SOAP 1.1)" if root.name.ns == SOAP_11_NS else ""
            raise SoapFault(FaultCode.VERSION_MISMATCH, f"only SOAP 1.2 is supported{older}")
        raise MalformedSoap(
            "the root element of a SOAP message must be Envelope", root=str(root.name)[:80]
        )
    # Part 1, section 5.1: an optional Header, then a Body, and nothing else.
    children = list(root)
    header = children.pop(0) if children and children[0].name == HEADER else None
    if [child.name for child in children] != [BODY]:
        raise MalformedSoap("an envelope must have one body, and before it one header at most")
    blocks = [] if header is None else list(header)
    if len(blocks) > MAX_BLOCKS:
        raise MalformedSoap("a message has too many header blocks", most=MAX_BLOCKS)
    body = EventList(event for child in children[0] for event in child.fragment())
    return Envelope(body, [_read_block(one) for one in blocks])


def _read_block(element: Element) -> HeaderBlock:
    attributes = element.attributes
    # Part 1, section 5.2.1: a header block is in a namespace.
    if not element.name.ns:
        raise MalformedSoap("a header block must have a namespace", name=element.name.local[:80])
    return HeaderBlock(
        _unmarked(element.fragment()),
        # Part 1, section 5.2.2: a missing role is the ultimate receiver; so is an empty one here.
        attributes.get(ROLE) or ULTIMATE,
        _flag(attributes, MUST_UNDERSTAND),
        _flag(attributes, RELAY),
    )


def _unmarked(fragment: EventList) -> EventList:
    """Return a block's events without the SOAP attributes of its outer element, which become fields
    of the HeaderBlock."""
    at = next(i for i, event in enumerate(fragment) if event.kind is ELEMENT_START) + 1
    end = at
    while end < len(fragment) and fragment[end].kind is ATTRIBUTE:
        end += 1
    kept = [event for event in fragment[at:end] if event.name not in _OURS]
    return EventList([*fragment[:at], *kept, *fragment[end:]])


def _flag(attributes: Mapping[Name, str], name: Name) -> bool:
    text = attributes.get(name, "false").strip()
    if text not in _FLAGS:
        raise MalformedSoap(
            "a flag of a header block must be true or false", flag=name.local, is_=text
        )
    return _FLAGS[text]


def _marked(one: HeaderBlock) -> list[Event]:
    """Return a block's events with the SOAP attributes that the fields of the HeaderBlock stand
    for."""
    marks = []
    if one.role != ULTIMATE:
        marks.append(attribute(ROLE, one.role))
    if one.must_understand:
        marks.append(attribute(MUST_UNDERSTAND, "true"))
    if one.relay:
        marks.append(attribute(RELAY, "true"))
    at = next(i for i, event in enumerate(one.element) if event.kind is ELEMENT_START) + 1
    return [*one.element[:at], *marks, *one.element[at:]]


def _check_infoset(events: EventList) -> None:
    """Refuse processing instructions and entity references: a SOAP message has none of them, nor a
    document type (part 1, section 5)."""
    for event in events:
        if event.kind in (PROCESSING_INSTRUCTION, ENTITY_REFERENCE):
            raise MalformedSoap(
                "a SOAP message must not contain processing instructions or entity references"
            )
