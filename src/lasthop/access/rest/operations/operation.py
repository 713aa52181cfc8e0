"""What an operation of the REST door is: the router and the OpenAPI document are made from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from starlette.responses import Response

from lasthop.access.rest.exchange import RestExchange
from lasthop.core.apps.credentials import Scope

Handler: TypeAlias = Callable[[RestExchange], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Something that can be asked for."""

    method: str
    path: str
    summary: str
    scope: Scope
    handler: Handler | None
    """None for the hot route, which the door serves itself."""
    body: Any = None
    """The type of the body, if there is one."""
    optional: bool = False
    """The body may be left out."""
    lines: bool = False
    """The body may also be many of them, in an array or one to a line."""
    query: type | None = None
    answers: dict[int, Any] = field(default_factory=dict)
    """Types by status; `bytes` for content of any type."""
    refusals: tuple[int, ...] = ()
    """Statuses beside those that every operation can have."""
    once: bool = False
    """Takes an Idempotency-Key."""

    @property
    def id(self) -> str:
        """A name for generated clients."""
        words = [w.strip("{}") for w in self.path.split("/")[2:]]
        return "_".join([self.method.lower(), *words])
