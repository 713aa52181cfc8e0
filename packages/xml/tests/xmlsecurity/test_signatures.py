"""A signature holds through every format, and for nothing but what was signed."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st

from lasthop_xml.errors import InvalidInput, XmlError
from lasthop_xml.xas.events import CONTENT, ELEMENT_START, TYPED_CONTENT, Event, attribute, content
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.transform import coalesced, untyped, without_comments
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xebu.tokens import Mode
from lasthop_xml.xmlsecurity.errors import (
    AlgorithmRefused,
    MalformedSecurity,
    NotCovered,
    NotSigned,
    SignatureWrong,
    Tampered,
    UnknownKey,
)
from lasthop_xml.xmlsecurity.keys import (
    Secret,
    SigningKey,
    VerifyingKey,
    signing_key,
    verifying_key,
)
from lasthop_xml.xmlsecurity.signing import Form, sign
from lasthop_xml.xmlsecurity.verifying import verify
from tests.xas.documents import Documents
from tests.xmlsecurity.material import (
    DOCUMENT,
    KINDS,
    NOTE,
    ORDER,
    PAYMENT,
    events,
    private_pem,
    public_pem,
)

SECRET = Secret("shared", b"0123456789abcdef")
FORMS: tuple[Form, ...] = ("canonical", "exclusive")


def xml(sequence: EventList) -> EventList:
    return parse_xml(serialize_xml(sequence))


def xebu(sequence: EventList) -> EventList:
    return Decoder().decode(Encoder().encode(sequence))


def forgetful(sequence: EventList) -> EventList:
    return Decoder().decode(Encoder(Mode.NONE).encode(sequence))


TRIPS: dict[str, tuple[Callable[[EventList], EventList], ...]] = {
    "none": (),
    "xml": (xml,),
    "xebu": (xebu,),
    "xml and xebu": (xml, xebu),
    "xebu and xml": (xebu, xml, forgetful, xml),
}


def pairs() -> list[tuple[SigningKey, VerifyingKey]]:
    made: list[tuple[SigningKey, VerifyingKey]] = [(SECRET, SECRET)]
    for kind in KINDS:
        made.append((signing_key(kind, private_pem(kind)), verifying_key(kind, public_pem(kind))))
    return made


def without(sequence: EventList) -> list[Event]:
    return list(coalesced(without_comments(untyped(sequence))))


def test_comments_are_not_handed_out() -> None:
    signed = serialize_xml(sign(events(), SECRET))
    split = parse_xml(signed.replace(b">4711<", b">47<!-- -->11<"))
    assert content("4711") in verify(split, [SECRET]).events


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("trip", TRIPS)
@pytest.mark.parametrize("at", [None, (ORDER, PAYMENT), (ORDER,)])
def test_a_signature_survives_every_trip(
    form: Form, trip: str, at: tuple[Name, ...] | None
) -> None:
    document = events()
    if at == (ORDER,):
        document = parse_xml(DOCUMENT.replace(b'number="7"', b'xml:id="all"'))
    for key, check in pairs():
        signed = sign(document, key, at=at, form=form)
        for step in TRIPS[trip]:
            signed = step(signed)
        found = verify(signed, [check], at=at)
        assert found.key == key.name
        if at is None:
            assert without(found.events) == without(document)
        else:
            assert found.events[-1].name == at[-1]


@given(st.integers(0, 10**6), st.sampled_from(FORMS))
@settings(max_examples=40, deadline=None)
def test_any_document_can_be_signed(seed: int, form: Form) -> None:
    document = Documents(seed).next()
    if form == "exclusive":
        # libxml2 has no namespaces beyond ASCII.
        document = parse_xml(serialize_xml(document).replace("urn:drei-ä".encode(), b"urn:drei"))
    signed = sign(document, SECRET, form=form)
    for trip in (xml, xebu):
        assert without(verify(trip(signed), [SECRET]).events) == without(document)


def test_prefixes_do_not_matter_to_the_canonical_form() -> None:
    signed = serialize_xml(sign(events(), SECRET, at=(ORDER, PAYMENT)))
    other = re.sub(rb'([</"]|xmlns:)s([:=])', rb"\1shop\2", signed)
    assert b"<shop:order" in other
    assert verify(parse_xml(other), [SECRET], at=(ORDER, PAYMENT))
    # But what a prefix means does, where a type says so.
    moved = signed.replace(b'xmlns:xsd="http://www.w3.org/2001/XMLSchema"', b'xmlns:xsd="urn:my"')
    with pytest.raises(Tampered):
        verify(parse_xml(moved), [SECRET], at=(ORDER, PAYMENT))


def test_prefixes_in_types_are_protected_by_the_exclusive_form_as_well() -> None:
    signed = serialize_xml(sign(events(), SECRET, at=(ORDER, PAYMENT), form="exclusive"))
    moved = signed.replace(b'xmlns:xsd="http://www.w3.org/2001/XMLSchema"', b'xmlns:xsd="urn:my"')
    assert moved != signed
    with pytest.raises(Tampered):
        verify(parse_xml(moved), [SECRET], at=(ORDER, PAYMENT))


@pytest.mark.parametrize("form", FORMS)
def test_no_change_goes_unnoticed(form: Form) -> None:
    signed = sign(events(), SECRET, form=form)
    harmless = 0
    for place, event in enumerate(signed):
        for changed in changes(event):
            other = EventList([*signed[:place], *changed, *signed[place + 1 :]])
            try:
                found = verify(other, [SECRET])
            except XmlError:
                continue
            # Comments, and around SignedInfo, are the only places; what is handed out is the same.
            assert without(found.events) == without(events())
            harmless += 1
    assert harmless == 8


def changes(event: Event) -> list[list[Event]]:
    name = event.name
    if event.kind is CONTENT:
        return [[content(event.value + "!")], [content("4712")], []]
    if event.kind is TYPED_CONTENT:
        return [[content("x")], []]
    if event.kind is ELEMENT_START and name is not None:
        return [[event, content("x")], [event, attribute(Name("", "more"), "1")]]
    if isinstance(event.value, str):
        return [[event._replace(value=event.value + "x")], []]
    return []


@pytest.mark.parametrize(
    "old, new, error, detail",
    [
        (b">4711<", b">4712<", Tampered, "what was signed has changed"),
        (
            b"#sha256",
            b"#sha1",
            SignatureWrong,
            "the signature does not match its key and what it signs",
        ),
        (b"hmac-sha256", b"hmac-sha1", AlgorithmRefused, "algorithm is not that of its key"),
        (b">shared<", b">other<", UnknownKey, "no key has this name"),
        (b"<ds:KeyName>shared</ds:KeyName>", b"", MalformedSecurity, "a part is missing"),
        (b"ds:SignatureValue", b"ds:Value", MalformedSecurity, "a part is missing"),
        (b">sequential<", b">none<", AlgorithmRefused, "sequential prefixes only"),
        (b'2010/xml-c14n2"><c14n2', b'2010/x"><c14n2', AlgorithmRefused, "not supported"),
        (
            b"<ds:SignatureValue>",
            b"<ds:SignatureValue>!",
            InvalidInput,
            "this is not a value of the type",
        ),
    ],
)
def test_what_is_wrong_is_said(old: bytes, new: bytes, error: type[Exception], detail: str) -> None:
    document = serialize_xml(sign(events(), SECRET))
    assert old in document
    with pytest.raises(error, match=detail):
        verify(parse_xml(document.replace(old, new)), [SECRET])


def resigned(old: bytes, new: bytes) -> EventList:
    """What somebody with the key could sign, but we do not take."""

    class Crooked(Secret):
        def sign(self, data: bytes) -> bytes:
            assert old in data
            return super().sign(data.replace(old, new))

    key = Crooked("shared", b"0123456789abcdef")
    document = serialize_xml(sign(events(), key, at=(ORDER, PAYMENT), form="exclusive"))
    return parse_xml(document.replace(old, new))


TRANSFORM = b'<ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#">'


@pytest.mark.parametrize(
    "old, new, error, detail",
    [
        (b"xmlenc#sha256", b"xmldsig#sha1", AlgorithmRefused, "this digest is not supported"),
        (b'"#payment"', b'"other.xml"', MalformedSecurity, "points outside of the message"),
        (b'"#payment"', b'"#xpointer(/)"', MalformedSecurity, "points outside of the message"),
        (b' URI="#payment"', b"", MalformedSecurity, "points outside of the message"),
        (b'"#payment"', b'"#nobody"', NotCovered, "a reference must name exactly one element"),
        (
            TRANSFORM,
            b'<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116">',
            AlgorithmRefused,
            "this canonicalization is not supported",
        ),
        (
            TRANSFORM,
            b'<ds:Transform Algorithm="urn:a"></ds:Transform>' + TRANSFORM,
            AlgorithmRefused,
            "one",
        ),
    ],
)
def test_what_no_signer_should_ask_for_is_refused(
    old: bytes, new: bytes, error: type[Exception], detail: str
) -> None:
    with pytest.raises(error, match=detail):
        verify(resigned(old, new), [SECRET], at=(ORDER, PAYMENT))


@pytest.mark.parametrize("kind", KINDS)
def test_another_key_of_the_same_name_does_not_do(kind: str) -> None:
    signed = sign(events(), signing_key("a", private_pem(kind)))
    with pytest.raises(SignatureWrong):
        verify(signed, [verifying_key("a", public_pem(kind, 1))])
    with pytest.raises(SignatureWrong):
        verify(sign(events(), SECRET), [Secret("shared", b"fedcba9876543210")])
    for other in set(KINDS) - {kind}:
        with pytest.raises(AlgorithmRefused):
            verify(signed, [verifying_key("a", public_pem(other))])


def test_a_public_key_is_no_secret() -> None:
    """A forger knows the public key, and would like it to be taken for an HMAC secret."""
    with pytest.raises(InvalidInput, match="a key in PEM"):
        Secret("a", public_pem("rsa"))


def test_what_is_read_must_be_what_is_signed() -> None:
    """Signature wrapping: the signed element moves aside, and a forged one takes its place."""
    signed = serialize_xml(sign(events(), SECRET, at=(ORDER, PAYMENT)))
    start, end = signed.index(b"<s:pay"), signed.index(b"</s:pay>") + len(b"</s:pay>")
    payment = signed[start:end]
    forged = payment.replace(b"4711", b"9999")
    aside = b"<s:aside>" + payment + b"</s:aside>"
    at = (ORDER, PAYMENT)
    cases = {
        # The forged one has no identifier, or the same one.
        "no": forged.replace(b' Id="payment"', b"") + aside,
        "same": forged + aside,
        "two": payment + payment.replace(b' Id="payment"', b""),
    }
    errors = {
        "no": "for another element",
        "same": "must name exactly one element",
        "two": "one element was",
    }
    for name, inside in cases.items():
        wrapped = signed[:start] + inside + signed[end:]
        with pytest.raises(NotCovered, match=errors[name]):
            verify(parse_xml(wrapped), [SECRET], at=at)
    with pytest.raises(NotCovered, match="for another element"):
        verify(parse_xml(signed), [SECRET])
    with pytest.raises(NotCovered, match="for another element"):
        verify(parse_xml(signed), [SECRET], at=(ORDER, NOTE))
    with pytest.raises(NotCovered, match="for another element"):
        verify(sign(events(), SECRET), [SECRET], at=at)
    # What comes out is the signed element itself, wherever a reader would have looked.
    moved = signed.replace(b"Soup", b"Cake")
    found = verify(parse_xml(moved), [SECRET], at=at).events
    assert b"Cake" not in serialize_xml(found)


def test_an_identifier_of_the_other_kind_is_one_as_well() -> None:
    signed = serialize_xml(sign(events(), SECRET, at=(ORDER, PAYMENT)))
    twice = signed.replace(b"<s:note ", b"<s:note xml:id='payment' ")
    with pytest.raises(NotCovered, match="must name exactly one element"):
        verify(parse_xml(twice), [SECRET], at=(ORDER, PAYMENT))


@pytest.mark.parametrize("namespace", ["#relative", "urn:ä", "a b"])
def test_namespaces_without_an_exclusive_form_are_refused(namespace: str) -> None:
    document = parse_xml(f"<p:a xmlns:p='{namespace}'/>".encode())
    assert verify(sign(document, SECRET), [SECRET]).events == document
    with pytest.raises(MalformedSecurity, match="these events have no exclusive canonical form"):
        sign(document, SECRET, form="exclusive")


def test_there_is_one_signature() -> None:
    with pytest.raises(NotSigned) as caught:
        verify(events(), [SECRET])
    assert caught.value.fields == {"found": 0}
    with pytest.raises(NotSigned) as caught:
        verify(sign(sign(events(), SECRET), SECRET), [SECRET])
    assert caught.value.fields == {"found": 2}


def test_what_is_signed_has_an_identifier() -> None:
    with pytest.raises(InvalidInput, match="needs an attribute Id"):
        sign(events(), SECRET, at=(ORDER, NOTE))
    with pytest.raises(NotCovered, match="one element was expected"):
        sign(events(), SECRET, at=(ORDER, ORDER))


def test_an_entity_cannot_be_signed() -> None:
    document = parse_xml(b"<!DOCTYPE a SYSTEM 'x'><a>&who;</a>")
    with pytest.raises(MalformedSecurity, match="an entity reference cannot be signed"):
        sign(document, SECRET)


@pytest.mark.parametrize(
    "make, detail",
    [
        (lambda: Secret("a", b"short"), "a secret is too short"),
        (lambda: signing_key("a", b"x"), "this is not a private key in PEM"),
        (lambda: verifying_key("a", b"x"), "this is not a public key in PEM"),
        (lambda: verifying_key("a", public_pem("short")), "a key is too short"),
        (lambda: signing_key("a", private_pem("short")), "a key is too short"),
        (lambda: signing_key("a", private_pem("x25519")), "of this kind"),
        (lambda: verifying_key("a", public_pem("x25519")), "of this kind"),
    ],
)
def test_bad_keys_are_refused(make: Callable[[], object], detail: str) -> None:
    with pytest.raises(InvalidInput, match=detail):
        make()


def test_signatures_cost_less_in_xebu() -> None:
    signed = sign(events(), SECRET)
    assert len(Encoder().encode(signed)) < 0.75 * len(serialize_xml(signed))
