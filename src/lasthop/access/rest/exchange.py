"""One request to one operation, as its handler sees it: the caller is known and may do this."""

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
    """What a handler works with."""

    context: OperationContext
    request: Request
    caller: Caller
    headers: dict[bytes, bytes]

    def path(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    def query(self, kind: type[T]) -> T:
        """The parameters behind the question mark."""
        try:
            return msgspec.convert(dict(self.request.query_params), kind, strict=False)
        except msgspec.ValidationError as error:
            raise malformed(error) from None

    async def body(self, kind: type[T]) -> T:
        """The JSON body."""
        return self._decoded(await self._data(), kind)

    async def optional_body(self, kind: type[T]) -> T | None:
        """The JSON body, if there is one."""
        data = await self._data()
        return self._decoded(data, kind) if data.strip() else None

    async def content(self) -> bytes:
        """The body as it came."""
        return await self._data()

    async def _data(self) -> bytes:
        data = await self.context.intake.read(self.headers, self.request.receive)
        self.context.intake.release(len(data))  # It is small once it is decoded, and soon gone.
        return data

    def _decoded(self, data: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise malformed(error) from None
