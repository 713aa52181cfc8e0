"""Reads schemas from files, and from the files that they refer to."""

from __future__ import annotations

from pathlib import Path

from lasthop.wire.xml_errors import xml_refusals
from lasthop_xml.relaxng.files import File
from lasthop_xml.relaxng.limits import DEFAULT_LIMITS
from lasthop_xml.relaxng.schema import Schema, decoded, read_schema

MOST_BYTES = 4 * DEFAULT_LIMITS.size
"""The largest file, in bytes: a text within the limit of characters is never larger in UTF-8."""


@xml_refusals()
def load_schema(path: Path) -> Schema:
    """Return the schema in a file; references in a schema are relative to the file that contains
    them."""
    return read_schema(_read(path), source=str(path), loader=_load)


def _load(href: str, source: str) -> File:
    if "://" in href:
        raise LookupError("a schema can only refer to files on this machine")
    path = Path(source).parent / href
    return File(str(path.resolve()), decoded(_read(path)))


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES)
