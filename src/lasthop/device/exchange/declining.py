"""Declining a request: the receiver answers with a reason instead of a value."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from lasthop.device import compose
from lasthop.device.exchange.exchange_device import ExchangeDevice
from lasthop.device.message import Message
from lasthop.errors import Expired, Rejected
from lasthop.wire.hop.services import DECLINED_TYPE


class Declined(Rejected):
    """The receiver of a request declined it. A handler raises this exception to decline a request;
    `reason` is a word for machines, `detail` a sentence for people."""

    code = "declined"

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason, reason=reason)
        self.reason = reason
        self.detail = detail


class _Declined(msgspec.Struct, omit_defaults=True):
    reason: str
    detail: str = ""


def encode(error: Declined) -> bytes:
    """Return the reason for declining as the body of an answer."""
    return msgspec.json.encode(_Declined(error.reason, error.detail))


def as_declined(error: Rejected) -> Declined:
    """Return any refusal as a `Declined`; its code becomes the reason."""
    return error if isinstance(error, Declined) else Declined(error.code, str(error))


async def decline(device: ExchangeDevice, message: Message, error: Declined) -> None:
    """Answer a message with the reason for declining, unless its sender no longer waits for an
    answer."""
    now = device.now()
    with suppress(Expired):
        await device.post(compose.reply(message, encode(error), now, content_type=DECLINED_TYPE))


def declined(message: Message) -> Declined | None:
    """Return the reason that an answer gives for declining; None for any other message."""
    if message.headers.content_type != DECLINED_TYPE:
        return None
    try:
        told = msgspec.json.decode(message.body, type=_Declined)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Declined("unknown", message.body[:200].decode(errors="replace"))
    return Declined(told.reason, told.detail)
