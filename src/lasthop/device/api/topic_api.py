"""Topics: subscribing to them, and reading the best of what they have."""

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
    """Subscribes and reads."""

    async def subscribe(self, topic: str, **options: Unpack[SubscriptionOptions]) -> MessageHandle:
        """Ask for what is published to a topic from now on. With wishes (`max`, `threshold`,
        `mode` ...) it is a ranked topic: see `read`."""
        return await self.post(compose.subscription(topic, on=True, **options))

    async def unsubscribe(self, topic: str) -> MessageHandle:
        """Ask for no more of it."""
        return await self.post(compose.subscription(topic, on=False))

    async def read(
        self,
        topic: str,
        n: int | None = None,
        *,
        timeout: float = 5.0,  # noqa: ASYNC109
        automatic: bool = True,
    ) -> list[Message]:
        """The best `n` unread messages of a ranked topic, best first; without `n` as many as the
        subscription's Max allows.

        In contact these are the best that there are, here or at the gateway. Without contact, or
        when the gateway does not answer in time, the best of what is here. Each message is done
        when it is returned; with `automatic` off only `done` finishes it, and what was not done
        comes again after a crash, as one of the `messages`.
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
        """Ask the gateway; None if there was no answer, and nothing here has been read yet."""
        answer: asyncio.Future[list[Message]] = asyncio.get_running_loop().create_future()
        key = await self.enqueue(
            lambda session, now: session.ranked.look(topic, n, now),
            lambda key: self.codec.looking(key, answer),
        )
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(answer)
        except TimeoutError:
            instead: list[Message] | None = await self.do(
                lambda session, now: session.ranked.read_instead(key, topic, n, now)
            )
            return instead if instead is not None else await answer
        finally:
            self.codec.stop_looking(key)
            if not answer.done():
                self.happen(lambda session, _now: session.ranked.stop_looking(key))

    async def unread(self, topic: str) -> int:
        """How many messages of a ranked topic wait here to be read."""
        count = await self.do(lambda session, _now: session.ranked.unread(topic))
        assert isinstance(count, int)
        return count

    def on_retracted(self, callback: Callable[[str, bool], None]) -> None:
        """Call this with the id of a message of a ranked topic that is not worth reading any more,
        or of a message that somebody else has claimed, and with whether the application has had
        it: then what is shown of it is better removed. What it has not had is gone by itself."""
        self.codec.on_retracted = callback

    def on_withdrawn(self, callback: Callable[[str], None]) -> None:
        """Call this with a topic whose publisher will send no more to it."""
        self.codec.on_withdrawn = callback
