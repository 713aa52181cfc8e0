"""From XPath expressions to patterns: the subset of XPath 1.0 that can be matched in one pass.

    union      = path { "|" path }
    path       = [ "/" | "//" ] step { ( "/" | "//" ) step }
    step       = [ "child::" ] test { "[" predicate "]" } | attribute | "text()"
    attribute  = ( "@" | "attribute::" ) test
    test       = NAME | PREFIX ":" NAME | PREFIX ":*" | "*"
    predicate  = NUMBER | or-expression over
                   inner path [ operator constant ] | constant operator inner path
                   | position() operator NUMBER
                   | contains( value , LITERAL ) | starts-with( value , LITERAL )
                   | not( or-expression ) | "(" or-expression ")"
    inner path = "." | [ "./" | ".//" ] path without a leading slash
    value      = "." | "@" NAME

Every other construct of XPath is refused by its name, rather than half understood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lasthop_xml.xpath.cursor import Cursor
from lasthop_xml.xpath.errors import MalformedXPath, XPathTooLarge
from lasthop_xml.xpath.lexer import XPathToken, tokens
from lasthop_xml.xpath.pattern import (
    TRUE,
    And,
    AttributeTest,
    Comparison,
    Exists,
    Formula,
    NameTest,
    Not,
    Or,
    PathPattern,
    PositionTest,
    Step,
    StringTest,
    TextTest,
    both,
    decided_at_start,
    mentions_position,
)

MAX_LENGTH: Final = 4096
"""The largest number of characters of an expression: people write expressions, and all of them are
kept."""
MAX_STEPS: Final = 64
"""The largest number of steps and predicates of an expression, which limits what one subscription
costs a document."""
MAX_NESTING: Final = 16
"""The largest number of predicates and parentheses inside one another; each takes some Python
frames."""

_ANY: Final = NameTest(None, None)
_COMPARISONS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})
_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ARITHMETIC: Final = frozenset({"+", "-", "*", "div", "mod"})
_AXES: Final = frozenset(
    {"ancestor", "ancestor-or-self", "descendant", "descendant-or-self", "following"}
    | {"following-sibling", "namespace", "parent", "preceding", "preceding-sibling", "self"}
)


def parse(expression: str, prefixes: Mapping[str, str] | None = None) -> tuple[PathPattern, ...]:
    """Return the patterns of a union; a document matches the expression if it fits any of them."""
    if len(expression) > MAX_LENGTH:
        raise XPathTooLarge("an expression is too long", most=MAX_LENGTH)
    return _XPathParser(tokens(expression), prefixes or {}).union()


class _Open:
    """A path that is being read: its steps, each with its guard and its formula about content."""

    def __init__(self) -> None:
        self.steps: list[tuple[bool, NameTest, Formula, Formula]] = []

    def closed(self, formula: Formula) -> PathPattern:
        """Return the path in normal form: a step with content that is not the last gets a formula
        about the rest of the path."""
        steps: list[Step] = []
        for index, (descend, test, guard, content) in enumerate(self.steps):
            steps.append(Step(descend, test, guard))
            if content != TRUE:
                rest = _Open()
                rest.steps = self.steps[index + 1 :]
                below = Exists(rest.closed(formula)) if rest.steps else formula
                return PathPattern(tuple(steps), both(content, below))
        return PathPattern(tuple(steps), formula)


def _with(path: _Open, last: Formula) -> PathPattern:
    """Return a path with a formula about its last element."""
    if not decided_at_start(last):
        return path.closed(last)
    *before, (descend, test, guard, content) = path.steps
    path.steps = [*before, (descend, test, both(guard, last), content)]
    return path.closed(TRUE)


class _XPathParser(Cursor):
    def __init__(self, source: list[XPathToken], prefixes: Mapping[str, str]) -> None:
        super().__init__(source)
        self._prefixes = prefixes
        self._steps = 0
        self._nesting = 0
        self._left: Comparison | None = None  # of a constant before its path, as in 5 < @a

    def union(self) -> tuple[PathPattern, ...]:
        patterns = [self._outer_path()]
        while self._accept("|"):
            patterns.append(self._outer_path())
        if self._next.kind != "end":
            raise self._unexpected("a / or a |, or the end of the expression")
        return tuple(patterns)

    def _count(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise XPathTooLarge("an expression has too many steps", most=MAX_STEPS)

    def _outer_path(self) -> PathPattern:
        slash = self._accept("/", "//")
        if self._is(".", ".."):
            raise self._unsupported("a path from " + self._next.value)
        formula = self._path(descend=slash is not None and slash.value == "//", inner=False)
        if not isinstance(formula, Exists):
            raise self._unsupported("a path without an element", self._tokens[0])
        return formula.pattern

    def _inner_path(self) -> Formula:
        """Return what a path from the context element says about that element, with its
        comparison."""
        if self._is("/", "//"):
            raise self._unsupported("a path from the root inside of a predicate")
        descend = False
        if self._accept("."):
            slash = self._accept("/", "//")
            if slash is None:
                comparison = self._comparison()
                return TRUE if comparison is None else StringTest(comparison)
            descend = slash.value == "//"
        return self._path(descend=descend, inner=True)

    def _path(self, *, descend: bool, inner: bool) -> Formula:
        path = _Open()
        while True:
            self._count()
            if self._is("..", "."):
                raise self._unsupported(f"the step {self._next.value}")
            if (last := self._last_step(inner)) is not None:
                return self._ended(path, last, descend=descend, inner=inner)
            path.steps.append(self._element_step(descend))
            slash = self._accept("/", "//")
            if slash is None:
                comparison = self._comparison() if inner else None
                return Exists(path.closed(TRUE if comparison is None else StringTest(comparison)))
            descend = slash.value == "//"

    def _last_step(self, inner: bool) -> Formula | None:
        """Return what an attribute or a text at the end of a path says about its element; None if
        neither is next."""
        if self._accept("@") or self._axis("attribute"):
            test = self._name_test(attribute=True)
            if self._is("["):
                raise self._unsupported("a predicate on an attribute")
            found: Formula = AttributeTest(test, self._comparison() if inner else None)
        elif self._next.value == "text" and self._follows("("):
            self._at += 2
            self._expect(")")
            if self._is("["):
                raise self._unsupported("a predicate on a text")
            found = TextTest(self._comparison() if inner else None)
        else:
            return None
        if self._is("/", "//"):
            raise self._unsupported("a step from what is not an element")
        return found

    def _ended(self, path: _Open, last: Formula, *, descend: bool, inner: bool) -> Formula:
        if not path.steps and not descend:
            if not inner:
                raise self._unsupported("a path without an element", self._tokens[0])
            return last
        if not descend:
            return Exists(_with(path, last))
        # XPath 1.0, section 2.5: `//@a` selects on the element itself and on everything below it.
        below = _Open()
        below.steps = [(True, _ANY, TRUE, TRUE)]
        anywhere = Exists(_with(below, last))
        if path.steps:
            return Exists(path.closed(Or((last, anywhere))))
        return Or((last, anywhere)) if inner else anywhere

    def _element_step(self, descend: bool) -> tuple[bool, NameTest, Formula, Formula]:
        self._axis("child")
        test = self._name_test()
        guard: Formula = TRUE
        content: Formula = TRUE
        while (bracket := self._accept("[")) is not None:
            self._count()
            for part in self._predicate(test, guard, content, bracket):
                if decided_at_start(part):
                    guard = both(guard, part)
                elif mentions_position(part):
                    raise self._unsupported("a position together with content", bracket)
                else:
                    content = both(content, part)
        return descend, test, guard, content

    def _axis(self, supported: str) -> bool:
        if not self._follows("::"):
            return False
        name = self._next.value
        if name == supported:
            self._at += 2
            return True
        if name in {"child", "attribute"}:
            return False
        if name in _AXES:
            raise self._unsupported(f"a step along the axis {name}")
        raise MalformedXPath("XPath has no such axis", column=self._next.column, found=name[:80])

    def _name_test(self, *, attribute: bool = False) -> NameTest:
        token = self._next
        if self._accept("*"):
            return _ANY
        if token.kind != "name":
            raise self._unexpected("an attribute's name" if attribute else "a name, * or @")
        if self._follows("("):
            raise self._unsupported(f"{token.value}() as a step")
        self._at += 1
        if not self._accept(":"):
            # XPath 1.0, section 2.3: the default namespace does not apply to a name without a
            # prefix.
            return NameTest("", token.value)
        ns = self._prefixes.get(token.value)
        if ns is None:
            raise MalformedXPath(
                "no namespace is known for this prefix", column=token.column, prefix=token.value
            )
        if self._accept("*"):
            return NameTest(ns, None)
        local = self._next
        if local.kind != "name":
            raise self._unexpected("a local name or *")
        self._at += 1
        return NameTest(ns, local.value)

    def _predicate(
        self, test: NameTest, guard: Formula, content: Formula, bracket: XPathToken
    ) -> tuple[Formula, ...]:
        number = self._next
        # XPath 1.0, section 2.4: a number as a predicate is a test of the position.
        if number.kind == "number" and self._tokens[self._at + 1].value == "]":
            self._at += 2
            formula: Formula = PositionTest(test, guard, Comparison("=", float(number.value)))
        else:
            formula = self._nested(lambda: self._or(test, guard))
            self._expect("]")
        if mentions_position(formula) and content != TRUE:
            raise self._unsupported(
                "a position such as [2] after a predicate that tests content", bracket
            )
        return formula.parts if isinstance(formula, And) else (formula,)

    def _nested(self, read: Callable[[], Formula]) -> Formula:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise XPathTooLarge("predicates are too deeply nested", most=MAX_NESTING)
        left, self._left = self._left, None
        found = read()
        self._nesting -= 1
        self._left = left
        return found

    def _or(self, test: NameTest, guard: Formula) -> Formula:
        parts = [self._and(test, guard)]
        while self._accept("or"):
            parts.append(self._and(test, guard))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _and(self, test: NameTest, guard: Formula) -> Formula:
        found = self._unary(test, guard)
        while self._accept("and"):
            found = both(found, self._unary(test, guard))
        return found

    def _unary(self, test: NameTest, guard: Formula) -> Formula:
        token = self._next
        if self._accept("("):
            found = self._nested(lambda: self._or(test, guard))
            self._expect(")")
            self._refuse_operator("a comparison of a condition")
            return found
        if token.kind in {"literal", "number"}:
            return self._constant_first(test, guard)
        if self._follows("("):
            if token.value in {"not", "contains", "starts-with", "position"}:
                return self._function(test, guard)
            if token.value != "text":
                raise self._unsupported(f"the function {token.value}()")
        if self._is("$"):
            raise self._unsupported("a variable")
        if self._is("-", "+"):
            raise self._unsupported("arithmetic")
        self._count()
        return self._inner_path()

    def _function(self, test: NameTest, guard: Formula) -> Formula:
        token = self._next
        self._at += 2
        if token.value == "not":
            found: Formula = Not(self._nested(lambda: self._or(test, guard)))
            self._expect(")")
        elif token.value == "position":
            self._expect(")")
            return PositionTest(test, guard, self._position_comparison())
        else:
            found = self._text_function(token)
        self._refuse_operator("a comparison of a condition")
        return found

    def _text_function(self, function: XPathToken) -> Formula:
        """Read contains() or starts-with(). XPath converts a set of nodes by its first node
        (section 4.2), so only single values are allowed here."""
        attribute: NameTest | None = None
        if self._accept("@") or self._axis("attribute"):
            attribute = self._name_test(attribute=True)
        elif not self._accept(".") or self._is("/", "//"):
            raise self._unsupported(f"{function.value}() of a path; put it into a predicate on .")
        if attribute is not None and None in attribute:
            raise self._unsupported(f"{function.value}() of several attributes")
        self._expect(",")
        constant = self._next
        if constant.kind != "literal":
            raise self._unexpected("a text in quotation marks")
        if not constant.value:
            raise self._unsupported(f"{function.value}() of an empty text", constant)
        self._at += 1
        self._expect(")")
        comparison = Comparison(function.value, constant.value)
        return StringTest(comparison) if attribute is None else AttributeTest(attribute, comparison)

    def _position_comparison(self) -> Comparison:
        if self._left is not None:
            left, self._left = self._left, None
            if isinstance(left.constant, str):
                raise self._unsupported("a position compared with what is not a number")
            return left
        operator = self._accept(*_COMPARISONS)
        if operator is None:
            raise self._unsupported("position() without a comparison")
        number = self._next
        if number.kind != "number":
            raise self._unsupported("a position compared with what is not a number")
        self._at += 1
        self._refuse_operator("a comparison of a condition")
        return Comparison(operator.value, float(number.value))

    def _comparison(self) -> Comparison | None:
        if (left := self._left) is not None:
            self._left = None
            self._refuse_operator("a comparison of a condition")
            return left
        if self._is("|"):
            raise self._unsupported("a union inside of a predicate")
        operator = self._accept(*_COMPARISONS)
        if operator is None:
            if self._is(*_ARITHMETIC):
                raise self._unsupported("arithmetic")
            return None
        return Comparison(operator.value, self._constant())

    def _constant(self) -> str | float:
        sign = -1 if self._accept("-") else 1
        token = self._next
        if token.kind not in {"literal", "number"} or (sign < 0 and token.kind == "literal"):
            if token.kind in {"name", "literal"} or self._is("@", ".", "..", "(", "/", "//", "$"):
                raise self._unsupported("a comparison with what is not a constant")
            raise self._unexpected("a constant")
        self._at += 1
        if self._is(*_ARITHMETIC):
            raise self._unsupported("arithmetic")
        self._refuse_operator("a comparison of a condition")
        return token.value if token.kind == "literal" else sign * float(token.value)

    def _constant_first(self, test: NameTest, guard: Formula) -> Formula:
        """Read a comparison whose constant comes first: `5 < @a` is `@a > 5`."""
        constant = self._next
        self._at += 1
        operator = self._accept(*_COMPARISONS)
        if operator is None:
            what = "arithmetic" if self._is(*_ARITHMETIC) else "a constant as a condition"
            raise self._unsupported(what, constant)
        value = constant.value if constant.kind == "literal" else float(constant.value)
        self._left = Comparison(_FLIPPED.get(operator.value, operator.value), value)
        if self._next.kind in {"literal", "number"} or self._is("("):
            raise self._unsupported("a comparison with what is not a path")
        found = self._unary(test, guard)
        self._refuse_left(constant)
        return found

    def _refuse_left(self, constant: XPathToken) -> None:
        if self._left is not None:
            raise self._unsupported("a comparison with what is not a path", constant)

    def _refuse_operator(self, what: str) -> None:
        if self._is(*_COMPARISONS):
            raise self._unsupported(what)
