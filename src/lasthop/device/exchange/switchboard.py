"""Sorts what comes in: outcomes and messages for callbacks by name, requests for services,
notifications of topics, and everything else. A device has one."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from lasthop.device.exchange.declining import Declined, decline
from lasthop.device.exchange.received import CALLBACK_HEADER
from lasthop.device.message import Message
from lasthop.errors import Conflict
from lasthop.wire.hop.services import OPERATION_HEADER, SERVICE_HEADER
from lasthop.wire.hop.topics import fits

if TYPE_CHECKING:
    from lasthop.device.client import Device

log = logging.getLogger("lasthop.device")

MOST_PARKED = 64
"""Messages of others for callbacks that nobody has registered in this life yet."""

Take: TypeAlias = Callable[[Message], Awaitable[None]]
"""Deals with one message."""


class Taker(NamedTuple):
    """Somebody who takes messages that are for nobody in particular."""

    takes: Callable[[str], bool]
    """By their content type."""
    take: Take


class Switchboard:
    """Every message of a device goes to one taker, one after the other, and is done when that
    returns."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._callbacks: dict[str, Take] = {}
        self._parked: dict[str, list[Message]] = {}
        self._services: dict[tuple[str, str], Take] = {}
        self._topics: dict[str, Take] = {}
        self._anyone: list[Taker] = []
        self._running = False

    def start(self) -> None:
        """Take the device's messages from now on."""
        if not self._running:
            self._running = True
            self._device.background(self._run())

    def register(self, name: str, take: Take) -> None:
        """What is for this callback goes here; what has waited for it comes first."""
        if name in self._callbacks:
            raise Conflict("a callback of this name is registered", name=name)
        self._callbacks[name] = take
        self.start()
        parked = self._parked.pop(name, [])
        if parked:
            self._device.background(self._catch_up(name, parked))

    def deregister(self, name: str) -> None:
        """What comes for it from now on waits until somebody registers it again."""
        self._callbacks.pop(name, None)

    def serve(self, service: str, operation: str, take: Take) -> None:
        """Requests for an operation of a service go here; an empty name stands for the others."""
        self._services[service, operation] = take
        self.start()

    def follow(self, pattern: str, take: Take) -> None:
        """What is published to a topic, or to topics of this pattern, goes here."""
        self._topics[pattern] = take
        self.start()

    def unfollow(self, pattern: str) -> None:
        """It does no longer."""
        self._topics.pop(pattern, None)

    def take_others(self, taker: Taker) -> None:
        """What is for nobody in particular goes here, if it is of the right type."""
        self._anyone.append(taker)
        self.start()

    async def _run(self) -> None:
        async for message in self._device.messages(automatic=False):
            await self._route(message)

    async def _catch_up(self, name: str, parked: list[Message]) -> None:
        for message in parked:
            await self._callbacks[name](message)
            self._device.finish(message)

    async def _route(self, message: Message) -> None:
        name = self._callback_of(message)
        if name and name not in self._callbacks:
            await self._park(name, message)
            return
        take = self._callbacks[name] if name else self._taker(message)
        if take is not None:
            await take(message)
        elif message.wants_reply:
            error = Declined("not_served", "nobody here answers this")
            await decline(self._device, message, error)
        else:
            log.warning("message %s (%s) is for nobody here", message.id, message.content_type)
        self._device.finish(message)

    def _callback_of(self, message: Message) -> str:
        if message.request is not None:
            return message.request.callback
        return message.extra.get(CALLBACK_HEADER, "")

    async def _park(self, name: str, message: Message) -> None:
        """Nobody has registered it in this life: it waits. Our own outcomes wait without limit,
        since the inbox has one."""
        others = sum(m.request is None for parked in self._parked.values() for m in parked)
        if message.request is None and others >= MOST_PARKED:
            log.warning("message %s is for %s, which is not registered", message.id, name)
            if message.wants_reply:
                error = Declined("not_served", f"there is no {name} here")
                await decline(self._device, message, error)
            self._device.finish(message)
            return
        self._parked.setdefault(name, []).append(message)

    def _taker(self, message: Message) -> Take | None:
        extra = message.extra
        service = extra.get(SERVICE_HEADER)
        if service is not None:
            operation = extra.get(OPERATION_HEADER, "")
            found = self._services.get((service, operation)) or self._services.get((service, ""))
            if found is not None:
                return found
        if message.topic is not None:
            for pattern, take in self._topics.items():
                if fits(pattern, message.topic):
                    return take
        for taker in self._anyone:
            if taker.takes(message.content_type):
                return taker.take
        return None
