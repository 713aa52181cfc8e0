"""A document between its binary and its text form: a language, and a tree of elements and text."""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

from lasthop.wire.wbxml.language import Language


class WbxmlElement(msgspec.Struct, frozen=True, gc=False):
    """An element with its attributes in the order of the document. Adjacent texts are joined."""

    tag: str
    attributes: dict[str, str] = {}
    children: tuple[Node, ...] = ()


Node: TypeAlias = WbxmlElement | str


class WbxmlDocument(msgspec.Struct, frozen=True, gc=False):
    """A document in one of the known languages."""

    language: Language
    root: WbxmlElement


class WbxmlLimits(msgspec.Struct, frozen=True):
    """The limits of a document in either form; beyond them TooLarge is raised."""

    size: int = 256 * 1024
    """The largest number of octets in the document. A push fits one datagram (64 KiB); its XML is a
    few times longer."""

    depth: int = 32
    """The largest number of levels of elements within elements. SI, the deepest language, needs
    three."""

    elements: int = 10_000
    """The largest number of elements: one costs an octet on the wire and some hundred in memory.
    Only CO has many: one per URI."""

    text: int = 1024 * 1024
    """The largest number of characters in all text and values together. A reference of two octets
    can stand for a whole string table, so that the size alone does not bound the result."""


DEFAULT_LIMITS = WbxmlLimits()

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character that no XML document can hold (XML 1.0, production 2)."""

NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9._:-]*")
"""A name of an element or attribute. Stricter than XML: no push language goes beyond ASCII."""
