"""Posting results: where to, and what of the answer counts."""

from __future__ import annotations

from lasthop.access.pap.destinations import Destinations
from lasthop.runtime.result_notifier import ResultNotifier
from lasthop.wire.pap.answers import AnswerVerdict
from tests.transport.test_http import server

ANSWER = (
    b'<!DOCTYPE pap PUBLIC "-//WAPFORUM//DTD PAP 2.0//EN" "x"><pap>'
    b'<resultnotification-response push-id="1" code="%d"><address address-value="a"/>'
    b"</resultnotification-response></pap>"
)


def answer(code: int) -> bytes:
    body = ANSWER % code
    head = b"HTTP/1.1 202 Accepted\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


async def test_the_answer_of_the_initiator_counts() -> None:
    tell = ResultNotifier(Destinations(private=True))
    for code, verdict in (
        (1000, AnswerVerdict.HEARD),
        (2004, AnswerVerdict.REFUSED),
        (4001, AnswerVerdict.LATER),
    ):
        async with server(answer(code)) as (url, asked):
            said = await tell(url, "application/xml", b"<pap/>")
        assert said.verdict is verdict
        assert b"Content-Type: application/xml\r\n" in asked[0]
        assert asked[0].endswith(b"<pap/>")


async def test_nobody_is_told_at_an_address_that_is_not_allowed() -> None:
    tell = ResultNotifier(Destinations())
    async with server(answer(1000)) as (url, asked):
        # A name that leads to this machine is found out when it is looked up.
        said = await tell(url.replace("127.0.0.1", "localhost"), "application/xml", b"<pap/>")
    assert said.verdict is AnswerVerdict.UNREACHABLE
    assert said.reason == "localhost has no address that is allowed"
    assert not asked


async def test_nobody_is_followed_to_another_place() -> None:
    tell = ResultNotifier(Destinations(private=True))
    async with server(answer(1000)) as (elsewhere, led_to):
        for status in (301, 302, 303, 307, 308):
            moved = b"HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n"
            async with server(moved % (status, elsewhere.encode())) as (url, asked):
                said = await tell(url, "application/xml", b"<pap/>")
            assert said.verdict is AnswerVerdict.LATER
            assert len(asked) == 1
    assert not led_to


async def test_where_nobody_listens_it_is_said_why() -> None:
    said = await ResultNotifier(Destinations(private=True))(
        "http://127.0.0.1:1/", "application/xml", b""
    )
    assert said.verdict is AnswerVerdict.UNREACHABLE
    assert "refused" in said.reason.lower()
