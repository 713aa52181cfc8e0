"""Sending messages and requests, and reporting the device's context and reads."""

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
    """Methods of `Device` that send messages, requests, answers and reports."""

    def on_refused(self, callback: Callable[[str, Refusal], None]) -> None:
        """Set the function that is called with the id and the reason when the gateway refuses a
        message whose handle the application no longer holds."""
        self.handles.on_refused = callback

    async def send(
        self, target: str, body: bytes | str, **options: Unpack[Options]
    ) -> MessageHandle:
        """Send a message to `device:NAME`, `user:NAME`, `topic:NAME`, `service:NAME`, `group:NAME`,
        `queue:NAME` or `app:` (every device of the app).

        Returns when the message is durable on this device, whether it is connected or not; the
        returned handle reports the further progress. Raises InvalidRequest if the target or an
        option is invalid, TooLarge if the message never fits, and Overloaded if the outbox is full.
        """
        return await self.post(compose.message(target, body, **options))

    async def publish(
        self, topic: str, body: bytes | str, **options: Unpack[Options]
    ) -> MessageHandle:
        """Send a message to every device that has subscribed to a topic; see `send`."""
        return await self.post(compose.message(f"topic:{topic}", body, **options))

    async def request(
        self,
        target: str,
        body: bytes | str,
        *,
        timeout: float,  # noqa: ASYNC109
        **options: Unpack[Options],
    ) -> Message:
        """Send a request and return its answer. After `timeout` seconds the request is no longer
        delivered, and an answer that still comes is dropped.

        Raises TimeoutError if no answer came in time, MessageRefused if the gateway refuses the
        request, and the errors of `send`.
        """
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
        """Ask every device of a topic, a user or the app, and collect their answers.

        Returns when all devices have answered, when `most` devices have answered, or after
        `timeout` seconds. Each device counts once; `missing` in the result names the devices that
        have not answered. Raises MessageRefused and the errors of `send`.
        """
        expects = Expectation(gather=True, most=most)
        within = round(timeout * SECOND)
        draft = compose.message(target, body, reply_within=within, expects=expects, **options)
        gathered: Gathered = await (await self.ask(draft))[1]
        return gathered

    async def reply(
        self, message: Message, body: bytes | str, **options: Unpack[Options]
    ) -> MessageHandle:
        """Answer a message. Raises Expired if its sender no longer waits for the answer, and the
        errors of `send`."""
        return await self.post(compose.reply(message, body, self.now(), **options))

    async def report(self, **context: object) -> MessageHandle:
        """Report the user's context (`city="oslo"`, `activity="meeting"`); subscriptions that
        depend on the context change with it. The report replaces the last one."""
        return await self.report_context(context)

    async def report_context(self, report: Mapping[str, object]) -> MessageHandle:
        """Report the device's context: battery, place, links. The report replaces the last one."""
        return await self.post(compose.context(report))

    async def report_read(
        self,
        message: Message | None = None,
        *,
        topic: str | None = None,
        count: int = 1,
        queue_size: int = -1,
    ) -> MessageHandle:
        """Report that the user has read a message, or `count` messages of `topic`. `queue_size` is
        the number of messages that were there to read, or -1 if unknown."""
        draft = compose.read(read=message, topic=topic, count=count, queue_size=queue_size)
        return await self.post(draft)
