"""An answer that is none: whoever was asked will not, or cannot, and says why."""

from __future__ import annotations

import msgspec

from lasthop.device.message import Message
from lasthop.errors import Rejected
from lasthop.wire.hop.services import DECLINED_TYPE


class Declined(Rejected):
    """Who was asked declined. Raise it in a handler to decline; `reason` is a word for machines."""

    code = "declined"

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason, reason=reason)
        self.reason = reason
        self.detail = detail


class _Declined(msgspec.Struct, omit_defaults=True):
    reason: str
    detail: str = ""


def encode(error: Declined) -> bytes:
    """As it travels."""
    return msgspec.json.encode(_Declined(error.reason, error.detail))


def declined(message: Message) -> Declined | None:
    """What an answer says against its request, if it is such an answer."""
    if message.headers.content_type != DECLINED_TYPE:
        return None
    try:
        told = msgspec.json.decode(message.body, type=_Declined)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Declined("unknown", message.body[:200].decode(errors="replace"))
    return Declined(told.reason, told.detail)
