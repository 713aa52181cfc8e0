"""The protocol by which every front door uses the gateway.

Doors do not know the driver that runs the gateway, only this protocol. `call` is the only way to
change anything, and it returns when the change is durable: no door can answer too early by mistake.
`look` and `read` change nothing.
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
    """A running gateway, as the doors see it."""

    def now(self) -> Micros:
        """Return the current time of the gateway's clock, in microseconds."""
        ...

    async def call(self, act: Callable[[Gateway, Micros], T]) -> T:
        """Change the gateway by `act`, and return its result once the change is durable.

        Raises what `act` raises, having changed nothing, or `Overloaded` when the gateway accepts
        no work. `OutcomeOpen` means that `act` has changed something and the change cannot be
        written now: the change may become durable later, unless the process ends first.
        """
        ...

    async def durable(self) -> None:
        """Wait until all changes so far are durable; raise `Overloaded` if they cannot be written
        now."""
        ...

    def look(self, ask: Callable[[Gateway], T]) -> T:
        """Return what `ask` finds in the gateway's memory, without changing it; works also while
        the gateway accepts no work. The answer may be ahead of the disk by one commit."""
        ...

    async def read(self, ask: Callable[[Reader], T]) -> T:
        """Return what `ask` finds in the store, off the event loop. The store has everything for
        which `call` has returned."""
        ...

    async def wait(
        self, key: int, ready: Callable[[list[DeliveryRow]], bool], seconds: float
    ) -> list[DeliveryRow]:
        """Wait until `ready` holds for the message's deliveries or `seconds` have passed.

        Returns the deliveries in their state at that moment.
        """
        ...

    async def watch(self, key: int, ask: Callable[[Gateway], T | None], seconds: float) -> T | None:
        """Ask the gateway about a stream until the answer is not None or `seconds` have passed;
        return the answer."""
        ...
