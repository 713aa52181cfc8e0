"""The message addressing properties of WS-Addressing 1.0 (core, section 3; SOAP binding, section
3.2): the destination, the purpose and the id of a message, the message that it answers, and where
replies and faults go."""

from __future__ import annotations

from dataclasses import dataclass

from lasthop_xml.soap.envelope import Envelope, HeaderBlock, block
from lasthop_xml.soap.fault import FaultCode, SoapFault
from lasthop_xml.soap.names import (
    ADDRESSING_NS,
    ANONYMOUS,
    NOBODY,
    REPLY,
    addressing,
)
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.writer import Writer

TO, ACTION, MESSAGE_ID = addressing("To"), addressing("Action"), addressing("MessageID")
RELATES_TO, FROM = addressing("RelatesTo"), addressing("From")
REPLY_TO, FAULT_TO = addressing("ReplyTo"), addressing("FaultTo")
ADDRESS = addressing("Address")
RELATIONSHIP = Name("", "RelationshipType")

UNDERSTOOD = frozenset({TO, ACTION, MESSAGE_ID, RELATES_TO, FROM, REPLY_TO, FAULT_TO})
"""The header blocks that a node understands if it uses this module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressing:
    """The addressing properties of a message. Addresses are IRIs."""

    action: str
    """The purpose of the message, as an IRI: the only property that every message has."""
    to: str = ANONYMOUS
    message_id: str = ""
    relates_to: str = ""
    """The id of the message that this one answers, or is related to by `relationship`."""
    relationship: str = REPLY
    source: str = ""
    reply_to: str = ANONYMOUS
    fault_to: str = ""
    """The address for faults; if it is empty, faults go to `reply_to`."""

    def blocks(self) -> list[HeaderBlock]:
        """Return the properties as header blocks; those with default values are left out."""
        found = [block(ACTION, self.action, must_understand=True)]
        if self.to != ANONYMOUS:
            found.append(block(TO, self.to))
        if self.message_id:
            found.append(block(MESSAGE_ID, self.message_id))
        if self.relates_to:
            kind = {} if self.relationship == REPLY else {RELATIONSHIP: self.relationship}
            found.append(block(RELATES_TO, self.relates_to, attributes=kind))
        if self.source:
            found.append(_endpoint(FROM, self.source))
        if self.reply_to != ANONYMOUS:
            found.append(_endpoint(REPLY_TO, self.reply_to))
        if self.fault_to:
            found.append(_endpoint(FAULT_TO, self.fault_to))
        return found

    def answer(self, action: str, *, message_id: str = "", fault: bool = False) -> Addressing:
        """Return the properties of a reply, or of a fault, to this message (core, section 3.4).
        Raise a SoapFault if this message has no id that a reply could relate to."""
        if not self.message_id:
            raise required(MESSAGE_ID)
        to = self.reply_to
        if fault and self.fault_to:
            to = self.fault_to
        return Addressing(action=action, to=to, message_id=message_id, relates_to=self.message_id)

    @property
    def wants_answer(self) -> bool:
        """Return whether a reply to this message has an address to go to."""
        return bool(self.message_id) and self.reply_to != NOBODY


def read_addressing(envelope: Envelope) -> Addressing | None:
    """Return the addressing properties of a message, or None if it has none. Raise the faults of
    the SOAP binding (section 6.4) for invalid ones."""
    found: dict[Name, HeaderBlock] = {}
    for one in envelope.headers:
        name = one.name
        if name not in UNDERSTOOD:
            continue
        if name in found:
            raise _invalid(name, "InvalidCardinality")
        found[name] = one
    if not found:
        return None
    if ACTION not in found:
        raise required(ACTION)
    relates = found.get(RELATES_TO)
    relationship = REPLY
    if relates is not None:
        relationship = relates.root.attributes.get(RELATIONSHIP, REPLY)
    return Addressing(
        action=_iri(found, ACTION),
        to=_iri(found, TO) or ANONYMOUS,
        message_id=_iri(found, MESSAGE_ID),
        relates_to=_iri(found, RELATES_TO),
        relationship=relationship,
        source=_address(found, FROM),
        reply_to=_address(found, REPLY_TO) or ANONYMOUS,
        fault_to=_address(found, FAULT_TO),
    )


def required(name: Name) -> SoapFault:
    """Return the fault for a message that lacks the addressing header `name`."""
    return SoapFault(
        FaultCode.SENDER,
        f"the addressing header {name.local} is missing",
        subcodes=(addressing("MessageAddressingHeaderRequired"),),
    )


def _invalid(name: Name, why: str) -> SoapFault:
    return SoapFault(
        FaultCode.SENDER,
        f"the addressing header {name.local} is not valid here",
        subcodes=(addressing("InvalidAddressingHeader"), addressing(why)),
    )


def _iri(found: dict[Name, HeaderBlock], name: Name) -> str:
    one = found.get(name)
    if one is None:
        return ""
    text = one.text.strip()
    if not text or any(c.isspace() for c in text):
        raise _invalid(name, "InvalidAddress")
    return text


def _address(found: dict[Name, HeaderBlock], name: Name) -> str:
    one = found.get(name)
    if one is None:
        return ""
    address = one.root.find(ADDRESS)
    if address is None:
        raise _invalid(name, "MissingAddressInEPR")
    text = address.text.strip()
    if not text or any(c.isspace() for c in text):
        raise _invalid(name, "InvalidAddress")
    return text


def _endpoint(name: Name, address: str) -> HeaderBlock:
    element = EventList()
    writer = Writer(element)
    with writer.element(name, prefixes={"h": ADDRESSING_NS}):
        writer.text_element(ADDRESS, address)
    return HeaderBlock(element)
