"""The parser of name classes, which follow `element` and `attribute` in a schema."""

from __future__ import annotations

from enum import Flag, auto

from lasthop_xml.relaxng.declarations import DeclarationReader
from lasthop_xml.relaxng.lexer import Lexeme, Token, failure
from lasthop_xml.relaxng.nameclass import AnyInNamespace, AnyName, NameChoice, NameClass, OneName
from lasthop_xml.xas.names import XMLNS_NS, Name


class _Where(Flag):
    """Whether names are read for an element or an attribute, and whether as exceptions of a larger
    class."""

    ELEMENT = 0
    ATTRIBUTE = auto()
    IN_ANY = auto()
    IN_NAMESPACE = auto()


class NameClassReader(DeclarationReader):
    """A declaration reader that also parses name classes."""

    def element_names(self) -> NameClass:
        return self._names(_Where.ELEMENT)

    def attribute_names(self) -> NameClass:
        return self._names(_Where.ATTRIBUTE)

    def _names(self, where: _Where) -> NameClass:
        """Read alternative name classes; one with exceptions has to stand alone."""
        first, alone = self._basic(where, with_except=True)
        if alone or not self.at("|"):
            return first
        parts = [first]
        while self.take("|"):
            part, _ = self._basic(where, with_except=False)
            parts.append(part)
        return NameChoice(tuple(parts))

    def _basic(self, where: _Where, *, with_except: bool) -> tuple[NameClass, bool]:
        self.skip_annotations()
        is_open = self.at("*") or self.token.lexeme is Lexeme.ANY_IN_NS
        found = self._primary_names(where)
        alone = False
        if with_except and is_open and self.at("-"):
            self.advance()
            alone = True
            if isinstance(found, AnyName):
                exclude, _ = self._basic(where | _Where.IN_ANY, with_except=False)
                found = AnyName(exclude)
            elif isinstance(found, AnyInNamespace):
                exclude, _ = self._basic(where | _Where.IN_NAMESPACE, with_except=False)
                found = AnyInNamespace(found.ns, exclude)
        self.skip_following()
        return found, alone

    def _primary_names(self, where: _Where) -> NameClass:
        token = self.token
        if self.take("*"):
            # RELAX NG, section 4.16, here and below: what an exception must not contain.
            if where & (_Where.IN_ANY | _Where.IN_NAMESPACE):
                raise failure("* cannot be an exception", token.at)
            return AnyName()
        if token.lexeme is Lexeme.ANY_IN_NS:
            self.advance()
            if where & _Where.IN_NAMESPACE:
                raise failure("a namespace cannot be an exception of a namespace", token.at)
            ns = self.namespace(token.text.removesuffix(":*"), token)
            self._check(Name(ns, ""), where, token)
            return AnyInNamespace(ns)
        if self.take("("):
            with self.files.deeper(token.at):
                found = self._names(where)
            self.expect(")")
            return found
        if token.lexeme is Lexeme.PREFIXED:
            name = self.prefixed()
        else:
            # The default namespace does not apply to attributes, as in XML.
            ns = "" if where & _Where.ATTRIBUTE else self.default_namespace
            name = Name(ns, self.unprefixed("a name"))
        self._check(name, where, token)
        return OneName(name)

    def _check(self, name: Name, where: _Where, token: Token) -> None:
        """Refuse an attribute named xmlns: a namespace declaration is not an attribute (RELAX NG,
        section 4.16)."""
        if where & _Where.ATTRIBUTE and (name.ns == XMLNS_NS or name == ("", "xmlns")):
            raise failure("xmlns cannot be the name of an attribute", token.at)
