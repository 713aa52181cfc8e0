"""The four token tables of each end: namespaces, names, attribute values and texts.

An encoder looks up strings, a decoder looks up tokens. Both have the same tables after every
message that both have processed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from lasthop_xml.xas.events import Event, attribute, content, end, start
from lasthop_xml.xas.names import XSI_TYPE, Name
from lasthop_xml.xebu.layout import CONTENT_TOKENS, ITEM_TOKENS, TOKENS
from lasthop_xml.xebu.policies import Policy, PolicyFactory

Key = TypeVar("Key", bound=Hashable)

TABLES: Final = ("namespaces", "names", "values", "texts")


class Mode(Enum):
    """Which strings get tokens; the value is the flags in the first byte of a message."""

    NONE = 0
    ITEM = ITEM_TOKENS
    """Namespaces and names get tokens, attribute values and texts do not."""
    DATA = ITEM_TOKENS | CONTENT_TOKENS
    """All strings get tokens. This is what the thesis calls Xebu."""


def interned(name: Name) -> Name:
    """Return the name as the one object that codecs compare with `is`."""
    return XSI_TYPE if name == XSI_TYPE else name


class KnownStrings(NamedTuple):
    """Strings that both ends know before the first message, called pre-tokens in the thesis; a
    string's index is its token.

    The namespace of a known name or value has a token only if it is listed in `namespaces` as well.
    """

    namespaces: tuple[str, ...] = ()
    names: tuple[Name, ...] = ()
    values: tuple[tuple[Name, str], ...] = ()
    texts: tuple[str, ...] = ()

    def tables(self) -> tuple[Sequence[Any], ...]:
        """Return the strings as the token tables hold them: a value is its attribute event."""
        values = [attribute(interned(Name(*name)), value) for name, value in self.values]
        return self.namespaces, self.names, values, self.texts


class Change(NamedTuple):
    """The assignment of a token, with the string that it replaced, so that it can be undone."""

    token: int
    before: Any


class Table(Generic[Key]):
    """One token table of an encoder, with its replacement policy."""

    __slots__ = ("changes", "keys", "policy", "tokens")

    def __init__(self, policy: Policy, known: Sequence[Key]) -> None:
        self.policy = policy
        self.keys: list[Key | None] = [None] * TOKENS
        self.tokens: dict[Key, int] = {}
        self.changes: list[Change] = []
        for token, key in enumerate(known):
            self._put(token, key)
            policy.keep(token)

    def assign(self, key: Key) -> int:
        """Assign a token to a string that has none, and return the token."""
        token = self.policy.choose()
        self.changes.append(Change(token, self.keys[token]))
        self._put(token, key)
        return token

    def undo(self) -> None:
        """Undo the assignments made since `changes` was last cleared."""
        for token, before in reversed(self.changes):
            self._put(token, before)
        self.changes.clear()

    def _put(self, token: int, key: Key | None) -> None:
        old = self.keys[token]
        if old is not None:
            del self.tokens[old]
        self.keys[token] = key
        if key is not None:
            self.tokens[key] = token

    def load(self, keys: Sequence[Key | None]) -> None:
        """Replace the whole table by these strings; raise ValueError if one occurs twice."""
        for token, key in enumerate(keys):
            self._put(token, None)
            if key is not None and key in self.tokens:
                raise ValueError("the list of strings has one string twice")
            self._put(token, key)


class EncoderTables:
    """The four tables of an encoder. An attribute value is looked up by its event, so that no key
    has to be made for a lookup."""

    __slots__ = ("all", "names", "namespaces", "texts", "values")

    def __init__(self, policy: PolicyFactory, known: KnownStrings) -> None:
        namespaces, names, values, texts = known.tables()
        self.namespaces: Table[str] = Table(policy(), namespaces)
        self.names: Table[Name] = Table(policy(), names)
        self.values: Table[Event] = Table(policy(), values)
        self.texts: Table[str] = Table(policy(), texts)
        self.all: tuple[Table[Any], ...] = (self.namespaces, self.names, self.values, self.texts)


class DecoderTables:
    """The four tables of a decoder, as ready-made events, so that decoding is mostly looking them
    up."""

    __slots__ = ("ends", "names", "namespaces", "starts", "texts", "values")

    def __init__(self, known: KnownStrings) -> None:
        self.namespaces: list[str | None] = [None] * TOKENS
        self.names: list[Name | None] = [None] * TOKENS
        self.starts: list[Event | None] = [None] * TOKENS
        self.ends: list[Event | None] = [None] * TOKENS
        self.values: list[Event | None] = [None] * TOKENS
        self.texts: list[Event | None] = [None] * TOKENS
        namespaces, names, values, texts = known.tables()
        self.namespaces[: len(namespaces)] = namespaces
        self.values[: len(values)] = values
        self.texts[: len(texts)] = map(content, texts)
        for token, name in enumerate(names):
            self.put_name(token, name)

    def put_name(self, token: int, name: Name | None) -> None:
        self.names[token] = name
        self.starts[token] = None if name is None else start(name)
        self.ends[token] = None if name is None else end(name)
