"""Sets of names (section 2 of RELAX NG): what an element or an attribute may be called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from lasthop_xml.xas.names import Name

# No document has these, so they stand for "some namespace" and "some name" that nobody mentions.
_OTHER_NS: Final = "\0"
_OTHER_LOCAL: Final = "\0"


@dataclass(frozen=True, slots=True)
class OneName:
    """Exactly one name."""

    name: Name

    def contains(self, name: Name) -> bool:
        return name == self.name


@dataclass(frozen=True, slots=True)
class AnyInNamespace:
    """All names of a namespace but some."""

    ns: str
    exclude: NameClass | None = None

    def contains(self, name: Name) -> bool:
        return name.ns == self.ns and not (self.exclude and self.exclude.contains(name))


@dataclass(frozen=True, slots=True)
class AnyName:
    """All names but some."""

    exclude: NameClass | None = None

    def contains(self, name: Name) -> bool:
        return not (self.exclude and self.exclude.contains(name))


@dataclass(frozen=True, slots=True)
class NameChoice:
    """Names of any of several sets."""

    parts: tuple[NameClass, ...]

    def contains(self, name: Name) -> bool:
        return any(part.contains(name) for part in self.parts)


NameClass: TypeAlias = OneName | AnyInNamespace | AnyName | NameChoice


def names_of(names: NameClass) -> Iterator[Name]:
    """The names that a set lists one by one."""
    match names:
        case OneName(name):
            yield name
        case NameChoice(parts):
            for part in parts:
                yield from names_of(part)
        case _:
            return


def is_finite(names: NameClass) -> bool:
    """Whether all names of a set are listed one by one."""
    match names:
        case OneName():
            return True
        case NameChoice(parts):
            return all(map(is_finite, parts))
        case _:
            return False


def overlap(one: NameClass, other: NameClass) -> bool:
    """Whether two sets have a name in common (section 7.3).

    Names behave alike unless a set mentions them or their namespace, so it is enough to try what is
    mentioned, and one name of each kind that is not.
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
