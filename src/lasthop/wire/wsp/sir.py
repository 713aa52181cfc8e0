"""The session initiation request: asks a client to open a session, and says where.

The request is pushed without a session, as `application/vnd.wap.sia` to the application push.sia.
Version 0 knows WSP only; version 1 adds OTA-HTTP.
"""

from __future__ import annotations

import msgspec

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.uintvar import encode_uintvar
from lasthop.wire.wsp.addresses import Address, decode_addresses, encode_addresses
from lasthop.wire.wsp.applications import Application, parse_application
from lasthop.wire.wsp.headers import Header, decode_headers
from lasthop.wire.wsp.primitives import OctetCursor, integer, text_string

MEDIA_TYPE = "application/vnd.wap.sia"

MAX_SIZE = 65_535
"""The largest number of octets in a request, which travels in one datagram."""

OTA_HTTP = 0
OTA_HTTP_WITH_TAG = 1
"""Protocol options: OTA-HTTP without, and with, a tag that names the client's capabilities."""

TAG_LENGTH = 4

_HEADER_FORM = 0xAF
"""The field number of X-Wap-Application-Id. Some senders write the applications as headers, most as
bare values; no bare value starts with this number, which no application has."""


class Sir(msgspec.Struct, frozen=True, kw_only=True):
    """A session initiation request: where and for which applications to open a session."""

    version: int = 0
    applications: tuple[Application, ...] = ()
    wsp_contacts: tuple[Address, ...] = ()
    other_contacts: tuple[Address, ...] = ()
    """Contact points for sessions over OTA-HTTP."""
    protocol_options: tuple[int, ...] = ()
    provisioning_url: str = ""
    capability_tags: tuple[bytes, ...] = ()
    """Tags of client capabilities, four octets each."""


def encode_sir(sir: Sir) -> bytes:
    """Encode the content of the push; raise ValueError for what the version cannot express."""
    out = bytes((sir.version,))
    out += _counted(b"".join(map(_application, sir.applications)))
    out += _counted(encode_addresses(sir.wsp_contacts))
    if sir.version == 0:
        if (
            sir.other_contacts
            or sir.protocol_options
            or sir.provisioning_url
            or sir.capability_tags
        ):
            raise ValueError("version 0 may only have applications and WSP contact points")
        return out
    if sir.version != 1:
        raise ValueError(f"version {sir.version} is not known")
    if any(len(tag) != TAG_LENGTH for tag in sir.capability_tags):
        raise ValueError(f"a tag must have {TAG_LENGTH} octets")
    out += _counted(encode_addresses(sir.other_contacts))
    out += encode_uintvar(len(sir.protocol_options))
    out += b"".join(map(encode_uintvar, sir.protocol_options))
    out += _counted(sir.provisioning_url.encode("ascii"))
    return out + encode_uintvar(len(sir.capability_tags)) + b"".join(sir.capability_tags)


def _counted(octets: bytes) -> bytes:
    return encode_uintvar(len(octets)) + octets


def _application(application: Application) -> bytes:
    return integer(application) if isinstance(application, int) else text_string(application)


def decode_sir(data: bytes) -> Sir:
    """Decode a request; raise Malformed with the offset, or TooLarge. Fields that a later version
    adds at the end are ignored."""
    if len(data) > MAX_SIZE:
        raise TooLarge("the request is too large", size=len(data), limit=MAX_SIZE)
    cursor = OctetCursor(data)
    version = cursor.octet()
    applications = _read_applications(cursor.inside(cursor.uintvar()))
    wsp_contacts = decode_addresses(cursor.inside(cursor.uintvar()))
    if version == 0:
        cursor.finish()
        return Sir(applications=applications, wsp_contacts=wsp_contacts)
    other_contacts = decode_addresses(cursor.inside(cursor.uintvar()))
    options = tuple(cursor.uintvar() for _ in range(_count(cursor, 1)))
    url = _read_url(cursor)
    tags = tuple(cursor.take(TAG_LENGTH) for _ in range(_count(cursor, TAG_LENGTH)))
    if version == 1:
        cursor.finish()
    return Sir(
        version=version,
        applications=applications,
        wsp_contacts=wsp_contacts,
        other_contacts=other_contacts,
        protocol_options=options,
        provisioning_url=url,
        capability_tags=tags,
    )


def _count(cursor: OctetCursor, size: int) -> int:
    """Read how many entries of at least `size` octets follow; raise Malformed if they cannot
    fit."""
    at = cursor.pos
    count = cursor.uintvar()
    if count * size > cursor.left:
        raise Malformed("the data ends before the last of the announced entries", offset=at)
    return count


def _read_url(cursor: OctetCursor) -> str:
    at = cursor.pos
    octets = cursor.take(cursor.uintvar())
    if not octets.isascii() or any(octet <= 0x20 for octet in octets):
        raise Malformed("not a URL", offset=at)
    return octets.decode()


def _read_applications(cursor: OctetCursor) -> tuple[Application, ...]:
    if cursor.left and cursor.peek() == _HEADER_FORM:
        headers = decode_headers(cursor)
        return tuple(parse_application(each.value) for each in headers if isinstance(each, Header))
    found: list[Application] = []
    while cursor.left:
        text = 0x20 <= cursor.peek() < 0x80
        found.append(cursor.text_string() if text else cursor.integer())
    return tuple(found)
