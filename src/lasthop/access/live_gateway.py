"""What every front door asks of the gateway behind it.

Doors are strangers to the driver that runs the gateway; they know it by this protocol. `call` is
the only way to change anything, and it returns when the change is durable: no door can answer too
early by mistake. `look` and `read` ask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from lasthop.clock import Micros
from lasthop.core.gateway import Gateway
from lasthop.store.base import Reader
from lasthop.store.commit import DeliveryRow

T = TypeVar("T")


class LiveGateway(Protocol):
    """A running gateway."""

    def now(self) -> Micros:
        """The time."""
        ...

    async def call(self, act: Callable[[Gateway, Micros], T]) -> T:
        """Let `act` change the gateway; returns its result once that is durable.

        Raises what `act` raises, having changed nothing, or `Overloaded` when no work is taken in.
        `OutcomeOpen` means that `act` has changed something which cannot be written now: it may
        become durable later, unless the process ends first.
        """
        ...

    async def durable(self) -> None:
        """Wait until all that was changed so far is durable; `Overloaded` when that cannot be
        now."""
        ...

    def look(self, ask: Callable[[Gateway], T]) -> T:
        """Ask what the gateway has in memory, without changing it: always, also when no work is
        taken in. The answer may be ahead of the disk by one commit."""
        ...

    async def read(self, ask: Callable[[Reader], T]) -> T:
        """Ask the store, off the event loop. It knows everything for which `call` has returned."""
        ...

    async def wait(
        self, key: int, ready: Callable[[list[DeliveryRow]], bool], seconds: float
    ) -> list[DeliveryRow]:
        """Wait until the message's deliveries are as `ready` wants them, or the time is up.

        Returns them as they stand then.
        """
        ...

    async def watch(self, key: int, ask: Callable[[Gateway], T | None], seconds: float) -> T | None:
        """Ask the gateway about a stream until there is an answer, or the time is up."""
        ...
