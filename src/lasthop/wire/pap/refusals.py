"""Makes the document that answers a request which is refused as a whole."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.errors import LasthopError, OutcomeOpen, PapError
from lasthop.wire.pap.codes import MessageState
from lasthop.wire.pap.documents import (
    BadMessageResponse,
    CancelMessage,
    CancelResponse,
    CancelResult,
    CcqMessage,
    CcqResponse,
    Document,
    PapMessage,
    PushMessage,
    PushResponse,
    ResponseResult,
    ResultNotificationMessage,
    ResultNotificationResponse,
    StatusQueryMessage,
    StatusQueryResponse,
    StatusQueryResult,
)
from lasthop.wire.pap.layout import MAX_IDENTIFIER
from lasthop.wire.pap.versions import SUPPORTED, UNDECLARED, answer_version

MAX_FRAGMENT = 200
"""The largest number of characters in the refused document that are sent back: enough to recognise
it."""

_ASK = ": ask for the status of the push, or repeat the request, which cannot double it"

_BLANKS = dict.fromkeys((0x09, 0x0A, 0x0D), " ")
_UNPRINTABLE = dict.fromkeys((*range(0x20), 0x7F, 0xFFFE, 0xFFFF), "?") | _BLANKS


def refusal(
    error: LasthopError,
    *,
    request: Document | None = None,
    received: bytes = b"",
    now: Micros | None = None,
    product: str | None = None,
) -> Document:
    """Answer an error with its own code, in the version of the request.

    A request that could be read is refused in the response that belongs to it. A request that could
    not be read is refused in a push-response if its push-id is known, and otherwise in a
    badmessage-response with the beginning of what was `received`.
    """
    code, said = error.pap_code, describe(error)
    if request is not None:
        answer = _response(request.message, code, said, now)
        version, supported = str(request.version), request.supported
    else:
        answer = None
        version, supported = str(UNDECLARED), ()
        if isinstance(error, PapError):
            version, supported = error.version or version, error.supported
            if error.push_id and len(error.push_id) <= MAX_IDENTIFIER:
                answer = PushResponse(error.push_id, ResponseResult(code, said), reply_time=now)
    if answer is None:
        answer = BadMessageResponse(code, said, fragment(received) or None)
    return Document(answer, answer_version(version, supported), SUPPORTED, product)


def _response(message: PapMessage, code: int, said: str, now: Micros | None) -> PapMessage | None:
    match message:
        case PushMessage():
            return PushResponse(message.push_id, ResponseResult(code, said), reply_time=now)
        case CancelMessage():
            return CancelResponse(message.push_id, (CancelResult(code, said, message.addresses),))
        case StatusQueryMessage():
            result = StatusQueryResult(
                MessageState.UNKNOWN, code, said, addresses=message.addresses
            )
            return StatusQueryResponse(message.push_id, (result,))
        case CcqMessage():
            return CcqResponse(message.address, code, said, message.query_id)
        case ResultNotificationMessage():
            return ResultNotificationResponse(code, message.push_id, message.address, said)
        case _:
            # A response is no request, and is not answered.
            return None


def describe(error: LasthopError) -> str:
    """Return the text for a `desc` attribute: one line that XML can carry. An internal error is not
    explained to strangers."""
    if error.pap_code == 3000:
        return "internal error"
    said = str(error).translate(_UNPRINTABLE).encode("utf-8", "replace").decode()
    if isinstance(error, OutcomeOpen):
        # Repeating is safe: a push-id is accepted once, and a cancelled push stays cancelled.
        return said[: MAX_FRAGMENT - len(_ASK)] + _ASK
    return said[:MAX_FRAGMENT]


def fragment(received: bytes) -> str:
    """Return the beginning of what was received, in characters that XML can carry."""
    # A character has at most four octets, so octets beyond that need not be decoded.
    text = received[: MAX_FRAGMENT * 4].decode("utf-8", "replace")
    return text.translate(_UNPRINTABLE)[:MAX_FRAGMENT].strip()
