"""The layout of the values of `documents` in XML, as a table that reader and writer both follow.

What a document may contain is decided by its document type. The table adds where each attribute and
child goes, and the rules of PAP that a document type cannot express: times, codes, identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from lasthop.message import DeliveryMethod
from lasthop.wire.pap import documents as d
from lasthop.wire.pap.codes import MessageState
from lasthop.wire.pap.times import format_time, format_time_up, parse_time
from lasthop.wire.pap.versions import Version

MAX_IDENTIFIER = 512
"""The largest number of characters in a push-id and other identifiers. They are kept for ever, to
refuse a second use; the URLs and mail-like identifiers that initiators make are below a hundred."""

MAX_TEXT = 4096
"""The largest number of characters in a description, a URL or a name: more than any person or log
line needs, and as much as common HTTP servers accept for a URL."""


class PapAttribute(NamedTuple):
    field: str
    name: str
    read: Callable[[str], object]
    """Parses the attribute's text; raises ValueError with what was expected."""
    write: Callable[[Any], str]
    default: object = None
    """The value that an absent attribute means; it is not written."""
    since: Version = Version.V1_0


class PapChild(NamedTuple):
    field: str
    element: PapElement | None
    """The element of the child; None for an address, which is held as its text."""
    many: bool = False


class PapElement(NamedTuple):
    tag: str
    type: type[msgspec.Struct]
    attributes: tuple[PapAttribute, ...]
    children: tuple[PapChild, ...] = ()


METHODS: dict[str, DeliveryMethod] = {
    "notspecified": DeliveryMethod.NOT_SPECIFIED,
    "unconfirmed": DeliveryMethod.UNCONFIRMED,
    "preferconfirmed": DeliveryMethod.PREFER_CONFIRMED,
    "confirmed": DeliveryMethod.CONFIRMED,
    "oneshot": DeliveryMethod.ONESHOT,
    "confirmed-with-response": DeliveryMethod.CONFIRMED_WITH_RESPONSE,
}
METHOD_NAMES = {method: name for name, method in METHODS.items()}

METHODS_SINCE: dict[DeliveryMethod, Version] = {
    DeliveryMethod.ONESHOT: Version.V2_1,
    DeliveryMethod.CONFIRMED_WITH_RESPONSE: Version.V2_1,
}
"""The version that introduced a delivery method, where it is not 1.0."""


_CODE = re.compile(r"[1-9][0-9]{3}")


def _read_code(text: str) -> int:
    if _CODE.fullmatch(text) is None:
        raise ValueError("a code must have four digits")
    return int(text)


def _write_code(code: int) -> str:
    if not 1000 <= code <= 9999:
        raise ValueError("a code must have four digits")
    return str(code)


def _read_identifier(text: str) -> str:
    if not text:
        raise ValueError("an identifier may not be empty")
    if len(text) > MAX_IDENTIFIER:
        raise ValueError(f"an identifier may have at most {MAX_IDENTIFIER} characters")
    return text


def _read_text(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise ValueError(f"a text may have at most {MAX_TEXT} characters")
    return text


def _read_flag(text: str) -> bool:
    return text == "true"


def _write_flag(flag: bool) -> str:
    return "true" if flag else "false"


def _text(field: str, name: str | None = None) -> PapAttribute:
    return PapAttribute(field, name or field.replace("_", "-"), _read_text, _read_text)


def _time(field: str, name: str, write: Callable[[int], str] = format_time) -> PapAttribute:
    return PapAttribute(field, name, parse_time, write)


def _flag(field: str, name: str) -> PapAttribute:
    return PapAttribute(field, name, _read_flag, _write_flag, default=False)


def _identifier(field: str, name: str, since: Version = Version.V1_0) -> PapAttribute:
    return PapAttribute(field, name, _read_identifier, _read_identifier, since=since)


_PUSH_ID = _identifier("push_id", "push-id")
_RESULT = (PapAttribute("code", "code", _read_code, _write_code), _text("desc"))
_SENDER = (_text("sender_address"), _text("sender_name"))
_STATE = PapAttribute("state", "message-state", MessageState, str)
_ADDRESS = PapChild("address", None)
_ADDRESSES = PapChild("addresses", None, many=True)

QUALITY = PapElement(
    "quality-of-service",
    d.QualityOfService,
    (
        PapAttribute("priority", "priority", d.Priority, str, d.Priority.MEDIUM),
        PapAttribute(
            "method",
            "delivery-method",
            METHODS.__getitem__,
            METHOD_NAMES.__getitem__,
            DeliveryMethod.NOT_SPECIFIED,
        ),
        _text("network"),
        _flag("network_required", "network-required"),
        _text("bearer"),
        _flag("bearer_required", "bearer-required"),
    ),
)
_QUALITY = PapChild("quality", QUALITY)

MESSAGES: tuple[PapElement, ...] = (
    PapElement(
        "push-message",
        d.PushMessage,
        (
            _PUSH_ID,
            _identifier("replace_push_id", "replace-push-id", Version.V2_0),
            PapAttribute(
                "replace_method",
                "replace-method",
                d.ReplaceMethod,
                str,
                d.ReplaceMethod.ALL,
                Version.V2_0,
            ),
            _time("deliver_before", "deliver-before-timestamp"),
            _time("deliver_after", "deliver-after-timestamp", format_time_up),
            _text("source_reference"),
            _text("notify_to", "ppg-notify-requested-to"),
            _flag("progress_notes", "progress-notes-requested"),
        ),
        (_ADDRESSES, _QUALITY),
    ),
    PapElement(
        "push-response",
        d.PushResponse,
        (_PUSH_ID, *_SENDER, _time("reply_time", "reply-time")),
        (
            PapChild(
                "progress",
                PapElement(
                    "progress-note",
                    d.ProgressNote,
                    (_text("stage"), _text("note"), _time("time", "time")),
                ),
                many=True,
            ),
            PapChild("result", PapElement("response-result", d.ResponseResult, _RESULT)),
        ),
    ),
    PapElement("cancel-message", d.CancelMessage, (_PUSH_ID,), (_ADDRESSES,)),
    PapElement(
        "cancel-response",
        d.CancelResponse,
        (_PUSH_ID,),
        (
            PapChild(
                "results", PapElement("cancel-result", d.CancelResult, _RESULT, (_ADDRESSES,)), True
            ),
        ),
    ),
    PapElement(
        "resultnotification-message",
        d.ResultNotificationMessage,
        (
            _PUSH_ID,
            *_SENDER,
            _time("received_time", "received-time"),
            _time("event_time", "event-time"),
            _STATE,
            *_RESULT,
        ),
        (_ADDRESS, _QUALITY),
    ),
    PapElement(
        "resultnotification-response",
        d.ResultNotificationResponse,
        (_PUSH_ID, *_RESULT),
        (_ADDRESS,),
    ),
    PapElement("statusquery-message", d.StatusQueryMessage, (_PUSH_ID,), (_ADDRESSES,)),
    PapElement(
        "statusquery-response",
        d.StatusQueryResponse,
        (_PUSH_ID,),
        (
            PapChild(
                "results",
                PapElement(
                    "statusquery-result",
                    d.StatusQueryResult,
                    (_time("event_time", "event-time"), _STATE, *_RESULT),
                    (_ADDRESSES, _QUALITY),
                ),
                many=True,
            ),
        ),
    ),
    PapElement(
        "ccq-message",
        d.CcqMessage,
        (_text("query_id"), _text("app_id")),
        (_ADDRESS,),
    ),
    PapElement("ccq-response", d.CcqResponse, (_text("query_id"), *_RESULT), (_ADDRESS,)),
    PapElement(
        "badmessage-response",
        d.BadMessageResponse,
        (*_RESULT, _text("fragment", "bad-message-fragment")),
    ),
)

BY_TAG = {element.tag: element for element in MESSAGES}
BY_TYPE = {element.type: element for element in MESSAGES}


def _names() -> tuple[frozenset[str], frozenset[str]]:
    tags, attributes = {"pap", "address"}, {"product-name", "address-value"}
    waiting = list(MESSAGES)
    while waiting:
        element = waiting.pop()
        tags.add(element.tag)
        attributes.update(attribute.name for attribute in element.attributes)
        waiting.extend(child.element for child in element.children if child.element)
    return frozenset(tags), frozenset(attributes)


TAGS, ATTRIBUTES = _names()
"""Every name of an element or attribute that a document of PAP can have."""
