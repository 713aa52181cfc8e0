"""The messages of PAP: one immutable value for each, and the document around it.

Field names are ours where PAP's would not read well; `layout` maps them to the names of the XML.
Addresses stay as the initiator wrote them, since that is how they must be reported back; parse them
with `addresses`. Times are in microseconds as everywhere; PAP writes whole seconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from lasthop.clock import Micros
from lasthop.message import DeliveryMethod
from lasthop.wire.pap.codes import MessageState
from lasthop.wire.pap.versions import UNDECLARED, Version


class Priority(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class ReplaceMethod(StrEnum):
    """Which addresses get the message that replaces another one; `outcomes.REPLACEMENT` has the
    details."""

    ALL = "all"
    PENDING_ONLY = "pending-only"


class QualityOfService(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How to deliver a push; in a report, how it was delivered."""

    priority: Priority = Priority.MEDIUM
    method: DeliveryMethod = DeliveryMethod.NOT_SPECIFIED
    network: str | None = None
    network_required: bool = False
    bearer: str | None = None
    bearer_required: bool = False


class PushMessage(msgspec.Struct, frozen=True, gc=False):
    """The initiator's request to deliver the content that comes along to these addresses."""

    push_id: str
    addresses: tuple[str, ...]
    replace_push_id: str | None = None
    replace_method: ReplaceMethod = ReplaceMethod.ALL
    deliver_before: Micros | None = None
    deliver_after: Micros | None = None
    source_reference: str | None = None
    notify_to: str | None = None
    """The URL for result notifications; None if the initiator wants none."""
    progress_notes: bool = False
    quality: QualityOfService | None = None


class ProgressNote(msgspec.Struct, frozen=True):
    stage: str
    note: str | None = None
    time: Micros | None = None


class ResponseResult(msgspec.Struct, frozen=True):
    code: int
    desc: str | None = None


class PushResponse(msgspec.Struct, frozen=True):
    """The gateway's answer whether a push was accepted."""

    push_id: str
    result: ResponseResult
    progress: tuple[ProgressNote, ...] = ()
    sender_address: str | None = None
    sender_name: str | None = None
    reply_time: Micros | None = None


class CancelMessage(msgspec.Struct, frozen=True):
    """The initiator's request to cancel a push: for the addresses that it lists, or for all if it
    lists none."""

    push_id: str
    addresses: tuple[str, ...] = ()


class CancelResult(msgspec.Struct, frozen=True):
    code: int
    desc: str | None = None
    addresses: tuple[str, ...] = ()


class CancelResponse(msgspec.Struct, frozen=True):
    """The gateway's answer to a cancellation, with one result for each distinct outcome."""

    push_id: str
    results: tuple[CancelResult, ...]


class ResultNotificationMessage(msgspec.Struct, frozen=True):
    """The outcome of a push for one address; written by the gateway."""

    push_id: str
    address: str
    state: MessageState
    code: int
    desc: str | None = None
    sender_address: str | None = None
    sender_name: str | None = None
    received_time: Micros | None = None
    event_time: Micros | None = None
    quality: QualityOfService | None = None


class ResultNotificationResponse(msgspec.Struct, frozen=True):
    """The initiator's answer to a result notification. Some initiators leave out push-id and
    address."""

    code: int
    push_id: str | None = None
    address: str | None = None
    desc: str | None = None


class StatusQueryMessage(msgspec.Struct, frozen=True):
    """The initiator's question what became of a push: for the addresses that it lists, or for all
    if it lists none."""

    push_id: str
    addresses: tuple[str, ...] = ()


class StatusQueryResult(msgspec.Struct, frozen=True):
    state: MessageState
    code: int
    desc: str | None = None
    event_time: Micros | None = None
    addresses: tuple[str, ...] = ()
    quality: QualityOfService | None = None


class StatusQueryResponse(msgspec.Struct, frozen=True):
    """The gateway's answer to a status query, with one result for each distinct outcome."""

    push_id: str
    results: tuple[StatusQueryResult, ...]


class CcqMessage(msgspec.Struct, frozen=True):
    """The initiator's question what a client can do (client capability query)."""

    address: str
    query_id: str | None = None
    app_id: str | None = None


class CcqResponse(msgspec.Struct, frozen=True):
    """The gateway's answer to a capability query; the capabilities themselves are a second
    entity."""

    address: str
    code: int
    desc: str | None = None
    query_id: str | None = None


class BadMessageResponse(msgspec.Struct, frozen=True):
    """The answer to a request that could not be understood."""

    code: int
    desc: str | None = None
    fragment: str | None = None


PapMessage: TypeAlias = (
    PushMessage
    | PushResponse
    | CancelMessage
    | CancelResponse
    | ResultNotificationMessage
    | ResultNotificationResponse
    | StatusQueryMessage
    | StatusQueryResponse
    | CcqMessage
    | CcqResponse
    | BadMessageResponse
)


class Document(msgspec.Struct, frozen=True, gc=False):
    """One message with what the document says about its sender."""

    message: PapMessage
    version: Version = UNDECLARED
    supported: tuple[str, ...] = ()
    """Versions that the sender understands, as it wrote them: `2.1`, `1.*`. PAP 1.0 has no place
    for them."""
    product: str | None = None
