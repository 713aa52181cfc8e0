"""Sorts a device's incoming messages among its exchanges: outcomes and messages for named
callbacks, requests for services, messages of topics, and all others. A device has one
switchboard."""

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
"""The largest number of received messages that wait for a handler: each stays in memory until a
handler for it is registered."""

ANYONE = ""
"""The name that stands for messages that name no callback."""

Take: TypeAlias = Callable[[Message], Awaitable[None]]
"""A coroutine function that handles one message."""


class Taker(NamedTuple):
    """A handler for messages that are not for a callback, service or topic."""

    takes: Callable[[str], bool]
    """Returns whether the handler accepts messages of this content type."""
    take: Take


class ExchangeSwitchboard:
    """Passes every message of a device to one handler; the message is done when the handler
    returns. A message without a handler waits until a handler for it is registered, and is then
    passed on first."""

    def __init__(self, device: ExchangeDevice) -> None:
        self._device = device
        self._callbacks: dict[str, Take] = {}
        self._services: dict[tuple[str, str], Take] = {}
        self._topics: dict[str, Take] = {}
        self._anyone: list[Taker] = []
        self._parked: dict[str, deque[Message]] = {}
        """The waiting messages by the name of their callback; `ANYONE` for those that name none."""
        self._catching_up: set[str] = set()
        self._running = False

    def register(self, name: str, take: Take) -> None:
        """Pass messages for a named callback to `take`. Raises Conflict if the name is taken."""
        if name in self._callbacks:
            raise Conflict("a callback of this name is registered already", name=name)
        self._callbacks[name] = take
        self._changed(name)

    def deregister(self, name: str) -> None:
        """Remove a callback's name; messages for it wait until it is registered again."""
        self._callbacks.pop(name, None)

    def serve(self, service: str, operation: str, take: Take) -> None:
        """Pass requests for an operation of a service to `take`; an empty operation stands for all
        others."""
        self._services[service, operation] = take
        self._changed(ANYONE)

    def follow(self, pattern: str, take: Take) -> None:
        """Pass messages of a topic, or of topics of a pattern, to `take`."""
        self._topics[pattern] = take
        self._changed(ANYONE)

    def unfollow(self, pattern: str) -> None:
        """Stop passing on the messages of a topic or pattern."""
        self._topics.pop(pattern, None)

    def take_others(self, taker: Taker) -> None:
        """Pass messages that are not for a callback, service or topic to a handler, if the handler
        accepts their content type."""
        self._anyone.append(taker)
        self._changed(ANYONE)

    def _changed(self, name: str) -> None:
        """Start to take the device's messages, and those that waited for this name."""
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
                # Put the message behind those that wait already, so that the order is kept.
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
        """Let a message wait for a handler. A request that names no callback is declined instead,
        since its sender waits; outcomes of our own requests wait without limit, since the inbox has
        a limit."""
        others = sum(m.request is None for parked in self._parked.values() for m in parked)
        served = message.request is not None or name in self._catching_up
        if not served and (message.wants_reply and not name):
            await self._refuse(message, "this device has no handler for the request")
        elif not served and others >= MOST_PARKED:
            log.warning(
                "message %s (%s) has no handler on this device", message.id, message.content_type
            )
            await self._refuse(message, f"no callback {name} is registered on this device")
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
