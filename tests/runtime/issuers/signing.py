"""An issuer for tests: keys, JWK Sets, and tokens of every right and wrong kind."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from lasthop.clock import SECOND, Micros
from lasthop.core.apps.credentials import Scope
from lasthop.core.rights.people import SignedToken
from lasthop.errors import Unauthorized
from lasthop.runtime.issuers.issuer_keys import KeySet, read_keys
from lasthop.runtime.issuers.verifying import TrustedIssuers
from lasthop.runtime.settings.issuers import IssuerSettings

URL = "https://login.example.org"
AUDIENCE = "https://push.example.org"
NOW: Micros = 1_763_200_000 * SECOND

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@cache
def _made(kind: str, number: int, bits: int) -> Any:
    if kind == "rsa":
        return rsa.generate_private_key(65537, bits)
    made: Any = ed25519.Ed25519PrivateKey.generate()
    return made if kind == "ed" else ec.generate_private_key(ec.SECP256R1())


def rsa_key(number: int = 0, bits: int = 2048) -> rsa.RSAPrivateKey:
    """One of some RSA keys, made once."""
    key: rsa.RSAPrivateKey = _made("rsa", number, bits)
    return key


def ec_key(number: int = 0) -> ec.EllipticCurvePrivateKey:
    """One of some keys on P-256, made once."""
    key: ec.EllipticCurvePrivateKey = _made("ec", number, 0)
    return key


def ed_key(number: int = 0) -> ed25519.Ed25519PrivateKey:
    """One of some keys on Ed25519, made once."""
    key: ed25519.Ed25519PrivateKey = _made("ed", number, 0)
    return key


def jwk(key: Key, **more: Any) -> dict[str, Any]:
    """The public half of a key, as an issuer publishes it."""
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        found = RSAAlgorithm.to_jwk(public, as_dict=True)
    elif isinstance(public, ec.EllipticCurvePublicKey):
        found = ECAlgorithm.to_jwk(public, as_dict=True)
    else:
        found = OKPAlgorithm.to_jwk(public, as_dict=True)
    return {**found, **more}


def key_set(*keys: dict[str, Any]) -> bytes:
    """A JWK Set."""
    return json.dumps({"keys": keys}).encode()


def pem(key: Key) -> bytes:
    """The public half of a key in PEM."""
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def fields(now: Micros = NOW, **changes: Any) -> dict[str, Any]:
    """What a good token says; None takes a field away."""
    seconds = now // SECOND
    good = {
        "iss": URL,
        "aud": AUDIENCE,
        "sub": "anna",
        "iat": seconds,
        "exp": seconds + 300,
    }
    return {name: value for name, value in (good | changes).items() if value is not None}


def token(
    key: Any = None,
    *,
    algorithm: str = "ES256",
    header: dict[str, Any] | None = None,
    now: Micros = NOW,
    **changes: Any,
) -> str:
    """A token that the issuer has signed."""
    key = ec_key() if key is None else key
    payload = json.dumps(fields(now, **changes)).encode()
    headers = {"typ": "JWT", "kid": "one", **(header or {})}
    if headers["kid"] is None:
        del headers["kid"]
    return jwt.PyJWS().encode(payload, key, algorithm=algorithm, headers=headers)


def handmade(header: dict[str, Any], payload: Any, signature: bytes = b"") -> str:
    """A token that no library would make."""
    parts = json.dumps(header).encode(), json.dumps(payload).encode(), signature
    return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def issuer(**changes: Any) -> IssuerSettings:
    """The settings of the issuer."""
    return IssuerSettings(**{"name": "company", "url": URL, "audience": AUDIENCE} | changes)


def trusting(*settings: IssuerSettings, keys: bytes | None = None) -> TrustedIssuers:
    """Issuers whose keys are known; all have the same."""
    trusted = TrustedIssuers(settings or [issuer()])
    for each in trusted.issuers:
        each.took(some_keys(keys), NOW)
    return trusted


def some_keys(document: bytes | None = None) -> KeySet:
    """The keys of a JWK Set, or of the issuer."""
    allowed = issuer().algorithms
    return read_keys(document or key_set(jwk(ec_key(), kid="one")), allowed)


class Vouching:
    """Believes tokens of the form eyJ.USER.SECONDS, with an optional list of roles after the user:
    `eyJ.anna+ops.60`."""

    def __init__(self, scopes: frozenset[Scope] = frozenset({Scope.RULES})) -> None:
        self.scopes = scopes
        self.withdrawn = False
        self.read = 0

    def verify(self, token: str, now: Micros) -> SignedToken:
        self.read += 1
        _, who, lasts = token.split(".")
        if who == "forged":
            raise Unauthorized("the signature of this token is wrong")
        user, *roles = who.split("+")
        expires = now + int(lasts) * SECOND
        scopes = self.scopes
        return SignedToken("company", "default", user, frozenset(roles), scopes, now, expires, "k")

    def stands(self, token: SignedToken) -> bool:
        return not self.withdrawn
