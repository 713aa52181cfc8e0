"""A real browser, and gateways for it to look at: an open one, and one that asks who is there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest
from playwright.async_api import Browser, Page, async_playwright

from tests.groups import claim_group
from tests.runtime.processes import ENVIRONMENT, LASTHOP, GatewayProcess

NAMES = ("chromium", "chromium-browser", "google-chrome")

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def browser_path() -> str:
    """Where Chromium is; without it the test is skipped, or fails where nothing may be missing."""
    for name in NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    if os.environ.get("CI") == "true":
        pytest.fail("not installed: chromium")
    pytest.skip("not installed: chromium")


@pytest.fixture(scope="session")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """Chromium, for all tests."""
    claim_group("browser", tmp_path_factory)
    path = browser_path()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page in a browser without a past. Its scripts must not complain about anything but a
    gateway that is away."""
    context = await browser.new_context(viewport={"width": 1200, "height": 800})
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda said: (
            complaints.append(said.text)
            if said.type == "error" and "net::ERR" not in said.text and "WebSocket" not in said.text
            else None
        ),
    )
    yield page
    await context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that lets everyone on this machine in."""
    with GatewayProcess(tmp_path_factory.mktemp("up") / "data") as process:
        yield process


@dataclass(frozen=True)
class Guarded:
    """A gateway that asks for credentials, and some that it knows."""

    gateway: GatewayProcess
    admin: str
    publisher: str


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A gateway that lets nobody in without a token."""
    folder = tmp_path_factory.mktemp("guarded")
    config = folder / "lasthop.toml"
    config.write_text('[access]\nanonymous = "never"\n')
    data = folder / "data"
    command = [*LASTHOP, "credential", "add", "root", "--scope", "admin", "--json"]
    done = subprocess.run(
        [*command, "--data", str(data)], capture_output=True, env=ENVIRONMENT, check=True
    )
    admin = json.loads(done.stdout)["token"]
    with GatewayProcess(data, "--config", str(config)) as process:
        new = b'{"name":"shop","scopes":["publish"]}'
        bearer = f"Bearer {admin}"
        status, body = process.request("POST", "/v1/credentials", new, Authorization=bearer)
        assert status == 201
        yield Guarded(process, admin, json.loads(body)["token"])
