"""The errors of schemas, and of documents that do not match their schema.

Malformed
├── SchemaError       the text is no schema, or one that RELAX NG forbids
└── NotValid          a document does not match its schema
TooLarge
└── SchemaTooLarge    a size, a depth or a count is above its limit
"""

from __future__ import annotations

from lasthop_xml.errors import Malformed, TooLarge


class SchemaError(Malformed):
    """The text is not a RELAX NG schema. `line` and `column` count from 1; `source` is the file if
    it is not the first.

    Other fields give what was found and the name that the error is about.
    """

    code = "schema"


class NotValid(Malformed):
    """A document does not match its schema at the event with the index `index`, or at its end."""

    code = "not_valid"


class SchemaTooLarge(TooLarge):
    """A schema, or the set of patterns that a document leads to, is larger than its limits
    allow."""

    code = "schema_too_large"
