"""Looks pushes up in the store in batches: requests that come during a lookup wait for the next
one."""

from __future__ import annotations

import asyncio

from lasthop.access.live_gateway import LiveGateway
from lasthop.store.pushes import KnownPush


class Lookups:
    """Asks the store what it knows of push-ids, one batch at a time."""

    def __init__(self, live: LiveGateway) -> None:
        self._live = live
        self._turn = asyncio.Lock()
        self._wanted: set[bytes] = set()
        self._next: asyncio.Task[dict[bytes, KnownPush]] | None = None

    async def find(self, *ids: bytes) -> dict[bytes, KnownPush]:
        """Return what the store knows of these push-ids; the result may also have other push-ids of
        the same batch."""
        self._wanted.update(ids)
        if self._next is None:
            self._next = asyncio.create_task(self._look())
        # A caller that is cancelled must not cancel the lookup for the others.
        return await asyncio.shield(self._next)

    async def _look(self) -> dict[bytes, KnownPush]:
        async with self._turn:
            wanted, self._wanted = self._wanted, set()
            self._next = None
            return await self._live.read(lambda reader: reader.find(KnownPush, wanted))
