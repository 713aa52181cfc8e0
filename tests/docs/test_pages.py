"""Every block of code in the documentation is executed, or says why it is only shown.

Pages with a plot of their own have a test of their own, named below. The commands of the others are
given to a shell, beside a gateway; commands that go on (`lasthop device run`) go on in the
background.

About `docs/`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lasthop.runtime.settings import load
from tests.docs.blocks import ROOT, Block, blocks, pages
from tests.runtime.processes import DEADLINE, ENVIRONMENT, GatewayProcess, eventually

NO_CODE = frozenset({"", "text", "mermaid"})
"""Drawings, and what is not meant for a machine."""

SHELL = frozenset({"sh", "console"})

TESTED = {
    "CONTRIBUTING.md": "tests/docs/test_contributing.py",
    "README.md": "tests/runtime/test_readme.py",
    "docs/concepts/links.md": "tests/decision/test_links_page.py",
    "docs/how-to/codec.md": "tests/runtime/cli/test_codec.py",
    "docs/how-to/exchange.md": "tests/runtime/test_exchange_page.py",
    "docs/how-to/extend.md": "tests/runtime/test_plugins.py",
    "docs/how-to/groups.md": "tests/runtime/test_groups_page.py",
    "docs/how-to/interconnects.md": "tests/runtime/test_interconnects.py",
    "docs/how-to/javascript.md": "tests/sdk/test_node.py",
    "docs/how-to/over-the-air.md": "tests/runtime/test_air_page.py",
    "docs/how-to/pap.md": "tests/runtime/test_pap_page.py",
    "docs/how-to/short-messages.md": "tests/runtime/test_sms_page.py",
    "docs/how-to/reverse-proxy.md": "tests/runtime/test_reverse_proxy_page.py",
    "docs/how-to/streams.md": "tests/runtime/test_streams.py",
    "docs/how-to/subscribe.md": "tests/runtime/test_subscribe_page.py",
    "docs/how-to/surrogates.md": "tests/runtime/surrogates/test_page.py",
    "docs/how-to/tls.md": "tests/runtime/test_tls_page.py",
    "docs/how-to/xml-messages.md": "tests/runtime/test_xml_messages_page.py",
    "docs/omission-automata.md": "packages/xml/tests/xebu/omission/test_docs.py",
    "docs/orl.md": "packages/xml/tests/orl/test_docs.py",
    "docs/xml-security.md": "packages/xml/tests/xmlsecurity/test_docs.py",
    "docs/xpath-routing.md": "packages/xml/tests/xpath/test_docs.py",
}
"""Pages whose code is executed by a test of their own; of `sh` blocks only those marked as shown
are not executed here."""

SCRIPTED = (
    "docs/start.md",
    "docs/how-to/operate.md",
    "docs/how-to/subscribe.md",
    "docs/how-to/traces.md",
)
"""Pages whose `sh` blocks are given to a shell, here."""

_ID = re.compile(r"\b[0-9a-f]{32}\b")

needs_shell = pytest.mark.skipif(
    shutil.which("bash") is None or shutil.which("curl") is None, reason="needs bash and curl"
)


def code(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language not in NO_CODE]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_code_is_executed_or_says_why_not(page: Path) -> None:
    name = str(page.relative_to(ROOT))
    for block in code(page):
        if block.shown or (block.language == "sh" and name in SCRIPTED):
            continue
        if block.language == "toml" and name in SCRIPTED:
            continue
        if block.language == "python" and name == "docs/start.md":
            continue
        assert name in TESTED, f"{block} is executed by nobody, and does not say why"
        assert block.language != "sh", f"{block} is for a shell: list the page in SCRIPTED"


@pytest.mark.parametrize("page, test", TESTED.items())
def test_a_page_s_own_test_is_about_it(page: str, test: str) -> None:
    assert Path(page).name in (ROOT / test).read_text()


def test_links_between_pages_lead_somewhere() -> None:
    for page in pages():
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"


def test_links_to_headings_lead_to_one() -> None:
    for page in pages():
        for link, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            there = page.parent / link if link else page
            assert heading in headings(there), f"{page.relative_to(ROOT)} links to {link}#{heading}"


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in found}


def test_the_table_of_contents_has_every_page() -> None:
    contents = (ROOT / "docs/README.md").read_text()
    for page in pages():
        name = page.relative_to(ROOT / "docs") if page.is_relative_to(ROOT / "docs") else None
        if name is None or name.parts[0] == "decisions" or str(name) == "README.md":
            continue
        assert f"({name})" in contents, f"docs/README.md does not mention {name}"


@pytest.mark.parametrize("page", SCRIPTED)
def test_settings_on_a_page_are_settings(page: str, tmp_path: Path) -> None:
    for block in code(ROOT / page):
        if block.language == "toml":
            file = tmp_path / "lasthop.toml"
            file.write_text(block.text)
            assert tomllib.loads(block.text)
            load(file)


class Shell:
    """A reader with a terminal, beside a gateway."""

    def __init__(self, up: GatewayProcess, directory: Path) -> None:
        self._up = up
        self._directory = directory
        self._newest = ""
        self._going_on: list[subprocess.Popen[bytes]] = []
        tools = directory / "bin"
        tools.mkdir()
        lasthop = tools / "lasthop"
        lasthop.write_text(f'#!/bin/sh\nexec {sys.executable} -m lasthop "$@"\n')
        lasthop.chmod(0o755)
        self._environment = {
            **ENVIRONMENT,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "LASTHOP_URL": up.http,
        }

    def run(self, block: Block) -> None:
        """Every command of a block, as it stands there, must succeed."""
        for command in _commands(block.text):
            if " device run " in f" {command} " and "--read " not in command:
                self._start(self._here(command))
            else:
                self._do(self._here(command), block)

    def _do(self, command: str, block: Block) -> None:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.returncode == 0, f"{block}: {command}: {done.stderr}"
        found = _ID.findall(done.stdout)
        self._newest = found[-1] if found else self._newest

    def _start(self, command: str) -> None:
        before = self._in_contact()
        with (self._directory / "background.log").open("ab") as errors:
            self._going_on.append(
                subprocess.Popen(
                    ["bash", "-c", f"exec {command}"],
                    cwd=self._directory,
                    env=self._environment,
                    stdout=errors,
                    stderr=errors,
                )
            )
        eventually(lambda: self._in_contact() > before, f"{command} is in contact")

    def _in_contact(self) -> int:
        found = self._up.get_json("/v1/devices")["devices"]
        return sum(device["in_contact"] for device in found)

    def _here(self, command: str) -> str:
        host = self._up.http.removeprefix("http://")
        command = re.sub(r"(localhost|127\.0\.0\.1):8080", host, command)
        command = re.sub(r"\bDATA\b", str(self._up.data), command)
        command = re.sub(r"\bID\b", self._newest, command)
        if " device run " in f" {command} ":
            command += f" --url {self._up.tcp}"
        return command

    def close(self) -> None:
        for process in self._going_on:
            process.kill()
            process.wait()


def _commands(text: str) -> list[str]:
    """Lines, with what goes on in the next one while a quotation is open."""
    found: list[str] = []
    for line in text.splitlines():
        if found and (found[-1].count("'") % 2 or found[-1].endswith("\\")):
            found[-1] += "\n" + line
        elif line.strip() and not line.startswith("#"):
            found.append(re.sub(r"\s+# .*$", "", line))
    return found


@needs_shell
@pytest.mark.timeout(240)
@pytest.mark.parametrize("page", SCRIPTED)
def test_a_reader_can_do_what_the_page_says(page: str, tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "data") as up:
        desk = tmp_path / "desk"
        desk.mkdir()
        shell = Shell(up, desk)
        try:
            for block in code(ROOT / page):
                if block.language == "sh" and not block.shown:
                    shell.run(block)
                elif block.language == "python" and page == "docs/start.md":
                    _run_python(block, up, desk)
        finally:
            shell.close()


def _run_python(block: Block, up: GatewayProcess, directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block.text.replace("tcp://127.0.0.1:7300", up.tcp)],
        cwd=directory,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.stdout == "from a device\n", done.stderr
