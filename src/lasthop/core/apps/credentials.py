"""Who may publish and administer: credentials by the hash of their secret, each for one app."""

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
    """Publish; follow, cancel and replace its own messages."""
    DEVICES = "devices"
    """Register, change and remove devices."""
    ADMIN = "admin"
    """Everything, in every app; make and revoke credentials."""


class Credentials:
    """All credentials that have not been forgotten."""

    def __init__(self) -> None:
        self._by_hash: dict[bytes, CredentialRow] = {}

    def __len__(self) -> int:
        return len(self._by_hash)

    def restore(self, rows: Iterable[CredentialRow]) -> None:
        """Fill from a store."""
        self._by_hash.update((row.hash, row) for row in rows)

    def certify(
        self, subject: str, app: str, name: str, scopes: set[Scope], now: Micros
    ) -> CredentialRow:
        """A new credential for whoever proves to be the subject of a certificate."""
        row = CredentialRow(_hash_subject(subject), app, name, " ".join(sorted(scopes)), now)
        self._by_hash[row.hash] = row
        return row

    def certified(self, subject: str) -> CredentialRow | None:
        """The credential for this certificate, if it is accepted."""
        row = self._by_hash.get(_hash_subject(subject))
        return row if row is not None and not row.revoked else None

    def add(
        self, secret: str, app: str, name: str, scopes: set[Scope], now: Micros
    ) -> CredentialRow:
        """A new credential; the secret itself is not kept."""
        row = CredentialRow(hash_token(secret), app, name, " ".join(sorted(scopes)), now)
        self._by_hash[row.hash] = row
        return row

    def revoke(self, app: str, name: str) -> list[CredentialRow]:
        """Credentials of this name are no longer accepted."""
        found = [r for r in self._by_hash.values() if (r.app, r.name) == (app, name)]
        found = [row for row in found if not row.revoked]
        if not found:
            raise NotFound("no such credential", app=app, name=name)
        for row in found:
            row.revoked = True
        return found

    def find(self, secret: str) -> CredentialRow | None:
        """The credential with this secret, if it is accepted."""
        row = self._by_hash.get(hash_token(secret))
        return row if row is not None and not row.revoked else None

    def of(self, app: str) -> list[CredentialRow]:
        """All of an app's, revoked ones included."""
        return [row for row in self._by_hash.values() if row.app == app]


def _hash_subject(subject: str) -> bytes:
    """No token has this hash: a token is text, and no text begins with the octet 255."""
    return hashlib.sha256(b"\xffcertificate:" + subject.encode()).digest()
