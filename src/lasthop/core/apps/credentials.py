"""Credentials of publishers and administrators, by the hash of their secret, each for one app."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum

from lasthop.clock import HOUR, Micros
from lasthop.core.registry import hash_token
from lasthop.errors import NotFound
from lasthop.store.commit import CredentialRow

FIRST = "first start"
"""The name of the code for the first credential. No credential can have it: names have no
spaces."""


class Scope(StrEnum):
    """What a credential allows, within its app."""

    PUBLISH = "publish"
    """Publish messages; follow, cancel and replace the credential's own messages."""
    SUBSCRIBE = "subscribe"
    """Receive topics over HTTP, without being a device."""
    DEVICES = "devices"
    """Register, change and remove the app's devices."""
    ADMIN = "admin"
    """Do everything, in every app; create and revoke credentials."""
    RULES = "rules"
    """Do what rules allow this credential, and nothing else."""


class Credentials:
    """All credentials that have not been removed, revoked ones included."""

    def __init__(self) -> None:
        self._by_hash: dict[bytes, CredentialRow] = {}
        self.narrow: set[tuple[str, str]] = set()
        """App and name of credentials that have no right without a rule. A name with several
        credentials is narrow if one of them is."""

    def __len__(self) -> int:
        return len(self._by_hash)

    def restore(self, rows: Iterable[CredentialRow]) -> None:
        """Add the credentials that the store has."""
        for row in rows:
            self._keep(row)

    def _keep(self, row: CredentialRow) -> CredentialRow:
        self._by_hash[row.hash] = row
        if not row.revoked and Scope.RULES in row.scopes.split():
            self.narrow.add((row.app, row.name))
        return row

    def certify(
        self,
        subject: str,
        app: str,
        name: str,
        scopes: set[Scope],
        now: Micros,
        expires_at: Micros = 0,
    ) -> CredentialRow:
        """Add a credential for the subject of a client's certificate, and return its row."""
        return self._keep(
            CredentialRow(
                _hash_subject(subject),
                app,
                name,
                " ".join(sorted(scopes)),
                now,
                expires_at=expires_at,
            )
        )

    def certified(self, subject: str) -> CredentialRow | None:
        """Return the credential of a certificate's subject; None if there is none or it was
        revoked."""
        row = self._by_hash.get(_hash_subject(subject))
        return row if row is not None and not row.revoked else None

    def add(
        self,
        secret: str,
        app: str,
        name: str,
        scopes: set[Scope],
        now: Micros,
        expires_at: Micros = 0,
    ) -> CredentialRow:
        """Add a credential, and return its row; the secret itself is not kept."""
        return self._keep(
            CredentialRow(
                hash_token(secret),
                app,
                name,
                " ".join(sorted(scopes)),
                now,
                expires_at=expires_at,
            )
        )

    def revoke(self, app: str, name: str) -> list[CredentialRow]:
        """Revoke the credentials of this name, and return their rows."""
        found = self.named(app, name)
        if not found:
            raise NotFound("no such credential", app=app, name=name)
        for row in found:
            row.revoked = True
        self.narrow.discard((app, name))
        return found

    def named(self, app: str, name: str) -> list[CredentialRow]:
        """Return the credentials of this name that were not revoked."""
        found = [r for r in self._by_hash.values() if (r.app, r.name) == (app, name)]
        return [row for row in found if not row.revoked]

    def find(self, secret: str) -> CredentialRow | None:
        """Return the credential with this secret; None if there is none or it was revoked."""
        row = self._by_hash.get(hash_token(secret))
        return row if row is not None and not row.revoked else None

    def of(self, app: str) -> list[CredentialRow]:
        """Return all credentials of an app, revoked ones included."""
        return [row for row in self._by_hash.values() if row.app == app and row.name != FIRST]

    def administered(self, now: Micros) -> bool:
        """Return whether there is a credential of an administrator."""
        return any(
            Scope.ADMIN in row.scopes.split() and not row.revoked and not ended(row, now)
            for row in self._by_hash.values()
        )

    def offer_first(self, code: str, app: str, now: Micros) -> None:
        """Accept a code, for an hour, with which the first administrator's credential can be made.
        The code is not stored, and has no scope."""
        self.add(code, app, FIRST, set(), now, now + HOUR)

    def take_first(self, app: str) -> None:
        """Use up the code for the first credential; raise `NotFound` if it was used before."""
        self.revoke(app, FIRST)


def ended(row: CredentialRow, now: Micros) -> bool:
    """Return whether a credential has ended by itself."""
    return bool(row.expires_at) and now >= row.expires_at


def _hash_subject(subject: str) -> bytes:
    """Return the hash of a certificate's subject. No token has the same: a token is text, and no
    text begins with the octet 255."""
    return hashlib.sha256(b"\xffcertificate:" + subject.encode()).digest()
