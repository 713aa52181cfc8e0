"""The errors of the package, all below one base class.

    XmlError
    ├── Malformed        a document or a message breaks the rules of its format, and where
    ├── InvalidInput     a value, a type, a key or an expression that cannot be used
    ├── TooLarge         a size, a depth or a count is above its limit
    └── SoapFault        a SOAP node's refusal (soap/fault.py)

Each folder defines its own subclasses in its `errors.py`. An error holds fields, not sentences;
`str()` puts them into one line for people, and `code` is for machines.
"""

from __future__ import annotations

from typing import ClassVar


class XmlError(Exception):
    """Base of all errors that this package raises on purpose."""

    code: ClassVar[str] = "xml_error"

    def __init__(self, detail: str, **fields: object) -> None:
        super().__init__(detail, fields)
        self.detail = detail
        self.fields = fields

    def __str__(self) -> str:
        if not self.fields:
            return self.detail
        facts = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"{self.detail} ({facts})"


class Malformed(XmlError):
    """A document or a message breaks the rules of its format. `offset` counts bytes from the start
    of the message, or `line` and `column` give the place in a text."""

    code = "malformed"


class InvalidInput(XmlError):
    """A value, a type, a key or an expression cannot be used for what was asked."""

    code = "invalid_request"


class TooLarge(XmlError):
    """A size, a depth or a count is above its limit."""

    code = "too_large"
