"""From tokens to the tree of a schema: the grammar of the compact syntax (appendix A), top down."""

from __future__ import annotations

from lasthop_xml.relaxng.files import File, Files
from lasthop_xml.relaxng.lexer import Lexeme, failure
from lasthop_xml.relaxng.names import NameClassReader
from lasthop_xml.relaxng.syntax import (
    START,
    AttributeNode,
    Component,
    ConnectedNode,
    Connector,
    DataNode,
    DefineNode,
    DivNode,
    ElementNode,
    EmptyNode,
    GrammarNode,
    IncludeNode,
    ListNode,
    MixedNode,
    NotAllowedNode,
    Param,
    PatternNode,
    RefNode,
    Repeat,
    RepeatedNode,
    TextNode,
    ValueNode,
)

_COMBINE = {"=": None, "|=": Connector.CHOICE, "&=": Connector.INTERLEAVE}
_BEGINS_COMPONENT = frozenset({"start", "include", "div"})


def parse_file(file: File, files: Files, inherited: str = "") -> PatternNode:
    """Parse a file and return its pattern; a file of definitions is a grammar."""
    with files.opened(file):
        return PatternReader(file, files, inherited).whole()


class PatternReader(NameClassReader):
    """A parser of one schema file: declarations, then a pattern or the definitions of a grammar."""

    def whole(self) -> PatternNode:
        """Parse the whole file and return its pattern."""
        self.declarations()
        mark = self.mark()
        self.skip_annotations()
        is_grammar = self._at_component() or self.token.lexeme is Lexeme.END
        self.back(mark)
        if is_grammar:
            at = self.token.at
            found: PatternNode = GrammarNode(at, self._components())
        else:
            found = self._pattern(outermost=True)
        if self.token.lexeme is not Lexeme.END:
            raise self.unexpected("the end of the schema")
        return found

    def _at_component(self) -> bool:
        token, behind = self.token, self.peek()
        if token.lexeme is Lexeme.KEYWORD:
            return token.text in _BEGINS_COMPONENT
        is_name = token.lexeme in (Lexeme.NAME, Lexeme.QUOTED)
        return self.at_element() or (
            is_name and behind.lexeme is Lexeme.SIGN and behind.text in _COMBINE
        )

    # Patterns

    def _pattern(self, *, outermost: bool = False) -> PatternNode:
        """Read the patterns of one level, which must all be joined by the same connector."""
        at = self.token.at
        with self.files.deeper(at):
            first, alone = self._particle(outermost=outermost)
            if not self._at_connector():
                return first
            connector = Connector(self.token.text)
            parts = [first]
            while self._at_connector():
                if self.token.text != connector.value:
                    raise failure(
                        "connectors of two kinds need parentheses",
                        self.token.at,
                        expected=connector.value,
                        found=self.token.text,
                    )
                if alone:
                    self._refuse_open_except()
                self.advance()
                part, alone = self._particle(outermost=outermost)
                parts.append(part)
            if alone:
                self._refuse_open_except()
            return ConnectedNode(at, connector, tuple(parts))

    def _at_connector(self) -> bool:
        return any(self.at(connector.value) for connector in Connector)

    def _refuse_open_except(self) -> None:
        raise failure("a datatype with exceptions needs parentheses here", self.token.at)

    def _particle(self, *, outermost: bool) -> tuple[PatternNode, bool]:
        """Return a pattern that may be repeated, and whether it has to stand alone."""
        at = self.token.at
        self.skip_annotations()
        found, alone = self._primary(outermost=outermost)
        self.skip_following(allowed=not outermost)
        if self.token.lexeme is Lexeme.SIGN and self.token.text in {"?", "*", "+"}:
            if alone:
                self._refuse_open_except()
            found = RepeatedNode(at, Repeat(self.advance().text), found)
            self.skip_following(allowed=not outermost)
        return found, alone

    def _primary(self, *, outermost: bool = False) -> tuple[PatternNode, bool]:
        token = self.token
        match token.lexeme:
            case Lexeme.NAME | Lexeme.QUOTED:
                return RefNode(token.at, self.advance().text, parent=False), False
            case Lexeme.LITERAL:
                text = self.literal("a value")
                return ValueNode(token.at, "", "token", text, self._namespaces()), False
            case Lexeme.PREFIXED:
                return self._typed()
            case Lexeme.SIGN if token.text == "(":
                self.advance()
                found = self._pattern(outermost=outermost)
                self.expect(")")
                return found, False
            case Lexeme.KEYWORD:
                if token.text in {"string", "token"}:
                    return self._typed()
                return self._keyword(), False
            case _:
                raise self.unexpected("a pattern")

    def _keyword(self) -> PatternNode:
        token = self.advance()
        at = token.at
        match token.text:
            case "element":
                return ElementNode(at, self.element_names(), self._braces())
            case "attribute":
                return AttributeNode(at, self.attribute_names(), self._braces())
            case "list":
                return ListNode(at, self._braces())
            case "mixed":
                return MixedNode(at, self._braces())
            case "empty":
                return EmptyNode(at)
            case "text":
                return TextNode(at)
            case "notAllowed":
                return NotAllowedNode(at)
            case "parent":
                return RefNode(at, self.identifier("the name of a definition"), parent=True)
            case "external":
                href = self.literal("the name of a file")
                return parse_file(self.files.load(href, at), self.files, self._inherit())
            case "grammar":
                self.expect("{")
                with self.files.deeper(at):
                    content = self._components()
                self.expect("}")
                return GrammarNode(at, content)
            case _:
                raise failure("a keyword stands where a pattern was expected", at, found=token.text)

    def _braces(self) -> PatternNode:
        self.expect("{")
        found = self._pattern()
        self.expect("}")
        return found

    # Datatypes

    def _typed(self) -> tuple[PatternNode, bool]:
        token = self.advance()
        library, type_ = "", token.text
        if token.lexeme is Lexeme.PREFIXED:
            prefix, _, type_ = token.text.partition(":")
            if prefix not in self.libraries:
                raise failure("a datatype library was not declared", token.at, prefix=prefix)
            library = self.libraries[prefix]
        if self.token.lexeme is Lexeme.LITERAL:
            text = self.literal("a value")
            return ValueNode(token.at, library, type_, text, self._namespaces()), False
        params = tuple(self._params()) if self.take("{") else ()
        exclude = None
        at = self.token.at
        if self.take("-"):
            with self.files.deeper(at):
                self.skip_annotations()
                exclude, open_except = self._primary()
                if open_except:
                    self._refuse_open_except()
        found = DataNode(token.at, library, type_, params, exclude, self._namespaces())
        return found, exclude is not None

    def _params(self) -> list[Param]:
        found = []
        while not self.take("}"):
            self.skip_annotations()
            at = self.token.at
            name = self.unprefixed("a parameter")
            self.expect("=")
            found.append(Param(at, name, self.literal("a value")))
        return found

    def _namespaces(self) -> dict[str, str]:
        return {**self.prefixes, "": self.default_namespace}

    # Grammars

    def _components(self, *, overriding: bool = False) -> tuple[Component, ...]:
        found: list[Component] = []
        self.skip_elements()
        while self.token.lexeme is not Lexeme.END and not self.at("}"):
            self.skip_annotations()
            found.append(self._component(overriding=overriding))
            self.skip_elements()
        return tuple(found)

    def _component(self, *, overriding: bool) -> Component:
        at = self.token.at
        if self.take("div"):
            return DivNode(at, self._nested(overriding=overriding))
        if not overriding and self.take("include"):
            return self._include()
        name = START if self.take("start") else self.identifier("a definition")
        if self.token.lexeme is not Lexeme.SIGN or self.token.text not in _COMBINE:
            raise self.unexpected("=")
        combine = _COMBINE[self.advance().text]
        return DefineNode(at, name, combine, self._pattern())

    def _nested(self, *, overriding: bool) -> tuple[Component, ...]:
        at = self.expect("{").at
        with self.files.deeper(at):
            content = self._components(overriding=overriding)
        self.expect("}")
        return content

    def _include(self) -> Component:
        at = self.token.at
        href = self.literal("the name of a file")
        inherited = self._inherit()
        overrides = self._nested(overriding=True) if self.at("{") else ()
        included = parse_file(self.files.load(href, at), self.files, inherited)
        if not isinstance(included, GrammarNode):
            raise failure("only a grammar can be included", at, href=href[:80])
        return IncludeNode(at, included.content, overrides)

    def _inherit(self) -> str:
        if not self.take("inherit"):
            return self.default_namespace
        self.expect("=")
        token = self.token
        return self.namespace(self.unprefixed("a prefix"), token)
