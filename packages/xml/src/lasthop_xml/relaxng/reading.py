"""A cursor over the tokens of a file, and the namespaces that the file's declarations give to
prefixes."""

from __future__ import annotations

from lasthop_xml.relaxng.datatypes.datatype import XSD_LIBRARY
from lasthop_xml.relaxng.errors import SchemaError
from lasthop_xml.relaxng.files import File, Files
from lasthop_xml.relaxng.lexer import Lexeme, Token, failure, tokens
from lasthop_xml.xas.names import XML_NS, XMLNS_NS, Name


class TokenReader:
    """A cursor over the tokens of one schema file."""

    def __init__(self, file: File, files: Files, inherited: str) -> None:
        self.files = files
        self._tokens = tokens(file.text, file.source)
        self._index = 0
        self.inherited = inherited
        self.default: str | None = None
        self.prefixes = {"xml": XML_NS}
        self.libraries = {"xsd": XSD_LIBRARY}

    @property
    def token(self) -> Token:
        """Return the next token without moving."""
        return self._tokens[self._index]

    def peek(self, ahead: int = 1) -> Token:
        """Return the token that is `ahead` places after the next one, without moving."""
        return self._tokens[min(self._index + ahead, len(self._tokens) - 1)]

    def advance(self) -> Token:
        token = self.token
        self._index = min(self._index + 1, len(self._tokens) - 1)
        return token

    def mark(self) -> int:
        """Return the cursor's place, for `back`."""
        return self._index

    def back(self, mark: int) -> None:
        self._index = mark

    def at(self, text: str) -> bool:
        """Return whether this sign or keyword comes next."""
        return self.token.text == text and self.token.lexeme in (Lexeme.SIGN, Lexeme.KEYWORD)

    def take(self, text: str) -> bool:
        """Move past a sign or a keyword if it comes next; return whether it did."""
        if not self.at(text):
            return False
        self.advance()
        return True

    def expect(self, text: str) -> Token:
        if not self.at(text):
            raise self.unexpected(text)
        return self.advance()

    def unexpected(self, expected: str) -> SchemaError:
        token = self.token
        found = token.lexeme.value if token.lexeme is Lexeme.END else token.text[:40]
        return failure("something else was expected", token.at, expected=expected, found=found)

    def literal(self, what: str) -> str:
        """Read a literal, whose parts may be joined by tildes."""
        pieces = []
        while True:
            if self.token.lexeme is not Lexeme.LITERAL:
                raise self.unexpected(what)
            pieces.append(self.advance().text)
            if not self.take("~"):
                return "".join(pieces)

    def identifier(self, what: str) -> str:
        """Read a name that is not a keyword, or any name after a backslash."""
        if self.token.lexeme not in (Lexeme.NAME, Lexeme.QUOTED):
            raise self.unexpected(what)
        return self.advance().text

    def unprefixed(self, what: str) -> str:
        """Read any name without a prefix; keywords are allowed."""
        if self.token.lexeme not in (Lexeme.NAME, Lexeme.QUOTED, Lexeme.KEYWORD):
            raise self.unexpected(what)
        return self.advance().text

    def prefixed(self) -> Name:
        """Read a name with a prefix, and return it resolved."""
        token = self.advance()
        prefix, _, local = token.text.partition(":")
        return Name(self.namespace(prefix, token), local)

    def namespace(self, prefix: str, token: Token) -> str:
        ns = self.prefixes.get(prefix)
        if ns is None:
            raise failure("a prefix was not declared", token.at, prefix=prefix)
        return ns

    @property
    def default_namespace(self) -> str:
        """Return the namespace of element names without a prefix."""
        return self.inherited if self.default is None else self.default

    def declare(self, prefix: str, ns: str, token: Token) -> None:
        """Declare a prefix for a namespace."""
        if prefix == "xmlns" or ns == XMLNS_NS:
            raise failure("neither the prefix xmlns nor its namespace can be declared", token.at)
        if (prefix == "xml") != (ns == XML_NS):
            raise failure(
                "the prefix xml and its namespace can only be declared for each other", token.at
            )
        if prefix in self.prefixes and prefix != "xml":
            raise failure("a prefix is declared twice", token.at, prefix=prefix)
        self.prefixes[prefix] = ns
