"""Spark for tiny frames: what costs is starting things, not running them."""

from __future__ import annotations

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""It ends before the second compiler would have paid. One Java runs all tests, and Spark compiles
classes for each of their queries: with one compiler the room for code would be a fifth of this."""

QUICK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
}


def quickly() -> list[str]:
    """The same as options of a command."""
    return [word for name, value in QUICK.items() for word in ("--conf", f"{name}={value}")]
