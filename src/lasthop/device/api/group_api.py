"""The device's membership in groups, the queues that it takes from, and its claims."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lasthop.device import compose
from lasthop.device.api.device_api import DeviceApi
from lasthop.device.handle import MessageHandle, Settlement
from lasthop.device.handle_table import Claim
from lasthop.device.message import Message


class GroupApi(DeviceApi):
    """Methods of `Device` for groups, queues and claims."""

    async def join_group(self, name: str) -> MessageHandle:
        """Join a group; the device gets the messages that are sent to the group from now on."""
        return await self.post(compose.membership(f"group:{name}", on=True))

    async def leave_group(self, name: str) -> MessageHandle:
        """Leave a group; messages that were sent to the group before still come."""
        return await self.post(compose.membership(f"group:{name}", on=False))

    async def consume(self, queue: str) -> MessageHandle:
        """Take messages from a queue, in turn with the other devices that do. The messages come
        like any others. If the application is not done with a message in the time that the queue
        allows, the message goes to another device."""
        return await self.post(compose.membership(f"queue:{queue}", on=True))

    async def stop_consuming(self, queue: str) -> MessageHandle:
        """Take no more messages from a queue."""
        return await self.post(compose.membership(f"queue:{queue}", on=False))

    async def claim(self, message: Message, *, timeout: float | None = None) -> Claim:  # noqa: ASYNC109
        """Ask to be the only device that acts on a message of a group; the result is true if the
        claim is granted.

        The answer is final: a second claim, also after a crash, gets the same answer. Raises
        InvalidRequest if the message is not claimable, MessageRefused if the gateway cannot decide
        about the claim, or TimeoutError after `timeout` seconds. After a TimeoutError the claim may
        still be granted: call `claim` again.
        """
        answer: asyncio.Future[Claim] = asyncio.get_running_loop().create_future()
        key = await self.enqueue(
            compose.claim(message).queue, lambda key: self.handles.claiming(key, answer)
        )
        try:
            async with asyncio.timeout(timeout):
                return await answer
        finally:
            self.handles.stop_claiming(key)

    def on_settled(self, callback: Callable[[str, Settlement], None]) -> None:
        """Set the function that is called with the id and the settlement of an atomic or claimable
        message sent by this device, if the application no longer holds its handle."""
        self.handles.on_settled = callback
