"""The namespaces that prefixes stand for at one place of a sequence.

A scope never changes: a declaration makes a new one. Names of elements and attributes need no
scope, but some values do: the type in xsi:type, and every QName.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lasthop_xml.xas.names import XML_NS, Name

MOST_REMEMBERED: Final = 256
"""The largest number of entries in each cache of a scope. A message has a handful; only a hostile
one has more."""
LONGEST_REMEMBERED: Final = 128
"""The largest number of characters of a text that is cached; a qualified name is shorter."""


class Scope:
    """The prefixes in force at one place, and what serializers and codecs cache about names
    there."""

    __slots__ = ("_by_ns", "attributes", "codecs", "elements", "prefixes", "types")

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self.prefixes = prefixes
        self._by_ns: dict[str, list[str]] | None = None
        # Caches of the serializers and codecs that work in this scope, whose prefixes never change.
        self.elements: dict[Name, tuple[str, str]] = {}
        self.attributes: dict[Name, str] = {}
        self.types: dict[str, Name | None] = {}
        self.codecs: dict[str, tuple[Name, Any]] = {}

    def declare(self, mappings: Sequence[Name]) -> Scope:
        """Return a scope with these declarations added; each is a pair of a namespace and its
        prefix."""
        # Taking a prefix out and putting it back makes dictionary order the order of declaration.
        prefixes = dict(self.prefixes)
        for ns, prefix in mappings:
            prefixes.pop(prefix, None)
            prefixes[prefix] = ns
        return Scope(prefixes)

    def prefix_for(self, ns: str, *, default: bool = True) -> str | None:
        """Return the prefix that was declared last for `ns`, or None; the empty prefix is returned
        only if `default` is true."""
        if self._by_ns is None:
            self._by_ns = {}
            for prefix, bound in self.prefixes.items():
                self._by_ns.setdefault(bound, []).append(prefix)
        for prefix in reversed(self._by_ns.get(ns, ())):
            if prefix or default:
                return prefix
        return None

    def resolve(self, text: str) -> Name | None:
        """Return the name that a QName such as `xsd:int` stands for in this scope, or None if its
        prefix is not declared."""
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
        """Cache in `codecs` the type and the codec of values whose xsi:type is `text`."""
        if len(self.codecs) < MOST_REMEMBERED and len(text) <= LONGEST_REMEMBERED:
            self.codecs[text] = type_, codec


class LastingScope(Scope):
    """The outermost scope of a session. It caches inner scopes, since the messages of a session
    tend to declare the same prefixes."""

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
    """Return the scope outside of all elements: `xml` is bound, and the empty prefix means no
    namespace (Namespaces in XML 1.0, sections 3 and 6.2)."""
    return Scope(_OUTERMOST)
