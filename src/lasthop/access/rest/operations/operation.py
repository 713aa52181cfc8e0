"""Describes an operation of the REST door. The router, the OpenAPI document and the commands of the
command line are made from these descriptions."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from lasthop.access.rest.operations.command import Command, Row
from lasthop.access.rest.operations.deferred import Deferred, resolve

if TYPE_CHECKING:
    from starlette.responses import Response

    from lasthop.access.rest.exchange import RestExchange
    from lasthop.core.apps.credentials import Scope

    Handler: TypeAlias = Callable[[RestExchange], Awaitable[Response]]
else:
    Scope = Deferred("lasthop.core.apps.credentials", "Scope")

__all__ = ["PATH_PARAMETERS", "Ask", "Operation", "Scope"]

PATH_PARAMETERS = {
    "addresses/{address}": "A client address of PAP, as TYPE:VALUE.",
    "apps/{app}": "The name of the app.",
    "consumers/{device}": "The name of the device.",
    "credentials/{name}": "The name of the credential.",
    "devices/{name}": "The name of the device.",
    "groups/{name}": "The name of the group.",
    "members/{device}": "The name of the device.",
    "messages/{id}": "The id of the message.",
    "queues/{name}": "The name of the queue.",
    "rules/{name}": "The name of the rule.",
    "services/{name}": "The name of the service, or NAME@VERSION for one of its versions.",
    "streams/{id}": "The id of the stream.",
    "subscriptions/{topic}": "The topic: words separated by dots.",
    "surrogates/{app}": "The app that the surrogate acts for.",
    "topics/{topic}": "The topic: words separated by dots.",
    "users/{name}": "The name of the user.",
    "{name}/{operation}": "The name of the operation.",
}
"""The description of each path parameter, by the segment before it and its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the REST door: its method and path, its handler, and what it takes and
    answers."""

    method: str
    path: str
    summary: str
    scope: Scope
    handler: Handler | None
    """The function that serves the operation; None for publishing, which the door serves itself
    because it must be fast."""
    body: Any = None
    """The type of the body; None if there is no body."""
    optional: bool = False
    """Whether the body may be left out."""
    lines: bool = False
    """Whether many bodies may be sent together, in an array or one per line."""
    query: type | None = None
    answers: dict[int, Any] = field(default_factory=dict)
    """Types of the answer by status, several in a tuple; `bytes` for content of any type."""
    refusals: tuple[int, ...] = ()
    """HTTP statuses with which the operation can be refused, besides the statuses that every
    operation can have."""
    once: bool = False
    """Whether the operation accepts an Idempotency-Key, so that a repeated request takes effect
    only once."""
    command: Command | str
    """The command that performs the operation, or the reason why there is none."""

    @property
    def id(self) -> str:
        """Return the operation's name for generated clients."""
        words = [w.strip("{}") for w in self.path.split("/")[2:]]
        return "_".join([self.method.lower(), *words])

    @property
    def path_parameters(self) -> dict[str, str]:
        """Return the variable parts of the path, each with its description."""
        found = re.findall(r"([^/]+/)(?=\{(\w+)\})", self.path)
        return {name: PATH_PARAMETERS[f"{before}{{{name}}}"] for before, name in found}

    def resolved(self) -> Operation:
        """Return the same operation with its handler and types imported."""
        answers = {
            status: tuple(map(resolve, kind)) if isinstance(kind, tuple) else resolve(kind)
            for status, kind in self.answers.items()
        }
        names = ("scope", "handler", "body", "query")
        return replace(self, answers=answers, **{n: resolve(getattr(self, n)) for n in names})


Ask: TypeAlias = Callable[[Operation, Row, Row, object], Row]
"""A function that performs an operation, given the parts of its path, its query and its body."""
