"""The public keys of an issuer: read from a JWK Set (RFC 7517) or from PEM, within limits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import jwt
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from lasthop.errors import InvalidRequest

MAX_KEYS = 100
"""The largest number of keys of one issuer: large providers have five."""

MAX_BYTES = 256 * 1024
"""The largest document with keys: a key with its certificates has some 3 KiB."""

RSA_BITS = range(2048, 8193)
"""The sizes of RSA keys that are used: smaller ones are weak (RFC 7518, 3.3), and checking a
signature takes a millisecond with larger ones."""

RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}
"""The algorithm of each curve (RFC 7518, 3.4; RFC 8037, 3.1): a key on a curve has no other."""


class IssuerKey:
    """One public key, with the algorithms that it may be used with."""

    def __init__(self, data: Mapping[str, Any], algorithms: Sequence[str]) -> None:
        self.id = data.get("kid")
        self.mark = hashlib.sha256(msgspec.json.encode(data, order="deterministic")).hexdigest()
        """Tells this key from all others, whatever id they have."""
        self._by_algorithm = {name: jwt.PyJWK(dict(data), name) for name in algorithms}

    def fitting(self, algorithm: str) -> jwt.PyJWK | None:
        """Return the key, bound to an algorithm; None if it is not for this algorithm."""
        return self._by_algorithm.get(algorithm)


class KeySet:
    """The keys of one issuer that can be used, at one time."""

    def __init__(self, keys: Sequence[IssuerKey]) -> None:
        self._keys = keys
        self._marks = {key.mark for key in keys}

    def __len__(self) -> int:
        return len(self._keys)

    def has(self, mark: str) -> bool:
        """Whether there is a key with this mark."""
        return mark in self._marks

    def find(self, key_id: object, algorithm: str) -> tuple[jwt.PyJWK, str] | None:
        """Return the key with this id for this algorithm, and its mark. Without an id there must be
        one key only that fits."""
        found = [
            (fitting, key.mark)
            for key in self._keys
            if (key_id is None or key.id == key_id)
            and (fitting := key.fitting(algorithm)) is not None
        ]
        return found[0] if len(found) == 1 else None


def read_keys(document: bytes, allowed: Sequence[str]) -> KeySet:
    """Return the keys of a document that can be used with one of these algorithms; raise
    `InvalidRequest` if there are none. Keys of other sorts are passed over: issuers have them."""
    if len(document) > MAX_BYTES:
        raise InvalidRequest("the document with the keys is too large", most=MAX_BYTES)
    if document.lstrip().startswith(b"-----BEGIN"):
        listed: Any = [_of_pem(document)]
    else:
        try:
            listed = msgspec.json.decode(document, type=dict[str, Any]).get("keys", [])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise InvalidRequest("not a JWK Set") from None
    if not isinstance(listed, list) or len(listed) > MAX_KEYS:
        raise InvalidRequest(f"a JWK Set is a list of up to {MAX_KEYS} keys")
    keys = [key for data in listed if (key := _usable(data, allowed)) is not None]
    if not keys:
        raise InvalidRequest(f"there is no key for any of {', '.join(allowed)}")
    return KeySet(keys)


def _of_pem(document: bytes) -> dict[str, Any]:
    try:
        key = load_pem_public_key(document)
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidRequest("not a public key in PEM") from None
    if isinstance(key, RSAPublicKey):
        return dict(RSAAlgorithm.to_jwk(key, as_dict=True))
    if isinstance(key, EllipticCurvePublicKey):
        return dict(ECAlgorithm.to_jwk(key, as_dict=True))
    if isinstance(key, Ed25519PublicKey):
        return dict(OKPAlgorithm.to_jwk(key, as_dict=True))
    raise InvalidRequest("a public key of an unknown sort")


def _usable(data: Any, allowed: Sequence[str]) -> IssuerKey | None:
    """Return a key of a JWK Set, or None if it is not for checking signatures that are allowed. A
    secret key (`oct`) is never one: with it, whoever checks a token could make one."""
    if not isinstance(data, dict) or data.get("use", "sig") != "sig":
        return None
    fitting: tuple[str, ...] = ()
    if data.get("kty") == "RSA":
        fitting = RSA
    elif data.get("kty") in ("EC", "OKP") and isinstance(data.get("crv"), str):
        fitting = (CURVES.get(data["crv"], ""),)
    named = data.get("alg")
    fitting = tuple(a for a in fitting if a in allowed and named in (None, a))
    try:
        key = IssuerKey(data, fitting)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    for algorithm in fitting:
        found = key.fitting(algorithm)
        size = found.key.key_size if found is not None and algorithm in RSA else RSA_BITS[0]
        if size not in RSA_BITS:
            return None
    return key if fitting else None
