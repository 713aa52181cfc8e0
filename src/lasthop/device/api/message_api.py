"""Messages from the application, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Unpack

from lasthop.clock import SECOND
from lasthop.device import compose
from lasthop.device.api.device_api import DeviceApi
from lasthop.device.compose import Options
from lasthop.device.handle import MessageHandle
from lasthop.device.message import Message, Refusal
from lasthop.device.requests.expectation import Expectation
from lasthop.device.session_events import Gathered


class MessageApi(DeviceApi):
    """Sends, asks and answers."""

    def on_refused(self, callback: Callable[[str, Refusal], None]) -> None:
        """Call this with the id and the reason when the gateway refuses a message that nobody here
        holds a handle of."""
        self.codec.on_refused = callback

    async def send(
        self, target: str, body: bytes | str, **options: Unpack[Options]
    ) -> MessageHandle:
        """Send to `device:NAME`, `user:NAME`, `topic:NAME`, `service:NAME`, `group:NAME`,
        `queue:NAME` or `app:`. Returns when the message is durable here; the handle tells the
        rest."""
        return await self.post(compose.message(target, body, **options))

    async def publish(
        self, topic: str, body: bytes | str, **options: Unpack[Options]
    ) -> MessageHandle:
        """Send to everyone who has subscribed to a topic."""
        return await self.post(compose.message(f"topic:{topic}", body, **options))

    async def request(
        self,
        target: str,
        body: bytes | str,
        *,
        timeout: float,  # noqa: ASYNC109
        **options: Unpack[Options],
    ) -> Message:
        """Send, and wait for the answer: there is one, or a TimeoutError, never both. Raises
        MessageRefused when the gateway does not take it."""
        within = round(timeout * SECOND)
        draft = compose.message(target, body, reply_within=within, **options)
        answer: Message = await (await self.ask(draft))[1]
        return answer

    async def gather(
        self,
        target: str,
        body: bytes | str,
        *,
        timeout: float,  # noqa: ASYNC109
        most: int | None = None,
        **options: Unpack[Options],
    ) -> Gathered:
        """Ask everyone of a topic, a user or the app, and wait until all have answered, or `most`
        have, or the time is up. Each device counts once; `missing` names those that have not
        answered."""
        expects = Expectation(gather=True, most=most)
        within = round(timeout * SECOND)
        draft = compose.message(target, body, reply_within=within, expects=expects, **options)
        gathered: Gathered = await (await self.ask(draft))[1]
        return gathered

    async def reply(
        self, message: Message, body: bytes | str, **options: Unpack[Options]
    ) -> MessageHandle:
        """Answer a message. Raises Expired when nobody waits any more."""
        return await self.post(compose.reply(message, body, self.now(), **options))

    async def report(self, **context: object) -> MessageHandle:
        """Say where the user is and what they do (`city="oslo"`, `activity="meeting"`):
        subscriptions that depend on it follow. It replaces the last report."""
        return await self.report_context(context)

    async def report_context(self, report: Mapping[str, object]) -> MessageHandle:
        """Say how the device is: battery, place, links. It replaces the last report."""
        return await self.post(compose.context(report))

    async def report_read(
        self,
        message: Message | None = None,
        *,
        topic: str | None = None,
        count: int = 1,
        queue_size: int = -1,
    ) -> MessageHandle:
        """Say that the user has read a message, or `count` of a topic of `queue_size` there."""
        draft = compose.read(read=message, topic=topic, count=count, queue_size=queue_size)
        return await self.post(draft)
