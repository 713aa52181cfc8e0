"""One request to one operation, as its handler sees it: the caller is authenticated and has the
scope that the operation requires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import msgspec
from starlette.requests import Request

from lasthop.access.callers import Caller
from lasthop.access.rest.context import OperationContext
from lasthop.access.rest.problems import malformed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RestExchange:
    """A request with its caller, from which a handler reads the path, the query and the body."""

    context: OperationContext
    request: Request
    caller: Caller
    headers: dict[bytes, bytes]

    def path(self, name: str) -> str:
        """Return the named parameter of the request's path."""
        return str(self.request.path_params[name])

    def query(self, kind: type[T]) -> T:
        """Return the query parameters as a `kind`; raise `InvalidRequest` if they do not fit."""
        try:
            return msgspec.convert(dict(self.request.query_params), kind, strict=False)
        except msgspec.ValidationError as error:
            raise malformed(error) from None

    async def body(self, kind: type[T]) -> T:
        """Return the JSON body as a `kind`; raise `InvalidRequest` if it does not fit."""
        return self._decoded(await self._data(), kind)

    async def optional_body(self, kind: type[T]) -> T | None:
        """Return the JSON body as a `kind`, or None if the body is empty."""
        data = await self._data()
        return self._decoded(data, kind) if data.strip() else None

    async def content(self) -> bytes:
        """Return the request's body as bytes, without decoding it."""
        return await self._data()

    async def _data(self) -> bytes:
        data = await self.context.intake.read(self.headers, self.request.receive)
        self.context.intake.release(len(data))  # The decoded body is small and short-lived.
        return data

    def _decoded(self, data: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise malformed(error) from None
