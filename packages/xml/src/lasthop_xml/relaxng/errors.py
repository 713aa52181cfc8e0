"""What can be wrong with a schema, and with a document by its schema.

Malformed
├── SchemaError       the text is no schema, or one that RELAX NG forbids
└── NotValid          a document is not what its schema asks for
TooLarge
└── SchemaTooLarge    a size, a depth or a count is above its limit
"""

from __future__ import annotations

from lasthop_xml.errors import Malformed, TooLarge


class SchemaError(Malformed):
    """Not RELAX NG. `line` and `column` count from 1; `source` is the file if it is not the first.

    What was found or which name is meant is in further fields.
    """

    code = "schema"


class NotValid(Malformed):
    """The event at `index` of a sequence, or its end, is not what the schema allows there."""

    code = "not_valid"


class SchemaTooLarge(TooLarge):
    """A schema, or what a document makes of it, is larger than we accept."""

    code = "schema_too_large"
