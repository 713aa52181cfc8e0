"""Descriptions in ORL: the grammar, and what a description must not say.

    file       = header* namespace* type*
    header     = "package" DOTTED | "codec-package" DOTTED | "codec-name" WORD
    namespace  = "namespace" PREFIX "\\"" URI "\\""
    type       = "type" name "{" component* "}"
    component  = name [ "?" | "*" ] name
    name       = [ PREFIX ":" ] LOCAL

The first name of a component is its type: a primitive one such as `string`, or one of the file. A
name without a prefix has no namespace. `#` begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lasthop_xml.orl.errors import MalformedOrl
from lasthop_xml.orl.lexer import OrlToken, tokens
from lasthop_xml.orl.model import Component, Description, Occurrence, Structure
from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.names import XML_NS, XSD_NS, XSI_NS, Name, check_text, is_ncname
from lasthop_xml.xas.types.table import PRIMITIVES

MAX_SIZE = 2**20
"""The largest number of characters of a description; people write descriptions by hand."""

HEADERS = ("package", "codec-package", "codec-name")
FIXED_PREFIXES = {"xml": XML_NS, "xsd": XSD_NS, "xsi": XSI_NS}

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def parse(source: str) -> Description:
    """Return the parsed description; raise MalformedOrl with the place of the first mistake."""
    if len(source) > MAX_SIZE:
        raise MalformedOrl("a description is too long", most=MAX_SIZE, line=1, column=1)
    return _OrlParser(tokens(source)).description()


class _OrlParser:
    def __init__(self, source: Iterable[OrlToken]) -> None:
        self._tokens = list(source)
        self._at = 0
        self._namespaces: dict[str, str] = {}

    def description(self) -> Description:
        headers = self._headers()
        while self._next.value == "namespace":
            self._namespace()
        structures: dict[Name, Structure] = {}
        places: dict[Component, OrlToken] = {}
        while self._next.kind != "end":
            structure = self._structure(places)
            if (earlier := structures.get(structure.name)) is not None:
                raise MalformedOrl(
                    "a type is defined twice",
                    type=str(structure.name),
                    line=structure.line,
                    column=structure.column,
                    first_line=earlier.line,
                )
            structures[structure.name] = structure
        if not structures:
            raise self._next.refuse("a description must define at least one type", expected="type")
        for component, place in places.items():
            if component.type not in structures and component.type not in PRIMITIVES:
                raise place.refuse(
                    "this type is neither primitive nor defined in this file",
                    type=place.value,
                )
        _check_finite(structures)
        return Description(
            package=headers.get("package"),
            codec_package=headers.get("codec-package"),
            codec_name=headers.get("codec-name"),
            namespaces=self._namespaces,
            structures=tuple(structures.values()),
        )

    @property
    def _next(self) -> OrlToken:
        return self._tokens[self._at]

    def _take(self, kind: str, expected: str) -> OrlToken:
        token = self._next
        if token.kind != kind:
            raise token.refuse("something else was expected", expected=expected, found=token.value)
        self._at += 1
        return token

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        while self._next.value in HEADERS and self._next.kind == "word":
            keyword = self._take("word", "a header")
            if keyword.value in headers:
                raise keyword.refuse("a header is given twice", header=keyword.value)
            value = self._take("word", f"the {keyword.value}")
            dotted = keyword.value != "codec-name"
            if _DOTTED.fullmatch(value.value) is None or (not dotted and "." in value.value):
                expected = "names with dots between them" if dotted else "a name"
                raise value.refuse(
                    "something else was expected", expected=expected, found=value.value
                )
            headers[keyword.value] = value.value
        return headers

    def _namespace(self) -> None:
        self._take("word", "namespace")
        prefix = self._take("word", "a prefix")
        uri = self._take("text", "a namespace in quotation marks")
        if not is_ncname(prefix.value):
            raise prefix.refuse("this is not a valid prefix", prefix=prefix.value)
        if prefix.value in self._namespaces:
            raise prefix.refuse("a prefix is declared twice", prefix=prefix.value)
        if FIXED_PREFIXES.get(prefix.value, uri.value) != uri.value:
            raise prefix.refuse(
                "this prefix is reserved for another namespace", prefix=prefix.value
            )
        try:
            check_text(uri.value)
        except MalformedEvents as error:
            raise uri.refuse(error.detail) from None
        if not uri.value:
            raise uri.refuse("a namespace must not be empty", prefix=prefix.value)
        self._namespaces[prefix.value] = uri.value

    def _structure(self, places: dict[Component, OrlToken]) -> Structure:
        keyword = self._take("word", "type")
        if keyword.value != "type":
            raise keyword.refuse(
                "something else was expected", expected="type", found=keyword.value
            )
        word = self._take("word", "the name of a type")
        name = self._name(word)
        if not name.ns and Name(XSD_NS, name.local) in PRIMITIVES:
            raise word.refuse("a type must not have the name of a primitive type", type=word.value)
        if name.ns == XSD_NS:
            raise word.refuse("types of XML Schema cannot be defined again", type=word.value)
        self._sign("{")
        components: dict[Name, Component] = {}
        while self._next.value != "}" or self._next.kind != "sign":
            type_, place, component = self._component()
            if component.name in components:
                raise place.refuse("a type has a component twice", component=place.value)
            components[component.name] = component
            places[component] = type_
        self._sign("}")
        return Structure(name, tuple(components.values()), word.line, word.column)

    def _component(self) -> tuple[OrlToken, OrlToken, Component]:
        type_ = self._take("word", "a component or }")
        occurrence = Occurrence.ONE
        if self._next.kind == "sign" and self._next.value in {"?", "*"}:
            occurrence = Occurrence(self._take("sign", "? or *").value)
        place = self._take("word", "the name of a component")
        resolved = self._name(type_)
        if not resolved.ns and (primitive := Name(XSD_NS, resolved.local)) in PRIMITIVES:
            resolved = primitive
        component = Component(self._name(place), resolved, occurrence, place.line, place.column)
        return type_, place, component

    def _name(self, word: OrlToken) -> Name:
        prefix, colon, local = word.value.rpartition(":")
        if not is_ncname(local) or (colon and not is_ncname(prefix)):
            raise word.refuse("this is not a name", found=word.value[:80])
        if not colon:
            return Name("", local)
        ns = self._namespaces.get(prefix, FIXED_PREFIXES.get(prefix))
        if ns is None:
            raise word.refuse("no namespace is declared for this prefix", prefix=prefix)
        return Name(ns, local)

    def _sign(self, sign: str) -> None:
        token = self._next
        if token.kind != "sign" or token.value != sign:
            raise token.refuse("something else was expected", expected=sign, found=token.value)
        self._at += 1


def _check_finite(structures: dict[Name, Structure]) -> None:
    """Refuse a type that always contains a value of itself: such a value could never end."""
    finite = set(PRIMITIVES)
    open_ = list(structures.values())
    while open_:
        closed = [each for each in open_ if _needed(each) <= finite]
        if not closed:
            raise MalformedOrl(
                "a type always contains itself; make a component optional or repeated",
                type=str(open_[0].name),
                line=open_[0].line,
                column=open_[0].column,
            )
        finite.update(each.name for each in closed)
        open_ = [each for each in open_ if each.name not in finite]


def _needed(structure: Structure) -> set[Name]:
    return {each.type for each in structure.components if each.occurrence is Occurrence.ONE}
