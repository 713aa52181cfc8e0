"""A document shows its version in many spellings, and its answer is in one it understands."""

import pytest

from lasthop.wire.pap.versions import (
    MAX_PATTERNS,
    PUBLIC_IDS,
    SYSTEM_IDS,
    VERSIONS,
    Version,
    answer_version,
    declared_version,
    is_supported,
    parse_supported,
)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_we_write_is_recognised(version: Version) -> None:
    assert declared_version(PUBLIC_IDS[version], SYSTEM_IDS[version]) == version
    assert declared_version(PUBLIC_IDS[version], None) == version
    assert declared_version(None, SYSTEM_IDS[version]) == version


@pytest.mark.parametrize(
    "public, system, version",
    [
        ("-//WAPFORUM//DTD PAP//EN", None, "1.0"),
        ("-//WAPFORUM//DTD PAP//EN", "http://www.wapforum.org/DTD/pap_2.0.dtd", "2.0"),
        ("-//WAPFORUM//DTD PAP 2.1//EN", None, "2.1"),
        ("//WAPFORUM//DTD PAP 2.0//EN", None, "2.0"),
        ("-//WAPFORUM/DTD PAP 1.0//EN", None, "1.0"),
        ("-//wapforum//dtd pap 2.0//en", None, "2.0"),
        ("-//OMA//DTD PAP 2.2//EN", "http://example.org/pap_1.0.dtd", "2.2"),
        ("-//OMA//DTD PAP 2.3//EN", None, "2.3"),
        ("something", "file:///pap-9.12.dtd", "9.12"),
        ("something", "else", None),
        ("", "", None),
        (None, None, None),
    ],
)
def test_the_number_is_found(public: str | None, system: str | None, version: str | None) -> None:
    assert declared_version(public, system) == version


def test_supported_versions_are_read() -> None:
    assert parse_supported("2.1,2.0,1.*") == ("2.1", "2.0", "1.*")
    assert parse_supported(" 2.1 , x, 3, *.*,,1.0") == ("2.1", "1.0")
    assert len(parse_supported("1.0," * 1000)) == MAX_PATTERNS


def test_a_star_stands_for_any_minor_version() -> None:
    assert is_supported("1.0", ("2.1", "1.*"))
    assert is_supported("2.1", ("2.1",))
    assert not is_supported("2.0", ("2.1", "1.*"))


@pytest.mark.parametrize(
    "asked, supported, answer",
    [
        ("1.0", (), "1.0"),
        ("2.0", ("2.1", "2.0"), "2.0"),
        ("2.2", (), "2.2"),
        # What we do not speak is answered in what both do,
        ("2.3", ("2.3", "2.1", "1.*"), "2.1"),
        ("3.0", ("3.*", "1.*"), "1.0"),
        # or in our nearest.
        ("2.3", (), "2.2"),
        ("1.5", ("1.5",), "1.0"),
        ("0.9", (), "1.0"),
        ("10.0", (), "2.2"),
    ],
)
def test_the_version_of_an_answer(asked: str, supported: tuple[str, ...], answer: str) -> None:
    assert answer_version(asked, supported) == answer
