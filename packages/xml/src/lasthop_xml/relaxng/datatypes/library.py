"""The lookup of all datatypes that a schema can name."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from lasthop_xml.relaxng.datatypes.datatype import XSD_LIBRARY, Datatype, Namespaces
from lasthop_xml.relaxng.datatypes.facets import Restricted, facet
from lasthop_xml.relaxng.datatypes.whitespace import collapsed
from lasthop_xml.relaxng.datatypes.xsd import XSD_TYPES
from lasthop_xml.xas.errors import InvalidValue, UnknownType


class _AnyString(Datatype):
    """RELAX NG's own type `string`: all texts, each with its own meaning."""

    def value(self, text: str, namespaces: Namespaces) -> Hashable:
        return text


class _Token(Datatype):
    """RELAX NG's own type `token`: all texts, compared without regard to the amount of white
    space."""

    def value(self, text: str, namespaces: Namespaces) -> Hashable:
        return collapsed(text)


_BUILT_IN: dict[str, Datatype] = {
    "string": _AnyString("", "string"),
    "token": _Token("", "token"),
}


def find_type(library: str, name: str, params: Sequence[tuple[str, str]] = ()) -> Datatype:
    """Return a datatype, restricted by parameters; raise UnknownType or InvalidValue if there is
    none."""
    if library == "":
        found = _BUILT_IN.get(name)
    elif library == XSD_LIBRARY:
        found = XSD_TYPES.get(name)
    else:
        raise UnknownType("no datatype library has this name", library=library[:80])
    if found is None:
        raise UnknownType("no datatype has this name", type=name[:80])
    if not params:
        return found
    if library == "":
        raise InvalidValue("this type has no parameters", type=name)
    return Restricted(found, tuple(params), [facet(found, *param) for param in params])
