"""Users that administrators have added: what they may do beside what rules and issuers say, and
whether anybody is let in as one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from lasthop.core.apps.credentials import Scope
from lasthop.errors import Conflict, NotFound, QuotaExceeded
from lasthop.store.commit import MemoryRow

MEMORY = "user:"
"""The prefix of a user's app and name in the store's table of memories."""

MAX_USERS = 10_000
"""Users that administrators may add. Whoever is let in by an issuer need not be added."""


class UserRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is stored about a user of an app."""

    app: str
    name: str
    scopes: frozenset[Scope] = frozenset()
    """What the user may do beside what its issuer's users may."""
    roles: frozenset[str] = frozenset()
    """Roles for rules, beside those in the user's tokens."""
    blocked: bool = False
    """Whether nobody is let in by a signed token of the user."""


_decode = msgspec.json.Decoder(UserRecord).decode


class Users:
    """The users of all apps that were added."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, str], UserRecord] = {}
        self.note: Callable[[str, bytes], None] = lambda name, state: None
        """Stores what is to be remembered under a name."""

    def restore(self, memories: Iterable[MemoryRow]) -> None:
        """Restore the users that were added before a restart."""
        for row in memories:
            if row.device == 0 and row.name.startswith(MEMORY):
                user = _decode(row.state)
                self._users[user.app, user.name] = user

    def find(self, app: str, name: str) -> UserRecord | None:
        """Return a user that was added, or None."""
        return self._users.get((app, name))

    def named(self, app: str, name: str) -> UserRecord:
        """Return a user that was added; raise `NotFound` if there is none."""
        user = self._users.get((app, name))
        if user is None:
            raise NotFound("no such user was added", app=app, user=name)
        return user

    def of(self, app: str) -> list[UserRecord]:
        """Return the users of an app that were added."""
        return [user for user in self._users.values() if user.app == app]

    def add(self, user: UserRecord) -> None:
        """Add a user; raise `Conflict` if it was added before."""
        if (user.app, user.name) in self._users:
            raise Conflict("this user was added before", app=user.app, user=user.name)
        if len(self._users) >= MAX_USERS:
            raise QuotaExceeded("too many users", retry_after=60, limit=MAX_USERS)
        self.change(user)

    def change(self, user: UserRecord) -> None:
        """Put a user in the place of the one of its name."""
        self._users[user.app, user.name] = user
        self.note(f"{MEMORY}{user.app}/{user.name}", msgspec.json.encode(user, order="sorted"))

    def remove(self, app: str, name: str) -> UserRecord:
        """Remove a user that was added, and return it."""
        user = self.named(app, name)
        del self._users[app, name]
        self.note(f"{MEMORY}{app}/{name}", b"")
        return user
