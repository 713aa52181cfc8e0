"""Posts result notifications of PAP to push initiators."""

from __future__ import annotations

from lasthop import __version__
from lasthop.access.pap.destinations import Destinations
from lasthop.transport.http import HttpFailure, post
from lasthop.wire.pap.answers import MAX_ANSWER, AnswerVerdict, PapAnswer, judge_answer

TIMEOUT = 30.0
"""Seconds that the whole request may take. If an initiator takes longer, the notification is sent
to it again later."""


class ResultNotifier:
    """Posts a result to an initiator, and returns the meaning of its answer."""

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations

    async def __call__(self, url: str, content_type: str, body: bytes) -> PapAnswer:
        headers = (
            ("Content-Type", content_type),
            ("Accept", "application/xml"),
            ("User-Agent", f"lasthop/{__version__}"),
        )
        try:
            answer = await post(
                url,
                headers,
                body,
                timeout=TIMEOUT,
                limit=MAX_ANSWER,
                allowed=self._destinations.allows,
            )
        except HttpFailure as failure:
            return PapAnswer(AnswerVerdict.UNREACHABLE, failure.reason)
        return judge_answer(answer.status, answer.header("content-type"), answer.body)
