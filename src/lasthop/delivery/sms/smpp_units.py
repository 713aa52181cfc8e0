"""How a push becomes messages of SMPP: with a user data header, with optional parameters for ports
and segments, or whole as a payload that the SMSC segments itself."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeAlias

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.delivery.sms.sms_link import OutgoingSms
from lasthop.errors import Rejected
from lasthop.wire.smpp.commands import DATAGRAM, HEADED, RECEIPT_ALWAYS, TRANSACTION, Tag
from lasthop.wire.smpp.smpp_pdus import DataMessage, ShortMessage, SmppAddress, phone_address
from lasthop.wire.smpp.smpp_times import relative
from lasthop.wire.smpp.tlvs import Tlvs
from lasthop.wire.sms.alphabets import Alphabet
from lasthop.wire.sms.segments import SmsSegment

Message: TypeAlias = ShortMessage | DataMessage


class LongForm(StrEnum):
    """How ports and parts are written."""

    HEADER = "header"
    """In a user data header: what nearly all SMSCs take."""
    PARAMETERS = "parameters"
    """In optional parameters for ports and segments."""
    PAYLOAD = "payload"
    """Ports in optional parameters, and the whole content as one payload."""


class OneShot(StrEnum):
    """How a delivery is attempted only once."""

    REFUSE = "refuse"
    """Not at all: the SMSC keeps what it cannot deliver."""
    DATAGRAM = "datagram"
    """By the command submit_sm in datagram mode."""
    TRANSACTION = "transaction"
    """By the command data_sm in transaction mode."""


class SmppForm(msgspec.Struct, frozen=True, kw_only=True):
    """How an SMSC wants its messages."""

    sender: SmppAddress = SmppAddress()
    service_type: str = ""
    octets_coding: int = 0xF5
    """The data coding of pushes: octets, for the phone itself."""
    long: LongForm = LongForm.HEADER
    one_shot: OneShot = OneShot.REFUSE
    receipts: bool = True
    """Whether the SMSC is asked for receipts."""


_CODINGS = {Alphabet.GSM: 0, Alphabet.LATIN: 3, Alphabet.UCS2: 8}


class NoOneShot(Rejected):
    """The error for a push that may be attempted only once, and an SMSC that cannot do that."""

    code = "no_one_shot"
    pap_code = 3007


class SmppUnit(msgspec.Struct, frozen=True):
    """One message for an SMSC, and the number of short messages that are paid for it."""

    message: Message
    count: int = 1

    @property
    def octets(self) -> int:
        """The octets of the messages' user data."""
        return len(self.message.content)


def prepare(sms: OutgoingSms, form: SmppForm, now: Micros) -> Sequence[SmppUnit]:
    """Return the messages of a push; raise Rejected if it has too many parts, or may be attempted
    only once and the SMSC cannot do that."""
    if sms.once and form.one_shot is OneShot.REFUSE:
        raise NoOneShot("the SMSC keeps what it cannot deliver at once")
    segments = sms.segments()
    if form.long is LongForm.PAYLOAD and (len(segments) > 1 or sms.ports is not None):
        content = b"".join(segment.content for segment in segments)
        payload = (Tag.MESSAGE_PAYLOAD.value, content)
        return [_unit(sms, form, segments[0], b"", (*_ports(sms), payload), now, len(segments))]
    if form.long is LongForm.PARAMETERS:
        return [
            _unit(sms, form, segment, segment.content, (*_ports(sms), *_place(segment)), now)
            for segment in segments
        ]
    return [_unit(sms, form, segment, segment.user_data, (), now) for segment in segments]


def _ports(sms: OutgoingSms) -> Tlvs:
    if sms.ports is None:
        return ()
    return (
        (Tag.SOURCE_PORT.value, sms.ports.source.to_bytes(2, "big")),
        (Tag.DESTINATION_PORT.value, sms.ports.destination.to_bytes(2, "big")),
    )


def _place(segment: SmsSegment) -> Tlvs:
    part = segment.header.part
    if part is None:
        return ()
    return (
        (Tag.SAR_REFERENCE.value, part.reference.to_bytes(2, "big")),
        (Tag.SAR_TOTAL.value, bytes((part.total,))),
        (Tag.SAR_NUMBER.value, bytes((part.number,))),
    )


def _unit(
    sms: OutgoingSms,
    form: SmppForm,
    segment: SmsSegment,
    octets: bytes,
    tlvs: Tlvs,
    now: Micros,
    count: int = 1,
) -> SmppUnit:
    headed = form.long is LongForm.HEADER and bool(segment.header.encode())
    esm_class = HEADED if headed else 0
    coding = _CODINGS.get(segment.alphabet, form.octets_coding)
    registered = RECEIPT_ALWAYS if form.receipts else 0
    left = None if sms.deliver_before is None else max(SECOND, sms.deliver_before - now)
    if sms.once and form.one_shot is OneShot.TRANSACTION:
        payload = tlvs if not octets else (*tlvs, (Tag.MESSAGE_PAYLOAD.value, octets))
        if left is not None:
            payload += ((Tag.QOS_TIME_TO_LIVE.value, (left // SECOND).to_bytes(4, "big")),)
        message: Message = DataMessage(
            source=form.sender,
            destination=phone_address(sms.to),
            service_type=form.service_type,
            esm_class=esm_class | TRANSACTION,
            registered=registered,
            coding=coding,
            tlvs=(*payload, (Tag.SET_DPF.value, b"\0")),
        )
    else:
        message = ShortMessage(
            source=form.sender,
            destination=phone_address(sms.to),
            service_type=form.service_type,
            esm_class=esm_class | (DATAGRAM if sms.once else 0),
            priority=_priority(sms.priority),
            validity="" if left is None else relative(left),
            registered=registered,
            coding=coding,
            message=octets,
            tlvs=tlvs,
        )
    return SmppUnit(message, count)


def _priority(priority: int) -> int:
    """Return SMPP's priority for the gateway's: PAP's low, medium and high are 0, 1 and 2."""
    return min(2, priority // 3)
