"""Names of elements, attributes and types: pairs of a namespace and a local name, without a prefix
(thesis, section 4.2)."""

from __future__ import annotations

import re
from typing import NamedTuple

from lasthop_xml.xas.errors import MalformedEvents

XML_NS = "http://www.w3.org/XML/1998/namespace"
XMLNS_NS = "http://www.w3.org/2000/xmlns/"
XSD_NS = "http://www.w3.org/2001/XMLSchema"
XSI_NS = "http://www.w3.org/2001/XMLSchema-instance"


class Name(NamedTuple):
    """The name of an element, an attribute or a type: a namespace (empty for none) and a local
    name."""

    ns: str
    local: str

    def __str__(self) -> str:
        """Return the name in Clark's notation, `{namespace}local`, as ElementTree writes it."""
        return f"{{{self.ns}}}{self.local}" if self.ns else self.local


XSI_TYPE = Name(XSI_NS, "type")
"""The attribute xsi:type, which gives the type of an element's content."""

# Names without a colon: NCName in Namespaces in XML 1.0 (third edition), section 3, from the
# characters of XML 1.0 (fifth edition), section 2.3.
NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NAME_CHAR = NAME_START + "\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040"
"""The characters that may follow the first one in a name (NAME_START: that may be the first one),
as the inside of a character class of a regular expression."""
NCNAME = f"[{NAME_START}][{NAME_CHAR}]*"
"""A regular expression for a name without a colon, for building larger ones."""
_NCNAME = re.compile(NCNAME)

ILLEGAL = "\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
"""Characters that no XML 1.0 document can contain, not even escaped (section 2.2), as the inside of
a character class."""

_ILLEGAL = re.compile(f"[{ILLEGAL}]")


def is_ncname(text: str) -> bool:
    """Whether `text` can be a local name or a prefix."""
    return _NCNAME.fullmatch(text) is not None


def check_name(name: Name) -> Name:
    """Return `name`, or raise MalformedEvents if it cannot stand in a tag: a peer could otherwise
    forge markup with it."""
    if not is_ncname(name.local):
        raise MalformedEvents("this is not a local name", name=name.local[:80])
    if name.ns:
        check_text(name.ns)
    return name


def check_text(text: str) -> str:
    """Return `text`, or raise MalformedEvents if it has a character that XML cannot contain."""
    # All printable characters are legal, and this test is several times cheaper than the search.
    if not text.isprintable() and (found := _ILLEGAL.search(text)) is not None:
        raise MalformedEvents("a text has a character that XML does not allow", char=found.group())
    return text
