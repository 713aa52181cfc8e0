"""OTA-HTTP: what is asked, and what the answers mean."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.ota.http import (
    MAX_HEAD,
    AnswerReader,
    NotTaken,
    OtaAnswer,
    PushAccepted,
    PushRejected,
    Registration,
    Stale,
    TooMuch,
    Unclear,
    Verdict,
    options_request,
    post_request,
    registration,
    verdict,
)
from lasthop.wire.ota.terminal import Terminal
from lasthop.wire.ota.transform import PushContent
from lasthop.wire.pap.codes import abort_code


def test_a_push_is_a_response_within_a_request() -> None:
    push = PushContent("application/vnd.wap.sic", (("X-Wap-Application-Id", "2"),), b"\x03\x05")
    assert post_request("phone", push, tag="ESIzRA==", response=True) == (
        b"POST /wappush HTTP/1.1\r\n"
        b"Host: phone\r\n"
        b"X-Wap-Push-OTA-Version: 1.0\r\n"
        b"X-Wap-CPITag: ESIzRA==\r\n"
        b"X-Wap-Push-Info: response\r\n"
        b"Content-Type: application/http\r\n"
        b"Content-Length: 104\r\n\r\n"
        b"HTTP/1.1 200 OK\r\n"
        b"Content-Type: application/vnd.wap.sic\r\n"
        b"X-Wap-Application-Id: 2\r\n"
        b"Content-Length: 2\r\n\r\n\x03\x05"
    )


def test_no_header_becomes_two() -> None:
    for bad in ("a\r\nX: y", "a\nX: y", "a\0"):
        with pytest.raises(Malformed, match="control character"):
            post_request("p", PushContent("a/b", (("X", bad),)), tag=None, response=False)
        with pytest.raises(Malformed, match="control character"):
            post_request("p", PushContent(bad), tag=None, response=False)


def test_registration_is_asked_for_with_the_tag_that_we_know() -> None:
    assert b"X-Wap-CPITag" not in options_request("phone", None)
    assert options_request("phone", "12ab").startswith(b"OPTIONS /wappush HTTP/1.1\r\nHost: phone")
    assert b"\r\nX-Wap-CPITag: 12ab\r\n" in options_request("phone", "12ab")


@pytest.mark.parametrize(
    "status, push_status, headers, expected",
    [
        (204, "400", {}, PushAccepted()),
        (204, "400 Accepted", {}, PushAccepted()),
        (200, "400", {}, PushAccepted()),
        (204, "234", {}, PushRejected(0xEA)),
        (204, "235", {}, PushRejected(0xEB)),
        (204, "236", {}, PushRejected(0xEC)),
        (204, "237", {}, PushRejected(0xED)),
        (204, "238", {}, PushRejected(0xEE)),
        (204, "299", {}, PushRejected(0)),
        (204, "256", {"x-wap-cpitag": "new"}, Stale()),
        (204, "256", {}, PushRejected(0xEA)),
        (404, None, {}, NotTaken("the client answered 404")),
        (503, "400", {}, NotTaken("the client answered 503")),
        (413, None, {}, TooMuch("the client answered 413")),
        (415, None, {}, TooMuch("the client answered 415")),
        (204, None, {}, Unclear("the client did not say what became of the push")),
        (204, "maybe", {}, Unclear("the client did not say what became of the push")),
        (204, "999", {}, Unclear("the client did not say what became of the push")),
    ],
)
def test_every_push_status_has_its_meaning(
    status: int, push_status: str | None, headers: dict[str, str], expected: Verdict
) -> None:
    if push_status is not None:
        headers = {**headers, "x-wap-push-status": push_status}
    assert verdict(OtaAnswer(status, headers)) == expected


def test_rejections_are_paps_aborts() -> None:
    codes = [
        abort_code(found.reason)
        for status in range(234, 239)
        if isinstance(
            found := verdict(OtaAnswer(204, {"x-wap-push-status": str(status)})), PushRejected
        )
    ]
    assert codes == [5026, 5027, 5028, 5029, 5030]


def test_content_comes_back_with_its_type() -> None:
    headers = {"x-wap-push-status": "400", "content-type": "text/plain", "content-language": "de"}
    expected = PushContent("text/plain", (("Content-Language", "de"),), b"ja")
    assert verdict(OtaAnswer(200, headers, b"ja")) == PushAccepted(expected)


class TestRegistration:
    def test_describes_the_client(self) -> None:
        answer = OtaAnswer(
            204,
            {
                "x-wap-push-status": "501",
                "x-wap-cpitag": "11223344",
                "x-wap-terminal-id": "t1",
                "x-wap-push-user-agent": "Phone/1",
                "x-wap-push-accept": "application/vnd.wap.sic, text/plain",
                "x-wap-push-accept-encoding": "Deflate;q=1, gzip",
                "x-wap-push-accept-appid": "x-wap-application:wml.ua, 4, ???",
                "x-wap-push-msgsize": "3000",
            },
        )
        assert registration(answer, None) == Registration(
            tag="11223344",
            terminal=Terminal(
                accept=frozenset({"application/vnd.wap.sic", "text/plain"}),
                codings=frozenset({"deflate", "gzip"}),
                max_size=3000,
            ),
            applications=frozenset({2, 4}),
            terminal_id="t1",
            user_agent="Phone/1",
        )

    def test_stays_when_nothing_has_changed(self) -> None:
        known = Registration(tag="x", terminal=Terminal(max_size=7))
        unchanged = OtaAnswer(204, {"x-wap-push-status": "500"})
        assert registration(unchanged, known) is known
        assert registration(unchanged, None) == Registration()

    def test_any_application_is_no_limit(self) -> None:
        headers = {"x-wap-push-status": "501", "x-wap-push-accept-appid": "wml.ua, *"}
        found = registration(OtaAnswer(204, headers), None)
        assert found is not None
        assert found.applications is None

    @pytest.mark.parametrize("answer", [OtaAnswer(405, {}), OtaAnswer(204, {}), OtaAnswer(500, {})])
    def test_is_not_there_when_the_client_has_none(self, answer: OtaAnswer) -> None:
        assert registration(answer, None) is None


class TestReading:
    ANSWERS = (
        b"HTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 204 No Content\r\nX-Wap-Push-Status: 400\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    )

    @given(st.integers(1, 40))
    def test_octets_may_come_in_any_pieces(self, size: int) -> None:
        reader = AnswerReader()
        found: list[OtaAnswer] = []
        for at in range(0, len(self.ANSWERS), size):
            found += reader.receive(self.ANSWERS[at : at + size])
        assert [(a.status, a.body, a.keeps) for a in found] == [
            (204, b"", True),
            (200, b"hi", False),
        ]
        assert found[0].push_status == 400

    def test_what_is_no_response_is_refused(self) -> None:
        with pytest.raises(Malformed, match="not an HTTP response"):
            AnswerReader().receive(b"GET / HTTP/1.1\r\n\r\n")

    def test_answers_have_limits(self) -> None:
        with pytest.raises(TooLarge, match="the headers of an answer are too long"):
            AnswerReader().receive(b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD + b"\r\n\r\n")
        with pytest.raises(TooLarge, match="an answer is too long"):
            AnswerReader(limit=10).receive(
                b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n" + bytes(20)
            )
