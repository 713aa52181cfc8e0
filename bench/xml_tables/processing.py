"""Table 7.5: time and memory of XAS compared with SAX and DOM.

SAX discards what it reads, everything else keeps it. Memory is what Python allocates, which leaves
out the trees of libxml2 that lxml keeps.
"""

from __future__ import annotations

import io
import xml.sax
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from xml.dom import minidom
from xml.etree import ElementTree
from xml.sax.handler import ContentHandler, feature_namespaces
from xml.sax.saxutils import XMLGenerator

from lxml import etree

from bench.xml_tables.meter import by_itself, memory, seconds
from lasthop_xml.xas.dom import from_dom, to_dom
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.sax import to_sax
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml

MIB: Final = 2**20
_LARGE: Final = Limits(size=2**26, events=10**7)


class Processor(NamedTuple):
    """A library: how it reads a document, and how it reads and writes it again."""

    read: Callable[[bytes], Any]
    rewrite: Callable[[bytes], Any]
    traced: bool = True
    """Whether Python's allocators see the memory that the library takes."""


class Row(NamedTuple):
    """The results of one library; each pair is for reading, and for reading and writing."""

    data: str
    processor: str
    milliseconds: tuple[float, float]
    peak: tuple[float, float] | None
    """The most memory in MiB; None if Python does not see it."""
    left: tuple[float, float] | None


def _sax(document: bytes, handler: ContentHandler) -> None:
    parser = xml.sax.make_parser()
    parser.setFeature(feature_namespaces, True)
    parser.setContentHandler(handler)
    parser.parse(io.BytesIO(document))


def _sax_rewrite(document: bytes) -> None:
    _sax(document, XMLGenerator(io.StringIO()))


def _xas_sax_rewrite(document: bytes) -> None:
    to_sax(parse_xml(document, limits=_LARGE), XMLGenerator(io.StringIO()))


def _dom_rewrite(document: bytes) -> tuple[object, str]:
    tree = minidom.parseString(document)
    return tree, tree.toxml()


def _xas_rewrite(document: bytes) -> tuple[object, bytes]:
    events = parse_xml(document, limits=_LARGE)
    return events, serialize_xml(events)


def _xas_dom(document: bytes) -> minidom.Document:
    return to_dom(parse_xml(document, limits=_LARGE))


def _xas_dom_rewrite(document: bytes) -> tuple[object, bytes]:
    tree = _xas_dom(document)
    return tree, serialize_xml(from_dom(tree))


def _etree_rewrite(document: bytes) -> tuple[object, bytes]:
    tree = ElementTree.fromstring(document)
    return tree, ElementTree.tostring(tree)


def _lxml_rewrite(document: bytes) -> tuple[object, bytes]:
    tree = etree.fromstring(document)
    return tree, etree.tostring(tree)


PROCESSORS: Final[dict[str, Processor]] = {
    "SAX": Processor(lambda document: _sax(document, ContentHandler()), _sax_rewrite),
    "DOM": Processor(minidom.parseString, _dom_rewrite),
    "XAS": Processor(lambda document: parse_xml(document, limits=_LARGE), _xas_rewrite),
    "XASSAX": Processor(
        lambda document: to_sax(parse_xml(document, limits=_LARGE), ContentHandler()),
        _xas_sax_rewrite,
    ),
    "XASDOM": Processor(_xas_dom, _xas_dom_rewrite),
    "ElementTree": Processor(ElementTree.fromstring, _etree_rewrite),
    "lxml": Processor(etree.fromstring, _lxml_rewrite, traced=False),
}


def directory(files: int) -> bytes:
    """Return one large document: a directory tree, in the manner of the thesis's Syxaw set."""
    lines = [b"<tree xmlns='http://lasthop.example/ns/tree'>"]
    for folder in range(files // 50):
        lines.append(b"<directory name='folder-%05d' uid='%d'>" % (folder, folder))
        for number in range(50):
            serial = 50 * folder + number
            lines.append(
                b"<file name='file-%06d.txt' version='%d'><size>%d</size><modified>%d</modified>"
                b"<hash>%032x</hash></file>"
                % (serial, serial % 7, serial * 37 % 100_000, 1141290193 + serial, serial**3)
            )
        lines.append(b"</directory>\n")
    lines.append(b"</tree>")
    return b"".join(lines)


def _same(job: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    return job


@by_itself()
def measure(data: str, documents: Sequence[bytes], rounds: int) -> list[Row]:
    rows = []
    for name, processor in PROCESSORS.items():
        jobs = processor.read, processor.rewrite
        times = [1000 * seconds(partial(_same, job), documents, rounds) for job in jobs]
        taken = [memory(job, documents) for job in jobs] if processor.traced else []
        rows.append(
            Row(
                data,
                name,
                (times[0], times[1]),
                (taken[0].peak / MIB, taken[1].peak / MIB) if taken else None,
                (taken[0].left / MIB, taken[1].left / MIB) if taken else None,
            )
        )
    return rows
