"""Client addresses (PPG service, section 6): `WAPPUSH=value/TYPE=type@gateway`.

`parse_address` reads the grammar of 6.1 and reports the position of an error and what was expected
there. A `ClientAddress` keeps the text as the initiator wrote it, because that text must be
reported back, and compares by its canonical form.

Only separators can be "/", and the gateway's name has no "@", so an address is cut at its slashes
and its last "@" first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple, NoReturn

import msgspec

from lasthop.errors import PapAddressError
from lasthop.wire.pap.mime import MAX_REMEMBERED

MAX_ADDRESS = 1024
"""The largest number of characters in an address. E-mail stops at 254 and the longest escaped URI
in use is a few hundred; what an initiator writes here is stored and echoed for every push."""

USER, PLMN, IPV4, IPV6, MAN, URI = "USER", "PLMN", "IPv4", "IPv6", "MAN", "URI"
"""The types that 6.1 spells out, as it spells them. Every other type is written in capitals."""

Qualifiers = tuple[tuple[str, str], ...]


class ClientAddress(msgspec.Struct, frozen=True, eq=False):
    """One client address, split into its parts."""

    type: str
    """The type in canonical spelling: `USER`, `PLMN`, `IPv4`, ..."""
    value: bytes
    """The addressed value, without escapes and in canonical form: octets of the initiator's choice,
    a phone number without separators, an address without leading zeros."""
    gateway: str
    """The PPG specifier in lower case; it need not be the name of this host."""
    qualifiers: Qualifiers = ()
    """Extension qualifiers, keywords in capitals, in their order."""
    text: str = ""
    """The address as the initiator wrote it."""

    @property
    def canonical(self) -> str:
        """The canonical spelling of this address and all that are equal to it."""
        return _compose(self.type, _written(self.type, self.value), self.qualifiers, self.gateway)

    @property
    def short(self) -> str:
        """Type and value alone, as administrators write them: `PLMN:+15551999`."""
        return f"{self.type}:{_written(self.type, self.value)}"

    def __str__(self) -> str:
        return self.text or self.canonical

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientAddress) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, bytes, str, Qualifiers]:
        return self.type, self.value, self.gateway, self.qualifiers


def parse_address(text: str) -> ClientAddress:
    """Parse an address; a `PapAddressError` has the position and what was expected.

    >>> parse_address("wappush=john.doe%40example.org/type=user@Carrier.com").canonical
    'WAPPUSH=john.doe%40example.org/TYPE=USER@carrier.com'
    """
    return _remembered(text) if len(text) <= MAX_REMEMBERED else _parse_address(text)


@lru_cache(maxsize=8192)
def _remembered(text: str) -> ClientAddress:
    return _parse_address(text)


def _parse_address(text: str) -> ClientAddress:
    if len(text) > MAX_ADDRESS:
        _fail(MAX_ADDRESS, f"its end: it has at most {MAX_ADDRESS} characters", text)
    if not text.isascii():
        _fail(next(n for n, c in enumerate(text) if c > "\x7f"), "a character of ASCII", text)
    at = text.rfind("@")
    if at < 0:
        _fail(len(text), '"@" and the name of a gateway', text)
    start = 1 if text.startswith("/") else 0
    if text[start : start + 8].upper() != _PREFIX:
        _fail(start + _common(text[start : start + 8].upper(), _PREFIX), '"WAPPUSH="', text)
    start += len(_PREFIX)
    end = at - 1 if at > start and text[at - 1] == "/" else at
    first, *rest = text[start:end].split("/")
    if not rest:
        _fail(end, '"/TYPE="' if first else "the value to be addressed", text)
    type_start = end - len(rest[-1])
    kind = _read_type(text, type_start, end)
    form = _FORMS.get(kind, _OTHER)
    value = form.read(text, start, start + len(first))
    qualifiers = _read_qualifiers(text, start + len(first) + 1, rest[:-1])
    _check_gateway(text, at + 1)
    return ClientAddress(kind, value, text[at + 1 :].lower(), qualifiers, text)


def recognise(asked: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return for each asked address how the known ones spell it; an unknown address stays as it was
    asked.

    >>> recognise(["wappush=bob/type=user@X"], ["WAPPUSH=bob/TYPE=USER@x"])
    {'wappush=bob/type=user@X': 'WAPPUSH=bob/TYPE=USER@x'}
    """
    exact = dict.fromkeys(known)
    meant: dict[ClientAddress, str] = {}
    found: dict[str, str] = {}
    for text in asked:
        found[text] = text
        if text in exact:
            continue
        if not meant:
            for address in map(_read, exact):
                if address is not None:
                    meant.setdefault(address, str(address))
        address = _read(text)
        if address is not None:
            found[text] = meant.get(address, text)
    return found


def _read(text: str) -> ClientAddress | None:
    try:
        return parse_address(text)
    except PapAddressError:
        return None


def parse_short(text: str) -> ClientAddress:
    """Parse `TYPE:value`. Characters that must be escaped in an address need not be escaped here,
    except "%".

    >>> parse_short("user:john.doe@example.org").short
    'USER:john.doe%40example.org'
    """
    kind, colon, value = text.partition(":")
    if not colon or not value:
        raise PapAddressError(
            "an address must be TYPE:VALUE, such as PLMN:+15551999", position=len(kind)
        )
    if _FORMS.get(_CANONICAL_TYPES.get(kind.upper(), ""), _OTHER).write is escape:
        value = "%".join(escape(piece.encode()) for piece in value.split("%"))
    return parse_address(f"WAPPUSH={value}/TYPE={kind}@{_NOWHERE}")


def make_address(
    kind: str, value: bytes | str, *, gateway: str, qualifiers: Qualifiers = ()
) -> ClientAddress:
    """Return the address for a value that is not escaped yet; raise PapAddressError or ValueError.

    >>> str(make_address("USER", "john.doe@example.org", gateway="ppg.example.net"))
    'WAPPUSH=john.doe%40example.org/TYPE=USER@ppg.example.net'
    """
    octets = value.encode() if isinstance(value, str) else value
    canonical = _CANONICAL_TYPES.get(kind.upper(), kind.upper())
    address = parse_address(_compose(canonical, _written(canonical, octets), qualifiers, gateway))
    upper = tuple((keyword.upper(), content) for keyword, content in qualifiers)
    if (address.type, address.qualifiers) != (canonical, upper):
        raise ValueError("a part of the address has a separator in it")
    return address


def escape(octets: bytes) -> str:
    """Replace every unsafe octet by its hex-escape.

    6.1 calls "_" both safe and unsafe; it is left alone, as in the grammar of what is read.

    >>> escape(b"a_b@c%")
    'a_b%40c%25'
    """
    return "".join(map(_ESCAPES.__getitem__, octets))


def unescape(text: str) -> bytes:
    """Undo `escape`, for text that has only safe characters and complete escapes."""
    if "%" not in text:
        return text.encode("ascii")
    first, *rest = text.split("%")
    return first.encode("ascii") + b"".join(
        bytes((int(piece[:2], 16),)) + piece[2:].encode("ascii") for piece in rest
    )


_NOWHERE = "any"
_PREFIX = "WAPPUSH="
_TYPE = "TYPE="
_SAFE = re.compile(r"(?:[A-Za-z0-9+\-._]|%[0-9A-Fa-f]{2})*")
_TYPE_NAME = re.compile(r"[A-Za-z0-9_]*")
_KEYWORD = re.compile(r"[A-Za-z0-9\-]*")
_VALUE = re.compile(r"[\x20-\x2e\x30-\x3c\x3e-\x7e]*")
_PHONE = re.compile(r"\+[0-9.\-]*")
_IPV4_TEXT = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})")
_IPV6_TEXT = re.compile(r"[0-9A-Fa-f]{4}(?::[0-9A-Fa-f]{4}){7}")
_MAN_TEXT = re.compile(r"[0-9]{8}")
_FRAGMENT = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9\-]*)?")
_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*")
_URI_CHARACTERS = re.compile(rb"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")

_SAFE_OCTETS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-._")
_ESCAPES = [chr(o) if o in _SAFE_OCTETS else f"%{o:02X}" for o in range(256)]


def _compose(kind: str, value: str, qualifiers: Qualifiers, gateway: str) -> str:
    extra = "".join(f"/{keyword}={content}" for keyword, content in qualifiers)
    return f"WAPPUSH={value}{extra}/TYPE={kind}@{gateway}"


def _read_type(text: str, start: int, end: int) -> str:
    if text[start : start + 5].upper() != _TYPE:
        shared = _common(text[start : min(start + 5, end)].upper(), _TYPE)
        _fail(start + shared, '"TYPE=" as the last qualifier', text)
    _check(_TYPE_NAME, text, start + 5, end, "a letter, digit or underscore of the address type")
    upper = text[start + 5 : end].upper()
    return _CANONICAL_TYPES.get(upper, upper)


def _read_qualifiers(text: str, start: int, pieces: list[str]) -> Qualifiers:
    found = []
    for piece in pieces:
        equals = piece.find("=")
        end = start + len(piece)
        keyword_end = end if equals < 0 else start + equals
        _check(_KEYWORD, text, start, keyword_end, "a letter, digit or hyphen of a keyword")
        if equals < 0:
            _fail(end, '"=" and a value after the keyword', text)
        _check(_VALUE, text, keyword_end + 1, end, 'a printable character other than "/" and "="')
        found.append((piece[:equals].upper(), piece[equals + 1 :]))
        start = end + 1
    return tuple(found)


def _check_gateway(text: str, start: int) -> None:
    for fragment in text[start:].split("."):
        end = start + len(fragment)
        _check(_FRAGMENT, text, start, end, "a letter or digit of the gateway's name")
        start = end + 1


def _check(pattern: re.Pattern[str], text: str, start: int, end: int, expected: str) -> None:
    """Fail unless there is at least one character and all of them match the pattern."""
    found = pattern.match(text, start, end)
    reached = found.end() if found else start
    if reached < end or start == end:
        _fail(reached, expected, text)


def _read_escaped(text: str, start: int, end: int) -> bytes:
    found = _SAFE.match(text, start, end)
    reached = found.end() if found else start
    if reached < end and text[reached] == "%":
        # Stricter than escaped-value, which allows a bare "%": 6.1 counts it among the octets that
        # must be escaped, so one without two digits has no meaning.
        digits = text[reached + 1 : min(reached + 3, end)]
        valid = 1 if digits and digits[0] in "0123456789abcdefABCDEF" else 0
        _fail(reached + 1 + valid, 'two hexadecimal digits after "%"', text)
    _check(_SAFE, text, start, end, "a safe character of the value (others are escaped as %XX)")
    return unescape(text[start:end])


def _read_phone(text: str, start: int, end: int) -> bytes:
    if text[start : start + 1] != "+" or start == end:
        _fail(start, '"+" of a global phone number', text)
    _check(_PHONE, text, start, end, 'a digit, "-" or "." of a phone number')
    digits = text[start:end].replace("-", "").replace(".", "")
    if digits == "+":
        # Stricter than the grammar, which a phone number of separators only would satisfy.
        _fail(end, "a digit of a phone number", text)
    return digits.encode("ascii")


def _read_ipv4(text: str, start: int, end: int) -> bytes:
    found = _IPV4_TEXT.fullmatch(text, start, end)
    if found is None:
        _fail(_first_bad_group(text, start, end), "four decimal numbers joined by dots", text)
    for group in range(1, 5):
        # Stricter than 1*3DIGIT: RFC 791 has octets.
        if int(found[group]) > 255:
            _fail(found.start(group), "a number from 0 to 255", text)
    return ".".join(str(int(number)) for number in found.groups()).encode("ascii")


def _first_bad_group(text: str, start: int, end: int) -> int:
    at = start
    for group in range(4):
        digits = 0
        while at < end and digits < 3 and text[at] in "0123456789":
            at += 1
            digits += 1
        if not digits or group == 3 or at == end or text[at] != ".":
            return at
        at += 1
    raise AssertionError("the loop must have returned at the fourth group")


def _read_ipv6(text: str, start: int, end: int) -> bytes:
    if _IPV6_TEXT.fullmatch(text, start, end) is None:
        at = start
        for place in range(39):
            wanted = ":" if place % 5 == 4 else "0123456789abcdefABCDEF"
            if at == end or text[at] not in wanted:
                break
            at += 1
        _fail(at, "eight groups of four hexadecimal digits joined by colons", text)
    return text[start:end].upper().encode("ascii")


def _read_man(text: str, start: int, end: int) -> bytes:
    if _MAN_TEXT.fullmatch(text, start, end) is None:
        at = start
        while at < min(end, start + 8) and text[at] in "0123456789":
            at += 1
        _fail(at, "the eight digits of a Mobitex number", text)
    return text[start:end].encode("ascii")


def _read_uri(text: str, start: int, end: int) -> bytes:
    octets = _read_escaped(text, start, end)
    scheme = _SCHEME.match(octets)
    reached = scheme.end() if scheme else 0
    if octets[reached : reached + 1] != b":" or not reached:
        _fail(_written_at(text, start, reached), 'the scheme of a URI and ":"', text)
    found = _URI_CHARACTERS.match(octets)
    reached = found.end() if found else 0
    if reached < len(octets):
        _fail(_written_at(text, start, reached), "a character that RFC 3986 allows in a URI", text)
    return octets


def _written_at(text: str, start: int, octet: int) -> int:
    """Return the position in the text of the octet with this number."""
    for _ in range(octet):
        start += 3 if text[start] == "%" else 1
    return start


def _written(kind: str, value: bytes) -> str:
    return _FORMS.get(kind, _OTHER).write(value)


def _write_plain(value: bytes) -> str:
    return value.decode("latin-1")


class _Form(NamedTuple):
    """How the value of one address type is read and written."""

    read: Callable[[str, int, int], bytes]
    write: Callable[[bytes], str]


# The last alternative of device-address would let a value of any form pass as any type. A type
# that 6.1 spells out must have its own form here.
_FORMS = {
    USER: _Form(_read_escaped, escape),
    PLMN: _Form(_read_phone, _write_plain),
    IPV4: _Form(_read_ipv4, _write_plain),
    IPV6: _Form(_read_ipv6, _write_plain),
    MAN: _Form(_read_man, _write_plain),
    URI: _Form(_read_uri, escape),
}
_OTHER = _Form(_read_escaped, escape)
_CANONICAL_TYPES = {kind.upper(): kind for kind in _FORMS}


def _common(text: str, wanted: str) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(text, wanted, strict=False)) if a != b), len(text)
    )


def _fail(position: int, expected: str, text: str) -> NoReturn:
    found = text[position : position + 1]
    raise PapAddressError(
        f"an address had {found!r} where it should have {expected}"
        if found
        else f"an address ended where it should have {expected}",
        position=position,
    )
