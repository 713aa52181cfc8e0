"""Spark jobs that do not depend on one another, run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeAlias

AT_ONCE = 3
"""Jobs at the same time. Few: while one is planned or comes to its last task, others have work for
the cores. More would share the same cores, and the memory."""


Begin: TypeAlias = Callable[..., None]
"""Starts a call of a function with these arguments."""


@contextmanager
def together() -> Iterator[Begin]:
    """Run calls at the same time and wait for all of them; the first failure is raised."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        begun: list[Future[object]] = []

        def begin(call: Callable[..., object], *given: object, **named: object) -> None:
            begun.append(pool.submit(call, *given, **named))

        yield begin
        for one in begun:
            one.result()
