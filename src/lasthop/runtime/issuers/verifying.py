"""Checks signed tokens (JWT, RFC 7519) as RFC 8725 wants it: the algorithm is one that the settings
allow and the key is for, the key is one of the issuer that the token names, and issuer, audience
and times are right.

Nothing here waits: keys are fetched beside (`fetching.py`), and a token with a key that is not
known yet is to be shown again.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from sys import intern
from typing import Any
from urllib.parse import quote

import jwt
import msgspec

from lasthop.clock import DAY, SECOND, Micros
from lasthop.core.apps.credentials import Scope
from lasthop.core.rights.people import SignedToken
from lasthop.errors import Overloaded, Unauthorized
from lasthop.runtime.issuers.issuer_keys import KeySet
from lasthop.runtime.settings.issuers import IssuerSettings

MAX_TOKEN = 8192
"""The longest token, in characters: those with hundreds of roles have some 6,000."""

MAX_ROLES = 200
"""The largest number of roles: they are remembered for every user, and large providers send no
more."""
MAX_NAME = 128
"""The longest name of a user, in characters, as in the names of credentials."""

KEPT: Micros = DAY
"""How long keys are used when the issuer cannot be reached."""

TYPES = ("jwt", "at+jwt", "application/at+jwt")
"""The types of tokens that may stand for a caller. Other tokens that an issuer signs, such as those
about a logout, say what they are (RFC 8725, 3.11)."""

RETRY = 2.0
"""Seconds after which a token with an unknown key may be shown again."""

_PLAIN = "!\"#$&'()*+,-.:;<=>?@[\\]^_`{|}~"
"""What stands for itself in the name of a user, besides letters and digits."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Issuer:
    """One issuer that the gateway trusts, with the keys that it has now."""

    def __init__(self, settings: IssuerSettings, others: Sequence[IssuerSettings] = ()) -> None:
        self.settings = settings
        self._longer = [o.prefix for o in others if len(o.prefix) > len(settings.prefix)]
        """The prefixes of other issuers whose users' names this one must not give."""
        self._keys: KeySet | None = None
        self._fetched_at: Micros = 0
        self.problem = "they are being fetched"
        """Why there are no keys, or no newer ones; empty if all is well."""
        self.wanted: Callable[[], bool] = lambda: False
        """Asks for newer keys; whether they may come soon."""

    def took(self, keys: KeySet, now: Micros) -> None:
        """Use these keys from now on."""
        self._keys, self._fetched_at, self.problem = keys, now, ""

    def keys(self, now: Micros) -> KeySet:
        """Return the keys; raise `Overloaded` if there are none that are fresh enough."""
        if self._keys is None or now - self._fetched_at > KEPT:
            self.wanted()
            raise Overloaded(
                f"the keys of the issuer {self.settings.name} could not be fetched; the gateway's"
                " log says why",
                retry_after=RETRY,
            )
        return self._keys

    def has(self, mark: str) -> bool:
        """Whether the issuer has a key still."""
        return self._keys is not None and self._keys.has(mark)

    def verify(
        self, token: str, header: Mapping[str, Any], audience: str, now: Micros
    ) -> tuple[dict[str, Any], str]:
        """Return the fields of a token for this audience, and the mark of the key that signed it;
        raise `Unauthorized`, or `Overloaded` if the key may be known soon."""
        settings, algorithm = self.settings, header.get("alg")
        if algorithm not in settings.algorithms:
            raise Unauthorized("this token is signed by an algorithm that is not accepted")
        found = self.keys(now).find(header.get("kid"), algorithm)
        if found is None:
            if self.wanted():
                raise Overloaded(
                    f"the key of this token is not known yet; the keys of {settings.name} are"
                    " being fetched",
                    retry_after=RETRY,
                )
            raise Unauthorized("this token is signed by no key of its issuer")
        key, mark = found
        try:
            fields = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=audience,
                issuer=settings.url,
                options={
                    "require": ["iss", "aud", "exp", "iat"],
                    # Times are checked by the gateway's clock.
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise Unauthorized(_why(error)) from None
        _check_times(fields, now, int(settings.leeway), int(settings.longest))
        return fields, mark

    def told(self, fields: Mapping[str, Any], mark: str) -> SignedToken:
        """Return what the fields of a checked token say about its user."""
        settings = self.settings
        roles = _roles(fields.get(settings.roles_field)) if settings.roles_field else frozenset()
        scopes = frozenset(settings.scopes)
        if roles.intersection(settings.admin_roles):
            scopes |= {Scope.ADMIN}
        return SignedToken(
            issuer=settings.name,
            app=settings.app,
            user=self._user(fields.get(settings.user_field)),
            roles=roles,
            scopes=scopes,
            issued_at=_micros(fields, "iat"),
            expires_at=_micros(fields, "exp") + int(settings.leeway),
            key=mark,
            added_only=settings.added_only,
        )

    def _user(self, value: object) -> str:
        """Return the name of a user. What cannot stand in a path is written as in URLs, so that two
        users never get one name."""
        if not isinstance(value, str) or not value:
            raise Unauthorized(f"this token has no text as {self.settings.user_field!r}")
        try:
            name = self.settings.prefix + quote(value, safe=_PLAIN)
        except UnicodeEncodeError:  # One half of a surrogate pair.
            raise Unauthorized("the name of the user in this token is no text") from None
        if len(name) > MAX_NAME:
            raise Unauthorized("the name of the user in this token is too long", most=MAX_NAME)
        if any(name.startswith(prefix) for prefix in self._longer):
            raise Unauthorized("the name of the user in this token is one of another issuer's")
        return name


class TrustedIssuers:
    """All issuers of the settings: `SignedTokens` of the core."""

    def __init__(self, settings: Sequence[IssuerSettings]) -> None:
        self.issuers = [
            Issuer(one, [other for other in settings if other is not one]) for one in settings
        ]
        self._by_url = {issuer.settings.url: issuer for issuer in self.issuers}
        self._by_name = {issuer.settings.name: issuer for issuer in self.issuers}

    def verify(self, token: str, now: Micros) -> SignedToken:
        """Return what a token of a service says."""
        header, unchecked = parts_of(token)
        url = unchecked.get("iss")
        issuer = self._by_url.get(url) if isinstance(url, str) else None
        if issuer is None:
            raise Unauthorized("this token is of an issuer that the gateway does not trust")
        if str(header.get("typ", TYPES[0])).lower() not in TYPES:
            raise Unauthorized("a token of this type does not stand for a caller")
        if not issuer.settings.audience:
            raise Unauthorized("tokens of this issuer are no credentials")
        fields, mark = issuer.verify(token, header, issuer.settings.audience, now)
        return issuer.told(fields, mark)

    def stands(self, token: SignedToken) -> bool:
        """Whether the issuer still has the key that signed this token. Those who have signed in
        do not depend on a key any more."""
        return not token.key or self._by_name[token.issuer].has(token.key)


def parts_of(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the fields of a token, of which nothing is checked; raise
    `Unauthorized` if it cannot be read."""
    if len(token) > MAX_TOKEN:
        raise Unauthorized("this token is too long", most=MAX_TOKEN)
    try:
        header, fields, _ = token.encode("ascii").split(b".")
        return _decode(_bytes(header)), _decode(_bytes(fields))
    except (ValueError, RecursionError, msgspec.DecodeError, binascii.Error):
        raise Unauthorized("this token cannot be read") from None


def _bytes(part: bytes) -> bytes:
    return urlsafe_b64decode(part + b"=" * (-len(part) % 4))


def _check_times(fields: Mapping[str, Any], now: Micros, leeway: Micros, longest: Micros) -> None:
    expires, issued = _micros(fields, "exp"), _micros(fields, "iat")
    if now >= expires + leeway:
        raise Unauthorized("this token has expired")
    if issued > now + leeway or ("nbf" in fields and _micros(fields, "nbf") > now + leeway):
        raise Unauthorized("this token is not valid yet: does a clock differ?")
    if expires - now > longest + leeway:
        raise Unauthorized("this token is good for too long", most_seconds=longest // SECOND)


def _micros(fields: Mapping[str, Any], name: str) -> Micros:
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**40:
        raise Unauthorized(f"this token has no time as {name!r}")
    return round(value * SECOND)


def _roles(value: object) -> frozenset[str]:
    """Return roles: a list of texts, or one text with spaces between them."""
    found = value.split() if isinstance(value, str) else value
    if found is None:
        return frozenset()
    if (
        not isinstance(found, list)
        or len(found) > MAX_ROLES
        or not all(isinstance(role, str) for role in found)
    ):
        raise Unauthorized("the roles in this token are no list of texts")
    # Many users have the same roles: their texts are kept once.
    return frozenset(map(intern, found))


def _why(error: Exception) -> str:
    """Return what is wrong with a token, in words of ours: libraries put the token's own into
    theirs."""
    reasons = {
        jwt.InvalidAudienceError: "this token is for another audience",
        jwt.InvalidIssuerError: "this token is of another issuer",
        jwt.MissingRequiredClaimError: "this token lacks one of iss, aud, exp and iat",
        jwt.InvalidSignatureError: "the signature of this token is wrong",
    }
    return reasons.get(type(error), "this token cannot be believed")
