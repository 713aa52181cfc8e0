"""Spark's own processes, started as its scripts start them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

PATIENCE = 120.0


@contextmanager
def daemon(log: Path, *words: str, environment: dict[str, str]) -> Iterator[None]:
    """One of Spark's processes, for as long as it is needed."""
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *words]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env=environment, start_new_session=True
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE)


def said(log: Path, pattern: str) -> str:
    """Wait until a process says this."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if log.exists() and (found := re.search(pattern, log.read_text(errors="replace"))):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} never said {pattern}: {log.read_text()[-2000:]}")


def clean() -> dict[str, str]:
    """Our environment, but for what tells Python where to look."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
