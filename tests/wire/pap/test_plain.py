"""What is read in one go is read as by the reader that takes everything."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, strategies as st

from lasthop.errors import LasthopError
from lasthop.wire.pap.documents import Document, PushMessage
from lasthop.wire.pap.plain import PROLOGS, Prologs
from lasthop.wire.pap.prolog import decode, encoding_of, read_prolog
from lasthop.wire.pap.reader import read_any_document, read_document
from lasthop.wire.pap.versions import PUBLIC_IDS, SYSTEM_IDS, VERSIONS, Version
from lasthop.wire.pap.writer import write_document
from tests.wire.pap.strategies import push_messages

ADDRESS = '<address address-value="WAPPUSH=+155/TYPE=PLMN@h"/>'
AFTER = 'deliver-after-timestamp="2026-01-02T00:00:00Z"'
BEFORE = 'deliver-before-timestamp="2026-01-01T00:00:00Z"'
BODY = f'<pap><push-message push-id="1@pi">{ADDRESS}</push-message></pap>'


def prolog(version: Version = Version.V2_1) -> str:
    doctype = f'<!DOCTYPE pap PUBLIC "{PUBLIC_IDS[version]}" "{SYSTEM_IDS[version]}">'
    return f'<?xml version="1.0"?>\r\n{doctype}\r\n'


def noted(data: bytes, charset: str | None = None) -> Prologs:
    """Knows the prolog of this document, if it is one that can be remembered."""
    prologs = Prologs()
    encoding = encoding_of(data, charset)
    prologs.note(data, charset, encoding, read_prolog(decode(data, encoding)))
    return prologs


def slowly(data: bytes, charset: str | None = None) -> Document | None:
    try:
        return read_any_document(data, charset=charset)
    except LasthopError:
        return None


def quickly(data: bytes, charset: str | None = None) -> Document | None:
    try:
        return noted(data, charset).read(data, charset)
    except LasthopError:
        return None


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """A push-message as we write it."""
    version = draw(st.sampled_from(VERSIONS))
    return write_document(Document(draw(push_messages(version)), version, ("2.1",), "x"))


PIECES = [
    *("<pap>", "</pap>", "<pap product-name='a'>", '<pap product-name="a">', "<address/>"),
    *('<push-message push-id="1">', "</push-message>", ADDRESS, "</address>", "<!-- -->", "<?x?>"),
    *(' push-id="2"', ' progress-notes-requested="true"', ' progress-notes-requested="maybe"'),
    *('<quality-of-service priority="low"/>', '<quality-of-service delivery-method="oneshot"/>'),
    *(' deliver-before-timestamp="2026-01-01T00:00:00Z"', ' deliver-before-timestamp="soon"'),
    *("&amp;", "&x;", "\t", "\n", "\r\n", "\x0b", "\x7f", "é", "<", ">", '"', "'", "/", "=", " "),
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A plain document with pieces of others in it, or with parts of it gone."""
    text = prolog(draw(st.sampled_from(VERSIONS))) + BODY
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        end = at + draw(st.sampled_from([0, 0, 0, 1, 2, 8]))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[end:]
    return text.encode()


def spread_out() -> st.SearchStrategy[bytes]:
    """A plain document with pieces in the places where something may stand."""
    gap = st.sampled_from(["", *PIECES])
    places = re.split(r"(?<=[>\"])(?=[<> /])|(?= push-id)", BODY)
    gaps = st.lists(gap, min_size=len(places), max_size=len(places))
    return gaps.map(
        lambda found: (prolog() + "".join(map("".join, zip(places, found, strict=True)))).encode()
    )


@given(written())
def test_what_we_write_is_read_alike(data: bytes) -> None:
    found = quickly(data)
    assert found is None or found == slowly(data)


@given(damaged() | spread_out(), st.sampled_from([None, "utf-8", "latin1", "utf-16", "x"]))
@example((prolog() + BODY).encode(), "utf-16")
def test_nothing_is_read_that_the_reader_would_refuse_or_read_otherwise(
    data: bytes, charset: str | None
) -> None:
    found = quickly(data, charset)
    assert found is None or found == slowly(data, charset)


@given(damaged() | spread_out(), written())
def test_what_one_document_began_with_says_nothing_wrong_of_the_next(
    first: bytes, second: bytes
) -> None:
    try:
        prologs = noted(first)
    except LasthopError:
        return
    found = prologs.read(second, None)
    assert found is None or found == slowly(second)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_common_push_is_plain(version: Version) -> None:
    data = (
        prolog(version) + '<pap product-name="pi 1"><push-message push-id="1@pi" '
        'deliver-before-timestamp="2026-01-01T00:00:00Z" progress-notes-requested="true">\r\n'
        f'  {ADDRESS}\r\n  {ADDRESS}\r\n  <quality-of-service priority="low"/>\r\n'
        "</push-message>\r\n</pap>\r\n"
    ).encode()
    found = quickly(data)
    assert found is not None
    assert found == slowly(data)
    assert isinstance(found.message, PushMessage)
    assert len(found.message.addresses) == 2


@pytest.mark.parametrize(
    "data",
    [
        (prolog() + BODY).replace(ADDRESS, ADDRESS.replace('"', "'")).encode(),
        (prolog() + BODY.replace("1@pi", "1&amp;pi")).encode(),
        (prolog() + BODY.replace("1@pi", "1\tpi")).encode(),
        (prolog() + BODY.replace("1@pi", "1épi")).encode(),
        (prolog() + BODY.replace("1@pi", "1" * 513)).encode(),
        (prolog() + BODY.replace("1@pi", '1" push-id="2')).encode(),
        (prolog() + BODY.replace("1@pi", '1" progress-notes-requested="maybe')).encode(),
        (prolog() + BODY.replace("1@pi", '1" deliver-after-timestamp="soon')).encode(),
        (prolog() + BODY.replace("1@pi", f'1" {AFTER} {BEFORE} source-reference="')).encode(),
        (prolog() + BODY.replace("1@pi", '1" priority="low')).encode(),
        (prolog() + BODY.replace("push-id", "source-reference")).encode(),
        (prolog() + BODY.replace("<pap", '<pap product-name="a" product-name="b"')).encode(),
        (prolog() + BODY.replace("</push", '<quality-of-service priority="x"/></push')).encode(),
        (prolog(Version.V1_0) + BODY.replace("1@pi", '1" replace-push-id="0')).encode(),
        (prolog() + BODY + "<!-- -->").encode(),
        ("<!-- <pap> -->" + BODY).encode(),
        (" " * 500 + BODY).encode(),
        ("\ufeff" + BODY).encode(),
        (prolog() + BODY).encode("utf-16"),
        (prolog() + BODY.replace(ADDRESS, ADDRESS * 100)).encode(),
    ],
)
def test_what_is_not_plain_is_left_to_the_reader(data: bytes) -> None:
    assert quickly(data) is None


def test_a_prolog_is_known_after_its_first_document() -> None:
    data = (prolog(Version.V2_0) + BODY).encode()
    assert Prologs().read(data, None) is None
    assert read_document(data) == read_document(data) == slowly(data)


def test_only_so_many_prologs_are_remembered() -> None:
    prologs = Prologs()
    for number in range(3 * PROLOGS):
        data = f"<?x {number}?>{BODY}".encode()
        prologs.note(data, None, "utf-8", read_prolog(data.decode()))
        assert prologs.read(data, None) == slowly(data)
        assert len(prologs) <= PROLOGS
