"""multipart/related as initiators send it; the standard library's mail parser agrees."""

import base64
import email
import quopri
from dataclasses import dataclass
from email.message import Message
from typing import cast

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import LasthopError, PapError, PapMalformed, TooLarge
from lasthop.wire.pap.mime import MAX_HEADER_BLOCK, parse_media_type
from lasthop.wire.pap.multipart import (
    MAX_BOUNDARY,
    MAX_PARTS,
    Entity,
    make_boundary,
    read_entity,
    read_related,
    split,
    write_related,
)
from tests.wire.pap.vectors import example

TYPE = "multipart/related; boundary=b"


def bodies(body: bytes, content_type: str = TYPE) -> list[bytes]:
    return [entity.body for entity in read_related(content_type, body)]


def test_the_example_submission() -> None:
    head, _, body = example("submit.http").partition(b"\r\n\r\n")
    content_type = 'multipart/related; boundary=asdlkfj3409ujf; type="application/xml"'
    assert content_type.encode() in head
    control, content = read_related(content_type, body)
    assert control.headers == (("Content-Type", "application/xml; charset=UTF-8"),)
    assert control.body.startswith(b"<?xml")
    assert control.body.rstrip().endswith(b"</pap>")
    assert content.headers == (
        ("Content-Type", "text/vnd.wap.si"),
        ("X-Wap-Application-Id", "x-wap-application:wml.ua"),
    )
    assert content.body.startswith(b"<?xml")
    assert content.body.rstrip().endswith(b"</si>")


@pytest.mark.parametrize(
    "body, expected",
    [
        (b"--b\r\n\r\none\r\n--b\r\n\r\ntwo\r\n--b--\r\n", [b"one", b"two"]),
        (b"--b\n\none\n--b\n\ntwo\n--b--", [b"one", b"two"]),
        (b"before\r\n--b\r\n\r\none\r\n--b--\r\nafter\r\n--b\r\n", [b"one"]),
        (b"\r\n--b\r\n\r\none\r\n--b--", [b"one"]),
        (b"--b \t\r\n\r\none\r\n--b-- \t\r\n", [b"one"]),
        (b"--b\r\n\r\n\r\n--b--", [b""]),
        (b"--b\r\n\r\n--b--", [b""]),
        (b"--b\r\n--b--", [b""]),
        (b"--b\r\nA: 1\r\n--b--", [b""]),
        (b"--b\r\nA: 1\r\n\r\n--b--", [b""]),
        (b"--b\r\nA: 1\r\n\r\n\r\n\r\none\r\n\r\n--b--", [b"\r\n\r\none\r\n"]),
        # What only begins like the boundary is content.
        (
            b"--b\r\n\r\n--bb\r\n --b\r\n--b-\r\n--b--x\r\n--b--",
            [b"--bb\r\n --b\r\n--b-\r\n--b--x"],
        ),
        # A line of mixed ends belongs to the content but for the last one.
        (b"--b\r\n\r\none\r\r\n--b\n\ntwo\r\n\n--b--", [b"one\r", b"two\r\n"]),
        (b"--b\n\nx\r\n\r\ny\n--b--", [b"x\r\n\r\ny"]),
        (b"--b\nA: 1\n\nx\r\n\r\ny\n--b--", [b"x\r\n\r\ny"]),
        (b"--b\r\nA: 1\r\n\r\nx\n\ny\r\n--b--", [b"x\n\ny"]),
    ],
)
def test_bodies_of_all_shapes(body: bytes, expected: list[bytes]) -> None:
    assert bodies(body) == expected


@pytest.mark.parametrize(
    "content_type, boundary",
    [
        ('multipart/related; boundary="b c"; type="application/xml"', b"b c"),
        ("Multipart/Related;type=application/xml;BOUNDARY=b", b"b"),
        ("multipart/related; boundary=----=_Part_1.2", b"----=_Part_1.2"),
        ("multipart/related; boundary=" + "x" * 150, b"x" * 150),
        ('multipart/related; boundary="é"', "é".encode()),
    ],
)
def test_boundaries_of_all_kinds(content_type: str, boundary: bytes) -> None:
    assert bodies(b"--%s\r\n\r\none\r\n--%s--" % (boundary, boundary), content_type) == [b"one"]


def test_start_names_the_root() -> None:
    body = b"--b\r\nContent-ID: <1>\r\n\r\none\r\n--b\r\nContent-Id: <2>\r\n\r\ntwo\r\n--b--"
    assert bodies(body) == [b"one", b"two"]
    assert bodies(body, f'{TYPE}; start="<2>"') == [b"two", b"one"]
    assert bodies(body, f'{TYPE}; start="<3>"') == [b"one", b"two"]


def test_an_inner_multipart_is_one_entity() -> None:
    inner = b"preamble\r\n--b2\r\n\r\na\r\n--b2--\r\nepilogue"
    body = b"--b\r\n\r\none\r\n--b\r\nContent-Type: multipart/mixed; boundary=b2\r\n\r\n%s\r\n--b--"
    assert bodies(body % inner) == [b"one", inner]


@pytest.mark.parametrize(
    "encoding, written, read",
    [
        ("base64", b"aGVs\r\nbG8=\r\n", b"hello"),
        ("BASE64", b"", b""),
        ("quoted-printable", b"caf=C3=A9 =\r\nau lait", "café au lait".encode()),
        ("binary", b"\0\xff\r\n", b"\0\xff\r\n"),
        ("8bit", b"\xe9", b"\xe9"),
        ("7bit", b"x", b"x"),
    ],
)
def test_transfer_encodings_are_taken_off(encoding: str, written: bytes, read: bytes) -> None:
    head = f"A: 1\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n".encode()
    assert read_entity(head + written) == Entity((("A", "1"),), read)


@pytest.mark.parametrize(
    "content_type, body, said",
    [
        ("text/plain", b"", "not multipart/related"),
        ("multipart/mixed; boundary=b", b"--b\r\n\r\n--b--", "not multipart/related"),
        ("multipart/related", b"--b\r\n\r\n--b--", "has no boundary"),
        ('multipart/related; boundary=""', b"----", "has no boundary"),
        ("nothing", b"", "not a media type"),
        (TYPE, b"", "does not end with its boundary"),
        (TYPE, b"--c\r\n\r\n--c--", "does not end with its boundary"),
        (TYPE, b"--b\r\n\r\none\r\n", "does not end with its boundary"),
        (TYPE, b"--b\r\n\r\none\r\n--b", "does not end with its boundary"),
        (TYPE, b"--b\r\n\r\none\r\n--b-", "does not end with its boundary"),
        (TYPE, b"--b\r\n\r\none--b--", "does not end with its boundary"),
        (TYPE, b"--b", "does not end with its boundary"),
        (TYPE, b"--b--", "has nothing in it"),
        (TYPE, b"--b\r\nno header\r\n\r\n--b--", "not a header"),
        (TYPE, b"--b\r\nContent-Transfer-Encoding: x\r\n\r\n--b--", "the transfer encoding"),
        (TYPE, b"--b\r\nContent-Transfer-Encoding: base64\r\n\r\na\r\n--b--", "not base64"),
        (TYPE, b"--b\r\nContent-Transfer-Encoding: base64\r\n\r\n!aaa\r\n--b--", "not base64"),
    ],
)
def test_broken_bodies_are_refused(content_type: str, body: bytes, said: str) -> None:
    with pytest.raises(PapMalformed, match=said) as caught:
        read_related(content_type, body)
    assert caught.value.pap_code == 2000


def test_there_are_limits() -> None:
    with pytest.raises(TooLarge, match="entities"):
        read_related(TYPE, b"--b\r\n\r\n" * (MAX_PARTS + 1) + b"--b--")
    assert len(bodies(b"--b\r\n\r\n" * MAX_PARTS + b"--b--")) == MAX_PARTS
    with pytest.raises(TooLarge, match="boundary"):
        read_related("multipart/related; boundary=" + "x" * (MAX_BOUNDARY + 1), b"")
    with pytest.raises(TooLarge, match="submission"):
        read_related(TYPE, b"x" * 11, limit=10)
    for head in (b"A: " + b"x" * MAX_HEADER_BLOCK, b"A: 1\r\n" * 5000):
        for blank in (b"\r\n\r\n", b""):
            with pytest.raises(TooLarge, match="headers"):
                read_related(TYPE, b"--b\r\n" + head + blank + b"\r\n--b--")


names = st.sampled_from(["Content-Type", "X-Wap-Application-Id", "X-A", "Content-ID"])
plain = st.text("abc/;=", min_size=1, max_size=10)
headers = st.lists(st.tuples(names, plain), max_size=3).map(tuple)
pieces = st.sampled_from([b"a", b"-", b"--", b"--b", b"\xe9", b" ", b"=", b"\0", b"b"])
lines = st.lists(pieces, max_size=5).map(b"".join)
boundaries = st.sampled_from(["b", "b-", "--b", "lasthop=1", "a b", "'()+_,-./:=?"])


@dataclass
class Packed:
    """Entities as some initiator packs them."""

    content_type: str
    body: bytes
    entities: list[Entity]


@st.composite
def packed(draw: st.DrawFn) -> Packed:
    end = draw(st.sampled_from([b"\r\n", b"\n"]))
    boundary = draw(boundaries)
    mark = b"--" + boundary.encode()
    many = st.lists(lines, max_size=4).map(end.join)
    calm = many.filter(lambda text: mark not in text)
    preamble, epilogue = draw(calm), draw(calm)
    out = preamble + end if preamble else b""
    entities = []
    for _ in range(draw(st.integers(1, 4))):
        found, content = draw(headers), draw(calm)
        encoding = draw(st.sampled_from(["", "base64", "quoted-printable", "binary"]))
        written = content
        lines_ = [f"{name}: {value}".encode() for name, value in found]
        if encoding:
            lines_.append(f"Content-Transfer-Encoding: {encoding}".encode())
        if encoding == "base64":
            written = base64.encodebytes(content).replace(b"\n", end)
        elif encoding == "quoted-printable":
            content = content.replace(b"\r", b"")
            written = quopri.encodestring(content, quotetabs=True)
        entities.append(Entity(found, content))
        out += mark + end + b"".join(line + end for line in lines_) + end + written + end
    out += mark + b"--" + end + epilogue
    quoted = draw(st.booleans()) or any(c in boundary for c in ' ;"')
    shown = f'"{boundary}"' if quoted else boundary
    return Packed(f"multipart/related; boundary={shown}", out, entities)


@given(packed())
def test_entities_come_out_as_they_went_in(message: Packed) -> None:
    assert list(read_related(message.content_type, message.body)) == message.entities


def mail_parts(data: bytes) -> list[Message]:
    found = email.message_from_bytes(data).get_payload()
    assert isinstance(found, list)
    return cast(list[Message], found)


@given(packed())
def test_the_mail_parser_agrees(message: Packed) -> None:
    # Quoted, because the mail parser takes an unquoted boundary only if it is a token.
    boundary = parse_media_type(message.content_type).parameters["boundary"]
    head = f'Content-Type: multipart/related; boundary="{boundary}"\r\n\r\n'.encode()
    theirs = mail_parts(head + message.body)
    ours = read_related(message.content_type, message.body)
    assert [part.get_payload(decode=True) for part in theirs] == [entity.body for entity in ours]
    shown = [
        tuple((n, v) for n, v in part.items() if n != "Content-Transfer-Encoding")
        for part in theirs
    ]
    assert shown == [entity.headers for entity in ours]


entities = st.lists(
    st.builds(Entity, headers, st.binary(max_size=40) | st.sampled_from([b"\r\n", b"--", b"\n--"])),
    min_size=1,
    max_size=4,
).map(tuple)


@given(entities)
def test_what_we_write_we_and_the_mail_parser_read(packed: tuple[Entity, ...]) -> None:
    try:
        content_type, body = write_related(packed)
    except PapError:
        # The root has a Content-Type that is none.
        return
    assert read_related(content_type, body) == packed
    assert write_related(packed) == (content_type, body)
    calm = tuple(Entity(e.headers, e.body.hex().encode()) for e in packed)
    content_type, body = write_related(calm)
    theirs = mail_parts(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    assert [part.get_payload(decode=True) for part in theirs] == [e.body for e in calm]


def test_the_exact_octets() -> None:
    control = Entity((("Content-Type", "application/xml; charset=UTF-8"),), b"<pap/>")
    content = Entity((("Content-Type", "text/plain"), ("X-A", "1")), b"hello")
    content_type, body = write_related((control, content), boundary="b")
    assert content_type == 'multipart/related; boundary="b"; type="application/xml"'
    assert body == (
        b"--b\r\nContent-Type: application/xml; charset=UTF-8\r\n\r\n<pap/>\r\n"
        b"--b\r\nContent-Type: text/plain\r\nX-A: 1\r\n\r\nhello\r\n--b--\r\n"
    )


def test_a_boundary_never_occurs_in_an_entity() -> None:
    entity = Entity((), b"hello")
    boundary = make_boundary((entity,))
    clash = Entity((), f"--{boundary}".encode())
    assert make_boundary((entity,)) == boundary
    with pytest.raises(ValueError, match="occurs"):
        write_related((clash,), boundary=boundary)
    for wrong in ["", "x" * 71, "a ", 'a"b', "é", "a\r\nb"]:
        with pytest.raises(ValueError, match="not a boundary"):
            write_related((entity,), boundary=wrong)
    with pytest.raises(ValueError, match="nothing"):
        write_related(())


@given(packed(), st.data())
def test_a_cut_body_is_refused(message: Packed, data: st.DataObject) -> None:
    boundary = parse_media_type(message.content_type).parameters["boundary"].encode()
    last = message.body.rindex(b"--" + boundary + b"--")
    cut = data.draw(st.integers(0, last + len(boundary) + 2))
    if b"--" + boundary + b"--" in message.body[:cut]:
        return
    with pytest.raises(PapMalformed):
        split(message.body[:cut], boundary)


@given(st.binary(max_size=200) | st.lists(pieces | st.just(b"\r\n--b"), max_size=30).map(b"".join))
def test_any_octets_are_a_body_or_an_error(body: bytes) -> None:
    for start in (b"", b"--b\r\n"):
        try:
            read_related(TYPE, start + body)
        except LasthopError:
            continue
