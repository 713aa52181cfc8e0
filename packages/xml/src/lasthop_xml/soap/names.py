"""The names and addresses of SOAP 1.2 and WS-Addressing 1.0."""

from __future__ import annotations

from typing import Final

from lasthop_xml.xas.names import XML_NS, Name

SOAP_NS: Final = "http://www.w3.org/2003/05/soap-envelope"
SOAP_11_NS: Final = "http://schemas.xmlsoap.org/soap/envelope/"
ADDRESSING_NS: Final = "http://www.w3.org/2005/08/addressing"


def soap(local: str) -> Name:
    """Return a name in the namespace of SOAP 1.2."""
    return Name(SOAP_NS, local)


def addressing(local: str) -> Name:
    """Return a name in the namespace of WS-Addressing 1.0."""
    return Name(ADDRESSING_NS, local)


ENVELOPE: Final = soap("Envelope")
HEADER: Final = soap("Header")
BODY: Final = soap("Body")
FAULT: Final = soap("Fault")
ROLE: Final = soap("role")
MUST_UNDERSTAND: Final = soap("mustUnderstand")
RELAY: Final = soap("relay")
XML_LANG: Final = Name(XML_NS, "lang")

NEXT: Final = f"{SOAP_NS}/role/next"
"""The role of every node that a message comes to (part 1, section 2.2)."""
NONE: Final = f"{SOAP_NS}/role/none"
"""The role that no node plays: such a header block is only data for other blocks."""
ULTIMATE: Final = f"{SOAP_NS}/role/ultimateReceiver"
"""The role of the node that the message is for; also the role of a header block that names none."""

ANONYMOUS: Final = f"{ADDRESSING_NS}/anonymous"
"""The address of the peer at the other end of the connection."""
NOBODY: Final = f"{ADDRESSING_NS}/none"
"""The address that discards messages: no reply or no fault is wanted."""
REPLY: Final = f"{ADDRESSING_NS}/reply"
"""The relationship of a message to the message that its RelatesTo header names, unless the header
gives another relationship."""
UNSPECIFIED: Final = f"{ADDRESSING_NS}/unspecified"
FAULT_ACTION: Final = f"{ADDRESSING_NS}/fault"
SOAP_FAULT_ACTION: Final = f"{ADDRESSING_NS}/soap/fault"
