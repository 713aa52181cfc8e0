"""A table of subscriptions that come and go."""

from __future__ import annotations

from random import Random

import pytest

from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xpath.automaton import PathState
from lasthop_xml.xpath.pattern import Condition, PathPattern
from lasthop_xml.xpath.subscriptions import Subscriptions

DOCUMENT = parse_xml(b"<a><b n='1'>x</b><b n='2'>y</b><c><d/></c></a>")
EXPRESSIONS = ["/a", "//b[@n = '1']", "//b[. = 'y']", "//c/d | //e", "/a[c]", "//e", "/b", "//d"]


def test_whatever_came_and_went_the_table_is_as_if_built_anew() -> None:
    random = Random(3)
    table = Subscriptions[int]()
    there: dict[int, str] = {}
    for step in range(1500):
        key = random.randrange(120)
        # First it mostly grows, then it mostly shrinks, so that it is built anew several times.
        if random.random() < (0.7 if step // 300 % 2 == 0 else 0.2):
            there[key] = random.choice(EXPRESSIONS)
            table.add(key, there[key])
        elif key in there:
            del there[key]
            table.remove(key)
        if step % 10 == 0:
            fresh = Subscriptions[int]()
            for each, expression in there.items():
                fresh.add(each, expression)
            assert table.matching(DOCUMENT) == fresh.matching(DOCUMENT)
            assert set(table) == set(there)


def test_no_single_change_builds_the_whole_table_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Subscriptions[int]()
    for key in range(400):
        table.add(key, f"//b[@n = '{key}']")
    built = [0]
    add = PathState.add

    def counting(self: PathState, pattern: PathPattern, condition: Condition) -> None:
        built[0] += 1
        add(self, pattern, condition)

    monkeypatch.setattr(PathState, "add", counting)
    most = 0
    for key in range(390):
        before = built[0]
        table.remove(key)
        most = max(most, built[0] - before)
    assert built[0] > 0
    assert most <= 4
    assert table.matching(parse_xml(b"<b n='395'/>")) == {395}
