"""The WBXML format: converts the XML of a push document to its binary form and back."""

from __future__ import annotations

from lasthop.errors import Malformed
from lasthop.runtime.formats.format import Decoded, Encoded, TextFormat, WantedForm
from lasthop.wire.wbxml.decoder import decode
from lasthop.wire.wbxml.document import WbxmlDocument, WbxmlElement
from lasthop.wire.wbxml.encoder import DEFAULT_VERSION, VERSIONS, encode
from lasthop.wire.wbxml.language import Language
from lasthop.wire.wbxml.languages import LANGUAGES
from lasthop.wire.wbxml.validity import check
from lasthop.wire.wbxml.xml_reader import read_xml
from lasthop.wire.wbxml.xml_writer import write_xml


def _language(wanted: WantedForm) -> Language | None:
    return None if wanted.type is None else LANGUAGES[wanted.type]


def _encode(text: bytes, wanted: WantedForm) -> Encoded:
    document = read_xml(text, language=_language(wanted))
    if not wanted.lenient:
        check(document)
    octets = encode(document, version=wanted.version or DEFAULT_VERSION)
    return Encoded(octets, document.language.key)


def _decode(octets: bytes, wanted: WantedForm) -> Decoded:
    document = decode(octets, language=_language(wanted))
    text = write_xml(document)
    facts = {
        "name": document.language.name,
        "public_id": document.language.public_id,
        "version": f"1.{octets[0]}",
        "elements": _elements(document.root),
        "fault": _fault(document),
        "text": text,
    }
    return Decoded(text.encode(), document.language.key, facts)


def _elements(element: WbxmlElement) -> int:
    return 1 + sum(
        _elements(child) for child in element.children if isinstance(child, WbxmlElement)
    )


def _fault(document: WbxmlDocument) -> str | None:
    try:
        check(document)
    except Malformed as error:
        return str(error)
    return None


FORMAT = TextFormat(
    about="binary XML of push documents: SI, SL, CO, EMN",
    types=tuple(LANGUAGES),
    versions=tuple(VERSIONS),
    encode=_encode,
    decode=_decode,
)
