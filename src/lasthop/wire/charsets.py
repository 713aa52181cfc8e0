"""Character sets by their IANA number (MIBenum), as WBXML and WSP write them.

The table holds the sets that Python can decode, by IANA's preferred MIME names. Two things differ
from a plain codec: UTF-16 and UCS-2 without a byte order mark are big-endian (RFC 2781, section
4.3), and sets of two or four octets a character end their strings with that many zeros.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

UTF_8 = 106

NAMES: dict[int, str] = {
    3: "us-ascii",
    **{3 + part: f"iso-8859-{part}" for part in range(1, 11)},
    17: "shift_jis",
    18: "euc-jp",
    36: "ks_c_5601-1987",
    37: "iso-2022-kr",
    38: "euc-kr",
    39: "iso-2022-jp",
    40: "iso-2022-jp-2",
    UTF_8: "utf-8",
    109: "iso-8859-13",
    110: "iso-8859-14",
    111: "iso-8859-15",
    112: "iso-8859-16",
    113: "gbk",
    114: "gb18030",
    1000: "iso-10646-ucs-2",
    1001: "iso-10646-ucs-4",
    1012: "utf-7",
    1013: "utf-16be",
    1014: "utf-16le",
    1015: "utf-16",
    1017: "utf-32",
    1018: "utf-32be",
    1019: "utf-32le",
    2009: "ibm850",
    2010: "ibm852",
    2011: "ibm437",
    2024: "windows-31j",
    2025: "gb2312",
    2026: "big5",
    2027: "macintosh",
    2046: "ibm855",
    2047: "ibm857",
    2084: "koi8-r",
    2085: "hz-gb-2312",
    2086: "ibm866",
    2088: "koi8-u",
    2101: "big5-hkscs",
    **{2000 + page: f"windows-{1000 + page}" for page in range(250, 259)},
    2259: "tis-620",
}

_CODECS = {
    "iso-10646-ucs-2": "utf-16",
    "iso-10646-ucs-4": "utf-32",
    "windows-31j": "cp932",
    "macintosh": "mac_roman",
    "hz-gb-2312": "hz",
}
"""Python's names of character sets, where they differ from IANA's."""

_ALIASES = {
    "ascii": 3,
    "latin1": 4,
    "iso8859-1": 4,
    "sjis": 17,
    "utf8": UTF_8,
    "ucs-2": 1000,
    "ucs-4": 1001,
    "utf16": 1015,
    "utf32": 1017,
    "cp932": 2024,
}
"""Other names in common use for character sets, and their MIBenum."""

_NUMBERS = {name.replace("_", "-"): number for number, name in NAMES.items()} | _ALIASES

_WIDE = {"utf-16": 2, "utf-32": 4}
_MARKS = {
    "utf-16": {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"},
    "utf-32": {b"\xff\xfe\0\0": "utf-32-le", b"\0\0\xfe\xff": "utf-32-be"},
}


class Charset(NamedTuple):
    """A character set: how the text of a document is encoded."""

    number: int
    name: str
    codec: str
    """The name of Python's codec for this character set."""
    width: int
    """The number of zero octets that end a string in this character set."""

    def decode(self, octets: bytes) -> str:
        """Decode octets of this character set; raise UnicodeDecodeError when they are invalid."""
        codec = self.codec
        if codec in _MARKS:
            for mark, marked in _MARKS[codec].items():
                if octets.startswith(mark):
                    return octets[len(mark) :].decode(marked)
            # RFC 2781, section 4.3: without a byte order mark the text is big-endian.
            codec += "-be"
        return octets.decode(codec)

    def end_of_string(self, data: bytes, start: int) -> int:
        """Return the position of the zero that ends the string at `start`, or -1."""
        width = self.width
        at = data.find(b"\0" * width, start)
        # Zeros that straddle two characters do not end the string.
        while width > 1 and at >= 0 and (at - start) % width:
            at = data.find(b"\0" * width, at + 1)
        return at


@lru_cache(maxsize=256)
def charset(number: int) -> Charset | None:
    """Return the character set with this MIBenum; None when it is unknown."""
    name = NAMES.get(number)
    if name is None:
        return None
    codec = _CODECS.get(name, name)
    return Charset(number, name, codec, _WIDE.get(codec[:6], 1))


def named(name: str) -> Charset | None:
    """Return the character set of this name; None when the name is unknown."""
    number = _NUMBERS.get(name.strip().lower().replace("_", "-"))
    return None if number is None else charset(number)
