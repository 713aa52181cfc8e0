"""Push-ids: which push an id names, and that no id is used twice.

Every id that was ever accepted is in the store, as 16 octets that stand for app, initiator and
push-id. A door looks there before it submits; ids that were accepted since are remembered here.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from lasthop.errors import Conflict
from lasthop.store.pushes import KnownPush

RECENT = 100_000
"""The number of push-ids remembered: it must exceed the number that can be accepted while a door
looks into the store."""


class DuplicatePush(Conflict):
    """The error for a push-id that this initiator has used before."""

    code = "duplicate_push"


@lru_cache(maxsize=1024)
def identify(app: str, source: str, push_id: str) -> bytes:
    """Return the 16 octets that stand for a push-id of one initiator.

    They are 128 bits of a hash: no two pushes share them by chance, and to make two on purpose
    takes a search of 2^64. The cache serves the door and the gateway, which ask one after the
    other.
    """
    text = "\0".join((app, source, push_id))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class PushIds:
    """The push-ids that were accepted last, in memory."""

    def __init__(self) -> None:
        self._recent: dict[bytes, None] = {}

    def check(self, identity: bytes, known: KnownPush | None, push_id: str) -> None:
        """Raise an error if a push-id was used before; `known` is the store's row of it."""
        if known is not None or self.is_used(identity):
            raise DuplicatePush("this push-id was used before", push_id=push_id)

    def is_used(self, identity: bytes) -> bool:
        """Return whether a push-id was used lately, even if its push is not durable yet."""
        return identity in self._recent

    def use(self, identity: bytes) -> None:
        """Remember an id as used, and forget the oldest beyond the limit."""
        self._recent[identity] = None
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]
