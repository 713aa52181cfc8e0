"""A result notification as it is posted to an initiator."""

from __future__ import annotations

from lasthop.core.effects import Notify
from lasthop.message import Message
from lasthop.wire.pap.mime import format_headers
from lasthop.wire.pap.multipart import Entity
from lasthop.wire.pap.submission import PapSubmission, write_submission

_OF_THE_ENTITY = frozenset({"content-type", "content-length", "content-transfer-encoding"})


def write_result(notify: Notify, reply: Message | None) -> tuple[str, bytes]:
    """Return the content type and body, with the client's answer as a second entity (5.2.2).

    The answer is left out if the store no longer has it.
    """
    content = None
    if reply is not None:
        headers = [("Content-Type", reply.content_type), *reply.headers]
        kept = [h for n, h in enumerate(headers) if n == 0 or h[0].lower() not in _OF_THE_ENTITY]
        content = Entity(tuple(header for header in kept if _is_header(header)), reply.body)
    return write_submission(PapSubmission(notify.document, content))


def _is_header(header: tuple[str, str]) -> bool:
    """Return whether a header can be part of an entity; a device may have sent anything."""
    try:
        format_headers((header,))
    except ValueError:
        return False
    return True
