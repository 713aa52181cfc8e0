"""The interface of all formats: text to octets, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lasthop_xml.relaxng.schema import Schema


class WantedForm(NamedTuple):
    """The options that the user gave for a conversion; None leaves the choice to the format."""

    type: str | None = None
    version: str | None = None
    lenient: bool = False
    state: bytes | None = None
    """The state of the session after its last message, for formats that remember earlier
    messages."""
    schema: Schema | None = None
    """The schema that both ends know, for formats that use one."""
    profile: bytes | None = None
    """The profile that both ends have learned from samples, for formats that can be trained."""
    level: str | None = None
    """The level of compression, for formats that have several."""


class Encoded(NamedTuple):
    """The octets of an encoded text, and their type."""

    octets: bytes
    type: str
    """The type of the octets, one of the format's types."""
    state: bytes | None = None
    """The state of the session, which the next message needs."""


class Decoded(NamedTuple):
    """The text of decoded octets, and the other facts that the octets contain."""

    text: bytes
    """The text, which ends in a newline unless it carries a body."""
    type: str
    facts: Mapping[str, object]
    """Everything that the octets say, for output as JSON."""
    state: bytes | None = None
    """The state of the session, which the next message needs."""


@dataclass(frozen=True)
class TextFormat:
    """A format with a text and a binary form. `encode` and `decode` raise `LasthopError`."""

    about: str
    types: tuple[str, ...]
    encode: Callable[[bytes, WantedForm], Encoded]
    decode: Callable[[bytes, WantedForm], Decoded]
    versions: tuple[str, ...] = field(default=())
    stateful: bool = False
    """Whether the format keeps a state between messages."""
    uses_schema: bool = False
    """Whether the format can use a schema to make messages smaller."""
    levels: tuple[str, ...] = ()
    """The levels of compression that a user can choose; empty if there are none."""
    train: Callable[[list[bytes]], bytes] | None = None
    """Makes a profile from sample texts, for a format that can be trained."""
