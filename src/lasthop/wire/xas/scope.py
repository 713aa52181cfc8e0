"""Which prefix stands for which namespace at one place of a sequence.

A scope never changes: declaring makes a new one. Names in tags need none of this, but some values
do: the type in xsi:type, and every QName.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lasthop.wire.xas.names import XML_NS, Name


class Scope:
    """The prefixes in force, and what serializers and codecs remember about names under them."""

    __slots__ = ("_by_ns", "attributes", "elements", "prefixes", "types")

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self.prefixes = prefixes
        self._by_ns: dict[str, list[str]] | None = None
        # Caches of whoever works in this scope; names and prefixes cannot change under them.
        self.elements: dict[Name, str] = {}
        self.attributes: dict[Name, str] = {}
        self.types: dict[str, Name | None] = {}

    def declare(self, mappings: Iterable[Name]) -> Scope:
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
        # Hostile documents have many different values; what they repeat is what pays.
        if len(self.types) < 256:
            self.types[text] = found
        return found


def outermost() -> Scope:
    """The scope outside of all elements: `xml` is always bound, and no prefix is no namespace."""
    return Scope({"xml": XML_NS, "": ""})
