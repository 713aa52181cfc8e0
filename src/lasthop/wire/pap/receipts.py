"""Writes the answer to an accepted push. Within a second all such answers are alike, except for the
push-id."""

from __future__ import annotations

from functools import lru_cache

from lasthop.clock import SECOND, Micros
from lasthop.wire.pap.codes import CODES
from lasthop.wire.pap.documents import Document, PushResponse, ResponseResult
from lasthop.wire.pap.versions import SUPPORTED, Version
from lasthop.wire.pap.writer import quoted, write_document

ACCEPTED = 1001

_PLACE = "\ue000"
"""A placeholder for the push-id: a character for private use, which is written unchanged."""


def write_receipt(
    push_id: str, *, version: Version, product: str, sender: str, reply_time: Micros
) -> bytes:
    """Return the answer to an accepted push, in the same octets as `write_document` would write
    it."""
    before, after = _around(version, product, sender, reply_time // SECOND)
    return before + quoted("push-id", push_id).encode() + after


@lru_cache(maxsize=16)
def _around(version: Version, product: str, sender: str, second: int) -> tuple[bytes, bytes]:
    message = PushResponse(
        _PLACE,
        ResponseResult(ACCEPTED, CODES[ACCEPTED].name),
        sender_name=sender,
        reply_time=second * SECOND,
    )
    written = write_document(Document(message, version, SUPPORTED, product))
    before, _, after = written.partition(_PLACE.encode())
    return before, after
