"""Only who has the key reads an element, and reads it exactly as it was."""

import os
from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st

from lasthop_xml.errors import InvalidInput
from lasthop_xml.xas.events import ELEMENT_START, start
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.transform import untyped
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xmlsecurity.encryption import MOST_ENCRYPTED, decrypt, encrypt
from lasthop_xml.xmlsecurity.errors import (
    AlgorithmRefused,
    CannotDecrypt,
    MalformedSecurity,
    NotCovered,
    UnknownKey,
)
from lasthop_xml.xmlsecurity.keys import (
    Secret,
    SharedKey,
    UnwrappingKey,
    WrappingKey,
    unwrapping_key,
    wrapping_key,
)
from lasthop_xml.xmlsecurity.signing import sign
from lasthop_xml.xmlsecurity.verifying import verify
from tests.xas.documents import Documents
from tests.xmlsecurity.material import (
    DOCUMENT,
    ORDER,
    PAYMENT,
    events,
    private_pem,
    public_pem,
)

SHARED = SharedKey("us", bytes(range(32)))
AT = (ORDER, PAYMENT)


def keys() -> list[tuple[WrappingKey, UnwrappingKey]]:
    return [
        (SHARED, SHARED),
        (wrapping_key("rsa", public_pem("rsa")), unwrapping_key("rsa", private_pem("rsa"))),
    ]


def hidden(**how: bool) -> EventList:
    return encrypt(events(), SHARED, at=AT, entropy=os.urandom, **how)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("at", [AT, (ORDER,)])
def test_an_element_comes_back_through_every_format(binary: bool, at: tuple[Name, ...]) -> None:
    for key, back in keys():
        secret = encrypt(events(), key, at=at, entropy=os.urandom, binary=binary)
        assert b"4711" not in serialize_xml(secret)
        for form in (
            secret,
            parse_xml(serialize_xml(secret)),
            Decoder().decode(Encoder().encode(secret)),
        ):
            assert list(untyped(decrypt(form, [back]))) == parse_xml(DOCUMENT)


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_document_can_be_encrypted(seed: int, binary: bool) -> None:
    document = parse_xml(serialize_xml(Documents(seed).next()))
    root = next(event.name for event in document if event.kind is ELEMENT_START)
    assert root is not None
    secret = encrypt(document, SHARED, at=[root], entropy=os.urandom, binary=binary)
    assert list(untyped(decrypt(secret, [SHARED]))) == document


def test_randomness_is_the_callers() -> None:
    fixed = [encrypt(events(), SHARED, at=AT, entropy=bytes) for _ in range(2)]
    assert fixed[0] == fixed[1]
    assert hidden() != hidden()


def test_binary_content_is_smaller() -> None:
    assert len(Encoder().encode(hidden(binary=True))) < len(Encoder().encode(hidden()))


def test_signed_and_then_encrypted() -> None:
    key = Secret("signer", b"0123456789abcdef")
    secret = encrypt(sign(events(), key), SHARED, at=AT, entropy=os.urandom, binary=True)
    arrived = Decoder().decode(Encoder().encode(secret))
    assert verify(decrypt(arrived, [SHARED]), [key])


@pytest.mark.parametrize(
    "old, new, error, detail",
    [
        (b"aes256-gcm", b"aes128-cbc", AlgorithmRefused, "this encryption is not supported"),
        (b"kw-aes256", b"kw-aes128", AlgorithmRefused, "this encryption is not supported"),
        (b">us<", b">them<", UnknownKey, "no key has this name"),
        (b"xmlenc#Element", b"xmlenc#Content", MalformedSecurity, "only whole elements"),
        (b"xenc:CipherData", b"xenc:Data", MalformedSecurity, "a part is missing"),
        (
            b"<xenc:CipherValue>",
            b"<xenc:CipherValue>!",
            InvalidInput,
            "this is not a value of the type",
        ),
        (b"<ds:KeyName>us</ds:KeyName>", b"", MalformedSecurity, "a part is missing"),
    ],
)
def test_what_is_wrong_is_said(old: bytes, new: bytes, error: type[Exception], detail: str) -> None:
    document = serialize_xml(hidden())
    assert old in document
    with pytest.raises(error, match=detail):
        decrypt(parse_xml(document.replace(old, new)), [SHARED])


def test_wrong_keys_and_changed_data_look_the_same() -> None:
    """Nothing tells an attacker which of them it was."""
    secret = hidden()
    messages = set()
    values = [place for place, event in enumerate(secret) if isinstance(event.value, bytes)]
    assert len(values) == 2
    for place in values:
        value = secret[place].value
        for changed in (value[:-1] + bytes([value[-1] ^ 1]), value[:9], b"", value + b"x"):
            other = EventList(secret)
            other[place] = secret[place]._replace(value=changed)
            with pytest.raises(CannotDecrypt) as caught:
                decrypt(other, [SHARED])
            messages.add(str(caught.value))
    with pytest.raises(CannotDecrypt) as caught:
        decrypt(secret, [SharedKey("us", bytes(32))])
    messages.add(str(caught.value))
    assert messages == {"this cannot be decrypted (key='us')"}
    rsa = encrypt(events(), wrapping_key("a", public_pem("rsa")), at=AT, entropy=os.urandom)
    with pytest.raises(CannotDecrypt):
        decrypt(rsa, [unwrapping_key("a", private_pem("rsa", 1))])


@pytest.mark.parametrize(
    "plain",
    [
        b"<a",
        b"",
        b"<a/><b/>",
        b"text<a/>",
        b"<a/></around><around>",
        b"<!DOCTYPE a><a/>",
        b"<q:a/>",
    ],
)
def test_what_was_encrypted_must_be_an_element(
    monkeypatch: pytest.MonkeyPatch, plain: bytes
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("lasthop_xml.xmlsecurity.encryption.serialize_xml", lambda _: plain)
        secret = hidden()
    with pytest.raises(MalformedSecurity, match="the decrypted data is not an element"):
        decrypt(secret, [SHARED])


def test_prefixes_may_come_from_around(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("lasthop_xml.xmlsecurity.encryption.serialize_xml", lambda _: b" <s:x/> ")
        secret = hidden()
    assert start(Name("urn:shop", "x")) in decrypt(secret, [SHARED])


def test_how_much_is_encrypted_is_limited() -> None:
    with pytest.raises(MalformedSecurity, match="nothing in this message is encrypted"):
        decrypt(events(), [SHARED])
    data = b"<e:EncryptedData/>"
    many = b'<a xmlns:e="http://www.w3.org/2001/04/xmlenc#">' + data * (MOST_ENCRYPTED + 1)
    with pytest.raises(MalformedSecurity, match="too many encrypted elements"):
        decrypt(parse_xml(many + b"</a>"), [SHARED])
    inner = serialize_xml(hidden())
    start, end = inner.index(b"<xenc:EncryptedData"), inner.index(b"</xenc:EncryptedData>")
    nested = inner[:end] + inner[start : end + 21] + inner[end:]
    with pytest.raises(MalformedSecurity, match="nested in encrypted data"):
        decrypt(parse_xml(nested), [SHARED])


@pytest.mark.parametrize(
    "make, detail",
    [
        (lambda: SharedKey("a", bytes(16)), "a shared key must have 32 bytes"),
        (lambda: wrapping_key("a", public_pem("ec")), "only RSA keys can encrypt"),
        (lambda: unwrapping_key("a", private_pem("ec")), "only RSA keys can decrypt"),
        (lambda: wrapping_key("a", public_pem("short")), "a key is too short"),
    ],
)
def test_bad_keys_are_refused(make: Callable[[], object], detail: str) -> None:
    with pytest.raises(InvalidInput, match=detail):
        make()


def test_there_must_be_something_to_encrypt() -> None:
    with pytest.raises(NotCovered, match="one element was expected"):
        encrypt(events(), SHARED, at=(ORDER, ORDER), entropy=os.urandom)
