"""Character sets by number and by name."""

import codecs

import pytest

from lasthop.wire.charsets import NAMES, charset, named


@pytest.mark.parametrize("number", NAMES)
def test_every_set_is_one_that_python_decodes(number: int) -> None:
    found = charset(number)
    assert found is not None
    codecs.lookup(found.codec)
    assert named(found.name.upper()) == found


@pytest.mark.parametrize(
    "number,octets,text",
    [
        (4, "e9", "é"),
        (17, "82a0", "あ"),
        (106, "c3a9", "é"),
        (1000, "00e9", "é"),
        (1015, "00e9", "é"),
        (1015, "fffee900", "é"),
        (1015, "feff00e9", "é"),
        (1014, "e900", "é"),
        (1017, "000000e9", "é"),
        (2026, "a440", "一"),
        (2251, "ff", "я"),
    ],
)
def test_text_is_decoded(number: int, octets: str, text: str) -> None:
    found = charset(number)
    assert found is not None
    assert found.decode(bytes.fromhex(octets)) == text


def test_the_zero_that_ends_a_string_is_as_wide_as_a_character() -> None:
    wide = charset(1013)
    assert wide is not None
    assert wide.end_of_string(bytes.fromhex("4100004200000043"), 0) == 4
    assert wide.end_of_string(bytes.fromhex("41000042"), 0) == -1


@pytest.mark.parametrize("name", ["utf8", " UTF-8 ", "Latin1", "shift-jis", "SJIS", "UCS-2"])
def test_names_are_read_as_people_write_them(name: str) -> None:
    assert named(name) is not None


def test_what_is_not_known_is_nothing() -> None:
    assert charset(2999) is None
    assert named("rot13") is None
