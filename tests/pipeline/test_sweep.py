"""Sweeps on Spark: the numbers of one process, whatever the partitions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from lasthop.pipeline import sweep as on_spark
from lasthop.simulation.last_hop.figures import FIGURES, measure
from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.run import run
from lasthop.simulation.last_hop.sweep import sweep


@pytest.mark.parametrize("number", FIGURES)
def test_a_figure_has_the_same_numbers_with_and_without_spark(
    spark: SparkSession, number: int
) -> None:
    figure = FIGURES[number]()
    figure = replace(figure, points=figure.points[:: max(1, len(figure.points) // 3)])
    done: list[None] = []
    rows = measure(
        figure,
        seeds=2,
        years=0.01,
        mapper=lambda work, sets: on_spark.mapped(spark, work, sets, cores=2),
        progress=lambda: done.append(None),
    )
    assert rows == measure(figure, seeds=2, years=0.01)
    assert len(done) == 2 * len(figure.points)


def test_partitions_change_nothing(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = [Parameters(years=0.02, outage=0.5, seed=seed) for seed in range(11)]
    expected = sweep(sets)
    for per_task, cores in ((1, 1), (3, 1), (11, 2)):
        monkeypatch.setattr(on_spark, "ITEMS_PER_TASK", per_task)
        assert list(on_spark.mapped(spark, run, sets, cores=cores)) == expected


def test_nothing_to_do_is_done_at_once(spark: SparkSession) -> None:
    assert list(on_spark.mapped(spark, run, [], cores=2)) == []
