"""The document that answers a request which was refused before anybody looked at its meaning."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.errors import LasthopError, PapError
from lasthop.wire.pap.documents import (
    BadMessageResponse,
    Document,
    PushResponse,
    ResponseResult,
)
from lasthop.wire.pap.layout import MAX_IDENTIFIER
from lasthop.wire.pap.versions import SUPPORTED, UNDECLARED, answer_version

MAX_FRAGMENT = 200
"""Characters of the refused document that are sent back: enough to see which one it was."""

_BLANKS = dict.fromkeys((0x09, 0x0A, 0x0D), " ")
_UNPRINTABLE = dict.fromkeys((*range(0x20), 0x7F, 0xFFFE, 0xFFFF), "?") | _BLANKS


def refusal(
    error: LasthopError,
    *,
    received: bytes = b"",
    now: Micros | None = None,
    product: str | None = None,
) -> Document:
    """Answer an error with its own code.

    A push that can still be named is refused in a push-response; anything else, and any version
    that we do not speak, in a badmessage-response. `received` is what was refused.
    """
    push_id = version = None
    supported: tuple[str, ...] = ()
    if isinstance(error, PapError):
        push_id, version, supported = error.push_id, error.version, error.supported
    said = describe(error)
    answer: PushResponse | BadMessageResponse
    if push_id and len(push_id) <= MAX_IDENTIFIER:
        answer = PushResponse(push_id, ResponseResult(error.pap_code, said), reply_time=now)
    else:
        answer = BadMessageResponse(error.pap_code, said, fragment(received) or None)
    return Document(answer, answer_version(version or UNDECLARED, supported), SUPPORTED, product)


def describe(error: LasthopError) -> str:
    """What a `desc` attribute says: one line that XML can carry. A fault of ours is not explained
    to strangers."""
    if error.pap_code == 3000:
        return "internal error"
    return str(error).translate(_UNPRINTABLE).encode("utf-8", "replace").decode()[:MAX_FRAGMENT]


def fragment(received: bytes) -> str:
    """The beginning of what was received, in characters that XML can carry."""
    # A character has at most four octets, so what is cut off is never looked at.
    text = received[: MAX_FRAGMENT * 4].decode("utf-8", "replace")
    return text.translate(_UNPRINTABLE)[:MAX_FRAGMENT].strip()
