"""What a client can do, as a UAProf document: the profile that a capability query is answered with.

A device's capabilities are names and texts. Names of UAProf's vocabulary go where they belong,
lists (separated by commas) as bags; every other name goes under a vocabulary of our own, so that
nothing is left out. The assignment of names to components is from memory of UAProf, not from its
schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

CONTENT_TYPE = "application/rdf+xml; charset=UTF-8"

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
UAPROF = "http://www.openmobilealliance.org/tech/profiles/UAPROF/ccppschema-20021212#"
OURS = "urn:lasthop:capabilities#"


class Property(NamedTuple):
    component: str
    bag: bool


def _of(component: str, *names: str) -> dict[str, Property]:
    """A name with a star is a list."""
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
"""The names of UAProf that we know, and where each belongs."""


def write_profile(capabilities: Mapping[str, str]) -> bytes:
    """The capabilities of a client, in the order of the vocabulary."""
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
    """Without the characters that XML does not have."""
    return "".join(c if c.isprintable() else " " for c in value)
