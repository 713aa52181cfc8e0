"""Limits on the schemas that are accepted: schemas are configuration, but may come from a partner's
site."""

from __future__ import annotations

from typing import NamedTuple


class SchemaLimits(NamedTuple):
    """The size of schema that is accepted. The defaults are enough for the largest published
    schemas."""

    size: int = 2**20
    """The largest number of characters of one file; the schema of DocBook has 250 kB."""
    files: int = 100
    """The largest number of files of one schema; a file counts each time that it is included."""
    depth: int = 100
    """The largest number of levels of brackets, and of definitions that refer to definitions; keeps
    recursion within the stack. People nest less than twenty."""
    patterns: int = 100_000
    """The largest number of patterns of the simple form, in which definitions are written out at
    each use."""
    derived: int = 50_000
    """The largest number of patterns that a validator derives. Documents lead to a few per element
    of the schema, unless the schema is built to explode."""


DEFAULT_LIMITS = SchemaLimits()
