"""Every document comes back from both of its forms, and nothing but our errors escapes.

About `wire/wbxml/encoder.py` and `wire/wbxml/decoder.py`.
"""

import contextlib
import tracemalloc

import pytest
from hypothesis import given, settings, strategies as st

from lasthop.errors import LasthopError, Malformed
from lasthop.wire.wbxml.decoder import decode
from lasthop.wire.wbxml.document import WbxmlDocument
from lasthop.wire.wbxml.encoder import VERSIONS, encode
from lasthop.wire.wbxml.language import Language
from lasthop.wire.wbxml.languages import LANGUAGES
from lasthop.wire.wbxml.validity import check
from lasthop.wire.wbxml.xml_reader import read_xml
from lasthop.wire.wbxml.xml_writer import write_xml
from tests.wire.wbxml.strategies import encodable, valid


@given(valid, st.sampled_from(sorted(VERSIONS)), st.booleans())
def test_a_valid_document_comes_back_from_octets(
    document: WbxmlDocument, version: str, string_table: bool
) -> None:
    check(document)
    assert decode(encode(document, version=version, string_table=string_table)) == document


@given(valid)
def test_a_valid_document_comes_back_from_text(document: WbxmlDocument) -> None:
    text = write_xml(document)
    assert read_xml(text) == document
    assert read_xml(text.encode()) == document


@given(encodable, st.booleans())
def test_a_document_against_its_type_comes_back_from_octets(
    document: WbxmlDocument, string_table: bool
) -> None:
    with contextlib.suppress(Malformed):  # a date that is none has no binary form
        octets = encode(document, string_table=string_table)
        assert decode(octets) == document
        assert len(octets) <= len(encode(document))


PLAIN = bytes.fromhex("03056a0045c60d0378797a00850ac30419990630010378000101")

MARKUP = [
    *("<si>", "</si>", "<indication ", "href='", "'", ">", "/>", "&x;", "&#0;", "\ud800"),
    *("<!DOCTYPE si [", "]>", "<!ENTITY x 'y'>", "<![CDATA[", "]]>", "<!--", "-->"),
]


def refused(data: bytes, language: Language | None) -> LasthopError | None:
    """Why `data` is not a document; what is one must survive both of its forms."""
    try:
        document = decode(data, language=language)
    except LasthopError as error:
        return error
    read_xml(write_xml(document))
    with contextlib.suppress(Malformed):  # a text may stand where a date should
        assert decode(encode(document)) == document
    return None


@settings(max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=200).map(lambda body: b"\x03\x05\x6a\x04ab\0\0\x45" + body),
        st.tuples(st.integers(0, len(PLAIN) - 1), st.binary(max_size=4)).map(
            lambda change: PLAIN[: change[0]] + change[1] + PLAIN[change[0] + 1 :]
        ),
    )
)
def test_no_octets_make_anything_but_our_errors(data: bytes) -> None:
    for language in (None, *LANGUAGES.values()):
        error = refused(data, language)
        assert error is None or "offset" in error.fields


@settings(max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=100),
        st.text(max_size=100),
        st.lists(st.sampled_from(MARKUP)).map("".join),
    )
)
def test_no_text_makes_anything_but_our_errors(data: bytes | str) -> None:
    with contextlib.suppress(LasthopError):
        encode(read_xml(data))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            b"\x03\x05\x6a" + b"\x88\x80\x00" + b"a" * 131071 + b"\0\x45\x46" + b"\x83\0" * 60_000,
            id="references to a large string",
        ),
        pytest.param(b"\x03\x05\x6a\x00" + b"\x45" * 250_000, id="depth"),
        pytest.param(b"\x03\x05\x6a\x00\x45" + b"\x06" * 250_000, id="many elements"),
        pytest.param(b"\x03\x05\x6a\x8f\xff\xff\xff\x7f\x45", id="a long string table"),
        pytest.param(b"\x03\x05\x6a\x00" * 100_000, id="size"),
    ],
)
def test_hostile_octets_cost_little(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(LasthopError):
            decode(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 1024 * 1024
