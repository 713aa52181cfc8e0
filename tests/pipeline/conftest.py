"""One Spark session for all tests of a process; they stay on one worker of a parallel run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lasthop.pipeline.jobs import Pipeline
from lasthop.pipeline.lake import Lake
from lasthop.pipeline.session import open_session
from lasthop.simulation.fleet.log import write_log
from tests.groups import claim_group
from tests.pipeline.quick import QUICK


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            # The first one starts Java and makes all tables: seconds, on a machine to itself.
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    claim_group("spark", tmp_path_factory)
    scratch = tmp_path_factory.mktemp("spark")
    session = open_session(master="local[2]", scratch=scratch, settings=QUICK)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def fleet_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four days of six devices."""
    log = tmp_path_factory.mktemp("fleet")
    write_log(log, devices=6, days=4, seed=7)
    return log


@pytest.fixture(scope="session")
def fleet(
    spark: SparkSession, fleet_log: Path, tmp_path_factory: pytest.TempPathFactory
) -> Pipeline:
    """The whole pipeline, run once over it."""
    pipeline = Pipeline(spark, fleet_log, Lake(tmp_path_factory.mktemp("lake")))
    pipeline.run()
    return pipeline
