"""Headers as lines that people read and write: `Name: value`.

A header without a known meaning is written as `@1.75: 0301aeff`: its code page, its field and its
octets, all in hexadecimal but the page. No name can start with that sign.
"""

from __future__ import annotations

import re

from lasthop.errors import Malformed
from lasthop.wire.wsp.headers import Field, Header, RawHeader
from lasthop.wire.wsp.primitives import CONTROL, TOKEN, OctetCursor

_RAW = re.compile(r"@([0-9]{1,3})\.([0-7][0-9a-f])", re.IGNORECASE)


def format_line(header: Field) -> str:
    """Format a header as a line, without a newline."""
    if isinstance(header, Header):
        return f"{header.name}: {header.value}"
    return f"@{header.page}.{header.field:02x}: {header.value.hex()}"


def parse_line(line: str, *, number: int | None = None) -> Field:
    """Parse the header on a line; raise Malformed with the number of the line."""
    where = {} if number is None else {"line": number}
    name, colon, value = line.partition(":")
    name, value = name.rstrip(), value.strip()
    if colon and (raw := _RAW.fullmatch(name)) is not None and int(raw.group(1)) < 256:
        return RawHeader(int(raw.group(1)), int(raw.group(2), 16), _octets(value, where))
    if not colon or TOKEN.fullmatch(name) is None:
        raise Malformed("not a header", text=line[:40], **where)
    if CONTROL.search(value) is not None:
        raise Malformed("a header must not contain control characters", name=name, **where)
    return Header(name, value)


def _octets(value: str, where: dict[str, int]) -> bytes:
    """Parse octets in hexadecimal that are exactly one value, so that the next header can be
    found."""
    try:
        octets = bytes.fromhex(value)
    except ValueError:
        raise Malformed("not hexadecimal", text=value[:40], **where) from None
    cursor = OctetCursor(octets)
    try:
        cursor.value()
        cursor.finish()
    except Malformed as error:
        raise Malformed(f"not a value: {error.detail}", text=value[:40], **where) from None
    return octets


def parse_lines(text: str) -> tuple[Field, ...]:
    """Parse the headers of a text, one on each line. Empty lines are skipped."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if stripped := line.strip("\r \t"):
            found.append(parse_line(stripped, number=number))
    return tuple(found)


def format_lines(headers: tuple[Field, ...]) -> str:
    """Format headers as a text, one on each line."""
    return "".join(format_line(header) + "\n" for header in headers)
