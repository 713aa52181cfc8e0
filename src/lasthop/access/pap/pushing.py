"""Turns a push-message of PAP into a submission, with PAP's terms translated into the gateway's."""

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
"""The gateway's priority for each priority of PAP. PAP's medium is the priority of a message that
names none."""

MAX_HEADERS = 32
"""The largest number of headers in a content entity. The headers are sent to the device, in frames
that have room for 64 texts."""

DEFAULT_TYPE = "application/octet-stream"
"""The content type of content that names none. RFC 2045 would call such content text, which would
mislead a device that recognises the content itself."""

_OF_THE_PART = frozenset({"content-type", "content-length"})
_NOBODY = Target(TargetKind.PUSH, "")
_USUAL = QualityOfService()
_ANSWERED = DeliveryMethod.CONFIRMED_WITH_RESPONSE
_RELIABLE = Reliability.EXACTLY_ONCE


def submission_of(
    push: PushMessage, content: Entity, now: Micros, *, response_wait: Micros
) -> Submission:
    """Return the submission that a push asks for, without a target: the addresses are resolved
    later.

    The content's own headers go with the message; how they are encoded over the air is decided when
    its route is known.
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
    """Return the content's type and its other headers. Cached, because most pushes of an initiator
    have the same headers."""
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
