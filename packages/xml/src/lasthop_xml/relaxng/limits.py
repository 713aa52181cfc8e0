"""How much of a schema we accept. Schemas are configuration, but may come from a partner's site."""

from __future__ import annotations

from typing import NamedTuple


class SchemaLimits(NamedTuple):
    """The defaults take the largest published schemas with room to spare."""

    size: int = 2**20
    """Characters of one file; the schema of DocBook has 250 kB."""
    files: int = 100
    """That one schema includes, however often."""
    depth: int = 100
    """Brackets inside brackets, and definitions that refer to definitions. Keeps recursion off the
    end of the stack; people nest less than twenty."""
    patterns: int = 100_000
    """Of the simple form, all definitions written out at each use."""
    derived: int = 50_000
    """Patterns that the validator makes on the way. Documents lead to a few per element of the
    schema, unless the schema is built to explode."""


DEFAULT_LIMITS = SchemaLimits()
