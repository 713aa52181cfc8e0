"""What is compiled straight from its text becomes the octets of the long way."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import LasthopError
from lasthop.wire.wbxml.encoder import encode
from lasthop.wire.wbxml.language import Language
from lasthop.wire.wbxml.languages import CO, EMN, LANGUAGES, SI, SL
from lasthop.wire.wbxml.plain import MAX_PLAIN, compile_plain
from lasthop.wire.wbxml.validity import check
from lasthop.wire.wbxml.xml_reader import read_xml
from lasthop.wire.wbxml.xml_writer import write_xml
from tests.wire.wbxml.generated import generate

DOCTYPE = '<!DOCTYPE si PUBLIC "-//WAPFORUM//DTD SI 1.0//EN" "http://www.wapforum.org/DTD/si.dtd">'
INDICATION = (
    '<indication href="http://www.example.com/a/b?c" created="2026-06-25T15:23:15Z" '
    'action="signal-medium">You have mail</indication>'
)
COMMON = f'<?xml version="1.0"?>\r\n{DOCTYPE}\r\n<si>\r\n  {INDICATION}\r\n</si>\r\n'

PIECES = (
    *("<si>", "</si>", "<info>", "</info>", '<item class="a b">x</item>', "<indication/>", "<x/>"),
    *("</indication>", INDICATION, ' si-id="1"', ' href="2"', ' action="delete"', " x=''", ' y=""'),
    *(' created="soon"', "<!-- -->", "<?x?>", "<![CDATA[x]]>", "]]>", "&amp;", "&x;", "<", ">"),
    *("\r", "\n", "\t", " ", "\x00", "\x7f", "é", '"', "'", "/", "=", "si", DOCTYPE, "<!DOCTYPE"),
    *('<sl href="http://a"/>', "<?xml version='1.0'?>", 'encoding="utf-16"', "<invalidate-object"),
)


def long_way(data: bytes, language: Language) -> bytes | None:
    try:
        document = read_xml(data, language=language)
        check(document)
        return encode(document)
    except LasthopError:
        return None


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A common text with pieces of others in it, or with parts of it gone."""
    text = draw(st.sampled_from([COMMON, COMMON.replace("\r", ""), f"<si>{INDICATION}</si>"]))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        end = at + draw(st.sampled_from([0, 0, 0, 1, 2, 10]))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[end:]
    return text.encode()


@st.composite
def assembled(draw: st.DrawFn) -> bytes:
    """Pieces of texts in any order."""
    return "".join(draw(st.lists(st.sampled_from(PIECES), max_size=6))).encode()


@given(damaged() | assembled(), st.sampled_from(sorted(LANGUAGES)))
def test_nothing_is_compiled_that_the_long_way_would_refuse_or_compile_otherwise(
    data: bytes, language: str
) -> None:
    found = compile_plain(data, LANGUAGES[language])
    assert found is None or found == long_way(data, LANGUAGES[language])


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_valid_documents_are_compiled_alike(language: Language) -> None:
    random = Random(language.key)
    plain = 0
    for _ in range(300):
        data = write_xml(generate(language, random)).encode()
        found = compile_plain(data, language)
        if found is not None:
            plain += 1
            assert found == long_way(data, language)
    assert plain > 10


@pytest.mark.parametrize(
    "language, text",
    [
        (SI, COMMON),
        (SI, f"<si>{INDICATION}</si>"),
        (SI, f'<?xml version="1.0" encoding="UTF-8"?>\n<si>{INDICATION}</si>'),
        (SI, f'<si>{INDICATION}<info> <item class="a">x = y</item></info></si>'),
        (SI, "<si><indication> </indication></si>"),
        (SL, '<sl href="http://www.example.org/x" action="cache"/>'),
        (SL, '<sl href="http://www.example.org/x"></sl>'),
        (CO, '<co><invalidate-object uri="http://a.com/"/>\n<invalidate-service uri="b"/></co>'),
        (EMN, '<emn mailbox="mailat:a@b" timestamp="2026-06-25T15:23:15Z"/>'),
    ],
)
def test_what_is_common_is_plain(language: Language, text: str) -> None:
    found = compile_plain(text.encode(), language)
    assert found is not None
    assert found == long_way(text.encode(), language)


@pytest.mark.parametrize(
    "text",
    [
        COMMON.replace("mail", "m\u00e4il"),
        COMMON.replace("mail", "mail &amp; more"),
        COMMON.replace("mail", "mail ]]>"),
        COMMON.replace("mail", "mail\r"),
        COMMON.replace("<si>", "<!-- --><si>"),
        COMMON.replace(' version="1.0"', ' version="1.0" encoding="utf-16"'),
        COMMON.replace("You", "x" * MAX_PLAIN),
        COMMON.replace("signal-medium", "delete"),
        COMMON.replace("signal-medium", "shout"),
        COMMON.replace(" action=", ' href="x" action='),
        COMMON.replace("15:23", "25:23"),
        COMMON.replace("</si>", "</si><si/>"),
        COMMON.replace("</si>", "</si>."),
        COMMON.replace("</si>", ""),
        COMMON.replace("<si>", "").replace("</si>", ""),
        COMMON + "</si>",
        '<sl action="cache"/>',
    ],
)
def test_what_is_not_plain_or_has_a_fault_is_left_to_the_long_way(text: str) -> None:
    language = SL if "<sl" in text else SI
    assert compile_plain(text.encode(), language) is None
