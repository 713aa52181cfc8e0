"""What is no XPath, or not of our subset, is named with its place."""

import pytest

from lasthop_xml.errors import XmlError
from lasthop_xml.xas.errors import MalformedEvents, XmlTooLarge
from lasthop_xml.xas.events import end
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xpath.errors import MalformedXPath, UnsupportedXPath, XPathTooLarge
from lasthop_xml.xpath.parser import MAX_LENGTH, MAX_NESTING, MAX_STEPS, parse
from lasthop_xml.xpath.subscriptions import Subscriptions


@pytest.mark.parametrize(
    "expression, column, detail, fields",
    [
        ("", 1, "something else was expected", {"expected": "a name, * or @", "found": "the end"}),
        ("/", 2, "something else was expected", {"expected": "a name, * or @", "found": "the end"}),
        (
            "/a/",
            4,
            "something else was expected",
            {"expected": "a name, * or @", "found": "the end"},
        ),
        ("///a", 3, "something else was expected", {"expected": "a name, * or @", "found": "/"}),
        (
            "/a]",
            3,
            "something else was expected",
            {"expected": "a / or a |, or the end of the expression", "found": "]"},
        ),
        ("/a[b", 5, "something else was expected", {"expected": "]", "found": "the end"}),
        ("/a[(b]", 6, "something else was expected", {"expected": ")", "found": "]"}),
        ("/a[b=]", 6, "something else was expected", {"expected": "a constant", "found": "]"}),
        (
            "/a[@]",
            5,
            "something else was expected",
            {"expected": "an attribute's name", "found": "]"},
        ),
        (
            "/a b",
            4,
            "something else was expected",
            {"expected": "a / or a |, or the end of the expression", "found": "b"},
        ),
        (
            *("/a[contains(., 5)]", 16, "something else was expected"),
            {"expected": "a text in quotation marks", "found": "5"},
        ),
        ("/p:a", 2, "no namespace is known for this prefix", {"prefix": "p"}),
        (
            "/x:",
            4,
            "something else was expected",
            {"expected": "a local name or *", "found": "the end"},
        ),
        ("/a['b]", 4, "a text does not end", {"found": "'"}),
        ("/a[!b]", 4, "this character is not allowed here", {"found": "!"}),
        ("/\x01", 2, "this is not a name", {"found": "\x01"}),
        ("/sideways::a", 2, "XPath has no such axis", {"found": "sideways"}),
    ],
)
def test_what_is_no_xpath_is_said(
    expression: str, column: int, detail: str, fields: dict[str, str]
) -> None:
    with pytest.raises(MalformedXPath) as caught:
        parse(expression, {"x": "urn:x"})
    assert caught.value.detail == detail
    assert caught.value.fields == {**fields, "column": column}


@pytest.mark.parametrize(
    "expression, column, what",
    [
        ("/a/..", 4, "the step .."),
        ("/a/./b", 4, "the step ."),
        ("./a", 1, "a path from ."),
        ("/@a", 1, "a path without an element"),
        ("/a/parent::b", 4, "a step along the axis parent"),
        ("/a/descendant::b", 4, "a step along the axis descendant"),
        ("/a/node()", 4, "node() as a step"),
        ("/a/@b/c", 6, "a step from what is not an element"),
        ("/a/text()[1]", 10, "a predicate on a text"),
        ("/a/@b[1]", 6, "a predicate on an attribute"),
        ("/a[/b]", 4, "a path from the root inside of a predicate"),
        ("/a[b | c]", 6, "a union inside of a predicate"),
        ("/a[b = c]", 8, "a comparison with what is not a constant"),
        ("/a[b = -'c']", 9, "a comparison with what is not a constant"),
        ("/a[b + 1]", 6, "arithmetic"),
        ("/a[b = 1 + 1]", 10, "arithmetic"),
        ("/a[-b]", 4, "arithmetic"),
        ("/a[1 + 1]", 4, "arithmetic"),
        ("/a[$v]", 4, "a variable"),
        ("/a['x']", 4, "a constant as a condition"),
        ("/a[1 and b]", 4, "a constant as a condition"),
        ("/a[1 = 1]", 8, "a comparison with what is not a path"),
        ("/a[1 = not(b)]", 4, "a comparison with what is not a path"),
        ("/a[1 = (b)]", 8, "a comparison with what is not a path"),
        ("/a[(b) = 1]", 8, "a comparison of a condition"),
        ("/a[b = 1 = 2]", 10, "a comparison of a condition"),
        ("/a[not(b) = 1]", 11, "a comparison of a condition"),
        ("/a[last()]", 4, "the function last()"),
        ("/a[count(b) > 1]", 4, "the function count()"),
        ("/a[position()]", 14, "position() without a comparison"),
        ("/a[position() = last()]", 17, "a position compared with what is not a number"),
        ("/a['1' = position()]", 20, "a position compared with what is not a number"),
        ("/a[b][1]", 6, "a position such as [2] after a predicate that tests content"),
        ("/a[b or position() = 1]", 3, "a position together with content"),
        ("/a[contains(b, 'x')]", 13, "contains() of a path; put it into a predicate on ."),
        ("/a[contains(@*, 'x')]", 15, "contains() of several attributes"),
        ("/a[starts-with(., '')]", 19, "starts-with() of an empty text"),
    ],
)
def test_what_is_not_of_the_subset_is_named(expression: str, column: int, what: str) -> None:
    with pytest.raises(UnsupportedXPath) as caught:
        parse(expression)
    assert caught.value.fields == {"what": what, "column": column}


@pytest.mark.parametrize(
    "expression",
    [
        "/" + "a" * MAX_LENGTH,
        "/a" * (MAX_STEPS + 1),
        "/a" + "[b" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1),
        "/a[" + "(" * MAX_NESTING + "b" + ")" * MAX_NESTING + "]",
    ],
)
def test_an_expression_has_limits(expression: str) -> None:
    with pytest.raises(XPathTooLarge):
        parse(expression)


def test_the_largest_expressions_can_be_matched() -> None:
    subscriptions = Subscriptions[int]()
    subscriptions.add(1, "/a" * MAX_STEPS)
    subscriptions.add(2, "/a[.//b]" * (MAX_STEPS // 4))
    subscriptions.add(3, "/a" + "[b" * MAX_NESTING + "]" * MAX_NESTING)
    assert subscriptions.matching(parse_xml(b"<a>" * 100 + b"<b/>" + b"</a>" * 100)) == {1, 2}


def test_a_bad_expression_changes_nothing() -> None:
    subscriptions = Subscriptions[str](most=1)
    subscriptions.add("x", "/a")
    for wrong in ("/a[", "/a[last()]"):
        with pytest.raises(XmlError):
            subscriptions.add("x", wrong)
    with pytest.raises(XPathTooLarge, match="too many subscriptions"):
        subscriptions.add("y", "/a")
    subscriptions.add("x", "/b | /a")
    assert list(subscriptions) == ["x"]
    assert subscriptions.matching(parse_xml(b"<a/>")) == {"x"}
    with pytest.raises(KeyError):
        subscriptions.remove("y")


@pytest.mark.parametrize(
    "expression, document, matches",
    [
        # XPath's numbers have no exponent, though libxml2 reads them so.
        ("/a[. = 10]", b"<a>1e1</a>", False),
        ("/a[. < 3]", b"<a> 2\n</a>", True),
        # Comments divide texts, and are no part of the string.
        ("/a[text() = 'xy']", b"<a>x<!-- -->y</a>", False),
        ("/a[. = 'xy']", b"<a>x<!-- -->y</a>", True),
        # A word of the language can be a name.
        ("/and[or and div or not]", b"<and><not/></and>", True),
        ("/and[or and div or not]", b"<and><or/></and>", False),
        ("/a[not]", b"<a/>", False),
    ],
)
def test_meanings_that_are_easily_missed(expression: str, document: bytes, matches: bool) -> None:
    subscriptions = Subscriptions[int]()
    subscriptions.add(1, expression)
    assert bool(subscriptions.matching(parse_xml(document))) is matches


def test_hostile_documents_are_bounded() -> None:
    subscriptions = Subscriptions[int]()
    subscriptions.add(1, "//*[contains(., 'y')]")
    subscriptions.add(2, "//a//a//a//a//a//a[b]//a//a")
    limits = Limits(depth=50, size=10_000)
    deep = parse_xml(b"<a>" * 51 + b"</a>" * 51)
    with pytest.raises(XmlTooLarge, match="too deeply nested"):
        subscriptions.matching(deep, limits=limits)
    with pytest.raises(XmlTooLarge, match="comparing texts takes too long"):
        subscriptions.matching(parse_xml(b"<a>" * 50 + b"x" * 9000 + b"</a>" * 50), limits=limits)
    # Every element has the same few states, however deep it is.
    wide = parse_xml(b"<a>" * 150 + b"<b/>" + b"<a><a/></a>" * 3000 + b"</a>" * 150)
    assert subscriptions.matching(wide) == {2}
    with pytest.raises(MalformedEvents, match="not open"):
        subscriptions.matching([end(Name("", "a"))])


def test_it_can_be_known_before_the_document_has_ended() -> None:
    subscriptions = Subscriptions[int]()
    subscriptions.add(1, "/a/b[@k='1']")
    matcher = subscriptions.matcher()
    seen = []
    for each in parse_xml(b"<a><c/><b k='1'><d/></b></a>"):
        matcher.append(each)
        seen.append(bool(matcher.matched))
    assert seen.index(True) == 6
