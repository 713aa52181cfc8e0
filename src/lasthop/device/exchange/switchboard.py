"""Sorts what comes in: outcomes and messages for callbacks by name, requests for services,
notifications of topics, and everything else. A device has one."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from lasthop.device.exchange.declining import Declined, decline
from lasthop.device.exchange.exchange_device import ExchangeDevice
from lasthop.device.exchange.received import CALLBACK_HEADER
from lasthop.device.message import Message
from lasthop.errors import Conflict
from lasthop.wire.hop.services import OPERATION_HEADER, SERVICE_HEADER
from lasthop.wire.hop.topics import fits

log = logging.getLogger("lasthop.device")

MOST_PARKED = 64
"""Messages of others that wait for somebody to take them in this life."""

ANYONE = ""
"""In place of a callback's name: whoever takes such messages."""

Take: TypeAlias = Callable[[Message], Awaitable[None]]
"""Deals with one message."""


class Taker(NamedTuple):
    """Somebody who takes messages that are for nobody in particular."""

    takes: Callable[[str], bool]
    """By their content type."""
    take: Take


class ExchangeSwitchboard:
    """Every message of a device goes to one taker, and is done when that returns. What nobody is
    there for yet waits, and comes first when somebody is."""

    def __init__(self, device: ExchangeDevice) -> None:
        self._device = device
        self._callbacks: dict[str, Take] = {}
        self._services: dict[tuple[str, str], Take] = {}
        self._topics: dict[str, Take] = {}
        self._anyone: list[Taker] = []
        self._parked: dict[str, deque[Message]] = {}
        """What waits, by the name of its callback; without a name, for anyone."""
        self._catching_up: set[str] = set()
        self._running = False

    def register(self, name: str, take: Take) -> None:
        """What is for this callback goes here."""
        if name in self._callbacks:
            raise Conflict("a callback of this name is registered", name=name)
        self._callbacks[name] = take
        self._changed(name)

    def deregister(self, name: str) -> None:
        """What comes for it from now on waits until somebody registers it again."""
        self._callbacks.pop(name, None)

    def serve(self, service: str, operation: str, take: Take) -> None:
        """Requests for an operation of a service go here; an empty name stands for the others."""
        self._services[service, operation] = take
        self._changed(ANYONE)

    def follow(self, pattern: str, take: Take) -> None:
        """What is published to a topic, or to topics of this pattern, goes here."""
        self._topics[pattern] = take
        self._changed(ANYONE)

    def unfollow(self, pattern: str) -> None:
        """It does no longer."""
        self._topics.pop(pattern, None)

    def take_others(self, taker: Taker) -> None:
        """What is for nobody in particular goes here, if it is of the right type."""
        self._anyone.append(taker)
        self._changed(ANYONE)

    def _changed(self, name: str) -> None:
        """Somebody is there: take the device's messages, and what has waited."""
        if not self._running:
            self._running = True
            self._device.background(self._run())
        if name in self._parked and name not in self._catching_up:
            self._catching_up.add(name)
            self._device.background(self._catch_up(name))

    async def _run(self) -> None:
        async for message in self._device.messages(automatic=False):
            name = _callback_of(message)
            take = self._taker(name, message)
            if take is None or name in self._catching_up:
                # Behind what waits already, so that the order is kept.
                await self._park(name, message)
            else:
                await self._hand(take, message)

    async def _catch_up(self, name: str) -> None:
        waiting = self._parked.pop(name)
        later: deque[Message] = deque()
        self._parked[name] = deque()
        while waiting or self._parked[name]:
            message = (waiting or self._parked[name]).popleft()
            take = self._taker(name, message)
            if message.deadline is not None and self._device.now() >= message.deadline:
                self._device.lapse(message)
            elif take is None:
                later.append(message)
            else:
                await self._hand(take, message)
        self._catching_up.discard(name)
        if later:
            self._parked[name] = later
        else:
            del self._parked[name]

    async def _hand(self, take: Take, message: Message) -> None:
        await take(message)
        self._device.finish(message)

    async def _park(self, name: str, message: Message) -> None:
        """Let it wait. Who waits for an answer does not; our own outcomes wait without limit, since
        the inbox has one."""
        others = sum(m.request is None for parked in self._parked.values() for m in parked)
        served = message.request is not None or name in self._catching_up
        if not served and (message.wants_reply and not name):
            await self._refuse(message, "nobody here answers this")
        elif not served and others >= MOST_PARKED:
            log.warning("message %s (%s) is for nobody here", message.id, message.content_type)
            await self._refuse(message, f"there is no {name} here")
        else:
            self._parked.setdefault(name, deque()).append(message)

    async def _refuse(self, message: Message, why: str) -> None:
        if message.wants_reply:
            await decline(self._device, message, Declined("not_served", why))
        self._device.finish(message)

    def _taker(self, name: str, message: Message) -> Take | None:
        if name:
            return self._callbacks.get(name)
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


def _callback_of(message: Message) -> str:
    if message.request is not None:
        return message.request.callback
    return message.extra.get(CALLBACK_HEADER, ANYONE)
