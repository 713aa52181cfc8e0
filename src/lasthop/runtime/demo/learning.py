"""Runs the pipeline over the demo's log: learns a policy, then makes all tables, with the commands
that users have.

Where Spark cannot run, the demo goes on without learning and says why.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import msgspec

from lasthop.clock import SECOND
from lasthop.eventlog.following import follow
from lasthop.pipeline.java import NoJava, ensure_java
from lasthop.runtime.demo.children import ChildProcess
from lasthop.runtime.failure import Failure
from lasthop.runtime.places import LOG_DIRECTORY

SEALED_WITHIN = 2 * SECOND
"""The longest time until an event is in a closed file of the log, which the pipeline can read."""

FOLLOWED_EVERY = 10.0

QUICK = (
    "spark.sql.shuffle.partitions=2",
    "spark.sql.codegen.wholeStage=false",
    "spark.sql.codegen.factoryMode=NO_CODEGEN",
)
"""Settings of Spark for a log of only some minutes, for which compiling a plan takes longer than
running it. These settings halve the time."""


class DemoLearning(msgspec.Struct):
    """The result of `lasthop pipeline learn`, and how long the command took."""

    version: str
    devices: int
    """The number of policies learned for a single device and topic; all other devices use the
    policy of the fleet."""
    events: int
    seconds: float


def impossible() -> str | None:
    """Return why the pipeline cannot run here, or None if it can."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        return "the pipeline is not installed (pip install 'lasthop[pipeline]')"
    try:
        ensure_java()
    except NoJava as error:
        return str(error)
    return None


class Learning:
    """Runs the pipeline on a data directory; its temporary files go to `scratch`."""

    def __init__(self, data: Path, scratch: Path, say: Callable[[str], None]) -> None:
        self._data = data
        self._scratch = scratch
        self._say = say
        self._child: ChildProcess | None = None

    async def keep_following(self) -> None:
        """Tell the gateway again and again, until cancelled, that a program reads its log's files,
        so that it closes them soon."""
        log = self._data / LOG_DIRECTORY
        while True:
            log.mkdir(parents=True, exist_ok=True)
            follow(log, within=SEALED_WITHIN)
            await asyncio.sleep(FOLLOWED_EVERY)

    async def run(self) -> DemoLearning:
        """Learn from all events that are in closed files of the log when Spark has started, and put
        the result in force."""
        began = time.monotonic()
        facts = msgspec.json.decode(
            await self._command("learn", "--update", "--percent", "100", "--note", "demo")
        )
        return DemoLearning(
            version=facts["version"],
            devices=facts["devices"],
            events=facts["lineage"]["events"],
            seconds=round(time.monotonic() - began, 1),
        )

    async def make_tables(self) -> None:
        """Make all tables for the dashboard; nothing else depends on them."""
        try:
            await self._command("run")
        except Failure as error:
            self._say(f"no tables: {error}")

    async def stop(self) -> None:
        """End the pipeline's process, if one runs."""
        if self._child is not None:
            await self._child.stop()

    async def _command(self, name: str, *options: str) -> bytes:
        self._scratch.mkdir(parents=True, exist_ok=True)
        arguments = ["pipeline", name, "--data", str(self._data), "--json", *options]
        for setting in (*QUICK, *_places(self._scratch)):
            arguments += ["--conf", setting]
        self._child = await ChildProcess.start(
            *arguments, environment={"TMPDIR": str(self._scratch)}
        )
        try:
            output = await self._child.output()
        finally:
            await self._child.stop()
        return output.strip().splitlines()[-1]


def _places(scratch: Path) -> tuple[str, ...]:
    """Return the settings that put all temporary files of Spark and its Java, native libraries
    included, into the scratch directory."""
    java = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.io.tmpdir={scratch}"
    return f"spark.local.dir={scratch}", f"spark.driver.extraJavaOptions={java}"
