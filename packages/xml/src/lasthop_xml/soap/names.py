"""The vocabulary of SOAP 1.2 and WS-Addressing 1.0."""

from __future__ import annotations

from typing import Final

from lasthop_xml.xas.names import XML_NS, Name

SOAP_NS: Final = "http://www.w3.org/2003/05/soap-envelope"
SOAP_11_NS: Final = "http://schemas.xmlsoap.org/soap/envelope/"
ADDRESSING_NS: Final = "http://www.w3.org/2005/08/addressing"


def soap(local: str) -> Name:
    """A name of SOAP."""
    return Name(SOAP_NS, local)


def addressing(local: str) -> Name:
    """A name of WS-Addressing."""
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
"""Every node that a message comes to."""
NONE: Final = f"{SOAP_NS}/role/none"
"""Nobody: for others to refer to."""
ULTIMATE: Final = f"{SOAP_NS}/role/ultimateReceiver"
"""The node that the message is for; also when a block names no role."""

ANONYMOUS: Final = f"{ADDRESSING_NS}/anonymous"
"""Whoever is at the other end of the channel."""
NOBODY: Final = f"{ADDRESSING_NS}/none"
"""What would go here is not wanted."""
REPLY: Final = f"{ADDRESSING_NS}/reply"
"""How a message relates to another when it does not say."""
UNSPECIFIED: Final = f"{ADDRESSING_NS}/unspecified"
FAULT_ACTION: Final = f"{ADDRESSING_NS}/fault"
SOAP_FAULT_ACTION: Final = f"{ADDRESSING_NS}/soap/fault"
