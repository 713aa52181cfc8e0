"""The WSP format: converts header lines to octets and back, alone or as a push with its content.

The text of a push is that of an HTTP message: header lines with the content type, an empty line,
and the content. Facts that HTTP has no line for start with `@`: the transaction of a datagram, and
whether the push wants a confirmation.
"""

from __future__ import annotations

from lasthop.errors import Malformed
from lasthop.runtime.formats.format import Decoded, Encoded, TextFormat, WantedForm
from lasthop.wire.wsp.headers import (
    DEFAULT_VERSION,
    Field,
    Header,
    decode_headers,
    encode_headers,
)
from lasthop.wire.wsp.lines import format_line, format_lines, parse_lines
from lasthop.wire.wsp.pdus import Push, decode_pdu, decode_unit, encode_pdu, encode_unit
from lasthop.wire.wsp.primitives import Version

HEADERS, PUSH, UNIT = "headers", "push", "unit"

TRANSACTION, CONFIRMED = "@transaction:", "@confirmed"

VERSIONS = {f"1.{minor}": (1, minor) for minor in range(1, 7)}


def _encode(text: bytes, wanted: WantedForm) -> Encoded:
    kind = wanted.type or HEADERS
    version: Version = DEFAULT_VERSION if wanted.version is None else VERSIONS[wanted.version]
    if kind == HEADERS:
        return Encoded(encode_headers(parse_lines(_decoded(text)), version=version), kind)
    push, transaction = _parse_push(text)
    if kind == PUSH:
        return Encoded(encode_pdu(push, version=version), kind)
    return Encoded(encode_unit(transaction, push, version=version), kind)


def _parse_push(text: bytes) -> tuple[Push, int]:
    head, _, body = _split(text)
    lines, transaction, confirmed = [], 0, False
    for line in _decoded(head).splitlines():
        if line.startswith(TRANSACTION):
            transaction = _transaction(line.removeprefix(TRANSACTION).strip())
        elif line.strip() == CONFIRMED:
            confirmed = True
        else:
            lines.append(line)
    content_type, headers = "", []
    for header in parse_lines("\n".join(lines)):
        if isinstance(header, Header) and header.name.lower() == "content-type":
            content_type = header.value
        else:
            headers.append(header)
    if not content_type:
        raise Malformed("a push needs a Content-Type")
    return Push(content_type, tuple(headers), body, confirmed), transaction


def _split(text: bytes) -> tuple[bytes, bytes, bytes]:
    """Split a text into its lines, the empty line and the content, with either kind of line end."""
    plain, empty = text.find(b"\n\n"), text.find(b"\r\n\r\n")
    if empty >= 0 and (plain < 0 or empty < plain):
        return text.partition(b"\r\n\r\n")
    return text.partition(b"\n\n")


def _transaction(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:4]) < 256 and len(text) < 4):
        raise Malformed("a transaction must be a number below 256", text=text[:40])
    return int(text)


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise Malformed("the headers are not UTF-8", offset=error.start) from None


def _decode(octets: bytes, wanted: WantedForm) -> Decoded:
    kind = wanted.type or HEADERS
    if kind == HEADERS:
        headers = decode_headers(octets)
        return Decoded(format_lines(headers).encode(), kind, {"headers": _shown(headers)})
    transaction, pdu = decode_unit(octets) if kind == UNIT else (None, decode_pdu(octets))
    if not isinstance(pdu, Push):
        raise Malformed(
            f"only a push can be converted to text, not a {type(pdu).__name__}", offset=0
        )
    special = [] if transaction is None else [f"{TRANSACTION} {transaction}"]
    if pdu.confirmed:
        special.append(CONFIRMED)
    lines = [*special, f"Content-Type: {pdu.content_type}", *map(format_line, pdu.headers)]
    head = "".join(f"{line}\n" for line in lines)
    facts = {
        "transaction": transaction,
        "confirmed": pdu.confirmed,
        "content_type": pdu.content_type,
        "headers": _shown(pdu.headers),
        "content": pdu.data.hex(),
    }
    return Decoded(head.encode() + b"\n" + pdu.data, kind, facts)


def _shown(headers: tuple[Field, ...]) -> list[list[str]]:
    return [list(format_line(header).split(": ", 1)) for header in headers]


FORMAT = TextFormat(
    about="headers of the Wireless Session Protocol, alone or with a push",
    types=(HEADERS, PUSH, UNIT),
    versions=tuple(VERSIONS),
    encode=_encode,
    decode=_decode,
)
