"""Services that a device offers to others, and finding the services of others."""

from __future__ import annotations

from lasthop.clock import SECOND
from lasthop.device import compose
from lasthop.device.api.device_api import DeviceApi
from lasthop.device.handle import MessageHandle
from lasthop.wire.hop.services import Offers, Question, Service, decode_offers


class ServiceApi(DeviceApi):
    """Methods of `Device` that offer and find services."""

    async def offer(self, service: Service) -> MessageHandle:
        """Offer a service: devices of the app find it and send it requests by `service:NAME`, until
        `withdraw` or the removal of this device. Raises InvalidRequest if the description is
        invalid."""
        return await self.post(compose.offer(service))

    async def withdraw(self, name: str) -> MessageHandle:
        """Offer a service of this device no longer."""
        return await self.post(compose.withdrawal(name))

    async def find(
        self,
        name: str = "",
        *,
        operation: str = "",
        timeout: float = 10.0,  # noqa: ASYNC109
    ) -> Offers:
        """Return the services of this name (and version: `pricing@2`), or with this operation, or
        all. Raises TimeoutError if the gateway does not answer within `timeout` seconds."""
        wanted = Question(name, operation)
        answer = await (await self.ask(compose.question(wanted, round(timeout * SECOND))))[1]
        return decode_offers(answer.body)
