"""What can be wrong with XML and with event sequences.

Malformed
├── MalformedXml        the bytes are not XML, or XML that we refuse
└── MalformedEvents     the events do not form what they should (section 4.2 of seed 002)
InvalidInput
├── InvalidValue        a text or a value does not belong to its type
└── UnknownType         nobody in the chain knows how to encode or decode a type
TooLarge
└── XmlTooLarge         a size, a depth or a count is above its limit
"""

from __future__ import annotations

from lasthop_xml.errors import InvalidInput, Malformed, TooLarge


class MalformedXml(Malformed):
    """Not well-formed, or refused; `line` and `column` say where when it is known."""

    code = "malformed_xml"


class MalformedEvents(Malformed):
    """The events do not form a document, an element or the value that was expected."""

    code = "malformed_events"


class InvalidValue(InvalidInput):
    """A lexical form or a value that its type does not have."""

    code = "invalid_value"


class UnknownType(InvalidInput):
    """A type that no encoder or decoder in the chain knows."""

    code = "unknown_type"


class XmlTooLarge(TooLarge):
    """A document is larger, deeper or more numerous than we accept."""

    code = "xml_too_large"
