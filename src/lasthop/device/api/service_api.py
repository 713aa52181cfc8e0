"""What a device does for others, and who does something for it."""

from __future__ import annotations

from lasthop.clock import SECOND
from lasthop.device import compose
from lasthop.device.api.device_api import DeviceApi
from lasthop.device.handle import MessageHandle
from lasthop.wire.hop.services import Offers, Question, Service, decode_offers


class ServiceApi(DeviceApi):
    """Offers and finds services."""

    async def offer(self, service: Service) -> MessageHandle:
        """Let everyone of the app find a service of this device, and send it requests by
        `service:NAME`: until `withdraw`, or the device is removed."""
        return await self.post(compose.offer(service))

    async def withdraw(self, name: str) -> MessageHandle:
        """Offer it no longer."""
        return await self.post(compose.withdrawal(name))

    async def find(
        self,
        name: str = "",
        *,
        operation: str = "",
        timeout: float = 10.0,  # noqa: ASYNC109
    ) -> Offers:
        """The services of this name (and version: `pricing@2`), or with this operation, or all."""
        wanted = Question(name, operation)
        answer = await (await self.ask(compose.question(wanted, round(timeout * SECOND))))[1]
        return decode_offers(answer.body)
