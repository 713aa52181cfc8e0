"""The capabilities that two ends of a session agree on when they connect (WSP 8.3).

Each capability is a length, a number and parameters. Those that matter to a push have a field; the
others (extended methods, header code pages, aliases and unknown ones) are kept as they came.
"""

from __future__ import annotations

from enum import IntFlag

import msgspec

from lasthop.errors import Malformed
from lasthop.wire.uintvar import encode_uintvar
from lasthop.wire.wsp.primitives import OctetCursor

DEFAULT_SDU_SIZE = 1400
DEFAULT_OUTSTANDING = 1
"""The values that apply where a capability is not mentioned."""


class WspOptions(IntFlag):
    """The optional facilities that a session can have."""

    CONFIRMED_PUSH = 0x80
    PUSH = 0x40
    SESSION_RESUME = 0x20
    ACKNOWLEDGEMENT_HEADERS = 0x10
    LARGE_DATA_TRANSFER = 0x08


class Capabilities(msgspec.Struct, frozen=True):
    """The capabilities that one end offers or accepts; None for those that it does not mention."""

    client_sdu_size: int | None = None
    server_sdu_size: int | None = None
    options: WspOptions | None = None
    method_outstanding: int | None = None
    push_outstanding: int | None = None
    client_message_size: int | None = None
    server_message_size: int | None = None
    others: tuple[bytes, ...] = ()
    """Number and parameters of capabilities that have no field here, as octets."""


_SIZES = {
    0: "client_sdu_size",
    1: "server_sdu_size",
    8: "client_message_size",
    9: "server_message_size",
}
_OCTETS = {2: "options", 3: "method_outstanding", 4: "push_outstanding"}


def encode_capabilities(capabilities: Capabilities) -> bytes:
    """Encode all capabilities that are mentioned, in the order of their numbers."""
    found = []
    for number, name in sorted((_SIZES | _OCTETS).items()):
        value = getattr(capabilities, name)
        if value is not None:
            parameter = encode_uintvar(value) if number in _SIZES else bytes((value,))
            found.append(bytes((number | 0x80,)) + parameter)
    return b"".join(encode_uintvar(len(each)) + each for each in (*found, *capabilities.others))


def decode_capabilities(cursor: OctetCursor) -> Capabilities:
    """Decode the capabilities up to the end of the cursor; raise Malformed."""
    fields: dict[str, int] = {}
    others: list[bytes] = []
    while cursor.left:
        one = cursor.inside(cursor.uintvar())
        whole = one.data[one.pos : one.end]
        try:
            name, value = _known(one)
            if name in fields:
                raise Malformed("a capability comes twice", offset=one.pos)
        except Malformed:
            others.append(whole)
        else:
            fields[name] = value
    options = fields.pop("options", None)
    return Capabilities(
        **fields, options=None if options is None else WspOptions(options), others=tuple(others)
    )


def _known(one: OctetCursor) -> tuple[str, int]:
    number = one.short_integer()
    if number in _SIZES:
        name, value = _SIZES[number], one.uintvar()
    elif number in _OCTETS:
        name, value = _OCTETS[number], one.octet()
    else:
        raise Malformed("a capability has no field here", offset=one.pos)
    one.finish()
    return name, value
