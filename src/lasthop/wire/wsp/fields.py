"""Header fields with an assigned number on code page 1, and since which encoding version (WSP table
39).

Some fields got a second or third number when their values changed; the newest that the other side
knows is written, and all are read.
"""

from __future__ import annotations

Version = tuple[int, int]

FIELDS: dict[int, tuple[str, Version]] = {
    0x00: ("Accept", (1, 1)),
    0x01: ("Accept-Charset", (1, 1)),
    0x02: ("Accept-Encoding", (1, 1)),
    0x03: ("Accept-Language", (1, 1)),
    0x04: ("Accept-Ranges", (1, 1)),
    0x05: ("Age", (1, 1)),
    0x06: ("Allow", (1, 1)),
    0x07: ("Authorization", (1, 1)),
    0x08: ("Cache-Control", (1, 1)),
    0x09: ("Connection", (1, 1)),
    0x0A: ("Content-Base", (1, 1)),
    0x0B: ("Content-Encoding", (1, 1)),
    0x0C: ("Content-Language", (1, 1)),
    0x0D: ("Content-Length", (1, 1)),
    0x0E: ("Content-Location", (1, 1)),
    0x0F: ("Content-MD5", (1, 1)),
    0x10: ("Content-Range", (1, 1)),
    0x11: ("Content-Type", (1, 1)),
    0x12: ("Date", (1, 1)),
    0x13: ("ETag", (1, 1)),
    0x14: ("Expires", (1, 1)),
    0x15: ("From", (1, 1)),
    0x16: ("Host", (1, 1)),
    0x17: ("If-Modified-Since", (1, 1)),
    0x18: ("If-Match", (1, 1)),
    0x19: ("If-None-Match", (1, 1)),
    0x1A: ("If-Range", (1, 1)),
    0x1B: ("If-Unmodified-Since", (1, 1)),
    0x1C: ("Location", (1, 1)),
    0x1D: ("Last-Modified", (1, 1)),
    0x1E: ("Max-Forwards", (1, 1)),
    0x1F: ("Pragma", (1, 1)),
    0x20: ("Proxy-Authenticate", (1, 1)),
    0x21: ("Proxy-Authorization", (1, 1)),
    0x22: ("Public", (1, 1)),
    0x23: ("Range", (1, 1)),
    0x24: ("Referer", (1, 1)),
    0x25: ("Retry-After", (1, 1)),
    0x26: ("Server", (1, 1)),
    0x27: ("Transfer-Encoding", (1, 1)),
    0x28: ("Upgrade", (1, 1)),
    0x29: ("User-Agent", (1, 1)),
    0x2A: ("Vary", (1, 1)),
    0x2B: ("Via", (1, 1)),
    0x2C: ("Warning", (1, 1)),
    0x2D: ("WWW-Authenticate", (1, 1)),
    0x2E: ("Content-Disposition", (1, 1)),
    0x2F: ("X-Wap-Application-Id", (1, 2)),
    0x30: ("X-Wap-Content-URI", (1, 2)),
    0x31: ("X-Wap-Initiator-URI", (1, 2)),
    0x32: ("Accept-Application", (1, 2)),
    0x33: ("Bearer-Indication", (1, 2)),
    0x34: ("Push-Flag", (1, 2)),
    0x35: ("Profile", (1, 2)),
    0x36: ("Profile-Diff", (1, 2)),
    0x37: ("Profile-Warning", (1, 2)),
    0x38: ("Expect", (1, 3)),
    0x39: ("TE", (1, 3)),
    0x3A: ("Trailer", (1, 3)),
    0x3B: ("Accept-Charset", (1, 3)),
    0x3C: ("Accept-Encoding", (1, 3)),
    0x3D: ("Cache-Control", (1, 3)),
    0x3E: ("Content-Range", (1, 3)),
    0x3F: ("X-Wap-Tod", (1, 3)),
    0x40: ("Content-ID", (1, 3)),
    0x41: ("Set-Cookie", (1, 3)),
    0x42: ("Cookie", (1, 3)),
    0x43: ("Encoding-Version", (1, 3)),
    0x44: ("Profile-Warning", (1, 4)),
    0x45: ("Content-Disposition", (1, 4)),
    0x46: ("X-WAP-Security", (1, 4)),
    0x47: ("Cache-Control", (1, 4)),
    0x48: ("Expect", (1, 5)),
    0x49: ("X-Wap-Loc-Invocation", (1, 5)),
    0x4A: ("X-Wap-Loc-Delivery", (1, 5)),
}

CODES: dict[str, list[tuple[int, Version]]] = {}
"""The numbers of each field by its name in lower case, the newest first."""
for _code, (_name, _since) in sorted(FIELDS.items(), reverse=True):
    CODES.setdefault(_name.lower(), []).append((_code, _since))


def code_of(name: str, version: Version) -> int | None:
    """Return the number of a field for a client of this encoding version; None if it has none."""
    for code, since in CODES.get(name.lower(), ()):
        if since <= version:
            return code
    return None
