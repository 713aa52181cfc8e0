"""SOAP faults (part 1, section 5.4), as exceptions and as XML."""

from __future__ import annotations

from enum import StrEnum

from lasthop_xml.errors import Malformed, XmlError
from lasthop_xml.soap.names import FAULT, SOAP_NS, XML_LANG, soap
from lasthop_xml.xas.events import content
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.tree import Element, Tree
from lasthop_xml.xas.writer import Writer

MAX_SUBCODES = 8
"""The largest number of subcodes of a fault, which are nested; more than a few add no
information."""


class FaultCode(StrEnum):
    """The code of a fault, which says who caused it (SOAP 1.2 part 1, table 4)."""

    VERSION_MISMATCH = "VersionMismatch"
    MUST_UNDERSTAND = "MustUnderstand"
    DATA_ENCODING_UNKNOWN = "DataEncodingUnknown"
    SENDER = "Sender"
    RECEIVER = "Receiver"


class MalformedSoap(Malformed):
    """The document is XML, but not a SOAP message."""

    code = "malformed_soap"


class SoapFault(XmlError):
    """A fault of a SOAP node: raised here to refuse a message, or received from another node."""

    code = "soap_fault"

    def __init__(
        self,
        fault_code: FaultCode,
        reason: str,
        *,
        subcodes: tuple[Name, ...] = (),
        role: str = "",
        node: str = "",
        elements: EventList | None = None,
        not_understood: tuple[Name, ...] = (),
    ) -> None:
        super().__init__(reason, fault=str(fault_code))
        self.fault_code = fault_code
        self.reason = reason
        self.subcodes = subcodes
        """Names that refine `fault_code`, from the general to the particular."""
        self.role = role
        """The role in which the node acted when the fault occurred; empty if unknown."""
        self.node = node
        """The URI of the node where the fault occurred; empty for the ultimate receiver."""
        self.elements = elements
        """Elements with details for the application, about the message's body; None if there are
        none."""
        self.not_understood = not_understood
        """The names of the header blocks that a MustUnderstand fault is about."""

    def body(self) -> EventList:
        """Return the Fault element that describes this fault, as the body of an envelope."""
        events = EventList()
        writer = Writer(events)
        prefixes = {"env": SOAP_NS}
        for number, subcode in enumerate(self.subcodes):
            prefixes.setdefault(f"c{number}", subcode.ns)
        with writer.element(FAULT, prefixes={k: ns for k, ns in prefixes.items() if ns}):
            with writer.element(soap("Code")):
                writer.text_element(soap("Value"), f"env:{self.fault_code}")
                self._write_subcodes(writer, 0)
            with (
                writer.element(soap("Reason")),
                writer.element(soap("Text"), {XML_LANG: "en"}),
            ):
                writer.event(content(self.reason))
            if self.node:
                writer.text_element(soap("Node"), self.node)
            if self.role:
                writer.text_element(soap("Role"), self.role)
            if self.elements is not None:
                with writer.element(soap("Detail")):
                    writer.events(self.elements)
        return events

    def _write_subcodes(self, writer: Writer, at: int) -> None:
        if at == len(self.subcodes):
            return
        subcode = self.subcodes[at]
        with writer.element(soap("Subcode")):
            text = f"c{at}:{subcode.local}" if subcode.ns else subcode.local
            writer.text_element(soap("Value"), text)
            self._write_subcodes(writer, at + 1)


def read_fault(body: EventList) -> SoapFault | None:
    """Return the fault that a body contains, or None; raise MalformedSoap if its Fault element is
    invalid."""
    roots = Tree(body).roots
    if not roots or roots[0].name != FAULT:
        return None
    fault = roots[0]
    code = fault.find(soap("Code"))
    if code is None:
        raise MalformedSoap("a fault has no code")
    value = _qname(code)
    known = {str(c): c for c in FaultCode}
    if value.ns != SOAP_NS or value.local not in known:
        raise MalformedSoap("a fault has a code that SOAP does not define", code=str(value)[:80])
    detail = fault.find(soap("Detail"))
    return SoapFault(
        known[value.local],
        _reason(fault),
        subcodes=_subcodes(code),
        role=_text(fault, "Role"),
        node=_text(fault, "Node"),
        elements=None if detail is None else _children(detail),
    )


def _qname(code: Element) -> Name:
    value = code.find(soap("Value"))
    if value is None:
        raise MalformedSoap("a fault's code has no value")
    prefix, colon, local = value.text.strip().rpartition(":")
    ns = value.scope.prefixes.get(prefix, "")
    if colon and not ns:
        raise MalformedSoap("the prefix of a fault's code is not declared", prefix=prefix[:80])
    return Name(ns, local)


def _subcodes(code: Element) -> tuple[Name, ...]:
    found: list[Name] = []
    below = code.find(soap("Subcode"))
    while below is not None:
        if len(found) == MAX_SUBCODES:
            raise MalformedSoap("a fault has too many codes", most=MAX_SUBCODES)
        found.append(_qname(below))
        below = below.find(soap("Subcode"))
    return tuple(found)


def _reason(fault: Element) -> str:
    """Return the reason's text, in English if there are several languages (part 1, section
    5.4.2)."""
    reason = fault.find(soap("Reason"))
    texts = [] if reason is None else list(reason.find_all(soap("Text")))
    if not texts:
        raise MalformedSoap("a fault gives no reason")
    english = [text for text in texts if text.attributes.get(XML_LANG, "").startswith("en")]
    return (english or texts)[0].text


def _text(fault: Element, local: str) -> str:
    found = fault.find(soap(local))
    return "" if found is None else found.text.strip()


def _children(element: Element) -> EventList:
    return EventList(event for child in element for event in child.fragment())
