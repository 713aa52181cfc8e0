"""Shells complete our commands, as they ask for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.conftest import Lasthop
from tests.runtime.processes import DEADLINE, ENVIRONMENT, LASTHOP


def asked(**variables: str) -> str:
    """What `lasthop` answers to a shell."""
    done = subprocess.run(
        LASTHOP,
        env=ENVIRONMENT | variables,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "line, answers",
    [
        ("lasthop pu", {"push"}),
        ("lasthop device r", {"run", "register", "remove", "rules"}),
        ("lasthop push --ti", {"--title"}),
        ("lasthop completion f", {"fish"}),
        ("lasthop push --nonsense", set()),
    ],
)
def test_bash_is_told_what_could_come_next(line: str, answers: set[str]) -> None:
    words = str(len(line.split(" ")) - 1)
    said = asked(_LASTHOP_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=words)
    assert set(said.split()) == answers


def test_zsh_and_fish_are_told_with_explanations() -> None:
    said = asked(_LASTHOP_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="lasthop exp")
    assert '"explain":"Explain what happened to a message' in said
    said = asked(
        _LASTHOP_COMPLETE="complete_fish",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        _TYPER_COMPLETE_ARGS="lasthop exp",
    )
    assert said.startswith("explain\tExplain what happened to a message")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_its_shell_takes(lasthop: Lasthop, shell: str) -> None:
    script = lasthop("completion", shell).out
    assert f"_LASTHOP_COMPLETE=complete_{shell}" in script
    assert lasthop("completion", shell, "--json").json["script"] == script.rstrip("\n")
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=DEADLINE)


def test_another_shell_is_refused(lasthop: Lasthop) -> None:
    assert "'bash', 'zsh', 'fish'" in lasthop("completion", "tcsh", fails=True).error


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_after_the_script_was_read(tmp_path: Path) -> None:
    program = tmp_path / "lasthop"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m lasthop "$@"\n')
    program.chmod(0o755)
    asking = """
        eval "$(lasthop completion bash)"
        COMP_WORDS=(lasthop queue sh) COMP_CWORD=2
        _lasthop_completion lasthop
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", asking],
        env=ENVIRONMENT | {"PATH": f"{tmp_path}:{ENVIRONMENT['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    assert done.stdout.split() == ["show"]
