"""Subscribing to topics, and reading the best messages of ranked topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Unpack

from lasthop.device import compose
from lasthop.device.api.device_api import DeviceApi
from lasthop.device.compose import SubscriptionOptions
from lasthop.device.handle import MessageHandle
from lasthop.device.message import Message


class TopicApi(DeviceApi):
    """Methods of `Device` that subscribe to topics and read ranked topics."""

    async def subscribe(self, topic: str, **options: Unpack[SubscriptionOptions]) -> MessageHandle:
        """Subscribe to a topic, or to the topics of a pattern. With any option other than `xpath`
        (`max`, `threshold`, `mode` ...) the topic becomes a ranked topic: see `read`."""
        return await self.post(compose.subscription(topic, on=True, **options))

    async def unsubscribe(self, topic: str) -> MessageHandle:
        """End the subscription to a topic."""
        return await self.post(compose.subscription(topic, on=False))

    async def read(
        self,
        topic: str,
        n: int | None = None,
        *,
        timeout: float = 5.0,  # noqa: ASYNC109
        automatic: bool = True,
    ) -> list[Message]:
        """Return the best `n` unread messages of a ranked topic, best first; without `n`, as many
        as the subscription's `max` allows.

        If the device is connected, they are the best of all messages on this device and at the
        gateway; if it is not connected, or the gateway does not answer within `timeout` seconds,
        they are the best on this device. A message is done when it is returned. If `automatic` is
        False, a message is done only when the application calls `done`; after a crash, a message
        that was not done comes again through `messages`. Raises MessageRefused if the gateway
        refuses the question.
        """
        self.opened()
        messages: list[Message] | None = None
        if self.connected:
            messages = await self._look(topic, n, timeout)
        if messages is None:
            messages = await self.do(lambda session, now: session.ranked.read(topic, n, now))
        assert messages is not None
        if automatic:
            self.happen(lambda session, _now: session.finished(*messages))
        return messages

    async def _look(self, topic: str, n: int | None, seconds: float) -> list[Message] | None:
        """Ask the gateway for the best messages; None if it did not answer and nothing was read on
        the device."""
        answer: asyncio.Future[list[Message]] = asyncio.get_running_loop().create_future()
        key = await self.enqueue(
            lambda session, now: session.ranked.look(topic, n, now),
            lambda key: self.handles.looking(key, answer),
        )
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(answer)
        except TimeoutError:
            # None means that the answer has arrived meanwhile: reading again would show other
            # messages.
            instead: list[Message] | None = await self.do(
                lambda session, now: session.ranked.read_instead(key, topic, n, now)
            )
            return instead if instead is not None else await answer
        finally:
            self.handles.stop_looking(key)
            if not answer.done():
                self.happen(lambda session, _now: session.ranked.stop_looking(key))

    async def unread(self, topic: str) -> int:
        """Return the number of unread messages of a ranked topic on this device."""
        count = await self.do(lambda session, _now: session.ranked.unread(topic))
        assert isinstance(count, int)
        return count

    def on_retracted(self, callback: Callable[[str, bool], None]) -> None:
        """Set the function that is called with the id of a message that is no longer worth showing
        (its rank fell, or another device claimed it), and with a flag that says whether the
        application already got the message. If it did, the application should remove the message
        from view; otherwise the device removes it."""
        self.handles.on_retracted = callback

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """Set the function that is called with the name of a topic when the topic's publisher has
        withdrawn it."""
        self.handles.on_withdrawn = callback
