"""What initiators answer to a result notification."""

from __future__ import annotations

import pytest

from lasthop.wire.pap.answers import AnswerVerdict, judge_answer
from lasthop.wire.pap.documents import (
    BadMessageResponse,
    CancelMessage,
    Document,
    PapMessage,
    ResultNotificationResponse,
)
from lasthop.wire.pap.writer import write_document


def written(message: PapMessage) -> bytes:
    return write_document(Document(message))


@pytest.mark.parametrize(
    "message, verdict",
    [
        (ResultNotificationResponse(1000, "1", "a"), AnswerVerdict.HEARD),
        (ResultNotificationResponse(2004, "1", "a", "never heard of it"), AnswerVerdict.REFUSED),
        (ResultNotificationResponse(3000, "1", "a"), AnswerVerdict.LATER),
        (ResultNotificationResponse(4001, "1", "a"), AnswerVerdict.LATER),
        (BadMessageResponse(2000), AnswerVerdict.REFUSED),
        (BadMessageResponse(3002), AnswerVerdict.LATER),
        (CancelMessage("1"), AnswerVerdict.HEARD),
    ],
)
@pytest.mark.parametrize("status", [200, 202, 204])
def test_the_code_of_the_document_counts(
    message: PapMessage, verdict: AnswerVerdict, status: int
) -> None:
    assert judge_answer(status, "application/xml", written(message)).verdict is verdict


@pytest.mark.parametrize("body", [b"", b"OK", b"<html>"])
def test_a_status_alone_is_enough(body: bytes) -> None:
    assert judge_answer(200, "text/html", body).verdict is AnswerVerdict.HEARD


@pytest.mark.parametrize(
    "status, verdict",
    [
        (301, AnswerVerdict.LATER),
        (401, AnswerVerdict.LATER),
        (404, AnswerVerdict.LATER),
        (408, AnswerVerdict.UNREACHABLE),
        (429, AnswerVerdict.UNREACHABLE),
        (500, AnswerVerdict.UNREACHABLE),
        (503, AnswerVerdict.UNREACHABLE),
    ],
)
def test_without_success_it_is_tried_again(status: int, verdict: AnswerVerdict) -> None:
    answer = judge_answer(status, "", b"")
    assert answer.verdict is verdict
    assert str(status) in answer.reason


def test_the_reason_says_what_was_answered() -> None:
    message = ResultNotificationResponse(2004, "1", "a", "never heard of it")
    answer = judge_answer(200, "application/xml", written(message))
    assert answer.reason == "it answered with code 2004 (never heard of it)"
