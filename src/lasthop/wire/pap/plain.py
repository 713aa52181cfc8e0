"""Reads push-messages as nearly all initiators write them, in one pass.

A document is plain if it is short, in ASCII, with a prolog that was seen before, double quotes, and
values without references, tabs or line ends. A document that is not plain, or has any fault, is
left to `reader`, which accepts everything and can say what is wrong; for a plain document both give
the same value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from lasthop.wire.pap.documents import Document, PushMessage, QualityOfService
from lasthop.wire.pap.layout import BY_TAG, QUALITY, PapAttribute, PapElement
from lasthop.wire.pap.prolog import BLANK, Prolog
from lasthop.wire.pap.validity import rules_of
from lasthop.wire.pap.versions import UNDECLARED, VERSIONS, Version

MAX_PLAIN = 4096
"""The largest number of octets in a plain document: enough for a push to some thirty addresses, and
so few that no other limit of the reader can be reached."""

MAX_PROLOG = 400
"""The largest number of octets in a prolog that is remembered; a declaration and a DOCTYPE have
some 150."""

PROLOGS = 256
"""The largest number of prologs that are remembered; an initiator begins all its documents with the
same one."""

_VALUE = r"[ !#-%'-;=-~]*+"
_ATTRIBUTES = f'(?:{BLANK}++[a-z\\-]++="{_VALUE}")*+'
_PUSH = re.compile(
    f"<pap({_ATTRIBUTES}){BLANK}*+>{BLANK}*+"
    f"<push-message({_ATTRIBUTES}){BLANK}*+>{BLANK}*+"
    f'((?:<address{BLANK}++address-value="{_VALUE}"{BLANK}*+/>{BLANK}*+)++)'
    f"(?:<quality-of-service({_ATTRIBUTES}){BLANK}*+/>{BLANK}*+)?+"
    f"</push-message{BLANK}*+>{BLANK}*+</pap{BLANK}*+>{BLANK}*+"
)
_PAIR = re.compile(f'([a-z\\-]++)="({_VALUE})"')
_ADDRESS = re.compile(f'="({_VALUE})"')


class _VersionTable(NamedTuple):
    """The attributes that the elements of one version can have."""

    push: dict[str, tuple[PapAttribute, frozenset[str]]]
    quality: dict[str, tuple[PapAttribute, frozenset[str]]]


class Prologs:
    """The prologs of earlier documents: the octets before their root element, with what `reader`
    made of them."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, str | None], tuple[Version, tuple[str, ...]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def note(self, data: bytes, charset: str | None, encoding: str, prolog: Prolog) -> None:
        """Remember a prolog, if its octets alone decide what it means. They do if the root element
        is the first thing that looks like a root element: then nothing behind it was examined.
        """
        at = prolog.root
        if (
            at <= MAX_PROLOG
            and len(charset or "") <= MAX_PROLOG
            and encoding in _LIKE_ASCII
            and data.find(b"<pap") == at
            and data[:at].isascii()
            and (prolog.version is None or prolog.version in VERSIONS)
        ):
            if len(self._known) >= PROLOGS:
                self._known.clear()
            version = Version(prolog.version) if prolog.version else UNDECLARED
            self._known[data[:at], charset] = version, prolog.supported

    def read(self, data: bytes, charset: str | None) -> Document | None:
        """Return the push-message in `data` if its prolog is remembered and its XML has the plain
        form that this module can read; otherwise None."""
        if len(data) > MAX_PLAIN or not data.isascii():
            return None
        at = data.find(b"<pap")
        known = self._known.get((data[:at], charset))
        if at < 0 or known is None:
            return None
        found = _PUSH.fullmatch(data.decode("ascii"), at)
        return None if found is None else _document(found, *known)


_LIKE_ASCII = frozenset({"utf-8", "ascii", "latin-1", "cp1252"})


def _document(
    found: re.Match[str], version: Version, supported: tuple[str, ...]
) -> Document | None:
    about, attributes, addresses, quality = found.groups()
    product = None
    if about:
        ((name, product), *others) = _PAIR.findall(about)
        if name != "product-name" or others:
            return None
    values = _values(attributes, _table(version).push)
    if values is None or "push_id" not in values:
        return None
    if quality is not None:
        chosen = _quality(quality, version)
        if chosen is None:
            return None
        values["quality"] = chosen
    push = PushMessage(addresses=tuple(_ADDRESS.findall(addresses)), **values)
    after, before = push.deliver_after, push.deliver_before
    if after is not None and before is not None and after >= before:
        return None
    return Document(push, version, supported, product)


def _values(
    text: str, known: dict[str, tuple[PapAttribute, frozenset[str]]]
) -> dict[str, Any] | None:
    """Parse the attributes of an element as fields; None if any attribute is not as it should
    be."""
    values: dict[str, Any] = {}
    for name, value in _PAIR.findall(text):
        entry = known.get(name)
        if entry is None:
            return None
        attribute, choices = entry
        if attribute.field in values or (choices and value not in choices):
            return None
        try:
            values[attribute.field] = attribute.read(value)
        except ValueError:
            return None
    return values


@lru_cache(maxsize=256)
def _quality(text: str, version: Version) -> QualityOfService | None:
    """Parse a quality of service, cached because most pushes of an initiator have the same."""
    values = _values(text, _table(version).quality)
    return None if values is None else QualityOfService(**values)


@lru_cache
def _table(version: Version) -> _VersionTable:
    return _VersionTable(_allowed(BY_TAG["push-message"], version), _allowed(QUALITY, version))


def _allowed(
    element: PapElement, version: Version
) -> dict[str, tuple[PapAttribute, frozenset[str]]]:
    allowed = rules_of(version)[element.tag].attributes
    return {a.name: (a, allowed[a.name]) for a in element.attributes if a.name in allowed}
