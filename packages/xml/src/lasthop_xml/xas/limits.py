"""Limits on the documents that are accepted, since they may come from unknown senders."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """The size of document that a parser or a decoder accepts. The defaults are generous for
    messages; a batch job may pass its own limits."""

    size: int = 8 * 2**20
    """The largest number of bytes of an XML document, and the largest number of characters that a
    binary one may expand to."""
    events: int = 100_000
    """The largest number of events of a document. A message of 3 kB has about 250; an event takes
    about 150 bytes of memory."""
    depth: int = 200
    """The largest number of elements inside one another: more than people and generators nest, and
    few enough that recursive code does not run out of stack."""
    attributes: int = 256
    """The largest number of attributes of one element, prefix mappings included."""
    name: int = 4096
    """The largest number of characters of a namespace, a local name or a prefix."""


DEFAULT_LIMITS = Limits()
