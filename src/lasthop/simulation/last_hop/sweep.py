"""Many runs at once: a map over sets of parameters, by any mapper.

A run depends on its parameters alone, so that one process, many, or a cluster give the same
numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from multiprocessing import get_context
from typing import TypeAlias

from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.run import LastHopOutcome, run

Work: TypeAlias = Callable[[Parameters], LastHopOutcome]
Mapper: TypeAlias = Callable[[Work, Sequence[Parameters]], Iterable[LastHopOutcome]]
"""Applies the work to every set and yields the outcomes in the same order."""


def in_turn(work: Work, sets: Sequence[Parameters]) -> Iterator[LastHopOutcome]:
    """Do the work for one set after the other, in this process."""
    return map(work, sets)


def mapper(processes: int) -> AbstractContextManager[Mapper]:
    """Return a mapper over this many processes, which run as long as the context is open."""
    return nullcontext(in_turn) if processes == 1 else _pooled(processes)


@contextmanager
def _pooled(processes: int) -> Iterator[Mapper]:
    # Worker processes must not inherit the threads of this process, so they are not forked from it.
    context = get_context("forkserver" if sys.platform != "win32" else "spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        try:
            yield pool.map
        finally:
            pool.shutdown(cancel_futures=True)


def sweep(
    sets: Sequence[Parameters],
    *,
    mapper: Mapper = in_turn,
    progress: Callable[[], None] = lambda: None,
) -> list[LastHopOutcome]:
    """Run all sets and return the outcomes; `progress` is called after each one."""
    outcomes = []
    for outcome in mapper(run, sets):
        outcomes.append(outcome)
        progress()
    return outcomes
