"""The whole pipeline on a real standalone cluster: a master, two workers, our wheel shipped.

About `pipeline/jobs.py` and `pipeline/session.py`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import msgspec
import pytest

from lasthop.pipeline.java import ensure_java
from lasthop.pipeline.jobs import Pipeline
from tests.pipeline.daemons import clean, daemon, said
from tests.pipeline.quick import JAVA, quickly

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.peer, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our wheel, under the name by which Spark takes it: others it would silently leave out."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    return Path(shutil.copy(wheel, out / "lasthop.zip"))


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with all packages but lasthop: what is installed in place is not found by it."""
    script = tmp_path_factory.mktemp("python") / "python"
    packages = sysconfig.get_path("purelib")
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S "$@"\n'
    )
    script.chmod(0o755)
    found = subprocess.run(
        [script, "-c", "import lasthop"], check=False, capture_output=True, env=clean()
    )
    assert b"No module named 'lasthop'" in found.stderr
    return script


@pytest.mark.nightly
def test_two_workers_make_the_tables_that_one_process_makes(
    fleet: Pipeline, fleet_log: Path, shipped: Path, bare_python: Path, tmp_path: Path
) -> None:
    environment = {
        **clean(),
        "JAVA_HOME": str(ensure_java()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
        "PYSPARK_PYTHON": str(bare_python),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    master, deploy = tmp_path / "master.log", "org.apache.spark.deploy"
    with daemon(
        *(master, f"{deploy}.master.Master", "--host", "127.0.0.1"),
        *("--port", "0", "--webui-port", "0"),
        environment=environment,
    ):
        address = said(master, r"Starting Spark master at (spark://\S+)")
        worker = (f"{deploy}.worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0")
        with (
            daemon(tmp_path / "w1.log", *worker, address, environment=environment),
            daemon(tmp_path / "w2.log", *worker, address, environment=environment),
        ):
            for name in ("w1.log", "w2.log"):
                said(tmp_path / name, r"(Successfully registered with master)")
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "lasthop", "pipeline", "run", "--json"),
                    *("--log", str(fleet_log), "--lake", str(tmp_path / "lake")),
                    *("--master", address, "--conf", f"spark.submit.pyFiles={shipped}"),
                    *("--conf", "spark.executor.memory=700m"),
                    *quickly(),
                ],
                env={**environment, "PYTHONPATH": str(ROOT / "src")},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr[-3000:]
            apps = [path.name for path in (tmp_path / "work").glob("*/*") if path.is_dir()]
    outcome = msgspec.json.decode(done.stdout.splitlines()[-1])
    ours = fleet.outcome.rows
    assert outcome["rows"] == ours
    assert outcome["rows"]["gold.last_hop"] > 0
    assert sorted(apps) == ["0", "1"], "both workers had an executor"
