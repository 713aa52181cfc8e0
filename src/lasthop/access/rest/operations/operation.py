"""What an operation of the REST door is: the router, the OpenAPI document and the commands of the
command line are made from it."""

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
    "credentials/{name}": "The name that the credential was given.",
    "devices/{name}": "The name of the device.",
    "groups/{name}": "The name of the group.",
    "members/{device}": "The name of the device.",
    "messages/{id}": "The id of the message.",
    "queues/{name}": "The name of the queue.",
    "services/{name}": "The name of the service, or NAME@VERSION for one of its versions.",
    "streams/{id}": "The id of the stream.",
    "subscriptions/{topic}": "The topic: words that are separated by dots.",
    "surrogates/{app}": "The app that the surrogate acts for.",
    "topics/{topic}": "The topic: words that are separated by dots.",
    "{name}/{operation}": "The name of the operation.",
}
"""What each part of a path is, by the segment before it and its name."""


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
    """Types by status, several in a tuple; `bytes` for content of any type."""
    refusals: tuple[int, ...] = ()
    """Statuses beside those that every operation can have."""
    once: bool = False
    """Takes an Idempotency-Key."""
    command: Command | str
    """The command that asks for it, or why there is none."""

    @property
    def id(self) -> str:
        """A name for generated clients."""
        words = [w.strip("{}") for w in self.path.split("/")[2:]]
        return "_".join([self.method.lower(), *words])

    @property
    def path_parameters(self) -> dict[str, str]:
        """The parts of the path that vary, each with what it is."""
        found = re.findall(r"([^/]+/)(?=\{(\w+)\})", self.path)
        return {name: PATH_PARAMETERS[f"{before}{{{name}}}"] for before, name in found}

    def resolved(self) -> Operation:
        """The same with everything that it names imported."""
        answers = {
            status: tuple(map(resolve, kind)) if isinstance(kind, tuple) else resolve(kind)
            for status, kind in self.answers.items()
        }
        names = ("scope", "handler", "body", "query")
        return replace(self, answers=answers, **{n: resolve(getattr(self, n)) for n in names})


Ask: TypeAlias = Callable[[Operation, Row, Row, object], Row]
"""Asks for an operation, with the parts of its path, its query and its body."""
