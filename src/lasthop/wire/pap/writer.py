"""Writes control entities: a `Document` becomes bytes, the same bytes for the same value.

There is one way to write everything: UTF-8, double quotes, attributes in the order of `layout`,
nothing that has its default value. A value that its version cannot express is refused.
"""

from __future__ import annotations

import re
from typing import Any

from lasthop.clock import SECOND
from lasthop.errors import PapInvalid
from lasthop.message import DeliveryMethod
from lasthop.wire.pap.documents import (
    Document,
    PushMessage,
    ResultNotificationResponse,
)
from lasthop.wire.pap.layout import BY_TYPE, MAX_TEXT, METHODS_SINCE, PapElement
from lasthop.wire.pap.versions import PUBLIC_IDS, SYSTEM_IDS, Version

_SPECIAL = re.compile(r'[&<>"\t\n\r]')
_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    # Unescaped, these three would be read as a space (XML 1.0, 3.3.3).
    "\t": "&#9;",
    "\n": "&#10;",
    "\r": "&#13;",
}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PATTERNS = re.compile(r"[0-9.*,]*")


def write_document(document: Document) -> bytes:
    """Write a control entity; raise `PapInvalid` if there is no valid form."""
    version = document.version
    out = [
        '<?xml version="1.0" encoding="UTF-8"?>\n',
        f'<!DOCTYPE pap PUBLIC "{PUBLIC_IDS[version]}" "{SYSTEM_IDS[version]}"',
    ]
    offered = ",".join(document.supported)
    if _PATTERNS.fullmatch(offered) is None:
        raise PapInvalid(
            "a supported version must consist of digits, a dot and stars", versions=offered[:80]
        )
    # Versions are negotiated since 2.0; an initiator of 1.0 does not know the instruction.
    if offered and version is not Version.V1_0:
        out.append(f' [<?wap-pap-ver supported-versions="{offered}"?>]')
    out.append(">\n<pap")
    if document.product is not None:
        out.append(f' product-name="{quoted("product-name", document.product)}"')
    out.append(">")
    _check(document)
    _write(document.message, BY_TYPE[type(document.message)], version, out)
    out.append("</pap>\n")
    return "".join(out).encode()


def _check(document: Document) -> None:
    message = document.message
    if isinstance(message, ResultNotificationResponse) and None in (
        message.push_id,
        message.address,
    ):
        raise PapInvalid("a resultnotification-response must name its push and address")
    if isinstance(message, PushMessage):
        after, before = message.deliver_after, message.deliver_before
        # Compared as they will be written, in whole seconds.
        if after is not None and before is not None and -(-after // SECOND) >= before // SECOND:
            raise PapInvalid("deliver-after-timestamp is not before deliver-before-timestamp")


def _write(value: Any, element: PapElement, version: Version, out: list[str]) -> None:
    out.append(f"<{element.tag}")
    for attribute in element.attributes:
        content = getattr(value, attribute.field)
        if content is None or content == attribute.default:
            continue
        since = attribute.since
        if isinstance(content, DeliveryMethod):
            since = METHODS_SINCE.get(content, since)
        if version < since:
            raise PapInvalid(f"{attribute.name}: not in this version of PAP", needs=since.value)
        try:
            text = attribute.write(content)
        except ValueError as error:
            raise PapInvalid(f"{attribute.name}: {error}") from None
        out.append(f' {attribute.name}="{quoted(attribute.name, text)}"')
    opened = len(out)
    out.append(">")
    for child in element.children:
        content = getattr(value, child.field)
        parts = content if child.many else () if content is None else (content,)
        for part in parts:
            if child.element is None:
                out.append(f'<address address-value="{quoted("address-value", part)}"/>')
            else:
                _write(part, child.element, version, out)
    if len(out) == opened + 1:
        out[opened] = "/>"
    else:
        out.append(f"</{element.tag}>")


def quoted(name: str, text: str) -> str:
    """Return the value of an attribute as it is written between its quotation marks; raise
    PapInvalid."""
    if len(text) > MAX_TEXT:
        raise PapInvalid(f"{name}: a text may have at most {MAX_TEXT} characters")
    if _NOT_XML.search(text):
        raise PapInvalid(f"{name}: XML does not have this character")
    return _SPECIAL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return _ESCAPES[found[0]]
