"""Delivery receipts in both of their forms: the text that every SMSC writes, and the optional
parameters that some add (SMPP 3.4, appendix B)."""

from __future__ import annotations

import re

import msgspec

from lasthop.wire.smpp.commands import INTERMEDIATE, KIND_MASK, RECEIPT, SmsState, Tag
from lasthop.wire.smpp.smpp_pdus import DataMessage, ShortMessage
from lasthop.wire.smpp.tlvs import tlv, tlv_number

_STATES = {
    "ENROUTE": SmsState.ENROUTE,
    "DELIVRD": SmsState.DELIVERED,
    "EXPIRED": SmsState.EXPIRED,
    "DELETED": SmsState.DELETED,
    "UNDELIV": SmsState.UNDELIVERABLE,
    "ACCEPTD": SmsState.ACCEPTED,
    "UNKNOWN": SmsState.UNKNOWN,
    "REJECTD": SmsState.REJECTED,
}
_WORDS = {state: word for word, state in _STATES.items()}
_FIELD = re.compile(r"\b(id|stat|err):\s*(\S+)", re.IGNORECASE)


class DeliveryReceipt(msgspec.Struct, frozen=True):
    """What an SMSC says of a message that it had accepted."""

    message_id: str
    state: SmsState
    error: str = ""
    """The network's own code, as the SMSC writes it; empty if it gives none."""


def read_receipt(message: ShortMessage | DataMessage) -> DeliveryReceipt | None:
    """Return the receipt that a message of the SMSC is; None if it is an ordinary message, or names
    no message or state. Optional parameters win over the text."""
    if not message.esm_class & KIND_MASK & (RECEIPT | INTERMEDIATE):
        return None
    said: dict[str, str] = {}
    for name, value in _FIELD.findall(message.content.decode("latin-1")):
        said.setdefault(name.lower(), value)  # What follows is the text of the message itself.
    named = tlv(message.tlvs, Tag.RECEIPTED_MESSAGE_ID)
    message_id = said.get("id", "") if named is None else named.rstrip(b"\0").decode("latin-1")
    number = tlv_number(message.tlvs, Tag.MESSAGE_STATE)
    state = _STATES.get(said.get("stat", "").upper())
    if number is not None and number in set(SmsState):
        state = SmsState(number)
    if not message_id or state is None:
        return None
    return DeliveryReceipt(message_id, state, said.get("err", ""))


def receipt_text(receipt: DeliveryReceipt, *, submitted: str, done: str, text: str = "") -> bytes:
    """Return the text form of a receipt; the times are written as `YYMMDDhhmm`."""
    arrived = 1 if receipt.state is SmsState.DELIVERED else 0
    return (
        f"id:{receipt.message_id} sub:001 dlvrd:{arrived:03} submit date:{submitted}"
        f" done date:{done} stat:{_WORDS[receipt.state]} err:{receipt.error or '000'}"
        f" text:{text[:20]}"
    ).encode("latin-1", "replace")


def id_spellings(message_id: str) -> tuple[str, ...]:
    """Return the other ways in which an SMSC may write the id of a message in its receipt."""
    return tuple(sorted(_spellings(message_id) - {message_id}))


def _spellings(message_id: str) -> set[str]:
    found = {message_id, message_id.lower(), message_id.lstrip("0").lower() or "0"}
    if message_id.isdigit() and len(message_id) <= 20:
        found.add(f"{int(message_id):x}")
    if len(message_id) <= 16 and re.fullmatch(r"[0-9A-Fa-f]+", message_id):
        found.add(str(int(message_id, 16)))
    return found
