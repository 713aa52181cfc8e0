"""Keys with names. A key has one algorithm, so that a message cannot choose another.

A file in PEM is refused as a signing secret: otherwise a public key could be taken for one.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, Protocol

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import (
        decode_dss_signature,
        encode_dss_signature,
    )
    from cryptography.hazmat.primitives.keywrap import (
        InvalidUnwrap,
        aes_key_unwrap,
        aes_key_wrap,
    )
except ImportError as missing:  # pragma: no cover
    needed = "pip install 'lasthop-xml[security]'"
    raise ImportError(f"XML security needs the extra: {needed}") from missing

from lasthop_xml.errors import InvalidInput
from lasthop_xml.xmlsecurity.vocabulary import (
    AES_KEY_WRAP,
    ECDSA_SHA256,
    ED25519,
    HMAC_SHA256,
    RSA_OAEP,
    RSA_SHA256,
)

SHORTEST_SECRET: Final = 16
"""The fewest bytes of a signing secret; shorter ones can be found by trying."""
SHORTEST_RSA: Final = 2048
"""The fewest bits of an RSA key, as all current recommendations ask for."""


class SigningKey(Protocol):
    """A key that makes signatures under its name."""

    name: str
    algorithm: str

    def sign(self, data: bytes) -> bytes: ...


class VerifyingKey(Protocol):
    """A key that checks signatures made under its name."""

    name: str
    algorithm: str

    def verifies(self, signature: bytes, data: bytes) -> bool: ...


class WrappingKey(Protocol):
    """A key that encrypts the key of one message."""

    name: str
    algorithm: str

    def wrap(self, key: bytes) -> bytes: ...


class UnwrappingKey(Protocol):
    """A key that decrypts the key of one message; `unwrap` returns None if that fails, for any
    reason."""

    name: str
    algorithm: str

    def unwrap(self, wrapped: bytes) -> bytes | None: ...


class Secret:
    """A secret that both ends have, for signatures by HMAC with SHA-256."""

    algorithm = HMAC_SHA256

    def __init__(self, name: str, secret: bytes) -> None:
        if len(secret) < SHORTEST_SECRET:
            raise InvalidInput("a secret is too short", name=name, least=SHORTEST_SECRET)
        if secret.lstrip().startswith(b"-----BEGIN"):
            raise InvalidInput("this is a key in PEM, not a secret", name=name)
        self.name = name
        self._secret = secret

    def sign(self, data: bytes) -> bytes:
        return hmac.digest(self._secret, data, hashlib.sha256)

    def verifies(self, signature: bytes, data: bytes) -> bool:
        return hmac.compare_digest(self.sign(data), signature)


class _RsaPrivate:
    algorithm = RSA_SHA256

    def __init__(self, name: str, key: rsa.RSAPrivateKey) -> None:
        self.name = name
        self._key = key

    def sign(self, data: bytes) -> bytes:
        return self._key.sign(data, padding.PKCS1v15(), hashes.SHA256())


class _RsaPublic:
    algorithm = RSA_SHA256

    def __init__(self, name: str, key: rsa.RSAPublicKey) -> None:
        self.name = name
        self._key = key

    def verifies(self, signature: bytes, data: bytes) -> bool:
        try:
            self._key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return False
        return True


class _EcPrivate:
    algorithm = ECDSA_SHA256

    def __init__(self, name: str, key: ec.EllipticCurvePrivateKey) -> None:
        self.name = name
        self._key = key

    def sign(self, data: bytes) -> bytes:
        first, second = decode_dss_signature(self._key.sign(data, ec.ECDSA(hashes.SHA256())))
        # XML Signature has two numbers of fixed length instead of ASN.1 (XML Signature 1.1, section
        # 6.4.3).
        size = (self._key.curve.key_size + 7) // 8
        return first.to_bytes(size, "big") + second.to_bytes(size, "big")


class _EcPublic:
    algorithm = ECDSA_SHA256

    def __init__(self, name: str, key: ec.EllipticCurvePublicKey) -> None:
        self.name = name
        self._key = key

    def verifies(self, signature: bytes, data: bytes) -> bool:
        size = (self._key.curve.key_size + 7) // 8
        if len(signature) != 2 * size:
            return False
        first, second = (int.from_bytes(signature[at : at + size], "big") for at in (0, size))
        try:
            self._key.verify(encode_dss_signature(first, second), data, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


class _EdPrivate:
    algorithm = ED25519

    def __init__(self, name: str, key: ed25519.Ed25519PrivateKey) -> None:
        self.name = name
        self._key = key

    def sign(self, data: bytes) -> bytes:
        return self._key.sign(data)


class _EdPublic:
    algorithm = ED25519

    def __init__(self, name: str, key: ed25519.Ed25519PublicKey) -> None:
        self.name = name
        self._key = key

    def verifies(self, signature: bytes, data: bytes) -> bool:
        try:
            self._key.verify(signature, data)
        except InvalidSignature:
            return False
        return True


def signing_key(name: str, pem: bytes, *, password: bytes | None = None) -> SigningKey:
    """Return a signing key from a private key in PEM: RSA, elliptic curve or Ed25519."""
    key = _private(name, pem, password)
    if isinstance(key, rsa.RSAPrivateKey):
        _check_size(name, key.key_size)
        return _RsaPrivate(name, key)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return _EcPrivate(name, key)
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return _EdPrivate(name, key)
    raise InvalidInput("keys of this kind cannot sign", name=name)


def verifying_key(name: str, pem: bytes) -> VerifyingKey:
    """Return a verifying key from a public key in PEM: RSA, elliptic curve or Ed25519."""
    key = _public(name, pem)
    if isinstance(key, rsa.RSAPublicKey):
        _check_size(name, key.key_size)
        return _RsaPublic(name, key)
    if isinstance(key, ec.EllipticCurvePublicKey):
        return _EcPublic(name, key)
    if isinstance(key, ed25519.Ed25519PublicKey):
        return _EdPublic(name, key)
    raise InvalidInput("keys of this kind cannot sign", name=name)


class SharedKey:
    """A key of 32 bytes that both ends have, for AES key wrap (RFC 3394)."""

    algorithm = AES_KEY_WRAP

    def __init__(self, name: str, key: bytes) -> None:
        if len(key) != 32:
            raise InvalidInput("a shared key must have 32 bytes", name=name, found=len(key))
        self.name = name
        self._key = key

    def wrap(self, key: bytes) -> bytes:
        return aes_key_wrap(self._key, key)

    def unwrap(self, wrapped: bytes) -> bytes | None:
        try:
            return aes_key_unwrap(self._key, wrapped)
        except (InvalidUnwrap, ValueError):
            return None


# This algorithm is defined with SHA-1 in MGF1 (XML Encryption 1.1, section 5.5.2); OAEP does not
# rely on resistance to collisions.
_OAEP: Final = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)


class _RsaWrapping:
    algorithm = RSA_OAEP

    def __init__(self, name: str, key: rsa.RSAPublicKey) -> None:
        self.name = name
        self._key = key

    def wrap(self, key: bytes) -> bytes:
        return self._key.encrypt(key, _OAEP)


class _RsaUnwrapping:
    algorithm = RSA_OAEP

    def __init__(self, name: str, key: rsa.RSAPrivateKey) -> None:
        self.name = name
        self._key = key

    def unwrap(self, wrapped: bytes) -> bytes | None:
        try:
            return self._key.decrypt(wrapped, _OAEP)
        except ValueError:
            return None


def wrapping_key(name: str, pem: bytes) -> WrappingKey:
    """Return the wrapping key for a recipient from its public RSA key in PEM."""
    key = _public(name, pem)
    if not isinstance(key, rsa.RSAPublicKey):
        raise InvalidInput("only RSA keys can encrypt", name=name)
    _check_size(name, key.key_size)
    return _RsaWrapping(name, key)


def unwrapping_key(name: str, pem: bytes, *, password: bytes | None = None) -> UnwrappingKey:
    """Return the unwrapping key of a recipient from its private RSA key in PEM."""
    key = _private(name, pem, password)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise InvalidInput("only RSA keys can decrypt", name=name)
    _check_size(name, key.key_size)
    return _RsaUnwrapping(name, key)


def _private(name: str, pem: bytes, password: bytes | None) -> object:
    try:
        return serialization.load_pem_private_key(pem, password)
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            "this is not a private key in PEM", name=name, reason=str(error)
        ) from None


def _public(name: str, pem: bytes) -> object:
    try:
        return serialization.load_pem_public_key(pem)
    except ValueError as error:
        raise InvalidInput(
            "this is not a public key in PEM", name=name, reason=str(error)
        ) from None


def _check_size(name: str, bits: int) -> None:
    if bits < SHORTEST_RSA:
        raise InvalidInput("a key is too short", name=name, bits=bits, least=SHORTEST_RSA)
