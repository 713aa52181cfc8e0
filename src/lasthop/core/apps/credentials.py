"""Credentials of publishers and administrators, by the hash of their secret, each for one app."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum

from lasthop.clock import Micros
from lasthop.core.registry import hash_token
from lasthop.errors import NotFound
from lasthop.store.commit import CredentialRow


class Scope(StrEnum):
    """What a credential allows, within its app."""

    PUBLISH = "publish"
    """Publish messages; follow, cancel and replace the credential's own messages."""
    DEVICES = "devices"
    """Register, change and remove the app's devices."""
    ADMIN = "admin"
    """Do everything, in every app; create and revoke credentials."""


class Credentials:
    """All credentials that have not been removed, revoked ones included."""

    def __init__(self) -> None:
        self._by_hash: dict[bytes, CredentialRow] = {}

    def __len__(self) -> int:
        return len(self._by_hash)

    def restore(self, rows: Iterable[CredentialRow]) -> None:
        """Add the credentials that the store has."""
        self._by_hash.update((row.hash, row) for row in rows)

    def certify(
        self, subject: str, app: str, name: str, scopes: set[Scope], now: Micros
    ) -> CredentialRow:
        """Add a credential for the subject of a client's certificate, and return its row."""
        row = CredentialRow(_hash_subject(subject), app, name, " ".join(sorted(scopes)), now)
        self._by_hash[row.hash] = row
        return row

    def certified(self, subject: str) -> CredentialRow | None:
        """Return the credential of a certificate's subject; None if there is none or it was
        revoked."""
        row = self._by_hash.get(_hash_subject(subject))
        return row if row is not None and not row.revoked else None

    def add(
        self, secret: str, app: str, name: str, scopes: set[Scope], now: Micros
    ) -> CredentialRow:
        """Add a credential, and return its row; the secret itself is not kept."""
        row = CredentialRow(hash_token(secret), app, name, " ".join(sorted(scopes)), now)
        self._by_hash[row.hash] = row
        return row

    def revoke(self, app: str, name: str) -> list[CredentialRow]:
        """Revoke the credentials of this name, and return their rows."""
        found = [r for r in self._by_hash.values() if (r.app, r.name) == (app, name)]
        found = [row for row in found if not row.revoked]
        if not found:
            raise NotFound("no such credential", app=app, name=name)
        for row in found:
            row.revoked = True
        return found

    def find(self, secret: str) -> CredentialRow | None:
        """Return the credential with this secret; None if there is none or it was revoked."""
        row = self._by_hash.get(hash_token(secret))
        return row if row is not None and not row.revoked else None

    def of(self, app: str) -> list[CredentialRow]:
        """Return all credentials of an app, revoked ones included."""
        return [row for row in self._by_hash.values() if row.app == app]


def _hash_subject(subject: str) -> bytes:
    """Return the hash of a certificate's subject. No token has the same: a token is text, and no
    text begins with the octet 255."""
    return hashlib.sha256(b"\xffcertificate:" + subject.encode()).digest()
