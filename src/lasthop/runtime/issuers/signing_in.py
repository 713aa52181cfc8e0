"""People who sign in to the dashboard at an issuer: OpenID Connect, the authorization code flow
with PKCE (RFC 7636), state and nonce.

What belongs to one attempt is in a cookie of the browser that begins it, with a mark that only this
process can make; state, nonce and the verifier of PKCE are derived from it. So strangers who begin
attempts take no memory, and an answer of the issuer counts only in the browser that asked.
"""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import hmac
import secrets
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode

import msgspec

from lasthop.clock import HOUR, MINUTE, Micros
from lasthop.core.rights.people import SignedToken
from lasthop.errors import InvalidRequest, NotFound, Overloaded, Unauthorized
from lasthop.runtime.issuers.fetching import TIMEOUT, Discovered, KeyFetcher
from lasthop.runtime.issuers.issuer_keys import MAX_BYTES
from lasthop.runtime.issuers.verifying import Issuer, parts_of
from lasthop.transport.http import HttpAnswer, HttpFailure, post

DONE = "/dashboard/sign-in/done"
"""The path to which the issuer sends people back."""

AFTER = "/dashboard/login"
"""The path to which the issuer sends people who have signed out there."""

PATIENCE: Micros = 10 * MINUTE
"""How long an attempt may take: people look for their second factor."""

LASTS: Micros = 12 * HOUR
"""How long somebody stays signed in, as with the session's cookie."""

MOST_CODES = 16
"""The largest number of codes that are exchanged at a time: anybody can bring made-up ones."""

MAX_SECRET = 4096
MAX_COOKIE = 1024


class SignInAttempt(msgspec.Struct, array_like=True):
    """One attempt to sign in, as its cookie says."""

    issuer: str
    begun_at: Micros
    random: str


class _Answer(msgspec.Struct):
    """What an issuer answers to a code, as far as it is used (OpenID Connect Core 1.0, 3.1.3.3)."""

    id_token: str


class SignIn:
    """Signs people in at the issuers that know this gateway as a client."""

    def __init__(self, fetchers: Mapping[str, KeyFetcher]) -> None:
        """`fetchers` are those of all issuers, by name."""
        self._fetchers = {
            name: fetcher for name, fetcher in fetchers.items() if fetcher.issuer.settings.client_id
        }
        self._secret = secrets.token_bytes(32)
        self._exchanges = 0

    @property
    def offered(self) -> list[str]:
        """The names of the issuers at which people can sign in."""
        return list(self._fetchers)

    def secure(self, name: str) -> bool:
        """Whether people's browsers come to the gateway with TLS."""
        return self._fetchers[name].issuer.settings.public_url.startswith("https:")

    def begin(self, name: str, now: Micros) -> tuple[str, str]:
        """Begin an attempt; return the URL to which the browser goes, and the value of its
        cookie."""
        issuer, found = self._issuer(name)
        attempt = msgspec.json.encode(SignInAttempt(name, now, secrets.token_urlsafe(16)))
        challenge = hashlib.sha256(self._derived(b"verifier", attempt).encode()).digest()
        query = {
            "response_type": "code",
            "client_id": issuer.settings.client_id,
            "redirect_uri": issuer.settings.public_url + DONE,
            "scope": " ".join(issuer.settings.asks_for),
            "state": self._derived(b"state", attempt),
            "nonce": self._derived(b"nonce", attempt),
            "code_challenge": _text(challenge),
            "code_challenge_method": "S256",
        }
        cookie = f"{_text(attempt)}.{self._derived(b'cookie', attempt)}"
        return _with_query(found.authorization_endpoint, query), cookie

    async def finish(self, cookie: str, query: Mapping[str, str], now: Micros) -> SignedToken:
        """Return who has signed in, from the answer that the issuer sent by the browser; raise
        `Unauthorized` if it is not the answer to this browser's attempt, or a refusal."""
        attempt, raw = self._attempt(cookie, now)
        if not _same(query.get("state", ""), self._derived(b"state", raw)):
            raise Unauthorized("this is not the answer to an attempt of this browser")
        issuer, found = self._issuer(attempt.issuer)
        # RFC 9207: an answer says whose it is, so that no issuer's code goes to another one.
        said = query.get("iss")
        if said != issuer.settings.url and (said is not None or found.names_issuer):
            raise Unauthorized("this is the answer of another issuer")
        if "error" in query or not query.get("code"):
            raise Unauthorized("the issuer has refused")
        token = await self._exchange(issuer, found, query["code"], self._derived(b"verifier", raw))
        return self._believed(issuer, token, self._derived(b"nonce", raw), now)

    def leave(self, name: str) -> str:
        """Return the URL at which people sign out of an issuer; raise `NotFound` if it has none."""
        issuer, found = self._issuer(name)
        if not found.end_session_endpoint:
            raise NotFound("this issuer has no address for signing out", issuer=name)
        query = {
            "client_id": issuer.settings.client_id,
            "post_logout_redirect_uri": issuer.settings.public_url + AFTER,
        }
        return _with_query(found.end_session_endpoint, query)

    def _believed(self, issuer: Issuer, token: str, nonce: str, now: Micros) -> SignedToken:
        """Return what an ID token says, after all checks of OpenID Connect Core 1.0, 3.1.3.7."""
        header, unchecked = parts_of(token)
        if unchecked.get("iss") != issuer.settings.url:
            raise Unauthorized("the issuer has sent a token of somebody else")
        if str(header.get("typ", "jwt")).lower() != "jwt":
            raise Unauthorized("the issuer has sent a token of another type")
        client = issuer.settings.client_id
        fields, _ = issuer.verify(token, header, client, now)
        audience = fields["aud"]
        several = isinstance(audience, list) and len(audience) > 1
        if fields.get("azp", None if several else client) != client:
            raise Unauthorized("the issuer has sent a token for somebody else")
        if not _same(fields.get("nonce"), nonce):
            raise Unauthorized("the issuer has sent the token of another attempt")
        # Somebody stays signed in for longer than an ID token, and whatever becomes of its key.
        return replace(issuer.told(fields, ""), expires_at=now + LASTS)

    async def _exchange(self, issuer: Issuer, found: Discovered, code: str, verifier: str) -> str:
        """Return the ID token for a code."""
        if self._exchanges >= MOST_CODES:
            raise Overloaded("many people sign in at the moment", retry_after=2)
        self._exchanges += 1
        try:
            answer = await self._ask(issuer, found.token_endpoint, code, verifier)
        except (HttpFailure, OSError) as error:
            raise Overloaded(
                f"the issuer {issuer.settings.name} cannot be asked: {error}", retry_after=5
            ) from None
        finally:
            self._exchanges -= 1
        if answer.status != 200:
            raise Unauthorized("the issuer does not take its code back", status=answer.status)
        try:
            return msgspec.json.decode(answer.body, type=_Answer).id_token
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Unauthorized("the issuer has answered with no token") from None

    async def _ask(self, issuer: Issuer, url: str, code: str, verifier: str) -> HttpAnswer:
        settings = issuer.settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": settings.public_url + DONE,
            "code_verifier": verifier,
        }
        headers = [
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Accept", "application/json"),
            ("User-Agent", "lasthop"),
        ]
        if settings.client_secret_file:
            secret = await asyncio.to_thread(read_secret, settings.client_secret_file)
            # RFC 6749, 2.3.1: both are encoded as in a form.
            pair = f"{quote_plus(settings.client_id)}:{quote_plus(secret)}"
            headers.append(("Authorization", f"Basic {b64encode(pair.encode()).decode()}"))
        else:
            form["client_id"] = settings.client_id
        web = self._fetchers[settings.name].web
        return await post(
            url,
            headers,
            urlencode(form).encode(),
            timeout=TIMEOUT,
            limit=MAX_BYTES,
            allowed=web.allows,
            tls=await web.tls(url),
        )

    def _issuer(self, name: str) -> tuple[Issuer, Discovered]:
        fetcher = self._fetchers.get(name)
        if fetcher is None:
            raise NotFound("nobody signs in at an issuer of this name")
        if fetcher.discovered is None:
            raise Overloaded(
                f"the issuer {name} cannot be reached: {fetcher.issuer.problem}", retry_after=5
            )
        return fetcher.issuer, fetcher.discovered

    def _attempt(self, cookie: str, now: Micros) -> tuple[SignInAttempt, bytes]:
        raw, _, mark = cookie[:MAX_COOKIE].partition(".")
        try:
            attempt = urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
        except (ValueError, binascii.Error):
            attempt = b""
        if not attempt or not _same(mark, self._derived(b"cookie", attempt)):
            raise Unauthorized("this browser has not begun to sign in, or has no cookies")
        found = msgspec.json.decode(attempt, type=SignInAttempt)
        if not 0 <= now - found.begun_at <= PATIENCE:
            raise Unauthorized("signing in has taken too long")
        return found, attempt

    def _derived(self, purpose: bytes, attempt: bytes) -> str:
        """Return a text for one purpose that belongs to an attempt, and that nobody can guess."""
        return _text(hmac.digest(self._secret, purpose + b"\0" + attempt, "sha256"))


def read_secret(place: str) -> str:
    """Return the secret in a file; raise OSError or `InvalidRequest` if there is none."""
    with Path(place).open("rb") as file:
        secret = file.read(MAX_SECRET + 1).strip()
    if not secret or len(secret) > MAX_SECRET or not secret.isascii():
        raise InvalidRequest("the file with the client's secret has no secret", file=place)
    return secret.decode()


def _same(one: Any, other: str) -> bool:
    return isinstance(one, str) and hmac.compare_digest(one.encode(), other.encode())


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _with_query(url: str, query: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"
