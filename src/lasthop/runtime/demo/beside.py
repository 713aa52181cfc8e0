"""Runs one task beside another. When one of them fails, the other ends, and the failure is raised
as it is, not inside an exception group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager


@contextmanager
def first_failure() -> Iterator[None]:
    """Raise the first exception in an exception group instead of the group."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


@asynccontextmanager
async def beside(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run a coroutine during this context, and cancel it at the end."""
    with first_failure():
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            yield
            task.cancel()
