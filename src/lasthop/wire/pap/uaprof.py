"""Client capabilities as a UAProf document: the answer to a capability query, and what an initiator
assumes of the clients of a push.

A device's capabilities are names and texts. Names of UAProf's vocabulary go where they belong,
lists (separated by commas) as bags; every other name goes under a vocabulary of our own, so that
nothing is left out. The assignment of names to components is from memory of UAProf, not from its
schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from lasthop.errors import PapMalformed, TooLarge

CONTENT_TYPE = "application/rdf+xml; charset=UTF-8"

MAX_PROFILE = 256 * 1024
"""The largest number of octets in a profile; those of phones have some ten thousand."""

MAX_ELEMENTS = 5_000
MAX_DEPTH = 32

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
UAPROF = "http://www.openmobilealliance.org/tech/profiles/UAPROF/ccppschema-20021212#"
OURS = "urn:lasthop:capabilities#"


class Property(NamedTuple):
    component: str
    bag: bool


def _of(component: str, *names: str) -> dict[str, Property]:
    """Return properties of a component by name; a name with a star is a list."""
    return {name.rstrip("*"): Property(component, name.endswith("*")) for name in names}


PROPERTIES: dict[str, Property] = {
    **_of(
        "HardwarePlatform",
        "BitsPerPixel",
        "ColorCapable",
        "CPU",
        "ImageCapable",
        "InputCharSet*",
        "Keyboard",
        "Model",
        "NumberOfSoftKeys",
        "OutputCharSet*",
        "PixelAspectRatio",
        "ScreenSize",
        "ScreenSizeChar",
        "SoundOutputCapable",
        "TextInputCapable",
        "Vendor",
        "VoiceInputCapable",
    ),
    **_of(
        "SoftwarePlatform",
        "CcppAccept*",
        "CcppAccept-Charset*",
        "CcppAccept-Encoding*",
        "CcppAccept-Language*",
        "JavaEnabled",
        "OSName",
        "OSVendor",
        "OSVersion",
        "SoftwareNumber",
    ),
    **_of(
        "NetworkCharacteristics",
        "CurrentBearerService",
        "SecuritySupport*",
        "SupportedBearers*",
    ),
    **_of(
        "BrowserUA",
        "BrowserName",
        "BrowserVersion",
        "FramesCapable",
        "HtmlVersion",
        "JavaScriptEnabled",
        "TablesCapable",
        "XhtmlVersion",
    ),
    **_of("WapCharacteristics", "WapDeviceClass", "WapVersion", "WmlDeckSize", "WmlVersion*"),
    **_of(
        "PushCharacteristics",
        "Push-Accept*",
        "Push-Accept-AppID*",
        "Push-Accept-Charset*",
        "Push-Accept-Encoding*",
        "Push-Accept-Language*",
        "Push-MaxPushReq",
        "Push-MsgSize",
    ),
}
"""The known names of UAProf, and the component of each."""


def write_profile(capabilities: Mapping[str, str]) -> bytes:
    """Write the capabilities of a client as a UAProf document, in the order of the vocabulary."""
    components: dict[str, list[str]] = {}
    for name, known in PROPERTIES.items():
        if name in capabilities:
            lines = components.setdefault(known.component, [])
            lines += _property(name, capabilities[name], bag=known.bag)
    others = sorted(name for name in capabilities if name not in PROPERTIES)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:prf="{UAPROF}" xmlns:our="{OURS}">',
        '<rdf:Description rdf:ID="Profile">',
    ]
    for component, properties in components.items():
        lines += _component(f"prf:{component}", component, properties)
    if others:
        ours = [_other(name, capabilities[name]) for name in others]
        lines += _component("our:Capabilities", "Capabilities", ours)
    lines += ["</rdf:Description>", "</rdf:RDF>", ""]
    return "\n".join(lines).encode("utf-8", "replace")


def _component(kind: str, name: str, properties: list[str]) -> list[str]:
    return [
        f"<prf:component><rdf:Description rdf:ID={quoteattr(name)}>",
        f'<rdf:type rdf:resource="{_uri(kind)}"/>',
        *properties,
        "</rdf:Description></prf:component>",
    ]


def _uri(kind: str) -> str:
    prefix, _, name = kind.partition(":")
    return (UAPROF if prefix == "prf" else OURS) + name


def _property(name: str, value: str, *, bag: bool) -> list[str]:
    if not bag:
        return [f"<prf:{name}>{_text(value)}</prf:{name}>"]
    items = [f"<rdf:li>{_text(item.strip())}</rdf:li>" for item in value.split(",")]
    return [f"<prf:{name}><rdf:Bag>", *items, f"</rdf:Bag></prf:{name}>"]


def _other(name: str, value: str) -> str:
    return f"<our:property our:name={quoteattr(_plain(name))}>{_text(value)}</our:property>"


def _text(value: str) -> str:
    return escape(_plain(value))


def _plain(value: str) -> str:
    """Return a text without the characters that XML does not have."""
    return "".join(c if c.isprintable() else " " for c in value)


def read_profile(data: bytes) -> dict[str, tuple[str, ...]]:
    """Return the properties of UAProf's vocabulary that a profile has, each with its values; raise
    PapMalformed or TooLarge.

    Everything else in the profile is skipped. It is read with expat, which keeps no name for longer
    than the document lasts, and without any document type.
    """
    if len(data) > MAX_PROFILE:
        raise TooLarge("a profile is too large", limit=MAX_PROFILE)
    reader = _ProfileReader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        said = expat.ErrorString(error.code)
        raise PapMalformed(f"a profile is not well-formed: {said}", line=error.lineno) from None
    return {name: tuple(values) for name, values in reader.found.items()}


class _ProfileReader:
    """Collects the texts of properties, and of the items of those that are lists."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}
        self._property: str | None = None
        self._text: list[str] = []
        self._depth = 0
        self._elements = 0

    def doctype(self, *_: object) -> None:
        raise PapMalformed("a profile must not have a document type")

    def start(self, tag: str, _: object) -> None:
        self._depth += 1
        self._elements += 1
        if self._depth > MAX_DEPTH or self._elements > MAX_ELEMENTS:
            raise TooLarge("a profile has too many elements", limit=MAX_ELEMENTS)
        space, _, name = tag.rpartition(" ")
        if "ccppschema" in space and name in PROPERTIES:
            self._property = name
            self.found.setdefault(name, [])
        self._text = []

    def end(self, tag: str) -> None:
        self._depth -= 1
        space, _, name = tag.rpartition(" ")
        text = "".join(self._text).strip()
        if self._property is not None and text:
            self.found[self._property].append(text)
        if name == self._property and space != RDF:
            self._property = None
        self._text = []

    def text(self, data: str) -> None:
        if self._property is not None:
            self._text.append(data)


def fits(assumed: Mapping[str, tuple[str, ...]], capabilities: Mapping[str, str]) -> bool:
    """Whether what is assumed of a client agrees with everything that is known of it.

    Assumed values of a list must be in it; a property that is not registered contradicts nothing.
    """
    for name, values in assumed.items():
        known = capabilities.get(name)
        if known is None:
            continue
        has = (
            {item.strip().lower() for item in known.split(",")}
            if PROPERTIES[name].bag
            else {known.strip().lower()}
        )
        if not has.issuperset(value.lower() for value in values):
            return False
    return True
