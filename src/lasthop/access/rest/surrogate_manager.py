"""Whoever looks after the surrogates of a gateway, as the REST door knows them."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec


class SurrogateInfo(msgspec.Struct, kw_only=True):
    """A surrogate as it is."""

    app: str
    place: str
    """Of its class, as package.module:Class."""
    state: Literal["starting", "ready", "broken"]
    reason: str
    """Why it is broken."""
    pid: int | None
    """Of its worker, while there is one."""
    waiting: int
    """Messages that wait for it."""
    queue: int
    """How many may."""
    state_bytes: int
    state_limit: int
    outcomes: dict[str, int]
    """What it made of messages since the gateway was started."""
    restarts: int
    last_failure: str


class SurrogateManager(Protocol):
    """Whoever looks after the surrogates of a gateway."""

    def status(self) -> list[SurrogateInfo]:
        """All surrogates as they are."""
        ...

    def of(self, app: str) -> SurrogateInfo:
        """One surrogate; raises `NotFound`."""
        ...

    async def reload(self, app: str) -> SurrogateInfo:
        """Load one anew; raises `NotFound` or `Conflict`."""
        ...
