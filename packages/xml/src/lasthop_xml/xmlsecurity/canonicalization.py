"""Canonicalization: the bytes of a fragment of events over which a digest is made.

There are two algorithms. Canonical XML 2.0 with sequential prefixes is XAS's own form: nothing that
XAS does not keep has any influence on it, and types in xsi:type are protected. Exclusive
canonicalization is what other implementations have; it depends on prefixes, so a signature survives
conversion to another format only if each namespace has a single prefix where it is used.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from lxml import etree

from lasthop_xml.xas.canonical import canonical
from lasthop_xml.xas.events import ATTRIBUTE, ENTITY_REFERENCE
from lasthop_xml.xas.names import XSI_NS, XSI_TYPE, Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.tree import Element
from lasthop_xml.xas.writer import Writer
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xmlsecurity.errors import AlgorithmRefused, MalformedSecurity
from lasthop_xml.xmlsecurity.vocabulary import (
    ALGORITHM,
    C14N2_NS,
    CANONICAL_2,
    EXC_C14N_NS,
    EXCLUSIVE,
)

_INCLUSIVE: Final = Name(EXC_C14N_NS, "InclusiveNamespaces")
_PREFIX_LIST: Final = Name("", "PrefixList")
_PREFIX_REWRITE: Final = Name(C14N2_NS, "PrefixRewrite")
_QNAME_AWARE: Final = Name(C14N2_NS, "QNameAware")
_QUALIFIED_ATTRIBUTE: Final = Name(C14N2_NS, "QualifiedAttr")
_PARSER: Final = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, remove_comments=False
)


class Canonicalization(NamedTuple):
    """A canonicalization algorithm with its parameters."""

    algorithm: str
    prefixes: tuple[str, ...] = ()
    """For exclusive canonicalization, the prefixes that are treated as if they were used."""

    def of(self, fragment: EventList) -> bytes:
        """Return the canonical bytes of a document, or of a fragment that declares its prefixes,
        without comments."""
        if any(event.kind is ENTITY_REFERENCE for event in fragment):
            raise MalformedSecurity("an entity reference cannot be signed")
        # The serializer refuses everything that is not XML. A sequence that is not XML might have
        # the same form as another one, and a reader might see a third.
        written = serialize_xml(fragment)
        if self.algorithm == CANONICAL_2:
            return canonical(fragment)
        try:
            return etree.tostring(
                etree.fromstring(written, _PARSER).getroottree(),
                method="c14n",
                exclusive=True,
                with_comments=False,
                inclusive_ns_prefixes=list(self.prefixes) or None,
            )
        except etree.LxmlError as error:  # such as a namespace that is not an absolute URI
            raise MalformedSecurity(
                "these events have no exclusive canonical form", reason=str(error)
            ) from None

    def write(self, name: Name, writer: Writer) -> None:
        """Write the algorithm as a CanonicalizationMethod or a Transform element."""
        attributes = {ALGORITHM: self.algorithm}
        if self.algorithm == CANONICAL_2:
            with writer.element(name, attributes, prefixes={"c14n2": C14N2_NS}):
                writer.text_element(_PREFIX_REWRITE, "sequential")
                aware = {Name("", "Name"): XSI_TYPE.local, Name("", "NS"): XSI_NS}
                with writer.element(_QNAME_AWARE), writer.element(_QUALIFIED_ATTRIBUTE, aware):
                    pass
            return
        with writer.element(name, attributes):
            if self.prefixes:
                listed = {_PREFIX_LIST: " ".join(self.prefixes)}
                with writer.element(_INCLUSIVE, listed, prefixes={"ec": EXC_C14N_NS}):
                    pass


def read(method: Element) -> Canonicalization:
    """Return the algorithm that a CanonicalizationMethod or a Transform names; raise
    AlgorithmRefused if it is not supported."""
    algorithm = method.attributes.get(ALGORITHM)
    if algorithm == EXCLUSIVE:
        inclusive = method.find(_INCLUSIVE)
        listed = "" if inclusive is None else inclusive.attributes.get(_PREFIX_LIST, "")
        return Canonicalization(EXCLUSIVE, tuple(listed.split()))
    if algorithm == CANONICAL_2:
        aware = [
            (each.attributes.get(Name("", "Name")), each.attributes.get(Name("", "NS")))
            for each in method.find_all(_QNAME_AWARE, _QUALIFIED_ATTRIBUTE)
        ]
        rewrite = [each.text for each in method.find_all(_PREFIX_REWRITE)]
        if rewrite == ["sequential"] and aware == [(XSI_TYPE.local, XSI_NS)]:
            return Canonicalization(CANONICAL_2)
        raise AlgorithmRefused("Canonical XML 2.0 is supported with sequential prefixes only")
    raise AlgorithmRefused("this canonicalization is not supported", algorithm=str(algorithm))


def exclusive_for(element: Element) -> Canonicalization:
    """Return exclusive canonicalization that also protects the prefixes in the element's
    xsi:type."""
    used = {
        event.value.rpartition(":")[0] or "#default"
        for event in element.fragment()
        if event.kind is ATTRIBUTE and event.name == XSI_TYPE
    }
    return Canonicalization(EXCLUSIVE, tuple(sorted(used)))
