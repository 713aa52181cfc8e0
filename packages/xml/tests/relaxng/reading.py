"""Schemas from a dictionary of files."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from lasthop_xml.relaxng.files import File
from lasthop_xml.relaxng.schema import Schema, read_schema

FIRST = "schema.rnc"


def read(schema: str, files: Mapping[str, str] | None = None) -> Schema:
    """A schema whose other files are these; references are relative to the file they stand in."""
    known = {FIRST: schema, **(files or {})}

    def load(href: str, source: str) -> File:
        name = posixpath.normpath(posixpath.join(posixpath.dirname(source), href))
        return File(name, known[name])

    return read_schema(schema, source=FIRST, loader=load)
