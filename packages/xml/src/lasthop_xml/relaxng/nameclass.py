"""Name classes (RELAX NG, section 2): the sets of names that an element or an attribute may
have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from lasthop_xml.xas.names import Name

# No document has these, so they stand for any namespace and any name that no class mentions.
_OTHER_NS: Final = "\0"
_OTHER_LOCAL: Final = "\0"


@dataclass(frozen=True, slots=True)
class OneName:
    """The name class of exactly one name."""

    name: Name

    def contains(self, name: Name) -> bool:
        return name == self.name


@dataclass(frozen=True, slots=True)
class AnyInNamespace:
    """The name class of all names in a namespace except some."""

    ns: str
    exclude: NameClass | None = None

    def contains(self, name: Name) -> bool:
        return name.ns == self.ns and not (self.exclude and self.exclude.contains(name))


@dataclass(frozen=True, slots=True)
class AnyName:
    """The name class of all names except some."""

    exclude: NameClass | None = None

    def contains(self, name: Name) -> bool:
        return not (self.exclude and self.exclude.contains(name))


@dataclass(frozen=True, slots=True)
class NameChoice:
    """The union of several name classes."""

    parts: tuple[NameClass, ...]

    def contains(self, name: Name) -> bool:
        return any(part.contains(name) for part in self.parts)


NameClass: TypeAlias = OneName | AnyInNamespace | AnyName | NameChoice


def names_of(names: NameClass) -> Iterator[Name]:
    """Yield the names that a name class lists one by one."""
    match names:
        case OneName(name):
            yield name
        case NameChoice(parts):
            for part in parts:
                yield from names_of(part)
        case _:
            return


def is_finite(names: NameClass) -> bool:
    """Return whether a name class lists all of its names one by one."""
    match names:
        case OneName():
            return True
        case NameChoice(parts):
            return all(map(is_finite, parts))
        case _:
            return False


def overlap(one: NameClass, other: NameClass) -> bool:
    """Return whether two name classes have a name in common (RELAX NG, section 7.3).

    Names behave alike unless a class mentions them or their namespace, so it is enough to try the
    names that are mentioned, and one of each kind that is not.
    """
    tried = {*_samples(one), *_samples(other)}
    return any(one.contains(name) and other.contains(name) for name in tried)


def _samples(names: NameClass) -> Iterator[Name]:
    match names:
        case OneName(name):
            yield name
        case AnyInNamespace(ns, exclude):
            yield Name(ns, _OTHER_LOCAL)
            if exclude is not None:
                yield from _samples(exclude)
        case AnyName(exclude):
            yield Name(_OTHER_NS, _OTHER_LOCAL)
            if exclude is not None:
                yield from _samples(exclude)
        case NameChoice(parts):
            for part in parts:
                yield from _samples(part)
