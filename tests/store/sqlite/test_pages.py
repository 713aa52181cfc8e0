"""Pages of messages, where the encoding shows."""

from __future__ import annotations

import pytest

from lasthop.message import Message
from lasthop.store.sqlite.pages import FEW, PAGE_BYTES, MessagePage, cut_into_pages
from tests.store.making import Maker


def every_other(number: int) -> list[Message]:
    return Maker().messages(2 * number)[::2]


def page_of(messages: list[Message]) -> MessagePage:
    (page,) = cut_into_pages(messages)
    return page


@pytest.mark.parametrize("number", [1, 2, 3 * FEW])
def test_one_message_is_found_and_its_neighbours_are_not(number: int) -> None:
    messages = every_other(number)
    page = page_of(messages)
    for message in messages:
        assert page.find([message.key]) == [message]
        assert page.find([message.key - 1, message.key + 1]) == []


def test_many_messages_are_found_at_once() -> None:
    messages = every_other(10 * FEW)
    page = page_of(messages)
    for some in (messages, messages[::2], messages[:3]):
        assert page.find([message.key for message in some]) == some


def test_a_page_knows_its_keys() -> None:
    messages = every_other(5)
    page = page_of(messages)
    assert page.all_keys() == [message.key for message in messages]
    assert (page.first, page.last, page.count) == (messages[0].key, messages[-1].key, 5)


def test_messages_are_taken_off_without_touching_the_others() -> None:
    messages = every_other(5)
    page = page_of(messages)
    assert page.without({messages[0].key, messages[4].key}) == page_of(messages[1:4])
    assert page.without(set()) == page
    assert page.without(set(page.all_keys())) is None


def test_pages_are_cut_at_about_their_size() -> None:
    make = Maker()
    messages = [make.message(b"x" * 1_000) for _ in range(1_000)]
    pages = cut_into_pages(messages)
    assert [message for page in pages for message in page.find(page.all_keys())] == messages
    assert all(PAGE_BYTES / 2 < len(page.body) < PAGE_BYTES * 1.2 for page in pages)


def test_a_message_larger_than_a_page_has_one_to_itself() -> None:
    make = Maker()
    messages = [make.message(b"x" * (2 * PAGE_BYTES)) for _ in range(3)]
    assert [page.count for page in cut_into_pages(messages)] == [1, 1, 1]


def test_no_messages_are_no_pages() -> None:
    assert cut_into_pages([]) == []
