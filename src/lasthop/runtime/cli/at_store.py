"""Performs operations on a data directory that no gateway is using.

A gateway is started inside the command for a single request, so that the checks and the records are
the same as over REST.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn, TypeVar
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from lasthop.access.rest.app import make_token
from lasthop.access.rest.context import OperationContext
from lasthop.access.rest.exchange import RestExchange
from lasthop.access.rest.operations import Ask, Operation
from lasthop.access.rest.operations.command import Row
from lasthop.access.rest.problems import malformed, problem_of
from lasthop.access.rest.settings import RestSettings
from lasthop.clock import Micros
from lasthop.core.gateway import Gateway, Identity
from lasthop.errors import LasthopError, StoreError
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.failure import Failure
from lasthop.store.base import Reader
from lasthop.store.sqlite import SqliteStore

T = TypeVar("T")

LOCAL = "127.0.0.1"
"""The client address of requests to a data directory. A user who can open the directory may do
everything, as with a gateway on this machine that needs no credentials."""


class StoreGateway:
    """A gateway that runs only while a command has the store open, and that commits every change at
    once."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._clock = SystemClock()
        self._gateway = Gateway(
            Identity(), store.open(), random64=lambda: secrets.randbits(64), now=self.now()
        )

    def now(self) -> Micros:
        return self._clock.now()

    async def call(self, act: Callable[[Gateway, Micros], T]) -> T:
        result = act(self._gateway, self.now())
        commit = self._gateway.commit(self.now(), flush=True)
        if commit is not None:
            self._store.apply(commit)
            self._gateway.written(commit.n)
        return result

    async def durable(self) -> None:
        """Return at once: every change in the store is durable already."""

    def look(self, ask: Callable[[Gateway], T]) -> T:
        return ask(self._gateway)

    async def read(self, ask: Callable[[Reader], T]) -> T:
        with closing(self._store.reader()) as reader:
            return ask(reader)

    async def wait(self, *_: object) -> NoReturn:
        raise Failure("this operation needs a running gateway: use --url instead of --data")

    watch = wait

    async def erase(self, device: int) -> None:
        """Delete everything that was sent to a device that has been removed."""
        start: int | None = 0
        while start is not None:
            start = self._store.erase_device(device, start=start).next


@contextmanager
def asking(data: Path, app: str) -> Iterator[Ask]:
    """Open the store in a data directory, and yield a function that performs operations on it."""
    with closing(_open(data)) as store:
        awake = StoreGateway(store)
        settings = RestSettings(open_house=True)
        context = OperationContext(
            awake, settings, make_token=make_token, explain=None, erase=awake.erase
        )

        def ask(operation: Operation, path: Row, query: Row, body: object) -> Row:
            try:
                return asyncio.run(_handle(context, app, operation, path, query, body))
            except LasthopError as error:
                raise Failure(problem_of(error).error.detail) from None

        yield ask


async def _handle(
    context: OperationContext, app: str, operation: Operation, path: Row, query: Row, body: object
) -> Row:
    """Call the handler of an operation and return its answer."""
    operation = operation.resolved()
    headers = {b"host": b"localhost", b"x-app": app.encode()}
    caller = context.callers.recognise(headers, LOCAL)
    data = b"" if body is None else msgspec.json.encode(body)
    if body is not None:
        _check(data, operation.body)

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": data}

    connection = {
        "type": "http",
        "headers": [],
        "path_params": path,
        "query_string": urlencode(query).encode(),
    }
    assert operation.handler is not None
    exchange = RestExchange(context, Request(connection, receive), caller, headers)
    answer: Row = msgspec.json.decode((await operation.handler(exchange)).body)
    return answer


def _check(data: bytes, kind: type) -> None:
    """Refuse a request body that does not fit its type: a mistake in the command line."""
    try:
        msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise Failure(malformed(error).detail, exit_code=2) from None


def _open(data: Path) -> SqliteStore:
    try:
        return SqliteStore(data)
    except StoreError as error:
        if "pid" in error.fields:
            raise Failure(f"a gateway is running on {data}: use --url instead") from None
        raise
