"""The error that a description in ORL can have."""

from __future__ import annotations

from lasthop_xml.errors import Malformed


class MalformedOrl(Malformed):
    """A description breaks the grammar or contradicts itself, at `line` and `column`."""

    code = "malformed_orl"
