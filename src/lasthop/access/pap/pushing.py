"""From a push-message to an order: what the words of PAP mean here."""

from __future__ import annotations

from functools import lru_cache

from lasthop.clock import Micros
from lasthop.core.lifecycle import RELIABILITY_OF_METHOD
from lasthop.core.publishing.submission import Submission
from lasthop.errors import TooLarge
from lasthop.message import DeliveryMethod, Quality, Reliability, Target, TargetKind
from lasthop.wire.pap.documents import Priority, PushMessage, QualityOfService
from lasthop.wire.pap.mime import Headers, header
from lasthop.wire.pap.multipart import Entity

PRIORITIES: dict[Priority, int] = {Priority.HIGH: 7, Priority.MEDIUM: 4, Priority.LOW: 1}
"""Medium is the priority of a message that has none."""

MAX_HEADERS = 32
"""Headers of a content entity. They travel on the last hop, whose frames list at most 64 texts."""

DEFAULT_TYPE = "application/octet-stream"
"""Of content that does not say what it is. RFC 2045 would call it text; a device that knows better
would be misled."""

_OF_THE_PART = frozenset({"content-type", "content-length"})
_NOBODY = Target(TargetKind.PUSH, "")
_USUAL = QualityOfService()
_ANSWERED = DeliveryMethod.CONFIRMED_WITH_RESPONSE
_RELIABLE = Reliability.EXACTLY_ONCE


def submission_of(
    push: PushMessage, content: Entity, now: Micros, *, response_wait: Micros
) -> Submission:
    """The message that a push asks for, but for whom its addresses stand for.

    The content's own headers go with it; what becomes of them over the air is decided when it is
    known which way it goes.
    """
    headers = content.headers
    if len(headers) > MAX_HEADERS + len(_OF_THE_PART):
        raise TooLarge("the content has too many headers", limit=MAX_HEADERS)
    content_type, headers = _apart(headers)
    if len(headers) > MAX_HEADERS:
        raise TooLarge("the content has too many headers", limit=MAX_HEADERS)
    quality = push.quality or _USUAL
    reliability = RELIABILITY_OF_METHOD[quality.method]
    answered = quality.method is _ANSWERED
    return Submission(
        target=_NOBODY,
        body=content.body,
        content_type=content_type,
        priority=PRIORITIES[quality.priority],
        deliver_after=push.deliver_after,
        deliver_before=push.deliver_before,
        reliability=_RELIABLE if reliability is None else reliability,
        method=quality.method,
        reply_before=(push.deliver_before or now) + response_wait if answered else None,
        headers=headers,
        quality=_wanted(quality),
    )


@lru_cache(maxsize=256)
def _apart(headers: Headers) -> tuple[str, Headers]:
    """The type of content and its other headers. Most pushes of an initiator are alike in this."""
    kept = tuple(pair for pair in headers if pair[0].lower() not in _OF_THE_PART)
    return header(headers, "content-type") or DEFAULT_TYPE, kept


def _wanted(quality: QualityOfService) -> Quality | None:
    if quality.network is None and quality.bearer is None:
        return None
    return Quality(
        quality.network or "",
        quality.network_required,
        quality.bearer or "",
        quality.bearer_required,
    )
