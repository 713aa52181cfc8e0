"""The glossary has one meaning for each word, and the lists that belong to it are in order.

About `docs/glossary.md`.
"""

from __future__ import annotations

from tests.docs.blocks import ROOT
from tests.words.names import GLOSSARY, WORD_LIST, read_glossary

PAGE = (ROOT / GLOSSARY).read_text()


def test_every_word_appears_once_in_the_order_of_the_alphabet() -> None:
    terms = read_glossary(PAGE).terms
    assert len(terms) >= 30
    assert list(terms) == sorted(set(terms))


def test_no_word_is_both_used_and_retired() -> None:
    glossary = read_glossary(PAGE)
    words = {word for term in glossary.terms for word in term.split()}
    assert not glossary.retired & (words | glossary.field)


def test_the_words_of_the_field_appear_once() -> None:
    section = PAGE.partition("\n## Words of the field\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[2].strip() for line in section.splitlines() if line.startswith("|")]
    words = [row.split(", ") for row in rows[2:]]
    assert [row for row in words if row != sorted(row)] == []
    assert sum(map(len, words)) == len(read_glossary(PAGE).field)


def test_the_page_is_found_from_the_documentation() -> None:
    assert "(glossary.md)" in (ROOT / "docs/README.md").read_text()


def test_the_word_list_is_sorted() -> None:
    words = (ROOT / WORD_LIST).read_text().split()
    assert words == sorted(set(words))
