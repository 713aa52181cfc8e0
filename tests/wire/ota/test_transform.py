"""Message handling: what may change, what must, and what cannot be adapted."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import InvalidRequest, NotTransformable
from lasthop.wire.ota.terminal import UNKNOWN, Terminal, described, media_types
from lasthop.wire.ota.transform import PushContent, for_http, for_wsp, inflate, wsp_headers
from lasthop.wire.wbxml.decoder import decode
from lasthop.wire.wbxml.encoder import encode
from lasthop.wire.wbxml.languages import LANGUAGES
from lasthop.wire.wbxml.xml_reader import read_xml
from lasthop.wire.wbxml.xml_writer import write_xml
from lasthop.wire.wsp.headers import decode_headers, encode_headers
from lasthop.wire.wsp.multipart import decode_multipart
from lasthop.wire.wsp.registry import APPLICATIONS, CODES

SI = b"""<?xml version="1.0"?>
<!DOCTYPE si PUBLIC "-//WAPFORUM//DTD SI 1.0//EN" "http://www.wapforum.org/DTD/si.dtd">
<si><indication href="http://www.xyz.com/a" action="signal-high">hello</indication></si>"""
DOCUMENTS = {
    "si": SI,
    "sl": b'<sl href="http://www.xyz.com/ppaid/123/abc.wml"/>',
    "co": b'<co><invalidate-object uri="http://www.xyz.com/a"/></co>',
    "emn": b'<emn mailbox="mailat:joe@example.com" timestamp="2003-11-24T15:00:00Z"/>',
}
NO_TRANSFORM = (("Cache-Control", "private, No-Transform"),)
BINARY = Terminal(accept=frozenset({"application/vnd.wap.sic"}))
TEXT = Terminal(accept=frozenset({"text/vnd.wap.si"}))


def header(push: PushContent, name: str) -> str | None:
    found = [value for key, value in push.headers if key.lower() == name.lower()]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.conformance("PPG-GEN-S-018", "PPG-GEN-S-022")
class TestBinaryForm:
    @pytest.mark.parametrize("key", DOCUMENTS)
    def test_every_language_is_compiled_for_wsp(self, key: str) -> None:
        language = LANGUAGES[key]
        push = for_wsp(PushContent(language.text_type, (), DOCUMENTS[key]), UNKNOWN)
        assert push.content_type == language.binary_type
        assert decode(push.body) == read_xml(DOCUMENTS[key])

    @pytest.mark.parametrize("key", DOCUMENTS)
    def test_and_read_back_for_a_client_that_takes_only_text(self, key: str) -> None:
        language = LANGUAGES[key]
        binary = encode(read_xml(DOCUMENTS[key]))
        only_text = Terminal(accept=frozenset({language.text_type}))
        push = for_http(PushContent(language.binary_type, (), binary), only_text)
        assert push.content_type == f"{language.text_type}; charset=utf-8"
        assert read_xml(push.body) == decode(binary)

    def test_not_where_the_client_is_known_to_read_the_text(self) -> None:
        push = PushContent("text/vnd.wap.si; charset=utf-8", (), SI)
        assert for_wsp(push, TEXT).body == SI
        assert for_wsp(push, TEXT).content_type == push.content_type

    def test_over_http_only_where_the_client_takes_nothing_else(self) -> None:
        push = PushContent("text/vnd.wap.si", (), SI)
        assert for_http(push, UNKNOWN).body == SI
        assert for_http(push, TEXT).body == SI
        assert for_http(push, BINARY).content_type == "application/vnd.wap.sic"

    def test_the_charset_of_the_content_type_has_the_last_word(self) -> None:
        body = '<sl href="http://www.xyz.com/ü"/>'.encode("iso-8859-1")
        push = for_wsp(PushContent("text/vnd.wap.sl; charset=iso-8859-1", (), body), UNKNOWN)
        assert "ü" in write_xml(decode(push.body))

    @pytest.mark.parametrize(
        "content_type, body",
        [
            ("text/vnd.wap.si", b"<si><indication>"),
            ("text/vnd.wap.si", b"<si/>"),
            ("text/vnd.wap.si", b"<sl href='x'/>"),
            ("text/vnd.wap.si", b'<!DOCTYPE si [<!ENTITY a "b">]><si/>'),
            ("text/vnd.wap.si; charset=klingon", SI),
            ("text/vnd.wap.si; charset=utf-8", b"<si>\xff</si>"),
            ("text/vnd.wap.si", SI + b" " * 300_000),
            ("nonsense", SI),
            ("multipart/mixed", b"--x\r\n\r\nno boundary"),
            ("multipart/mixed; boundary=x", b"--x\r\n\r\nnever ends"),
        ],
    )
    def test_what_cannot_be_compiled_is_a_transformation_failure(
        self, content_type: str, body: bytes
    ) -> None:
        with pytest.raises(NotTransformable) as caught:
            for_wsp(PushContent(content_type, (), body), UNKNOWN)
        assert caught.value.pap_code == 3006

    def test_so_is_what_the_client_takes_in_no_form(self) -> None:
        with pytest.raises(NotTransformable, match="accepts no form of this content"):
            for_wsp(PushContent("image/png", (), b"x"), BINARY)
        with pytest.raises(NotTransformable, match="the push is larger than the client accepts"):
            for_wsp(PushContent("text/plain", (), b"x" * 11), Terminal(max_size=10))


@pytest.mark.conformance("PPG-GEN-S-003")
class TestNoTransform:
    @given(st.binary(max_size=200), st.sampled_from(["text/vnd.wap.si", "text/plain", "a/b"]))
    def test_not_an_octet_changes(self, body: bytes, media: str) -> None:
        rich = Terminal(accept=BINARY.accept, codings=frozenset({"deflate"}))
        for push in (
            for_wsp(PushContent(media, NO_TRANSFORM, body), UNKNOWN),
            for_http(PushContent(media, NO_TRANSFORM, body * 9), rich),
        ):
            assert push.content_type == media
            assert push.body in (body, body * 9)
            assert header(push, "Content-Encoding") is None

    def test_it_holds_for_one_part_of_many(self) -> None:
        body = (
            b"--x\r\nContent-Type: text/vnd.wap.sl\r\nCache-Control: no-transform\r\n\r\n<sl/>\r\n"
            b"--x\r\nContent-Type: text/vnd.wap.si\r\n\r\n" + SI + b"\r\n--x--"
        )
        push = for_wsp(PushContent("multipart/mixed; boundary=x", (), body), UNKNOWN)
        first, second = decode_multipart(push.body)
        assert (first.content_type, first.data) == ("text/vnd.wap.sl", b"<sl/>")
        assert second.content_type == "application/vnd.wap.sic"


class TestHeaders:
    @pytest.mark.conformance("PPG-GEN-S-004")
    def test_of_another_content_are_revised(self) -> None:
        headers = (
            ("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
            ("ETag", '"1"'),
            ("Content-Length", "999"),
            ("Content-Language", "en"),
            ("MIME-Version", "1.0"),
        )
        push = for_wsp(PushContent("text/vnd.wap.si", headers, SI), UNKNOWN)
        assert push.headers == (("X-Wap-Application-Id", "2"), ("Content-Language", "en"))

    def test_of_the_same_content_are_kept(self) -> None:
        headers = (("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="), ("ETag", '"1"'))
        push = for_wsp(PushContent("text/plain", headers, b"x"), UNKNOWN)
        assert push.headers[1:] == headers

    @pytest.mark.conformance("PPG-GEN-S-021")
    def test_have_a_binary_form(self) -> None:
        headers = (("X-Wap-Content-URI", "http://x.example/"), ("X-Foo", "bar"))
        push = for_wsp(PushContent("text/plain", headers, b"x"), UNKNOWN)
        octets = encode_headers(wsp_headers(push))
        assert octets == b"\xaf\x82\xb0http://x.example/\0X-Foo\0bar\0"
        assert len(decode_headers(octets)) == 3


@pytest.mark.conformance("PPG-GEN-S-005")
class TestApplication:
    @pytest.mark.conformance("PPG-GEN-S-006")
    @given(st.sampled_from(sorted(APPLICATIONS)), st.integers(0, 99999))
    def test_a_registered_one_goes_as_its_number_whatever_else_is_said(
        self, code: int, other: int
    ) -> None:
        urn = APPLICATIONS[code]
        for text in (urn, f"{urn};app-encoding={other}"):
            push = for_wsp(PushContent("a/b", (("x-wap-application-id", text),)), UNKNOWN)
            assert header(push, "X-Wap-Application-Id") == str(CODES[urn.lower()])

    @pytest.mark.parametrize(
        "text, sent",
        [
            ("http://a.example/my.ua", "http://a.example/my.ua"),
            ("http://a.example/my.ua;app-encoding=40000", "40000"),
            ("36866", "36866"),
            ("wml.ua", "2"),
        ],
    )
    def test_the_number_of_an_unregistered_one_replaces_it(self, text: str, sent: str) -> None:
        for handle in (for_wsp, for_http):
            push = handle(PushContent("a/b", (("X-Wap-Application-Id", text),)), UNKNOWN)
            assert header(push, "X-Wap-Application-Id") == sent

    def test_the_default_is_added_unless_the_client_assumes_it(self) -> None:
        assert header(for_wsp(PushContent("a/b"), UNKNOWN), "X-Wap-Application-Id") == "2"
        assumes = Terminal(default_application=2)
        assert header(for_wsp(PushContent("a/b"), assumes), "X-Wap-Application-Id") is None
        named = PushContent("a/b", (("X-Wap-Application-Id", "x-wap-application:wml.ua"),))
        assert header(for_wsp(named, assumes), "X-Wap-Application-Id") is None
        other = Terminal(default_application=4)
        assert header(for_wsp(PushContent("a/b"), other), "X-Wap-Application-Id") == "2"

    def test_what_is_none_is_a_transformation_failure(self) -> None:
        with pytest.raises(NotTransformable, match="the application is not valid"):
            for_wsp(PushContent("a/b", (("X-Wap-Application-Id", "a b"),)), UNKNOWN)


class TestMultipart:
    def test_becomes_wsps_own_with_its_parts_compiled(self) -> None:
        body = (
            b'--"\r\n\r\n--b\r\nContent-Type: text/plain\r\nContent-ID: <t1>\r\n\r\nhi\r\n--b\r\n'
            b"Content-Type: text/vnd.wap.si\r\n\r\n" + SI + b"\r\n--b--\r\n"
        )
        media = 'multipart/related; boundary=b; start="<t1>"; type="text/plain"'
        push = for_wsp(PushContent(media, (), body), UNKNOWN)
        expected = 'application/vnd.wap.multipart.related; start="<t1>"; type="text/plain"'
        assert push.content_type == expected
        first, second = decode_multipart(push.body)
        assert (first.content_type, first.data) == ("text/plain", b"hi")
        assert decode(second.data) == read_xml(SI)

    def test_within_multiparts_has_an_end(self) -> None:
        body, media = b"x", "text/plain"
        for n in range(6):
            mark = f"b{n}".encode()
            body = b"--%b\r\nContent-Type: %b\r\n\r\n%b\r\n--%b--" % (
                mark,
                media.encode(),
                body,
                mark,
            )
            media = f"multipart/mixed; boundary=b{n}"
        with pytest.raises(NotTransformable, match="nested too deeply"):
            for_wsp(PushContent(media, (), body), UNKNOWN)


@pytest.mark.conformance("PPG-GEN-S-019", "PPG-GEN-S-023")
class TestCodings:
    def test_deflate_for_a_client_that_undoes_it(self) -> None:
        push = PushContent("text/plain", (("ETag", "1"),), b"a" * 1000)
        wrapped = for_http(push, Terminal(codings=frozenset({"deflate"})))
        assert header(wrapped, "Content-Encoding") == "deflate"
        assert header(wrapped, "ETag") is None
        assert zlib.decompress(wrapped.body) == push.body
        raw = for_http(push, Terminal(codings=frozenset({"deflate"}), raw_deflate=True))
        assert zlib.decompress(raw.body, -15) == push.body
        assert for_http(push, UNKNOWN).body == push.body

    def test_only_where_it_saves(self) -> None:
        client = Terminal(codings=frozenset({"deflate"}))
        for body in (b"short", bytes(range(256))):
            assert for_http(PushContent("a/b", (), body), client).body == body
        coded = PushContent("a/b", (("Content-Encoding", "gzip"),), gzip.compress(b"x" * 999))
        assert for_http(coded, client).body == coded.body

    @pytest.mark.parametrize(
        "coding, body",
        [("gzip", gzip.compress(SI)), ("deflate", zlib.compress(SI)), ("identity", SI)],
    )
    def test_a_coded_document_is_undone_to_be_compiled(self, coding: str, body: bytes) -> None:
        push = PushContent("text/vnd.wap.si", (("Content-Encoding", coding),), body)
        sent = for_wsp(push, UNKNOWN)
        assert decode(sent.body) == read_xml(SI)
        if coding != "identity":
            assert header(sent, "Content-Encoding") is None

    def test_a_bomb_is_not_unpacked(self) -> None:
        bomb = zlib.compress(bytes(50_000_000), 9)
        with pytest.raises(NotTransformable, match="too large"):
            inflate(bomb, "deflate", limit=1000)
        with pytest.raises(NotTransformable, match="not gzip"):
            inflate(b"x", "gzip", limit=1000)
        with pytest.raises(NotTransformable, match="the content coding is not supported"):
            inflate(b"x", "br", limit=1000)

    @given(st.binary(max_size=300), st.booleans())
    def test_both_kinds_of_deflate_are_read(self, body: bytes, raw: bool) -> None:
        machine = zlib.compressobj(9, zlib.DEFLATED, -15 if raw else 15)
        coded = machine.compress(body) + machine.flush()
        assert inflate(coded, "deflate", limit=1000) == body


class TestTerminal:
    def test_is_described_by_registered_capabilities(self) -> None:
        terminal = described(
            {
                "ota.accept": "text/vnd.wap.si, image/*;q=0.5, text/plain;q=0",
                "ota.application": "x-wap-application:mms.ua",
                "ota.encoding-version": "1.4",
                "ota.accept-encoding": "Deflate, gzip;q=0.5",
                "ota.deflate": "raw",
                "ota.max-size": "1000",
                "colour": "blue",
            }
        )
        assert terminal == Terminal(
            accept=frozenset({"text/vnd.wap.si", "image/*"}),
            default_application=4,
            encoding_version=(1, 4),
            codings=frozenset({"deflate", "gzip"}),
            raw_deflate=True,
            max_size=1000,
        )
        assert terminal.takes("image/png")
        assert not terminal.takes("text/plain")
        assert described({"colour": "blue"}) is UNKNOWN
        assert media_types("*/*") == {"*/*"}

    @pytest.mark.parametrize(
        "name, value",
        [("ota.max-size", "big"), ("ota.deflate", "some"), ("ota.encoding-version", "x")],
    )
    def test_a_capability_that_cannot_be_read_is_refused(self, name: str, value: str) -> None:
        with pytest.raises(InvalidRequest, match="a capability cannot be read"):
            described({name: value})
