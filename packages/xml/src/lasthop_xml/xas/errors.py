"""The errors of XML documents and of event sequences.

Malformed
├── MalformedXml        the bytes are not XML, or XML that is refused
└── MalformedEvents     the events do not form what they should (thesis, section 4.2)
InvalidInput
├── InvalidValue        a text or a value does not belong to its type
└── UnknownType         no encoder or decoder of the chain knows a type
TooLarge
└── XmlTooLarge         a size, a depth or a count is above its limit
"""

from __future__ import annotations

from lasthop_xml.errors import InvalidInput, Malformed, TooLarge


class MalformedXml(Malformed):
    """The document is not well-formed XML, or uses what is refused; `line` and `column` give the
    place if it is known."""

    code = "malformed_xml"


class MalformedEvents(Malformed):
    """The events do not form a document, an element or the value that was expected."""

    code = "malformed_events"


class InvalidValue(InvalidInput):
    """A text is not a lexical form of its type, or a value is not among the type's values."""

    code = "invalid_value"


class UnknownType(InvalidInput):
    """A type that no encoder or decoder in the chain knows."""

    code = "unknown_type"


class XmlTooLarge(TooLarge):
    """A document is larger, is nested more deeply or has more items than its limits allow."""

    code = "xml_too_large"
