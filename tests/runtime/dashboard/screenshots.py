"""Makes the pictures of the pages in docs/images, from a real gateway with a real fleet.

    scripts/screenshots [DIRECTORY]

The policies and the tables are those that `lasthop pipeline` makes of the log of a rehearsed fleet,
which takes minutes: a directory keeps them for the next time.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Page, async_playwright

from lasthop.simulation.fleet.log import write_log
from tests.runtime.dashboard.conftest import ARGUMENTS, NAMES
from tests.runtime.dashboard.fleet import Fleet, fleet, with_surrogate
from tests.runtime.processes import ENVIRONMENT, LASTHOP, GatewayProcess

OUT = Path("docs/images")

WIDTH, HEIGHT = 1100, 820

SECONDS = 24
"""Of traffic before the first picture."""


def learn(data: Path) -> None:
    """Tables and a policy from a week of sixteen devices, if they are not there yet."""
    log = data.with_name("rehearsed")
    if (data / "policies").exists():
        return
    write_log(log, devices=16, days=7, seed=3)
    where = ["--log", str(log), "--data", str(data), "--master", "local[2]"]
    quick = ["--conf", "spark.sql.shuffle.partitions=4"]
    for command in ("run", "learn"):
        subprocess.run([*LASTHOP, "pipeline", command, *where, *quick], env=ENVIRONMENT, check=True)


async def traffic(fleet: Fleet) -> None:
    """Until it is cancelled."""
    n = 0
    while True:
        n += 1
        await fleet.publish(1 + n % 4, topic="news", title="News")
        await asyncio.sleep(0.2)


async def take(page: Page, url: str, name: str, *, height: int = HEIGHT) -> None:
    """One picture."""
    await page.set_viewport_size({"width": WIDTH, "height": height})
    await page.goto(url)
    await page.locator("main h1:visible, main h2:visible").first.wait_for()
    await asyncio.sleep(1.2)
    await page.screenshot(path=OUT / f"{name}.png")


async def pictures(gateway: GatewayProcess, page: Page, fleet: Fleet) -> None:
    """All of them."""
    home = f"{gateway.http}/dashboard"
    await take(page, f"{gateway.http}/device", "device-page", height=560)
    await page.get_by_role("button", name="Push to this page").click()
    await page.get_by_text("Push number 1").wait_for()
    name = await page.locator("#name").inner_text()
    await fleet.publish(device=name, title="A question", body="Are you there?", reply_within="5m")
    await page.get_by_label("The sender waits for an answer").fill("I am.")
    await page.screenshot(path=OUT / "device-page.png")
    await page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    await page.goto(home)
    busy = asyncio.create_task(traffic(fleet))
    await asyncio.sleep(SECONDS)
    await page.screenshot(path=OUT / "dashboard-overview.png")
    busy.cancel()
    for path, height in {
        "devices": 460,
        "groups": 480,
        "services": 340,
        "service/pricing@1": 760,
        "surrogates": 690,
        "device/alice-phone": 820,
        "topic/offers": 620,
        "links": 640,
        "send": 800,
        "policies": 640,
        "pipeline": 1500,
    }.items():
        await take(page, f"{home}#/{path}", f"dashboard-{path.partition('/')[0]}", height=height)
    await take(page, f"{home}#/message/{fleet.story}", "dashboard-message", height=760)
    await page.emulate_media(color_scheme="dark")
    await take(page, f"{home}#/message/{fleet.story}", "dashboard-dark", height=760)


async def main() -> None:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise SystemExit("screenshots need chromium")
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(sys.argv[1] if len(sys.argv) > 1 else folder) / "learned"
        learn(kept)
        data = Path(folder) / "data"
        for part in ("lake", "policies"):
            shutil.copytree(kept / part, data / part)
        with GatewayProcess(data, *with_surrogate(Path(folder) / "surrogate")) as gateway:
            async with fleet(gateway) as made, async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
                page = await browser.new_page()
                await pictures(gateway, page, made)
                await browser.close()


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    asyncio.run(main())
