"""Section 6 of the PPG service: every address of the grammar is read and written back; anything
else is refused with its position and what should have been there."""

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import PapAddressError
from lasthop.wire.pap.addresses import (
    MAX_ADDRESS,
    ClientAddress,
    escape,
    make_address,
    parse_address,
    recognise,
    unescape,
)

EXAMPLES = [
    # 6.2, all of them.
    (
        "WAPPUSH=john.doe%40wapforum.org/TYPE=USER@ppg.carrier.com",
        ("USER", b"john.doe@wapforum.org", "ppg.carrier.com"),
    ),
    ("wappush=47397547589/type=user@carrier.com", ("USER", b"47397547589", "carrier.com")),
    ("WAPPUSH=47397547589/TYPE=USER@Carrier.com", ("USER", b"47397547589", "carrier.com")),
    (
        "WAPPUSH=+155519990730/TYPE=USER@ppg.carrier.com",
        ("USER", b"+155519990730", "ppg.carrier.com"),
    ),
    (
        "WAPPUSH=+155519990730/TYPE=PLMN@ppg.carrier.com",
        ("PLMN", b"+155519990730", "ppg.carrier.com"),
    ),
    (
        "WAPPUSH=FEDC:BA98:7654:3210:FEDC:BA98:7654:3210/TYPE=IPv6@carrier.com",
        ("IPv6", b"FEDC:BA98:7654:3210:FEDC:BA98:7654:3210", "carrier.com"),
    ),
    (
        "WAPPUSH=195.153.199.30/TYPE=IPv4@ppg.carrier.com",
        ("IPv4", b"195.153.199.30", "ppg.carrier.com"),
    ),
    ("WAPPUSH=12345678/TYPE=MAN@ppg.carrier.com", ("MAN", b"12345678", "ppg.carrier.com")),
    (
        "WAPPUSH=sip%3Aalice%40atlanta.com/TYPE=URI@ppg.carrier.com",
        ("URI", b"sip:alice@atlanta.com", "ppg.carrier.com"),
    ),
]

CANONICAL = [text for text, _ in EXAMPLES if text.startswith("WAPPUSH") and "Carrier" not in text]


@pytest.mark.conformance("PPG-ADD-S-004")
@pytest.mark.parametrize("text, meaning", EXAMPLES)
def test_the_examples_of_the_specification(text: str, meaning: tuple[str, bytes, str]) -> None:
    address = parse_address(text)
    assert (address.type, address.value, address.gateway) == meaning
    assert str(address) == text


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_input_is_written_back_as_it_was(text: str) -> None:
    address = parse_address(text)
    assert address.canonical == text
    made = make_address(address.type, address.value, gateway=address.gateway)
    assert str(made) == text


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("/WAPPUSH=a/TYPE=USER@h", "WAPPUSH=a/TYPE=USER@h"),
        ("WAPPUSH=a/TYPE=USER/@h", "WAPPUSH=a/TYPE=USER@h"),
        ("/wappush=a/Type=User/@H", "WAPPUSH=a/TYPE=USER@h"),
        ("WAPPUSH=%61%5f%2B/TYPE=USER@h", "WAPPUSH=a_+/TYPE=USER@h"),
        ("WAPPUSH=a%c3%a9/TYPE=USER@h", "WAPPUSH=a%C3%A9/TYPE=USER@h"),
        ("WAPPUSH=+1-555.199-9073/TYPE=PLMN@h", "WAPPUSH=+15551999073/TYPE=PLMN@h"),
        ("WAPPUSH=010.000.0.001/TYPE=ipv4@h", "WAPPUSH=10.0.0.1/TYPE=IPv4@h"),
        (
            "WAPPUSH=fedc:ba98:7654:3210:fedc:ba98:7654:3210/TYPE=IPV6@h",
            "WAPPUSH=FEDC:BA98:7654:3210:FEDC:BA98:7654:3210/TYPE=IPv6@h",
        ),
        ("WAPPUSH=x/TYPE=gsm_USSD@h", "WAPPUSH=x/TYPE=GSM_USSD@h"),
        ("WAPPUSH=a/Kind=b@c d/TYPE=USER@h", "WAPPUSH=a/KIND=b@c d/TYPE=USER@h"),
        # A qualifier may have the name of the type; the last one is the type.
        ("WAPPUSH=a/TYPE=PLMN/TYPE=USER@h", "WAPPUSH=a/TYPE=PLMN/TYPE=USER@h"),
        ("WAPPUSH=a/TYPE=PLMN@x/TYPE=USER@h", "WAPPUSH=a/TYPE=PLMN@x/TYPE=USER@h"),
        ("WAPPUSH=a/TYPE=USER@A-.9b.c-d", "WAPPUSH=a/TYPE=USER@a-.9b.c-d"),
    ],
)
def test_other_spellings_mean_the_same(text: str, canonical: str) -> None:
    address = parse_address(text)
    assert address.canonical == canonical
    assert address == parse_address(canonical)
    assert hash(address) == hash(parse_address(canonical))
    assert str(address) == text


@pytest.mark.parametrize(
    "one, other",
    [
        ("WAPPUSH=a/TYPE=USER@h", "WAPPUSH=A/TYPE=USER@h"),
        ("WAPPUSH=+1/TYPE=USER@h", "WAPPUSH=+1/TYPE=PLMN@h"),
        ("WAPPUSH=a/TYPE=USER@h", "WAPPUSH=a/TYPE=USER@i"),
        ("WAPPUSH=a/TYPE=USER@h", "WAPPUSH=a/X=1/TYPE=USER@h"),
    ],
)
def test_values_are_case_sensitive_and_everything_counts(one: str, other: str) -> None:
    assert parse_address(one) != parse_address(other)


TYPE_EXPECTED = "a letter, digit or underscore of the address type"
KEYWORD_EXPECTED = "a letter, digit or hyphen of a keyword"
VALUE_EXPECTED = 'a printable character other than "/" and "="'
GATEWAY_EXPECTED = "a letter or digit of the gateway's name"
SAFE_EXPECTED = "a safe character of the value (others are escaped as %XX)"
ESCAPE_EXPECTED = 'two hexadecimal digits after "%"'
PHONE_EXPECTED = 'a digit, "-" or "." of a phone number'
IPV4_EXPECTED = "four decimal numbers joined by dots"
IPV6_EXPECTED = "eight groups of four hexadecimal digits joined by colons"
MAN_EXPECTED = "the eight digits of a Mobitex number"
LONG = "WAPPUSH=" + "a" * MAX_ADDRESS


@pytest.mark.parametrize(
    "text, position, expected",
    [
        ("", 0, '"@" and the name of a gateway'),
        ("WAPPUSH=a/TYPE=USER", 19, '"@" and the name of a gateway'),
        (LONG, MAX_ADDRESS, f"its end: it has at most {MAX_ADDRESS} characters"),
        ("WAPPUſH=a/TYPE=USER@h", 5, "a character of ASCII"),
        ("WAPPUSH=é/TYPE=USER@h", 8, "a character of ASCII"),
        ("WAPUSH=a/TYPE=USER@h", 3, '"WAPPUSH="'),
        ("@h", 0, '"WAPPUSH="'),
        ("//WAPPUSH=a/TYPE=USER@h", 1, '"WAPPUSH="'),
        (" WAPPUSH=a/TYPE=USER@h", 0, '"WAPPUSH="'),
        ("WAPPUSH:a/TYPE=USER@h", 7, '"WAPPUSH="'),
        ("WAPPUSH=@h", 8, "the value to be addressed"),
        ("WAPPUSH=/@h", 8, "the value to be addressed"),
        ("WAPPUSH=a@h", 9, '"/TYPE="'),
        ("WAPPUSH=a/@h", 9, '"/TYPE="'),
        ("WAPPUSH=a/TIPE=USER@h", 11, '"TYPE=" as the last qualifier'),
        ("WAPPUSH=a/TYPE@h", 14, '"TYPE=" as the last qualifier'),
        ("WAPPUSH=a/TYPE=USER/X=1@h", 20, '"TYPE=" as the last qualifier'),
        ("WAPPUSH=a/TYPE=USER//@h", 20, '"TYPE=" as the last qualifier'),
        ("WAPPUSH=a/TYPE=@h", 15, TYPE_EXPECTED),
        ("WAPPUSH=a/TYPE=US-ER@h", 17, TYPE_EXPECTED),
        ("WAPPUSH=a/=1/TYPE=USER@h", 10, KEYWORD_EXPECTED),
        ("WAPPUSH=a//TYPE=USER@h", 10, KEYWORD_EXPECTED),
        ("WAPPUSH=a/K_=1/TYPE=USER@h", 11, KEYWORD_EXPECTED),
        ("WAPPUSH=a/KEY/TYPE=USER@h", 13, '"=" and a value after the keyword'),
        ("WAPPUSH=a/K=/TYPE=USER@h", 12, VALUE_EXPECTED),
        ("WAPPUSH=a/K=1=2/TYPE=USER@h", 13, VALUE_EXPECTED),
        ("WAPPUSH=a/K=\t/TYPE=USER@h", 12, VALUE_EXPECTED),
        ("WAPPUSH=a/TYPE=USER@", 20, GATEWAY_EXPECTED),
        ("WAPPUSH=a/TYPE=USER@h.", 22, GATEWAY_EXPECTED),
        ("WAPPUSH=a/TYPE=USER@.h", 20, GATEWAY_EXPECTED),
        ("WAPPUSH=a/TYPE=USER@-h", 20, GATEWAY_EXPECTED),
        ("WAPPUSH=a/TYPE=USER@h:80", 21, GATEWAY_EXPECTED),
        ("WAPPUSH=a/TYPE=USER@h\n", 21, GATEWAY_EXPECTED),
        ("WAPPUSH=/TYPE=USER@h", 8, SAFE_EXPECTED),
        ("WAPPUSH=a b/TYPE=USER@h", 9, SAFE_EXPECTED),
        ("WAPPUSH=a@b/TYPE=USER@h", 9, SAFE_EXPECTED),
        ("WAPPUSH=a:b/TYPE=X25@h", 9, SAFE_EXPECTED),
        ("WAPPUSH=a%/TYPE=USER@h", 10, ESCAPE_EXPECTED),
        ("WAPPUSH=a%4/TYPE=USER@h", 11, ESCAPE_EXPECTED),
        ("WAPPUSH=a%4g/TYPE=USER@h", 11, ESCAPE_EXPECTED),
        ("WAPPUSH=a%g4/TYPE=USER@h", 10, ESCAPE_EXPECTED),
        ("WAPPUSH=/TYPE=PLMN@h", 8, '"+" of a global phone number'),
        ("WAPPUSH=155/TYPE=PLMN@h", 8, '"+" of a global phone number'),
        ("WAPPUSH=+15a5/TYPE=PLMN@h", 11, PHONE_EXPECTED),
        ("WAPPUSH=+/TYPE=PLMN@h", 9, "a digit of a phone number"),
        ("WAPPUSH=+-./TYPE=PLMN@h", 11, "a digit of a phone number"),
        ("WAPPUSH=1.2.3/TYPE=IPv4@h", 13, IPV4_EXPECTED),
        ("WAPPUSH=1.2.3.4.5/TYPE=IPv4@h", 15, IPV4_EXPECTED),
        ("WAPPUSH=1..3.4/TYPE=IPv4@h", 10, IPV4_EXPECTED),
        ("WAPPUSH=1.2.3.4444/TYPE=IPv4@h", 17, IPV4_EXPECTED),
        ("WAPPUSH=1.2.3.x/TYPE=IPv4@h", 14, IPV4_EXPECTED),
        ("WAPPUSH=1.256.3.4/TYPE=IPv4@h", 10, "a number from 0 to 255"),
        ("WAPPUSH=FEDC::1/TYPE=IPv6@h", 13, IPV6_EXPECTED),
        ("WAPPUSH=FEDCBA98/TYPE=IPv6@h", 12, IPV6_EXPECTED),
        ("WAPPUSH=" + "FEDC:" * 8 + "/TYPE=IPv6@h", 47, IPV6_EXPECTED),
        ("WAPPUSH=1234567/TYPE=MAN@h", 15, MAN_EXPECTED),
        ("WAPPUSH=123456789/TYPE=MAN@h", 16, MAN_EXPECTED),
        ("WAPPUSH=1234x678/TYPE=MAN@h", 12, MAN_EXPECTED),
        ("WAPPUSH=alice/TYPE=URI@h", 13, 'the scheme of a URI and ":"'),
        ("WAPPUSH=%3Aalice/TYPE=URI@h", 8, 'the scheme of a URI and ":"'),
        ("WAPPUSH=a%40b%3Ac/TYPE=URI@h", 9, 'the scheme of a URI and ":"'),
        ("WAPPUSH=sip%3Aa%20b/TYPE=URI@h", 15, "a character that RFC 3986 allows in a URI"),
        ("WAPPUSH=sip%3Aa%25zz/TYPE=URI@h", 15, "a character that RFC 3986 allows in a URI"),
        ("WAPPUSH=sip:a/TYPE=URI@h", 11, SAFE_EXPECTED),
    ],
)
def test_an_error_tells_where_and_what(text: str, position: int, expected: str) -> None:
    with pytest.raises(PapAddressError) as caught:
        parse_address(text)
    error = caught.value
    assert (error.position, error.pap_code) == (position, 2002)
    found = text[position : position + 1]
    begins = f"an address had {found!r}" if found else "an address ended"
    assert error.detail == f"{begins} where it should have {expected}"


def test_what_is_made_has_no_separators_smuggled_in() -> None:
    for qualifiers in [(("K", "1/TYPE=PLMN"),), (("K=1/L", "2"),)]:
        with pytest.raises(ValueError, match="separator"):
            make_address("USER", "a", gateway="h", qualifiers=qualifiers)
    with pytest.raises((ValueError, PapAddressError)):
        make_address("PLMN", "+1/K=1", gateway="h")
    with pytest.raises(PapAddressError):
        make_address("USER", "a", gateway="h@i/j")


safe = "ABCXYZabcxyz0189+-._"
escapes = st.integers(0, 255).flatmap(lambda o: st.sampled_from([f"%{o:02x}", f"%{o:02X}"]))
escaped_values = st.lists(st.sampled_from(safe) | escapes, min_size=1, max_size=20).map("".join)
keywords = st.text("ABCabc019-", min_size=1, max_size=5)
values = st.text([chr(n) for n in range(0x20, 0x7F) if chr(n) not in "/="], min_size=1, max_size=8)
qualifiers = st.lists(st.tuples(keywords, values), max_size=3)
fragments = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9\-]{0,5}", fullmatch=True)
gateways = st.lists(fragments, min_size=1, max_size=4).map(".".join)
digits = st.text("0123456789", min_size=1, max_size=12)
uris = st.from_regex(r"[a-zA-Z][a-z0-9+.\-]{0,4}:[a-z0-9:/?#@!$&'()*+,;=~]{0,12}", fullmatch=True)
others = st.text("ABCabc019_", min_size=1, max_size=6).filter(
    lambda kind: kind.upper() not in {"USER", "PLMN", "IPV4", "IPV6", "MAN", "URI"}
)


def cases(text: str) -> st.SearchStrategy[str]:
    """All ways to write a word in capitals and small letters."""
    return st.tuples(*(st.sampled_from([c.upper(), c.lower()]) for c in text)).map("".join)


specifiers = st.one_of(
    st.tuples(escaped_values, cases("user")),
    st.tuples(st.from_regex(r"\+[\-.]{0,2}[0-9][0-9.\-]{0,10}", fullmatch=True), cases("plmn")),
    st.tuples(st.ip_addresses(v=4).map(str), cases("ipv4")),
    st.tuples(st.ip_addresses(v=6).map(lambda ip: ip.exploded), cases("ipv6")),
    st.tuples(st.from_regex(r"[0-9]{8}", fullmatch=True), cases("man")),
    st.tuples(uris.map(lambda uri: escape(uri.encode())), cases("uri")),
    st.tuples(escaped_values, others),
)


@st.composite
def addresses(draw: st.DrawFn) -> str:
    """Any address that 6.1 derives."""
    value, kind = draw(specifiers)
    extra = "".join(f"/{keyword}={content}" for keyword, content in draw(qualifiers))
    slashes = st.sampled_from(["", "/"])
    return (
        f"{draw(slashes)}{draw(cases('wappush'))}={value}{extra}/{draw(cases('type'))}={kind}"
        f"{draw(slashes)}@{draw(gateways)}"
    )


@given(addresses())
def test_whatever_the_grammar_derives_is_read_and_written_back(text: str) -> None:
    address = parse_address(text)
    assert str(address) == text
    again = parse_address(address.canonical)
    assert again == address
    assert again.canonical == address.canonical
    made = make_address(
        address.type, address.value, gateway=address.gateway, qualifiers=address.qualifiers
    )
    assert made == address
    assert str(made) == address.canonical


def refused_at(text: str) -> int:
    """Where a text stops being an address; 0 if it is one."""
    try:
        assert str(parse_address(text)) == text
    except PapAddressError as error:
        return error.position
    return 0


@given(addresses(), st.data())
def test_a_changed_address_is_read_or_refused_at_a_position_in_it(
    text: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(text)))
    put = data.draw(st.text(max_size=3) | st.sampled_from(["/", "=", "@", "%", "/TYPE="]))
    cut = data.draw(st.integers(0, 3))
    changed = text[:at] + put + text[at + cut :]
    assert 0 <= refused_at(changed) <= len(changed)


@given(st.text())
def test_any_text_is_an_address_or_an_address_error(text: str) -> None:
    assert 0 <= refused_at(text) <= len(text)


@given(st.binary())
def test_any_octets_can_be_escaped(octets: bytes) -> None:
    text = escape(octets)
    assert unescape(text) == octets
    if octets and len(text) < 900:
        address = make_address("user", octets, gateway="h")
        assert address == ClientAddress("USER", octets, "h")
        assert address.value == octets


def test_addresses_are_recognised_by_what_they_mean() -> None:
    known = ["WAPPUSH=a%40b/TYPE=USER@x", "nonsense", "WAPPUSH=+1-5/TYPE=PLMN@x"]
    asked = {
        known[0]: known[0],
        "wappush=a%40b/type=user@X": known[0],
        "WAPPUSH=+15/TYPE=PLMN@x": known[2],
        "WAPPUSH=A%40b/TYPE=USER@x": "WAPPUSH=A%40b/TYPE=USER@x",
        "nonsense": "nonsense",
        "other nonsense": "other nonsense",
    }
    assert recognise(asked, known) == asked
    assert recognise([], known) == {}
