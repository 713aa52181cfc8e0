"""How much of a document we accept: it comes from a device or a publisher that we do not know."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """The defaults fit messages with room to spare; a batch job may pass its own."""

    size: int = 8 * 2**20
    """Bytes of an XML document, and characters that a compact one may expand to."""
    events: int = 100_000
    """A message of 3 kB has about 250; an event takes some 150 bytes of memory."""
    depth: int = 200
    """Deeper than people and generators nest; keeps recursive consumers off their stack's end."""
    attributes: int = 256
    """Of one element, prefix mappings included."""
    name: int = 4096
    """Characters of a namespace, a local name or a prefix."""


DEFAULT_LIMITS = Limits()
