"""Which keys of an issuer are used."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448

from lasthop.errors import InvalidRequest
from lasthop.runtime.issuers.issuer_keys import MAX_BYTES, read_keys
from tests.runtime.issuers.signing import ec_key, ed_key, jwk, key_set, pem, rsa_key

ALL = ("RS256", "PS256", "ES256", "EdDSA")
GOOD = jwk(ec_key(), kid="good")


@pytest.mark.parametrize(
    "key, algorithm", [(ec_key(), "ES256"), (rsa_key(), "PS256"), (ed_key(), "EdDSA")]
)
def test_a_file_may_have_one_key_in_pem(key: Any, algorithm: str) -> None:
    keys = read_keys(pem(key), ALL)
    assert len(keys) == 1
    assert keys.find(None, algorithm) is not None
    assert keys.find("x", algorithm) is None


@pytest.mark.parametrize(
    "other",
    [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "bad"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "bad", "alg": "RS256"},
        jwk(rsa_key(), kid="bad", use="enc"),
        jwk(rsa_key(), kid="bad", alg="HS256"),
        jwk(rsa_key(), kid="bad", alg="ES256"),
        jwk(rsa_key(), kid="bad", alg="RS512"),
        jwk(rsa_key(9, 1024), kid="bad"),
        jwk(ec.generate_private_key(ec.SECP384R1()), kid="bad"),
        jwk(ec_key(), kid="bad", crv="P-384"),
        jwk(ec_key(), kid="bad", x="AAAA"),
        {"kty": "EC", "kid": "bad"},
        {"kty": "RSA", "kid": "bad", "n": "", "e": ""},
        {"kty": ["RSA"], "kid": "bad"},
        {"kid": "bad"},
        "bad",
        None,
        [],
    ],
)
def test_keys_that_cannot_be_used_are_passed_over(other: Any) -> None:
    keys = read_keys(key_set(other, GOOD), ALL)
    assert len(keys) == 1
    assert keys.find("good", "ES256") is not None
    assert all(keys.find("bad", each) is None for each in (*ALL, "HS256", "none"))
    with pytest.raises(InvalidRequest, match="no key"):
        read_keys(key_set(other), ALL)


def test_large_rsa_keys_are_not_used() -> None:
    public = jwk(rsa_key())
    with pytest.raises(InvalidRequest, match="no key"):
        read_keys(key_set({**public, "n": "_" * 1500}), ALL)


def test_two_keys_of_one_id_are_none() -> None:
    keys = read_keys(key_set(jwk(ec_key(), kid="x"), jwk(ec_key(1), kid="x")), ALL)
    assert keys.find("x", "ES256") is None


def test_keys_of_one_id_and_other_sorts_are_told_apart() -> None:
    keys = read_keys(key_set(jwk(ec_key(), kid="x"), jwk(rsa_key(), kid="x")), ALL)
    assert keys.find("x", "ES256") != keys.find("x", "RS256") is not None


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": 7}',
        b'{"keys": []}',
        b"\xff",
        b"[" * 100_000,
        b'{"keys":' + b"[" * 100_000,
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        pem(ed448.Ed448PrivateKey.generate()),  # type: ignore[arg-type]
        key_set(*[GOOD] * 101),
        b" " * (MAX_BYTES + 1),
    ],
)
def test_what_is_no_set_of_keys_is_refused(document: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read_keys(document, ALL)
