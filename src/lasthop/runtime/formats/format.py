"""What every format has in common: text in, octets out, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lasthop_xml.relaxng.schema import Schema


class WantedForm(NamedTuple):
    """What the user asked for; None leaves it to the format."""

    type: str | None = None
    version: str | None = None
    lenient: bool = False
    state: bytes | None = None
    """What a session has left behind, for formats that remember earlier messages."""
    schema: Schema | None = None
    """What both ends know about the documents, for formats that make use of it."""
    profile: bytes | None = None
    """What both ends learned from samples, for formats that can be trained."""
    level: str | None = None
    """How hard to try, for formats that can try harder."""


class Encoded(NamedTuple):
    """Octets, and what they are."""

    octets: bytes
    type: str
    """One of the format's types."""
    state: bytes | None = None
    """What the next message of the session needs."""


class Decoded(NamedTuple):
    """A text, and what it is."""

    text: bytes
    """Ends in a newline, unless it carries a body."""
    type: str
    facts: Mapping[str, object]
    """For machines: all that the octets say."""
    state: bytes | None = None
    """What the next message of the session needs."""


@dataclass(frozen=True)
class TextFormat:
    """A format with a text and a binary form. Both functions raise a LasthopError."""

    about: str
    types: tuple[str, ...]
    encode: Callable[[bytes, WantedForm], Encoded]
    decode: Callable[[bytes, WantedForm], Decoded]
    versions: tuple[str, ...] = field(default=())
    stateful: bool = False
    """Whether it has a state to keep between messages."""
    uses_schema: bool = False
    """Whether it can do with less if it knows what documents look like."""
    levels: tuple[str, ...] = ()
    """How hard it can try, if one can choose."""
    train: Callable[[list[bytes]], bytes] | None = None
    """From sample texts to a profile, if it can learn from them beforehand."""
