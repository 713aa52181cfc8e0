"""Authentication of publishers: a credential becomes a caller with an app and rights, or the
request is refused.

Every HTTP door accepts the same credentials: bearer tokens, HTTP Basic (any user name, the token as
password), or the certificate of a TLS client. A token is one of the gateway's own, or one that an
issuer of the settings has signed (`core/rights/people.py`). Without a credential only processes on
this machine are served, and only by a gateway with open_house set.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from base64 import b64decode
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lasthop.core.apps.credentials import Scope, ended
from lasthop.core.registry import NOTED_EVERY
from lasthop.core.rights.people import SignedToken
from lasthop.errors import Forbidden, InvalidRequest, Unauthorized
from lasthop.store.commit import CredentialRow
from lasthop.transport.locality import from_foreign_page, from_this_machine, joined, peer_of

if TYPE_CHECKING:
    from lasthop.access.live_gateway import LiveGateway

DEFAULT_APP = "default"

APP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""The form of an app's name. An app exists as soon as it is named; the length limit keeps keys,
events and metric labels short."""

MAX_AUTHORIZATION = 1024
"""The longest Authorization header, in bytes: our tokens need 60, and a longer header is refused
before it is hashed."""

MAX_SIGNED = 12 * 1024
"""The longest Authorization header of a gateway that trusts issuers: signed tokens with many roles
have a few kilobytes, and as a password of HTTP Basic they are a third longer."""

MOST_SIGNED_IN = 1000
"""The largest number of people who are signed in at a time; then the first one is signed out."""

CACHED = 4096
"""The number of credentials that a door remembers, so that it need not ask the gateway for them. It
remembers the gateway's own records, so a revoked credential is noticed at once."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated client of a door: its name, the app it acts in and its rights."""

    app: str
    name: str
    scopes: frozenset[Scope]
    home: str
    """The app that the credential belongs to; an administrator may act in other apps too."""

    @property
    def source(self) -> str:
        """The text that is recorded as the source of the caller's messages."""
        return f"publisher:{self.name}"

    @property
    def holder(self) -> tuple[str, str]:
        """The app and name of the credential whose quota the request uses, even if the request is
        for another app."""
        return self.home, self.name

    def owns(self, source: str) -> bool:
        """Whether the caller may follow and cancel messages of this source; an administrator may do
        so for every source."""
        return source == self.source or Scope.ADMIN in self.scopes

    def require(self, scope: Scope) -> None:
        """Raise `Forbidden` if the caller lacks this scope; an administrator has every scope. A
        caller with the scope `rules` may come in to publish and to administer devices: its rules
        say where."""
        ruled = Scope.RULES in self.scopes and scope is not Scope.ADMIN
        if scope not in self.scopes and Scope.ADMIN not in self.scopes and not ruled:
            raise Forbidden(f"this needs a credential with the scope {scope.value!r}")


_ANYBODY = Caller(DEFAULT_APP, "anonymous", frozenset(Scope), DEFAULT_APP)


class Callers:
    """Recognises callers by the headers and the address of their requests."""

    def __init__(self, live: LiveGateway, *, open_house: bool) -> None:
        self._live = live
        self._open_house = open_house
        self._known: dict[bytes, tuple[CredentialRow, Caller]] = {}
        self._signed: dict[bytes, SignedToken] = {}
        """The signed tokens that were read, by the hash of their header: a signature is checked
        once."""
        self._signed_in: dict[bytes, SignedToken] = {}
        """Those who have signed in, by the hash of the header that stands for them."""
        self._longest: int | None = None

    async def of(self, connection: MutableMapping[str, Any]) -> Caller:
        """Return the caller of an ASGI connection."""
        headers = joined(connection["headers"])
        return self.recognise(headers, peer_of(connection), certificate_of(connection))

    def recognise(
        self, headers: Mapping[bytes, bytes], peer: str | None, certificate: str | None = None
    ) -> Caller:
        """Return the caller of a request with these headers (see `joined`) from this address, or
        raise `Unauthorized`. `certificate` is the subject of the client's TLS certificate, if it
        has shown one."""
        authorization = headers.get(b"authorization")
        if authorization is not None:
            caller = self._credentialed(authorization)
        elif certificate is not None and not from_foreign_page(headers):
            # A browser shows the certificate for requests of every page, including other sites'
            # pages.
            caller = self._certified(certificate)
        elif self._open_house and from_this_machine(headers, peer):
            caller = _ANYBODY
        else:
            raise Unauthorized("a credential is needed: Authorization: Bearer TOKEN")
        app = headers.get(b"x-app")
        return caller if app is None else _in_app(caller, app.decode("latin-1"))

    def _credentialed(self, authorization: bytes) -> Caller:
        if self._longest is None:
            # Only now is there certainly a gateway to ask.
            issuers = self._live.look(lambda gateway: gateway.people.expected)
            self._longest = MAX_SIGNED if issuers else MAX_AUTHORIZATION
        if len(authorization) > self._longest:
            raise Unauthorized("the Authorization header is too long for any credential")
        digest = hashlib.sha256(authorization).digest()
        signed = self._signed.get(digest) or self._signed_in.get(digest)
        if signed is not None:
            return self._of_user(signed)
        known = self._known.get(digest)
        if known is None or known[0].revoked:
            self._known.pop(digest, None)
            secret = secret_in(authorization)
            if self._live.look(lambda gateway: gateway.people.reads(secret)):
                return self._read(digest, secret)
            known = self._ask(secret)
            if len(self._known) >= CACHED:
                self._known.clear()
            self._known[digest] = known
        self._note_use(known[0])
        return known[1]

    def let_in(self, token: SignedToken, secret: str) -> bytes:
        """Accept a secret for somebody who has signed in; return the Authorization header with
        it."""
        while len(self._signed_in) >= MOST_SIGNED_IN:
            del self._signed_in[next(iter(self._signed_in))]
        authorization = b"Bearer " + secret.encode()
        self._signed_in[hashlib.sha256(authorization).digest()] = token
        return authorization

    def let_out(self, authorization: bytes) -> str:
        """Accept the secret of somebody who has signed in no longer; return the name of the issuer,
        or an empty text if the header stands for nobody."""
        token = self._signed_in.pop(hashlib.sha256(authorization).digest(), None)
        return "" if token is None else token.issuer

    def _read(self, digest: bytes, secret: str) -> Caller:
        """Return the caller that shows a signed token for the first time."""
        now = self._live.now()
        signed = self._live.look(lambda gateway: gateway.people.read(secret, now))
        caller = self._of_user(signed)
        if len(self._signed) >= CACHED:
            self._signed.clear()
        self._signed[digest] = signed
        return caller

    def _of_user(self, shown: SignedToken) -> Caller:
        now = self._live.now()
        signed = self._live.look(lambda gateway: gateway.people.present(shown, now))
        return Caller(signed.app, signed.name, signed.scopes, signed.app)

    def _certified(self, subject: str) -> Caller:
        row = self._live.look(lambda gateway: gateway.credentials.certified(subject))
        if row is None:
            raise Unauthorized("there is no credential for this certificate", subject=subject)
        self._note_use(row)
        return _caller(row)

    def _note_use(self, row: CredentialRow) -> None:
        """Raise `Unauthorized` if a credential has expired; otherwise note that it was used."""
        now = self._live.now()
        if ended(row, now):
            raise Unauthorized("this credential has expired")
        if now - row.used_at >= NOTED_EVERY:
            self._live.look(lambda gateway: gateway.admin.used(row, now))

    def _ask(self, secret: str) -> tuple[CredentialRow, Caller]:
        row = self._live.look(lambda gateway: gateway.credentials.find(secret))
        if row is None:
            raise Unauthorized("this credential is unknown or was revoked")
        return row, _caller(row)


def certificate_of(connection: MutableMapping[str, Any]) -> str | None:
    """Return the subject of the client's TLS certificate, from the TLS extension of ASGI, or
    None."""
    tls = (connection.get("extensions") or {}).get("tls") or {}
    subject = tls.get("client_cert_name")
    return str(subject) if subject else None


def _caller(row: CredentialRow) -> Caller:
    scopes = frozenset(Scope(scope) for scope in row.scopes.split())
    return Caller(row.app, row.name, scopes, row.app)


def secret_in(authorization: bytes) -> str:
    """Return the token in an Authorization header, or raise `Unauthorized`."""
    scheme, _, value = authorization.strip().partition(b" ")
    try:
        if scheme.lower() == b"bearer":
            return value.strip().decode("ascii")
        if scheme.lower() == b"basic":
            return b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except (UnicodeDecodeError, binascii.Error):
        raise Unauthorized("the Authorization header cannot be read") from None
    raise Unauthorized("the Authorization header is neither Bearer nor Basic")


def _in_app(caller: Caller, app: str) -> Caller:
    if not APP_NAME.fullmatch(app):
        raise InvalidRequest(
            "an app's name must have up to 64 letters, digits, dots, dashes and underscores",
            field="X-App",
        )
    if app == caller.app:
        return caller
    if Scope.ADMIN not in caller.scopes:
        raise Forbidden("this credential is for another app", app=caller.app)
    return replace(caller, app=app)
