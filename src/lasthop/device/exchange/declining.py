"""An answer that is none: whoever was asked will not, or cannot, and says why."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from lasthop.device import compose
from lasthop.device.exchange.exchange_device import ExchangeDevice
from lasthop.device.message import Message
from lasthop.errors import Expired, Rejected
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


def as_declined(error: Rejected) -> Declined:
    """Any refusal in the words of an answer."""
    return error if isinstance(error, Declined) else Declined(error.code, str(error))


async def decline(device: ExchangeDevice, message: Message, error: Declined) -> None:
    """Tell who waits for an answer that there is none, if they still do."""
    now = device.now()
    with suppress(Expired):
        await device.post(compose.reply(message, encode(error), now, content_type=DECLINED_TYPE))


def declined(message: Message) -> Declined | None:
    """What an answer says against its request, if it is such an answer."""
    if message.headers.content_type != DECLINED_TYPE:
        return None
    try:
        told = msgspec.json.decode(message.body, type=_Declined)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Declined("unknown", message.body[:200].decode(errors="replace"))
    return Declined(told.reason, told.detail)
