"""What is read from XML, in which character set, and what is refused."""

import pytest

from lasthop.errors import LasthopError, Malformed, TooLarge
from lasthop.wire.charsets import named
from lasthop.wire.wbxml.document import WbxmlElement, WbxmlLimits
from lasthop.wire.wbxml.languages import CO, SI
from lasthop.wire.wbxml.xml_reader import read_xml

DOCTYPE = '<!DOCTYPE si PUBLIC "-//WAPFORUM//DTD SI 1.0//EN" "http://www.wapforum.org/DTD/si.dtd">'


def text_of(data: bytes | str) -> object:
    (indication,) = read_xml(data).root.children
    assert isinstance(indication, WbxmlElement)
    return indication.children


def test_white_space_between_elements_means_nothing_and_within_text_it_does() -> None:
    found = read_xml(
        "<si>\n <indication>\n Hi </indication>\n <info> <item class='a'/>\n</info></si>"
    )
    assert found.root == WbxmlElement(
        "si",
        {},
        (
            WbxmlElement("indication", {}, ("\n Hi ",)),
            WbxmlElement("info", {}, (WbxmlElement("item", {"class": "a"}),)),
        ),
    )


@pytest.mark.parametrize(
    "head", [DOCTYPE, DOCTYPE.replace("SI 1.0", "SI  1.0"), DOCTYPE.replace("-//W", "//W"), ""]
)
def test_the_type_is_found_by_public_identifier_or_root(head: str) -> None:
    assert read_xml(head + "<si/>").language is SI


def test_a_type_that_is_given_wins() -> None:
    assert read_xml("<si/>", language=CO).language is CO


def test_a_type_that_nobody_knows_is_refused() -> None:
    with pytest.raises(Malformed, match=r"type is not known.*root='wml'"):
        read_xml("<wml/>")


@pytest.mark.parametrize(
    "encoding,declared",
    [
        ("utf-8", "UTF-8"),
        ("utf-8", ""),
        ("utf-8-sig", ""),
        ("utf-16", "UTF-16"),
        ("utf-16", ""),
        ("iso-8859-1", "ISO-8859-1"),
        ("cp1252", "windows-1252"),
    ],
)
def test_character_sets_are_honoured(encoding: str, declared: str) -> None:
    head = f"<?xml version='1.0' encoding='{declared}'?>" if declared else ""
    data = f"{head}{DOCTYPE}<si><indication>é</indication></si>".encode(encoding)
    assert text_of(data) == ("é",)


def test_multi_byte_character_sets_are_read() -> None:
    data = "<?xml version='1.0' encoding='Shift_JIS'?><si><indication>あ</indication></si>"
    assert text_of(data.encode("shift_jis")) == ("あ",)


def test_the_content_type_has_the_last_word_on_the_character_set() -> None:
    data = "<?xml version='1.0' encoding='utf-8'?><si><indication>é</indication></si>"
    found = read_xml(data.encode("iso-8859-1"), charset=named("iso-8859-1"))
    assert found == read_xml(data)


def test_comments_and_sections_do_not_split_text() -> None:
    assert text_of("<si><indication>a<!-- &x; -->b<![CDATA[&y;<]]>&amp;</indication></si>") == (
        "ab&y;<&",
    )


@pytest.mark.parametrize(
    "data,message",
    [
        (f"{DOCTYPE}<si><indication>&x;</indication></si>", "not declared.*'x'"),
        (f"{DOCTYPE}\n<si><indication href='a&x;b'/></si>", "not declared.*'x'.*line=2"),
        ("<si><indication href='a&x;b'/></si>", "not well-formed: undefined entity"),
        (DOCTYPE[:-1] + "[<!ENTITY x 'y'>]><si>&x;</si>", "with declarations"),
        (
            DOCTYPE[:-1] + "[<!ENTITY % x SYSTEM 'file:///etc/passwd'>%x;]><si/>",
            "with declarations",
        ),
        ("<!DOCTYPE si [<!ATTLIST si a CDATA 'b'>]><si/>", "with declarations"),
        ("<si>\n<indication></si>", r"mismatched tag.*line=2, column=15"),
        ("", "no element found"),
        ("<si/><si/>", "junk after document element"),
        ("<si>\x01</si>", "not well-formed"),
        ("<si>\ud800</si>", "an unpaired surrogate"),
        (b"<si>\xff</si>", "not utf-8.*offset=4"),
        (b"<?xml version='1.0' encoding='x-mars'?><si/>", "character set is not known.*x-mars"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(data: bytes | str, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        read_xml(data)


@pytest.mark.parametrize(
    "data,limits",
    [
        ("<si>" * 33 + "</si>" * 33, WbxmlLimits()),
        ("<si>" + "<info/>" * 10_000 + "</si>", WbxmlLimits()),
        ("<si/>", WbxmlLimits(size=4)),
    ],
)
def test_too_much_is_refused(data: str, limits: WbxmlLimits) -> None:
    with pytest.raises(TooLarge):
        read_xml(data, limits=limits)


def test_a_bomb_of_entities_is_refused_at_its_first_declaration() -> None:
    bomb = "<!DOCTYPE si [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
        f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(8)
    )
    with pytest.raises(LasthopError, match="with declarations"):
        read_xml(bomb + "]><si>&i;</si>")
