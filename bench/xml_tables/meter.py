"""Measures time and memory of a job over many items."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Memory(NamedTuple):
    """Bytes of memory, as Python's own allocators report them."""

    peak: int
    left: int


@contextmanager
def by_itself() -> Iterator[None]:
    """Let the garbage collector look only at objects made from here on: in a large program,
    scanning the older ones would take most of the time."""
    frozen = gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen:
            gc.unfreeze()


def seconds(begin: Callable[[], Callable[[T], object]], items: Sequence[T], rounds: int) -> float:
    """Return the processor time of the best round of each item, added up, which leaves out other
    work."""
    clock = time.process_time
    shortest = [float("inf")] * len(items)
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            job = begin()
            for place, item in enumerate(items):
                started = clock()
                job(item)
                shortest[place] = min(shortest[place], clock() - started)
    finally:
        gc.enable()
    return sum(shortest)


def memory(job: Callable[[T], object], items: Sequence[T]) -> Memory:
    """Return the memory of all results together, and the most memory during the work."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [job(item) for item in items]
    peak = tracemalloc.get_traced_memory()[1]
    gc.collect()
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return Memory(peak - before, left - before)


def memory_each(begin: Callable[[], Callable[[T], object]], items: Sequence[T]) -> float:
    """Return the most memory that one item takes, its result included, on average."""
    job = begin()
    total = 0
    gc.collect()
    tracemalloc.start()
    for item in items:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = job(item)
        total += tracemalloc.get_traced_memory()[1] - before
        del result
    tracemalloc.stop()
    return total / len(items)
