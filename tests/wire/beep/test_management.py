"""What channel 0 says."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from lasthop.wire.beep.errors import BeepError
from lasthop.wire.beep.management import (
    MAX_DOCUMENT,
    CloseRequest,
    Error,
    Greeting,
    Management,
    Ok,
    StartedProfile,
    StartRequest,
    read,
    write,
)


@pytest.mark.parametrize(
    "text, said",
    [
        ("<greeting />", Greeting()),
        (
            "<greeting features='a'>\r\n <profile uri='http://iana.org/beep/TLS' />\r\n</greeting>",
            Greeting(("http://iana.org/beep/TLS",)),
        ),
        (
            (
                "<?xml version='1.0' encoding='utf-8'?><start number='1' serverName='a.b'>"
                '<!-- so --><profile uri="urn:a&amp;b"><![CDATA[<ready />]]></profile>'
                "<profile uri='c'/></start>"
            ),
            StartRequest(1, ("urn:a&b", "c"), "a.b"),
        ),
        ("<profile uri='http://iana.org/beep/TLS' />", StartedProfile("http://iana.org/beep/TLS")),
        ("<close number='1' code='200' />", CloseRequest(1, 200)),
        ("<close code='200'/>", CloseRequest(0, 200)),
        ("<ok />", Ok()),
        (
            "<error code='550'>still&#32;work&#x69;ng</error>",
            Error(550, "still working"),
        ),
    ],
)
def test_a_document_is_understood(text: str, said: Management) -> None:
    assert read(text.encode()) == said


words = st.text(st.characters(min_codepoint=32, codec="utf-8"), max_size=20).map(str.strip)
uris = st.lists(words.filter(bool), max_size=3).map(tuple)
documents = st.one_of(
    st.builds(Greeting, uris),
    st.builds(StartRequest, st.integers(1, 99), uris.filter(bool), words),
    st.builds(StartedProfile, words.filter(bool)),
    st.builds(CloseRequest, st.integers(0, 99), st.integers(100, 999), words),
    st.builds(Error, st.integers(100, 999), words),
    st.just(Ok()),
)


@given(documents)
def test_what_is_written_is_read(said: Management) -> None:
    assert read(write(said)) == said


@pytest.mark.parametrize(
    "document, message",
    [
        (b"\xff", "is not UTF-8"),
        (b"<ok/>" + b" " * MAX_DOCUMENT, "is too large"),
        (b"", "is not one element"),
        (b"<ok/><ok/>", "is not one element"),
        (b"hello", "is not one element"),
        (b"<ok>", "is not one element"),
        (b"</ok>", "is not well-formed"),
        (b"<ok></no>", "is not well-formed"),
        (b"<ok a=1/>", "is not well-formed"),
        (b"<!DOCTYPE ok><ok/>", "is not well-formed"),
        (b"<ok>&nbsp;</ok>", "has an unknown entity"),
        (b"<error code='550'>&#0;</error>", "has an unknown entity"),
        (b"<a><b><c><d/></c></b></a>", "is too deep"),
        (b"<what/>", "channel 0 has no such element"),
        (b"<start number='1'/>", "a start names no profile"),
        (b"<start><profile uri='a'/></start>", "start has no valid number"),
        (b"<start number='0'><profile uri='a'/></start>", "start has no valid number"),
        (b"<start number='1'><profile/></start>", "a profile has no uri"),
        (b"<close number='1'/>", "close has no valid code"),
        (b"<error code='1'/>", "error has no valid code"),
        (b"<greeting>" + b"<profile uri='a'/>" * 33 + b"</greeting>", "there are too many"),
    ],
)
def test_what_is_no_document_is_refused(document: bytes, message: str) -> None:
    with pytest.raises(BeepError, match=message):
        read(document)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_document_or_refused(document: bytes) -> None:
    with suppress(BeepError):
        read(b"<greeting " + document)
