"""Annotations in schemas: skipped, but only where the compact syntax allows them (compact syntax,
section 5)."""

from __future__ import annotations

from lasthop_xml.relaxng.lexer import Lexeme, failure
from lasthop_xml.relaxng.reading import TokenReader
from lasthop_xml.xas.names import XMLNS_NS, Name

RELAX_NG_NS = "http://relaxng.org/ns/structure/1.0"


class AnnotationReader(TokenReader):
    """A token reader that skips annotations."""

    def skip_annotations(self) -> None:
        """Skip documentation and bracketed annotations before a pattern, a definition or a name."""
        while self.token.lexeme is Lexeme.DOCUMENTATION:
            self.advance()
        if self.take("["):
            seen: set[Name] = set()
            while self.token.lexeme is Lexeme.PREFIXED and self.peek().text == "=":
                self._attribute(seen, nested=False)
            while not self.take("]"):
                self._element(nested=False)

    def skip_following(self, *, allowed: bool = True) -> None:
        """Skip annotations after a pattern or a name; raise SchemaError if they are not `allowed`
        here."""
        while self.at(">>"):
            if not allowed:
                raise failure("no annotation can follow the outermost pattern", self.token.at)
            self.advance()
            self._element(nested=False)

    def skip_elements(self) -> None:
        """Skip annotation elements between the definitions of a grammar."""
        while self.at_element():
            self._element(nested=False)

    def at_element(self) -> bool:
        """Return whether an annotation element comes next."""
        names = (Lexeme.PREFIXED, Lexeme.NAME, Lexeme.QUOTED)
        return self.token.lexeme in names and self.peek().text == "["

    def _element(self, *, nested: bool) -> None:
        at = self.token.at
        if self.token.lexeme is Lexeme.PREFIXED:
            name = self.prefixed()
            if not nested and name.ns == RELAX_NG_NS:
                raise failure("an annotation must not be in the namespace of RELAX NG", at)
        else:
            self.unprefixed("an annotation")
        self.expect("[")
        with self.files.deeper(at):
            self._content()

    def _content(self) -> None:
        seen: set[Name] = set()
        while self.peek().text == "=" and self.peek().lexeme is Lexeme.SIGN:
            self._attribute(seen, nested=True)
        while not self.take("]"):
            if self.token.lexeme is Lexeme.LITERAL:
                self.literal("a text")
            else:
                self._element(nested=True)

    def _attribute(self, seen: set[Name], *, nested: bool) -> None:
        at = self.token.at
        if self.token.lexeme is Lexeme.PREFIXED:
            name = self.prefixed()
        else:
            name = Name("", self.unprefixed("an annotation"))
        if name.ns == XMLNS_NS or name == ("", "xmlns"):
            raise failure("an annotation must not declare a namespace", at)
        if not nested and name.ns in {"", RELAX_NG_NS}:
            raise failure("an annotation must not be in the namespace of RELAX NG", at)
        if name in seen:
            raise failure("an annotation has an attribute twice", at, name=str(name))
        seen.add(name)
        self.expect("=")
        self.literal("a value")
