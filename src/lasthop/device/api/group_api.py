"""Groups that a device belongs to, and queues that it takes from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lasthop.device import compose
from lasthop.device.api.device_api import DeviceApi
from lasthop.device.handle import MessageHandle, Settlement
from lasthop.device.handle_table import Claim
from lasthop.device.message import Message


class GroupApi(DeviceApi):
    """Joins, leaves and claims."""

    async def join_group(self, name: str) -> MessageHandle:
        """Belong to a group from now on."""
        return await self.post(compose.membership(f"group:{name}", on=True))

    async def leave_group(self, name: str) -> MessageHandle:
        """Belong to it no longer; what was sent to it before still comes."""
        return await self.post(compose.membership(f"group:{name}", on=False))

    async def consume(self, queue: str) -> MessageHandle:
        """Take messages from a queue, in turn with others who do. They come like any other; one
        that is not done in the queue's patience goes to somebody else."""
        return await self.post(compose.membership(f"queue:{queue}", on=True))

    async def stop_consuming(self, queue: str) -> MessageHandle:
        """Take no more from it."""
        return await self.post(compose.membership(f"queue:{queue}", on=False))

    async def claim(self, message: Message, *, timeout: float | None = None) -> Claim:  # noqa: ASYNC109
        """Ask to be the one who acts on a message of a group. The answer is final, and asking
        again, also after a crash, gets the same one. Raises MessageRefused when the message cannot
        be claimed, or TimeoutError; the claim may be granted all the same then: ask again."""
        answer: asyncio.Future[Claim] = asyncio.get_running_loop().create_future()
        key = await self.enqueue(
            compose.claim(message).queue, lambda key: self.codec.claiming(key, answer)
        )
        try:
            async with asyncio.timeout(timeout):
                return await answer
        finally:
            self.codec.stop_claiming(key)

    def on_settled(self, callback: Callable[[str, Settlement], None]) -> None:
        """Call this when it is decided what becomes of an atomic or claimable message of ours that
        nobody here holds a handle of."""
        self.codec.on_settled = callback
