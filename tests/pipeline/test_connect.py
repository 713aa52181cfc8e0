"""The pipeline through a real Spark Connect server: the client has no Java of its own.

About `pipeline/jobs.py` and `pipeline/session.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lasthop.pipeline.java import ensure_java
from lasthop.pipeline.jobs import Pipeline
from tests.pipeline.daemons import daemon, said

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.nightly,
]

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def test_a_connect_server_makes_the_tables_that_one_process_makes(
    fleet: Pipeline, fleet_log: Path, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    lake, log = tmp_path / "lake", tmp_path / "server.log"
    with daemon(
        *(log, "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]"),
        *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
        *("--conf", "spark.connect.grpc.binding.port=0"),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"),
        *("--class", SERVER, "spark-internal"),
        environment={**environment, "JAVA_HOME": str(ensure_java())},
    ):
        port = said(log, r"Spark Connect server started at: \S*?:(\d+)")

        def pipeline(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [
                    *(sys.executable, "-m", "lasthop", "pipeline", *words),
                    *("--log", str(fleet_log), "--lake", str(lake)),
                    *("--remote", f"sc://127.0.0.1:{port}"),
                ],
                # Whatever looks for a Java here finds none.
                env={**environment, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)},
                capture_output=True,
                text=True,
                check=False,
            )

        done = pipeline("run", "--json")
        assert done.returncode == 0, done.stderr[-3000:]
        again = pipeline("run", "--json")
        refused = pipeline("stream")
    outcome = msgspec.json.decode(done.stdout.splitlines()[-1])
    assert outcome["rows"] == fleet.outcome.rows
    assert outcome["ingested"] == msgspec.to_builtins(fleet.outcome.ingested)
    assert outcome["ingested"]["events"] == outcome["rows"]["bronze.events"] > 0
    assert msgspec.json.decode(again.stdout.splitlines()[-1])["ingested"]["events"] == 0
    assert refused.returncode == 1
    assert "through Spark Connect, only single runs work" in refused.stderr
