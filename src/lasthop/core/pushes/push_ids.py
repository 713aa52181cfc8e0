"""Push-ids: which push one names, and that none is used twice.

Every id that was ever accepted is in the store, as 16 octets that stand for app, initiator and
push-id. A door looks there before it submits; what was accepted since it looked is remembered here.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from lasthop.errors import Conflict
from lasthop.store.pushes import KnownPush

RECENT = 100_000
"""Must exceed what can be accepted while a door's look into the store is under way."""


class DuplicatePush(Conflict):
    """This initiator has used the push-id before."""

    code = "duplicate_push"


@lru_cache(maxsize=1024)
def identify(app: str, source: str, push_id: str) -> bytes:
    """What stands for a push-id of one initiator.

    128 bits of a hash: no two of ever so many pushes share them by chance, and who makes two on
    purpose has to search 2^64 of his own. A door and the gateway both ask, one after the other.
    """
    text = "\0".join((app, source, push_id))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class PushIds:
    """The newest ids."""

    def __init__(self) -> None:
        self._recent: dict[bytes, None] = {}

    def check(self, identity: bytes, known: KnownPush | None, push_id: str) -> None:
        """Refuse an id that was used; `known` is what the store had of it."""
        if known is not None or self.is_used(identity):
            raise DuplicatePush("this push-id was used before", push_id=push_id)

    def is_used(self, identity: bytes) -> bool:
        """Whether an id was used lately, by a push that need not be durable yet."""
        return identity in self._recent

    def use(self, identity: bytes) -> None:
        """From now on it is used."""
        self._recent[identity] = None
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]
