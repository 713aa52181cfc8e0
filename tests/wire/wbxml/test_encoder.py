"""Which octets are chosen where several would do."""

import pytest

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.wbxml.dates import pack_date, unpack_date
from lasthop.wire.wbxml.decoder import decode
from lasthop.wire.wbxml.document import WbxmlDocument, WbxmlElement, WbxmlLimits
from lasthop.wire.wbxml.encoder import encode
from lasthop.wire.wbxml.language import Language
from lasthop.wire.wbxml.languages import CO, EMN, SI, SL


def body(language: Language, root: WbxmlElement) -> str:
    return encode(WbxmlDocument(language, root))[4:].hex()


@pytest.mark.parametrize(
    "href,octets",
    [
        ("", "08"),
        ("x", "08037800"),
        ("http://", "09"),
        ("http://x", "09037800"),
        ("http://www.", "0a"),
        ("https://x", "0b037800"),
        ("https://www.x", "0c037800"),
        ("http://www.x.com/", "0a03780085"),
        ("http://www.x.com", "0a03782e636f6d00"),
        ("http://.edu/.net/.org/", "09868788"),
        ("ftp://x.org/y", "08036674703a2f2f78008803790 0".replace(" ", "")),
    ],
)
def test_a_link_gets_the_longest_tokens(href: str, octets: str) -> None:
    assert body(SL, WbxmlElement("sl", {"href": href})) == f"85{octets}01"


def test_text_is_never_tokenised() -> None:
    found = body(SI, WbxmlElement("indication", {}, ("http://www.x.com/",)))
    assert found == "4603" + b"http://www.x.com/".hex() + "0001"


def test_mailboxes_are_written_without_tokens_that_decoders_disagree_about() -> None:
    found = body(EMN, WbxmlElement("emn", {"mailbox": "mailat:a@x.com"}))
    assert found == "850703" + b"a@x.com".hex() + "0001"


@pytest.mark.parametrize(
    "text,octets",
    [
        ("1999-06-25T15:23:15Z", "19990625152315"),
        ("1999-06-30T00:00:00Z", "19990630"),
        ("2024-02-29T08:05:00Z", "202402290805"),
        ("2000-10-10T10:00:10Z", "20001010100010"),
    ],
)
def test_dates_are_packed_without_the_zeros_at_their_end(text: str, octets: str) -> None:
    assert pack_date(text).hex() == octets
    assert unpack_date(bytes.fromhex(octets)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1999-06-25",
        "1999-06-25T15:23:15",
        "1999-06-25t15:23:15z",
        "1999-13-25T15:23:15Z",
        "1999-06-25T24:00:00Z",
        "0000-01-01T00:00:00Z",
        "१९९९-06-25T15:23:15Z",
    ],
)
def test_what_is_not_a_date_fails_the_encoding(text: str) -> None:
    with pytest.raises(Malformed, match="not a date"):
        body(SI, WbxmlElement("indication", {"created": text}))


def test_strings_that_repeat_can_go_to_the_string_table() -> None:
    operations = tuple(
        WbxmlElement("invalidate-object", {"uri": f"http://cache.example.org/{name}"})
        for name in "abc"
    )
    document = WbxmlDocument(CO, WbxmlElement("co", {}, operations))
    plain, shared = encode(document), encode(document, string_table=True)
    assert len(shared) < len(plain)
    assert shared.count(b"cache.example") == 1
    assert decode(shared) == decode(plain) == document


def test_code_pages_are_switched_when_the_next_token_needs_it() -> None:
    paged = Language(
        key="x",
        name="X 1.0",
        number=0x60,
        public_id="-//X//DTD X 1.0//EN",
        system_id="x.dtd",
        text_type="text/x",
        binary_type="application/x",
        tags={0: {5: "a"}, 1: {5: "b"}},
        attribute_starts={0: {5: "m"}, 2: {5: "n", 6: "n=on"}},
        attribute_values={2: {0x85: ".com"}},
    )
    root = WbxmlElement(
        "a",
        {"m": "x.com", "n": "on"},
        (WbxmlElement("b", {"m": ""}), WbxmlElement("b"), WbxmlElement("a")),
    )
    octets = encode(WbxmlDocument(paged, root))
    assert octets[4:].hex() == "c5050378000002850601000185000005010500000501"
    assert decode(octets, language=paged).root == root


def test_what_no_document_can_hold_is_refused() -> None:
    for text in ("\0", "\x0b", "\ud800", "\uffff"):
        with pytest.raises(Malformed, match="XML does not have"):
            body(SI, WbxmlElement("indication", {}, (text,)))
    with pytest.raises(Malformed, match="not a name"):
        body(SI, WbxmlElement("a b"))


def test_too_much_is_refused() -> None:
    deep = WbxmlElement("info")
    for _ in range(32):
        deep = WbxmlElement("info", {}, (deep,))
    with pytest.raises(TooLarge, match="deeply"):
        body(SI, deep)
    with pytest.raises(TooLarge, match="too large"):
        encode(
            WbxmlDocument(SI, WbxmlElement("si", {}, ("x" * 100,))), limits=WbxmlLimits(size=100)
        )


def test_only_versions_that_we_write_can_be_chosen() -> None:
    with pytest.raises(ValueError, match=r"WBXML 1\.0 is not written"):
        encode(WbxmlDocument(SI, WbxmlElement("si")), version="1.0")
