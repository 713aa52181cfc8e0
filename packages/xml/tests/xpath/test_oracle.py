"""Subscriptions match exactly the documents in which lxml finds something."""

import os
from random import Random

from hypothesis import HealthCheck, given, settings, strategies as st
from lxml import etree

from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xpath.errors import UnsupportedXPath, XPathTooLarge
from lasthop_xml.xpath.subscriptions import Subscriptions
from tests.xpath.expressions import PREFIXES, Documents, Expressions

ROUNDS = int(os.environ.get("XPATH_ROUNDS", "150"))
PARSER = etree.XMLParser(resolve_entities=False)


def check(random: Random, *, expressions: int, documents: int) -> tuple[int, int]:
    """How many expressions were refused, and how many matched something."""
    subscriptions = Subscriptions[str]()
    refused = matched = 0
    reasons: set[str] = set()
    for _ in range(expressions):
        expression = Expressions(random).expression()
        try:
            subscriptions.add(expression, expression, prefixes=PREFIXES)
        except UnsupportedXPath as error:
            refused += 1
            reasons.add(str(error.fields["what"]))
        except XPathTooLarge:
            refused += 1
    assert all("position" in reason for reason in reasons)
    wanted = {key: etree.XPath(key, namespaces=PREFIXES) for key in list(subscriptions)}
    for _ in range(documents):
        document = Documents(random).document()
        tree = etree.ElementTree(etree.fromstring(document, PARSER))
        expected = {key for key, expression in wanted.items() if expression(tree)}
        events = parse_xml(document)
        assert subscriptions.matching(events) == expected
        assert subscriptions.matching(typed_sequence(events)) == expected
        matched += len(expected)
    return refused, matched


@given(st.randoms(note_method_calls=True))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_lxml_selects_is_matched(random: Random) -> None:
    check(random, expressions=2, documents=2)


def test_many_at_once_match_what_lxml_selects() -> None:
    refused = matched = 0
    for seed in range(ROUNDS):
        each = check(Random(seed), expressions=60, documents=8)
        refused, matched = refused + each[0], matched + each[1]
    # Most expressions are of the subset, and a good share of them finds something.
    assert refused < 0.15 * 60 * ROUNDS
    assert matched > 0.05 * 60 * 8 * ROUNDS


def test_subscriptions_come_and_go() -> None:
    random = Random(5)
    subscriptions = Subscriptions[int]()
    kept: dict[int, str] = {}
    for number in range(600):
        expression = Expressions(random).expression()
        try:
            subscriptions.add(number % 90, expression, prefixes=PREFIXES)
        except (UnsupportedXPath, XPathTooLarge):
            continue
        kept[number % 90] = expression
        if random.random() < 0.6 and kept:
            gone = random.choice(list(kept))
            del kept[gone]
            subscriptions.remove(gone)
        assert len(subscriptions) == len(kept)
        if number % 10 == 0:
            document = Documents(random).document()
            tree = etree.ElementTree(etree.fromstring(document, PARSER))
            assert subscriptions.matching(parse_xml(document)) == {
                key for key, each in kept.items() if tree.xpath(each, namespaces=PREFIXES)
            }
