"""Which prefix stands for which namespace at one place of a sequence.

A scope never changes: declaring makes a new one. Names in tags need none of this, but some values
do: the type in xsi:type, and every QName.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lasthop_xml.xas.names import XML_NS, Name

MOST_REMEMBERED: Final = 256
"""Of each thing that a scope remembers. A message has a handful; only hostile ones have more."""
LONGEST_REMEMBERED: Final = 128
"""Characters of a text that is worth remembering; a qualified name is shorter."""


class Scope:
    """The prefixes in force, and what serializers and codecs remember about names under them."""

    __slots__ = ("_by_ns", "attributes", "codecs", "elements", "prefixes", "types")

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self.prefixes = prefixes
        self._by_ns: dict[str, list[str]] | None = None
        # Caches of whoever works in this scope; names and prefixes cannot change under them.
        self.elements: dict[Name, tuple[str, str]] = {}
        self.attributes: dict[Name, str] = {}
        self.types: dict[str, Name | None] = {}
        self.codecs: dict[str, tuple[Name, Any]] = {}

    def declare(self, mappings: Sequence[Name]) -> Scope:
        """A scope in which, further, the second of each pair stands for the first."""
        # Taking a prefix out and putting it back makes dictionary order the order of declaration.
        prefixes = dict(self.prefixes)
        for ns, prefix in mappings:
            prefixes.pop(prefix, None)
            prefixes[prefix] = ns
        return Scope(prefixes)

    def prefix_for(self, ns: str, *, default: bool = True) -> str | None:
        """The latest prefix for `ns`; with `default`, the empty one is as good as others."""
        if self._by_ns is None:
            self._by_ns = {}
            for prefix, bound in self.prefixes.items():
                self._by_ns.setdefault(bound, []).append(prefix)
        for prefix in reversed(self._by_ns.get(ns, ())):
            if prefix or default:
                return prefix
        return None

    def resolve(self, text: str) -> Name | None:
        """The name that a QName such as `xsd:int` stands for here, or None if it has none."""
        try:
            return self.types[text]
        except KeyError:
            pass
        prefix, colon, local = text.strip().rpartition(":")
        ns = self.prefixes.get(prefix)
        found = None if ns is None or (colon and not prefix) else Name(ns, local)
        if len(self.types) < MOST_REMEMBERED and len(text) <= LONGEST_REMEMBERED:
            self.types[text] = found
        return found

    def remember(self, text: str, type_: Name, codec: Any) -> None:
        """Keep under `codecs` what a format does with values that are declared like this."""
        if len(self.codecs) < MOST_REMEMBERED and len(text) <= LONGEST_REMEMBERED:
            self.codecs[text] = type_, codec


class LastingScope(Scope):
    """The outermost scope of a session: its messages tend to declare the same prefixes."""

    __slots__ = ("_inner",)

    def __init__(self) -> None:
        super().__init__(_OUTERMOST)
        self._inner: dict[tuple[Name, ...], Scope] = {}

    def declare(self, mappings: Sequence[Name]) -> Scope:
        key = tuple(mappings)
        found = self._inner.get(key)
        if found is None:
            found = super().declare(mappings)
            if sum(len(ns) + len(prefix) for ns, prefix in mappings) <= 16 * LONGEST_REMEMBERED:
                if len(self._inner) >= 16:
                    self._inner.clear()
                self._inner[key] = found
        return found


_OUTERMOST: Mapping[str, str] = {"xml": XML_NS, "": ""}


def outermost() -> Scope:
    """The scope outside of all elements: `xml` is always bound, and no prefix is no namespace."""
    return Scope(_OUTERMOST)
