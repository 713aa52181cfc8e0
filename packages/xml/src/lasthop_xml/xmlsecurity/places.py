"""The lookup of elements by their place or by their identifiers."""

from __future__ import annotations

from collections.abc import Sequence

from lasthop_xml.xas.names import XSD_NS, Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.tree import Element, Tree
from lasthop_xml.xas.types.table import PRIMITIVES
from lasthop_xml.xmlsecurity.errors import MalformedSecurity, NotCovered
from lasthop_xml.xmlsecurity.vocabulary import IDENTIFIERS

BASE64 = Name(XSD_NS, "base64Binary")


def at_path(tree: Tree, path: Sequence[Name]) -> Element:
    """Return the only element at a path of names from the root; raise NotCovered if there is none
    or several."""
    first, *rest = path
    found = list(tree.root.find_all(*rest)) if tree.root.name == first else []
    if len(found) != 1:
        shown = "/".join(map(str, path))
        raise NotCovered("one element was expected at this place", path=shown, found=len(found))
    return found[0]


def identified(tree: Tree, identifier: str) -> Element:
    """Return the only element with an identifier; raise NotCovered for two, since an attacker could
    swap them."""
    root = tree.root
    found = [
        element
        for element in (root, *root.descendants())
        if any(element.attributes.get(name) == identifier for name in IDENTIFIERS)
    ]
    if len(found) != 1:
        raise NotCovered(
            "a reference must name exactly one element",
            identifier=identifier[:80],
            found=len(found),
        )
    return found[0]


def identifier_of(element: Element) -> str | None:
    return next(
        (element.attributes[name] for name in IDENTIFIERS if name in element.attributes), None
    )


def only_child(element: Element, name: Name) -> Element:
    """Return the only child with this name; raise MalformedSecurity if there is none or several."""
    found = list(element.find_all(name))
    if len(found) != 1:
        raise MalformedSecurity(
            "a part is missing or repeated",
            part=name.local,
            of=element.name.local,
            found=len(found),
        )
    return found[0]


def octets(element: Element) -> bytes:
    """Return the value of an element in base 64."""
    value: bytes = PRIMITIVES[BASE64].parse(element.text)
    return value


def cut(tree: Tree, whole: Element | None, out: Element | None) -> EventList:
    """Return the document, or the element `whole` as a fragment, without the element `out` inside
    of it."""
    events = tree.events if whole is None else whole.fragment()
    if out is None:
        return EventList(events)
    # A fragment starts with the prefixes that it inherits, and ends with its element's end.
    offset = 0 if whole is None else len(events) - 1 - whole.end
    first, last = out.first + offset, out.end + offset
    return EventList([*events[:first], *events[last + 1 :]])
