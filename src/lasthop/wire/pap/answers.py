"""Judges an initiator's answer to a result notification."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from lasthop.errors import LasthopError
from lasthop.wire.pap.codes import CodeClass
from lasthop.wire.pap.documents import BadMessageResponse, ResultNotificationResponse
from lasthop.wire.pap.submission import read_submission

MAX_ANSWER = 64 * 1024
"""The largest number of octets in an answer that are read; a resultnotification-response has a few
hundred."""

_BUSY = frozenset({408, 425, 429})


class AnswerVerdict(StrEnum):
    """What an initiator's answer means for this notification and the next."""

    HEARD = "heard"
    REFUSED = "refused"
    """The initiator does not want to hear of this push; repeating would not help."""
    LATER = "later"
    """The initiator cannot take this notification now; repeat it later."""
    UNREACHABLE = "unreachable"
    """The initiator is absent or busy, so that its other notifications would fail too."""


class PapAnswer(NamedTuple):
    verdict: AnswerVerdict
    reason: str = ""


def judge_answer(status: int, content_type: str, body: bytes) -> PapAnswer:
    """Judge an answer. Every 2xx is success as far as HTTP goes; then the code of PAP counts.

    An answer with nothing but a status counts as heard, because some initiators send only that.
    """
    if status in _BUSY or status >= 500:
        return PapAnswer(AnswerVerdict.UNREACHABLE, f"it answered with status {status}")
    if not 200 <= status < 300:
        return PapAnswer(AnswerVerdict.LATER, f"it answered with status {status}")
    try:
        message = read_submission(content_type, body, limit=MAX_ANSWER).document.message
    except LasthopError:
        return PapAnswer(AnswerVerdict.HEARD, "it answered without a document of PAP")
    if not isinstance(message, ResultNotificationResponse | BadMessageResponse):
        return PapAnswer(AnswerVerdict.HEARD, "it answered with another document of PAP")
    said = f"it answered with code {message.code}" + (f" ({message.desc})" if message.desc else "")
    match message.code // 1000:
        case CodeClass.SUCCESS:
            return PapAnswer(AnswerVerdict.HEARD, said)
        case CodeClass.INITIATOR_ERROR:
            return PapAnswer(AnswerVerdict.REFUSED, said)
        case _:
            return PapAnswer(AnswerVerdict.LATER, said)
