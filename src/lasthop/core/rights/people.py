"""Users who come with a token that an issuer has signed, such as a service with a JWT, instead of a
credential of the gateway.

What a token says is said of its user: the newest token of a user decides about the user's roles and
scopes, whichever of the user's tokens a request shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from lasthop.clock import Micros
from lasthop.core.apps.credentials import Scope
from lasthop.core.rights.added_users import Users
from lasthop.errors import Forbidden, Unauthorized

USER = "user/"
"""What the name of a user has before it where names of credentials stand: no credential has a name
with a slash."""

MAX_PEOPLE = 10_000
"""How many users are remembered. The one that came first is forgotten first; its next request
brings what is known about it."""


@dataclass(frozen=True, slots=True)
class SignedToken:
    """What a token says, after its signature, issuer, audience and times were checked."""

    issuer: str
    """The name of the issuer in the settings."""
    app: str
    user: str
    roles: frozenset[str]
    scopes: frozenset[Scope]
    issued_at: Micros
    expires_at: Micros
    key: str
    """Which of the issuer's keys has signed it; empty for somebody who has signed in."""
    added_only: bool = False
    """Whether users of the issuer are let in only if they were added."""

    @property
    def name(self) -> str:
        """The name of the user as a caller: no credential has the same."""
        return USER + self.user


class SignedTokens(Protocol):
    """Reads tokens that are signed by issuers which the gateway trusts."""

    def verify(self, token: str, now: Micros) -> SignedToken:
        """Return what a token says; raise `Unauthorized` for one that is not to be believed, and
        `Overloaded` if that cannot be known before the issuer's keys are fetched."""
        ...

    def stands(self, token: SignedToken) -> bool:
        """Whether the issuer still has the key that signed this token."""
        ...


def looks_signed(secret: str) -> bool:
    """Whether a secret has the form of a signed token: three parts, the first a JSON object (RFC
    7515, 7.1). No token that the gateway makes has a dot."""
    return secret.startswith("eyJ") and secret.count(".") == 2


class People:
    """The users who have shown a signed token, each with the newest one."""

    def __init__(self, tokens: SignedTokens | None, users: Users | None = None) -> None:
        self._tokens = tokens
        self._users = users or Users()
        self._newest: dict[str, SignedToken] = {}

    @property
    def expected(self) -> bool:
        """Whether there is an issuer at all."""
        return self._tokens is not None

    def reads(self, secret: str) -> bool:
        """Whether a secret is to be read as a signed token."""
        return self._tokens is not None and looks_signed(secret)

    def read(self, secret: str, now: Micros) -> SignedToken:
        """Return what a signed token says; raise `Unauthorized` or `Overloaded`."""
        if self._tokens is None:
            raise Unauthorized("this gateway knows no issuer of signed tokens")
        return self._tokens.verify(secret, now)

    def present(self, token: SignedToken, now: Micros) -> SignedToken:
        """Return what the newest token of a user says, and what was said of the user when it was
        added, for a token that was read before; raise `Unauthorized` if the token shown is good no
        longer, and `Forbidden` if the user is not let in."""
        if now >= token.expires_at:
            raise Unauthorized("this token has expired")
        if self._tokens is None or not self._tokens.stands(token):
            raise Unauthorized("the key that signed this token was withdrawn")
        return self._with_record(self._note(token))

    def _with_record(self, token: SignedToken) -> SignedToken:
        """Return what holds for a user: what its token says, and its record."""
        user = self._users.find(token.app, token.user)
        if user is None:
            if token.added_only:
                raise Forbidden("this user was not added: lasthop user add", user=token.user)
            return token
        if user.blocked:
            raise Forbidden("this user is blocked", user=token.user)
        if not user.scopes and not user.roles:
            return token
        return replace(token, roles=token.roles | user.roles, scopes=token.scopes | user.scopes)

    def _note(self, token: SignedToken) -> SignedToken:
        known = self._newest.get(token.name)
        if known is not None and known.issued_at > token.issued_at:
            return known
        if known is None and len(self._newest) >= MAX_PEOPLE:
            del self._newest[next(iter(self._newest))]
        self._newest[token.name] = token
        return token

    def owner(self, app: str, user: str, secret: str, now: Micros) -> SignedToken | None:
        """Return the token by which a user may connect as one of its devices; None if the secret is
        the token of somebody else, or none."""
        if not user or not self.reads(secret):
            return None
        token = self.read(secret, now)
        self.present(token, now)
        return token if (token.app, token.user) == (app, user) else None

    def roles(self, name: str) -> frozenset[str]:
        """Return the roles of a user, by the user's name as a caller."""
        known = self._known(name)
        return frozenset() if known is None else known.roles

    def ruled(self, name: str) -> bool:
        """Whether a user, by its name as a caller, may do only what rules allow."""
        known = self._known(name)
        if known is None:
            return True
        return Scope.RULES in known.scopes and Scope.ADMIN not in known.scopes

    def _known(self, name: str) -> SignedToken | None:
        known = self._newest.get(name)
        try:
            return None if known is None else self._with_record(known)
        except Forbidden:
            return None
