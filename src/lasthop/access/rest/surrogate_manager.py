"""The manager of a gateway's surrogates, as the REST door uses it."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec


class SurrogateInfo(msgspec.Struct, kw_only=True):
    """The state of an app's surrogate."""

    app: str
    place: str
    """The place of the surrogate's class, as package.module:Class."""
    state: Literal["starting", "ready", "broken"]
    reason: str
    """The reason why the surrogate is broken; empty if it is not."""
    pid: int | None
    """The process id of the surrogate's worker, while it has one."""
    waiting: int
    """The number of messages that wait for the surrogate."""
    queue: int
    """The largest number of messages that may wait for the surrogate."""
    state_bytes: int
    state_limit: int
    outcomes: dict[str, int]
    """The number of messages that the surrogate has handled since the gateway was started, by what
    the surrogate did with them."""
    restarts: int
    last_failure: str


class SurrogateManager(Protocol):
    """Watches over the surrogates of a gateway: reports their states, and reloads them."""

    def status(self) -> list[SurrogateInfo]:
        """Return the state of every surrogate of the gateway."""
        ...

    def of(self, app: str) -> SurrogateInfo:
        """Return the state of an app's surrogate; raise `NotFound` if the app has none."""
        ...

    async def reload(self, app: str) -> SurrogateInfo:
        """Load an app's surrogate again and return its state; raise `NotFound` or `Conflict`."""
        ...
