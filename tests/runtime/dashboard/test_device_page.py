"""The page that is a device, in Chromium, with real gateways that are killed under it.

About `runtime/dashboard/static/` and `sdk/javascript/src/`.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.runtime.dashboard.conftest import Guarded
from tests.runtime.processes import GatewayProcess, eventually

pytestmark = pytest.mark.peer

DOCS = Path("docs/how-to/javascript.md").read_text()

TEN_SECONDS = 10_000
PATIENCE = 60_000


async def connected(page: Page, gateway: GatewayProcess) -> str:
    """Open the page; returns the name of the device that it is."""
    await page.goto(f"{gateway.http}/device")
    await expect(page.locator("#status")).to_have_text("connected", timeout=PATIENCE)
    return await page.locator("#name").inner_text()


async def texts(page: Page) -> list[str]:
    """What it shows, the oldest first."""
    found = await page.locator("#messages > li > p:not(.soft)").all_inner_texts()
    return found[::-1]


async def push(gateway: GatewayProcess, name: str, text: str, **more: object) -> str:
    return await asyncio.to_thread(gateway.push, {"device": name, "body": text, **more})


async def test_a_newcomer_sees_a_push_arrive_in_ten_seconds(page: Page, up: GatewayProcess) -> None:
    page.set_default_timeout(TEN_SECONDS)
    async with asyncio.timeout(TEN_SECONDS / 1000):
        await page.goto(f"{up.http}/")
        await page.get_by_role("link", name="Open a device here").click()
        await page.get_by_role("button", name="Push to this page").click()
        await page.get_by_text("Push number 1, there and back.").wait_for()


async def test_before_there_is_contact_there_is_nothing_to_press(
    page: Page, up: GatewayProcess
) -> None:
    await page.route("**/sdk/index.js", lambda route: route.abort())
    await page.goto(f"{up.http}/device")
    await expect(page.get_by_role("heading", name="Messages")).to_be_hidden()
    await expect(page.get_by_role("button", name="Push to this page")).to_be_hidden()
    await expect(page.get_by_label("Token")).to_be_hidden()


async def test_the_line_to_copy_works_as_it_stands(page: Page, up: GatewayProcess) -> None:
    await connected(page, up)
    line = await page.locator("#curl").inner_text()
    shell = await asyncio.create_subprocess_shell(
        line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    answer, _ = await shell.communicate()
    assert len(json.loads(answer)["id"]) == 32
    await page.get_by_text("from the terminal", exact=True).wait_for()


async def test_it_answers_who_asks(page: Page, up: GatewayProcess) -> None:
    name = await connected(page, up)
    identity = await push(up, name, "Are you there?", reply_within="60s")
    await page.get_by_label("The sender waits for an answer").fill("I am")
    await page.keyboard.press("Enter")
    status, answer = await asyncio.to_thread(
        up.request, "GET", f"/v1/messages/{identity}/reply?timeout=30"
    )
    assert (status, answer) == (200, b"I am")


async def test_the_example_for_pages_of_your_own_works(page: Page, up: GatewayProcess) -> None:
    (example,) = re.findall(r"```html\n(.*?)```", DOCS, re.DOTALL)
    (script,) = re.findall(r"<script type=\"module\">(.*?)</script>", example, re.DOTALL)
    # A page of somebody else's server has no policy of the gateway's.
    session = await page.context.new_cdp_session(page)
    await session.send("Page.setBypassCSP", {"enabled": True})
    await page.goto(f"{up.http}/health")
    await page.add_script_tag(content=script, type="module")

    def there() -> bool:
        devices = up.get_json("/v1/devices")["devices"]
        return any(one["name"] == "page" and one["in_contact"] for one in devices)

    await asyncio.to_thread(eventually, there, "the page is in contact")
    await push(up, "page", "hello, page")
    await page.get_by_text("hello, page").wait_for()


async def test_it_subscribes_to_a_topic(page: Page, up: GatewayProcess) -> None:
    await connected(page, up)
    await page.get_by_label("Subscribe to").fill("weather")
    await page.keyboard.press("Enter")
    await expect(page.locator("#topics")).to_contain_text("weather")
    await asyncio.to_thread(up.push, {"topic": "weather", "body": "sunny"})
    await page.get_by_text("sunny", exact=True).wait_for()


async def test_what_came_while_it_was_closed_is_there_and_nothing_comes_twice(
    page: Page, up: GatewayProcess
) -> None:
    name = await connected(page, up)
    await push(up, name, "first")
    await page.get_by_text("first", exact=True).wait_for()
    await page.goto("about:blank")
    await push(up, name, "second")
    assert await connected(page, up) == name
    await push(up, name, "third")
    await page.get_by_text("third", exact=True).wait_for()
    assert await texts(page) == ["second", "third"]


async def test_two_pages_are_not_one_device(page: Page, up: GatewayProcess) -> None:
    await connected(page, up)
    other = await page.context.new_page()
    await other.goto(f"{up.http}/device")
    await expect(other.locator("#problem")).to_have_text("this device is open in another page")
    await expect(page.locator("#status")).to_have_text("connected")


async def test_text_of_a_message_is_never_more_than_text(page: Page, up: GatewayProcess) -> None:
    name = await connected(page, up)
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    await push(up, name, hostile, title=hostile)
    await page.get_by_text(hostile).last.wait_for()
    assert await page.locator("#messages img, #messages script").count() == 0


async def test_exactly_once_and_in_order_over_kills_of_the_gateway(
    page: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    gateway = GatewayProcess(tmp_path_factory.mktemp("killed") / "data")
    try:
        name = await connected(page, gateway)
        sent: list[str] = []
        for life in range(3):
            for n in range(15):
                sent.append(f"{life}.{n}")
                await push(gateway, name, sent[-1])
            await asyncio.to_thread(gateway.kill)
            gateway = await asyncio.to_thread(gateway.again)
            await page.evaluate("dispatchEvent(new Event('online'))")
        await page.get_by_text(sent[-1], exact=True).wait_for(timeout=PATIENCE)
        assert await texts(page) == sent
        assert await page.get_by_text("redelivered: this page").count() == 0
    finally:
        gateway.kill()


async def test_what_it_sends_survives_a_gateway_that_is_away(
    page: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    gateway = GatewayProcess(tmp_path_factory.mktemp("away") / "data")
    try:
        await connected(page, gateway)
        await asyncio.to_thread(gateway.kill)
        await expect(page.locator("#status")).to_contain_text("not connected", timeout=PATIENCE)
        for _ in range(3):
            await page.get_by_role("button", name="Push to this page").click()
        gateway = await asyncio.to_thread(gateway.again)
        await page.evaluate("dispatchEvent(new Event('online'))")
        await page.get_by_text("Push number 3").wait_for(timeout=PATIENCE)
        assert await texts(page) == [f"Push number {n}, there and back." for n in (1, 2, 3)]
    finally:
        gateway.kill()


async def test_a_gateway_that_knows_its_devices_asks_for_a_token(
    page: Page, guarded: Guarded
) -> None:
    up = guarded.gateway
    status, body = await asyncio.to_thread(
        up.request,
        "POST",
        "/v1/devices",
        b'{"name":"kiosk"}',
        Authorization=f"Bearer {guarded.admin}",
    )
    assert status == 201
    await page.goto(f"{up.http}/device")
    await page.get_by_label("Name", exact=True).fill("kiosk")
    await page.get_by_label("Token").fill("not the token")
    await page.get_by_role("button", name="Connect").click()
    await expect(page.locator("#status")).to_have_text("refused")
    await page.get_by_label("Token").fill(json.loads(body)["token"])
    await page.get_by_role("button", name="Connect").click()
    await expect(page.locator("#status")).to_have_text("connected")
    await page.get_by_role("button", name="Push to this page").click()
    await page.get_by_text("Push number 1").wait_for()
