"""The vectors of vectors/wsp as values: JSON that other implementations can read too.

Octets are hexadecimal. A header is a line of text, or `@page.field: octets` if it has no meaning.
What is at its default is left out.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lasthop.wire.wsp.capabilities import WspOptions
from lasthop.wire.wsp.lines import format_line, parse_line
from lasthop.wire.wsp.pdus import (
    Connect,
    ConnectReply,
    Disconnect,
    Pdu,
    Push,
    Redirect,
    Reply,
    Resume,
    Suspend,
)
from lasthop.wire.wsp.primitives import Version
from lasthop.wire.wsp.sir import Sir

FOLDER = Path("vectors/wsp")

Case = dict[str, Any]

TYPES: dict[str, type[Pdu]] = {
    "connect": Connect,
    "connect-reply": ConnectReply,
    "redirect": Redirect,
    "reply": Reply,
    "disconnect": Disconnect,
    "push": Push,
    "suspend": Suspend,
    "resume": Resume,
}
NAMES = {kind: name for name, kind in TYPES.items()}


def cases(file: str) -> list[Any]:
    found = json.loads((FOLDER / file).read_text())["cases"]
    return [pytest.param(case, id=case["name"]) for case in found]


def version_of(case: Case) -> Version:
    major, minor = case.get("version", "1.2").split(".")
    return int(major), int(minor)


def pdu_to_json(pdu: Pdu) -> dict[str, Any]:
    """How a vector describes a PDU."""
    return {"type": NAMES[type(pdu)], **_struct_to_json(pdu)}


def sir_to_json(sir: Sir) -> dict[str, Any]:
    """How a vector describes a session initiation request."""
    return _struct_to_json(sir)


def _struct_to_json(value: msgspec.Struct) -> dict[str, Any]:
    found = {}
    for field in msgspec.structs.fields(value):
        item = getattr(value, field.name)
        if item is None or item == field.default:
            continue
        found[field.name] = _to_json(field.name, item)
    return found


def _to_json(name: str, item: Any) -> Any:
    if name == "headers":
        return [format_line(header) for header in item]
    if isinstance(item, bytes):
        return item.hex()
    if isinstance(item, WspOptions):
        return int(item)
    if isinstance(item, msgspec.Struct):
        return _struct_to_json(item)
    if isinstance(item, tuple):
        return [_to_json("", each) for each in item]
    return item


def headers_from_json(lines: list[str]) -> tuple[Any, ...]:
    return tuple(map(parse_line, lines))
