"""Keys for tests, made once a run, and documents to protect."""

from functools import cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml

KINDS = ("rsa", "ec", "ed25519")
ORDER, PAYMENT, CARD, NOTE = (Name("urn:shop", local) for local in ("order", "pay", "card", "note"))

DOCUMENT = (
    b'<?before root?><s:order xmlns:s="urn:shop" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    b' xmlns:xsd="http://www.w3.org/2001/XMLSchema" number="7">'
    b'<s:note xml:lang="fi">Soup &amp; bread \xc3\xa4 <!-- not signed --></s:note>'
    b'<s:pay Id="payment" xsi:type="s:payment"><s:card xsi:type="xsd:int">4711</s:card>'
    b'<s:due xsi:type="xsd:date">2026-03-01</s:due></s:pay></s:order>'
)


def events() -> EventList:
    return EventList(typed_sequence(parse_xml(DOCUMENT)))


@cache
def private_key(kind: str, number: int = 0) -> PrivateKeyTypes:
    del number  # another number is another key
    if kind == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    if kind == "short":
        return rsa.generate_private_key(public_exponent=65537, key_size=1024)
    if kind == "x25519":
        return x25519.X25519PrivateKey.generate()
    if kind == "ec":
        return ec.generate_private_key(ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate()


def private_pem(kind: str, number: int = 0) -> bytes:
    return private_key(kind, number).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def public_pem(kind: str, number: int = 0) -> bytes:
    return (
        private_key(kind, number)
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
