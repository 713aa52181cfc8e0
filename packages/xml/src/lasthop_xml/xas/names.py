"""Names are pairs of a namespace and a local name; prefixes are no part of them (section 4.2)."""

from __future__ import annotations

import re
from typing import NamedTuple

from lasthop_xml.xas.errors import MalformedEvents

XML_NS = "http://www.w3.org/XML/1998/namespace"
XMLNS_NS = "http://www.w3.org/2000/xmlns/"
XSD_NS = "http://www.w3.org/2001/XMLSchema"
XSI_NS = "http://www.w3.org/2001/XMLSchema-instance"


class Name(NamedTuple):
    """A namespace (empty for none) and a local name."""

    ns: str
    local: str

    def __str__(self) -> str:
        """Clark's notation, as ElementTree writes it."""
        return f"{{{self.ns}}}{self.local}" if self.ns else self.local


XSI_TYPE = Name(XSI_NS, "type")
"""The attribute that names the type of an element's content."""

# The characters of XML Namespaces 1.0 (third edition): a name without the colon.
NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NAME_CHAR = NAME_START + "\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040"
"""What a name may begin with and go on with, both as the inside of a character class."""
NCNAME = f"[{NAME_START}][{NAME_CHAR}]*"
"""A regular expression for names, to build others from."""
_NCNAME = re.compile(NCNAME)

ILLEGAL = "\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
"""What no XML 1.0 document can contain, not even escaped, as the inside of a character class."""

_ILLEGAL = re.compile(f"[{ILLEGAL}]")


def is_ncname(text: str) -> bool:
    """Whether `text` can be a local name or a prefix."""
    return _NCNAME.fullmatch(text) is not None


def check_name(name: Name) -> Name:
    """Refuse what could not stand in a tag: a peer's name could otherwise forge markup."""
    if not is_ncname(name.local):
        raise MalformedEvents("this is not a local name", name=name.local[:80])
    if name.ns:
        check_text(name.ns)
    return name


def check_text(text: str) -> str:
    """Refuse characters that XML does not have."""
    # Everything printable is legal, and that test is several times cheaper than the search.
    if not text.isprintable() and (found := _ILLEGAL.search(text)) is not None:
        raise MalformedEvents("a text has a character that XML does not have", char=found.group())
    return text
