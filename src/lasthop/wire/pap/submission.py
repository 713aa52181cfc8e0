"""A whole PAP request or answer: its control document and the entities that come along.

A push comes as multipart/related: control, content, and perhaps the capabilities that the initiator
assumes of the client. Result notifications bring a client's answer, and answers to capability
queries a profile, in the same way. Everything else is the control entity alone.
"""

from __future__ import annotations

import re

import msgspec

from lasthop.errors import PapMalformed, TooLarge
from lasthop.wire.pap.documents import (
    CcqResponse,
    Document,
    PushMessage,
    ResultNotificationMessage,
)
from lasthop.wire.pap.mime import Headers, header, parse_media_type
from lasthop.wire.pap.multipart import MAX_BODY, Entity, unpack, write_related
from lasthop.wire.pap.reader import read_document
from lasthop.wire.pap.writer import write_document

XML_TYPES = frozenset({"application/xml", "text/xml"})
"""The media types of the control entity. The second is wrong and common."""

CAPABILITY_TYPES = frozenset({"application/xml", "application/rdf+xml", "text/xml"})

APPLICATION_ID = "x-wap-application-id"

MAX_PROLOG = 4096
"""Octets in which a document's first tag is looked for. The prolog of a PAP document has 200."""

_START_TAG = re.compile(rb"<([A-Za-z_][^\s/>]*)")


class PapSubmission(msgspec.Struct, frozen=True, gc=False):
    """The parts of a request that a push initiator sends in one HTTP body."""

    document: Document
    content: Entity | None = None
    """The pushed content with its own headers; or a client's answer; or a client's profile."""
    capabilities: Entity | None = None
    """The capabilities that the initiator assumes of the client (UAProf RDF)."""


def is_submission(content_type: str, body: bytes) -> bool:
    """Whether a body is what a push initiator sends, wherever it came in: XML with entities that
    belong to it, or a document of PAP alone. It may still be malformed."""
    try:
        media = parse_media_type(content_type)
    except (PapMalformed, TooLarge):
        return False
    if media.essence == "multipart/related":
        return media.parameters.get("type", "").lower() in XML_TYPES
    tag = _START_TAG.search(body, 0, MAX_PROLOG) if media.essence in XML_TYPES else None
    return tag is not None and tag[1] == b"pap"


def read_submission(
    content_type: str, body: bytes, *, headers: Headers = (), limit: int = MAX_BODY
) -> PapSubmission:
    """Read the body of a PAP request or answer; raise a PapError or TooLarge.

    `headers` are those of the HTTP message: some initiators put X-Wap-Application-Id there, and it
    is used if the content has none.
    """
    media = parse_media_type(content_type)
    if media.essence in XML_TYPES:
        if len(body) > limit:
            raise TooLarge("a submission is too large", limit=limit)
        document = read_document(body, charset=media.parameters.get("charset"))
        _check_count(document, 1)
        return PapSubmission(document)
    control, *others = unpack(media, body, limit=limit)
    document = _read_control(control)
    _check_count(document, 1 + len(others))
    content = others[0] if others else None
    capabilities = others[1] if len(others) > 1 else None
    if isinstance(document.message, PushMessage) and content is not None:
        content = _with_application(content, headers)
    if capabilities is not None:
        _check_capabilities(capabilities)
    return PapSubmission(document, content, capabilities)


def _read_control(control: Entity) -> Document:
    if control.content_type is None:
        # RFC 2046 would make this text/plain; an initiator that forgot the type means XML.
        return read_document(control.body)
    media = parse_media_type(control.content_type)
    if media.essence not in XML_TYPES:
        raise PapMalformed("the first entity is not XML", content_type=media.essence[:80])
    return read_document(control.body, charset=media.parameters.get("charset"))


def _check_count(document: Document, count: int) -> None:
    """Raise PapMalformed for a wrong number of entities: a push needs its content and may have
    capabilities; notifications and capability answers may have a second entity; nothing else
    has."""
    least, most = 1, 1
    if isinstance(document.message, PushMessage):
        least, most = 2, 3
    elif isinstance(document.message, ResultNotificationMessage | CcqResponse):
        # PPG service, 5.2.2: content that the client returned comes along with its notification.
        most = 2
    if least <= count <= most:
        return
    error = PapMalformed(
        "an entity is missing" if count < least else "more entities than the message can have",
        entities=count,
    )
    error.version, error.supported = document.version, document.supported
    if isinstance(document.message, PushMessage):
        error.push_id = document.message.push_id
    raise error


def _with_application(content: Entity, outer: Headers) -> Entity:
    application = header(outer, APPLICATION_ID)
    if application is None or header(content.headers, APPLICATION_ID) is not None:
        return content
    return Entity((*content.headers, ("X-Wap-Application-Id", application)), content.body)


def _check_capabilities(entity: Entity) -> None:
    kind = parse_media_type(entity.content_type).essence if entity.content_type else None
    if kind not in CAPABILITY_TYPES:
        raise PapMalformed("the third entity holds no capabilities", content_type=str(kind)[:80])


def write_submission(submission: PapSubmission) -> tuple[str, bytes]:
    """Return the Content-Type and body of a request or answer; raise PapError or ValueError."""
    document = submission.document
    others = [e for e in (submission.content, submission.capabilities) if e is not None]
    if submission.content is None and others:
        raise ValueError("capabilities may only come along with content")
    _check_count(document, 1 + len(others))
    control = write_document(document)
    if not others:
        return "application/xml", control
    root = Entity((("Content-Type", "application/xml; charset=UTF-8"),), control)
    return write_related((root, *others))
