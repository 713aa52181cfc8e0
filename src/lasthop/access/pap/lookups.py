"""Looking pushes up in the store, many at a time: while one look lasts, the next collects."""

from __future__ import annotations

import asyncio

from lasthop.access.live_gateway import LiveGateway
from lasthop.store.pushes import KnownPush


class Lookups:
    """Asks the store what it knows of push-ids."""

    def __init__(self, live: LiveGateway) -> None:
        self._live = live
        self._turn = asyncio.Lock()
        self._wanted: set[bytes] = set()
        self._next: asyncio.Task[dict[bytes, KnownPush]] | None = None

    async def find(self, *ids: bytes) -> dict[bytes, KnownPush]:
        """What is known of these ids, and perhaps of others."""
        self._wanted.update(ids)
        if self._next is None:
            self._next = asyncio.create_task(self._look())
        # Whoever gives up waiting must not take the answer from the others.
        return await asyncio.shield(self._next)

    async def _look(self) -> dict[bytes, KnownPush]:
        async with self._turn:
            wanted, self._wanted = self._wanted, set()
            self._next = None
            return await self._live.read(lambda reader: reader.find(KnownPush, wanted))
