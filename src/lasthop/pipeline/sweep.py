"""A map on Spark: work that depends on its item alone, done on any core of a cluster.

Which executor does an item, and with which others, changes nothing about its result. Neighbours go
to the same task, since they often share what is expensive to make.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from lasthop.pipeline.session import LOCAL, open_session

Item = TypeVar("Item")
Result = TypeVar("Result")

ITEMS_PER_TASK = 4
"""Items in a task: enough to make up for starting it, few enough to keep all cores busy to the
end."""

TASKS_PER_CORE = 4
"""Tasks per core in one job; progress is reported between jobs."""

CORES_ELSEWHERE = 8
"""The assumed number of cores behind Spark Connect, which does not report it."""


@contextmanager
def spark_mapper(
    where: str = LOCAL,
) -> Iterator[Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]]:
    """Return a map over a master (`local[*]`, `spark://...`) or a Spark Connect server
    (`sc://...`), as long as the context is open."""
    remote = where if where.startswith("sc://") else None
    session = open_session(master=where, remote=remote, name="lasthop sweep")
    cores = CORES_ELSEWHERE if remote else session.sparkContext.defaultParallelism
    try:
        yield lambda work, items: mapped(session, work, items, cores=cores)
    finally:
        session.stop()


def mapped(
    session: SparkSession,
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    cores: int,
) -> Iterator[Result]:
    """Yield the results in the order of the items, job by job."""
    at_once = cores * TASKS_PER_CORE * ITEMS_PER_TASK
    for start in range(0, len(items), at_once):
        yield from _job(session, work, items[start : start + at_once])


def _job(
    session: SparkSession, work: Callable[[Item], Result], items: Sequence[Item]
) -> list[Result]:
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column("id").to_pylist()
            results = [pickle.dumps(work(items[number])) for number in numbers]
            yield pa.record_batch({"id": batch.column("id"), "result": pa.array(results)})

    # A range has the requested number of partitions, of neighbours; nothing is shuffled.
    tasks = -(-len(items) // ITEMS_PER_TASK)
    numbers = session.range(0, len(items), 1, tasks)
    collected = numbers.mapInArrow(rows, "id long, result binary").collect()
    done = {row["id"]: bytes(row["result"]) for row in collected}
    return [pickle.loads(done[number]) for number in range(len(items))]
