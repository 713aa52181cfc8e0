"""Every page of the dashboard in Chromium, on a gateway with a fleet; and with a keyboard only.

About `runtime/dashboard/static/`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from playwright.async_api import Browser, Page, expect

from lasthop.pipeline.summary import (
    Carried,
    ChannelSummary,
    LastHop,
    LatencySummary,
    Outcomes,
    PipelineSummary,
    Quarantined,
    SummaryTotals,
    Survival,
    Week,
)
from lasthop.policy import FORMAT, Lineage, Policies
from lasthop.policy.store import PolicyStore
from tests.runtime.dashboard.conftest import Guarded
from tests.runtime.dashboard.fleet import SURROGATE, Fleet, fleet, with_surrogate
from tests.runtime.processes import DeviceProcess, GatewayProcess, eventually

pytestmark = pytest.mark.peer

PAGES = [
    "",
    "devices",
    "topics",
    "groups",
    "services",
    "surrogates",
    "links",
    "message",
    "send",
    "policies",
    "pipeline",
]
INNER = ["device/alice-phone", "topic/offers", "group/queues/jobs", "service/pricing@1"]

SUMMARY = PipelineSummary(
    made_at=1_800_000_000_000_000,
    totals=SummaryTotals(1234, 1200, 0, 0, 5_000_000, 6, "2026-09-04", "2026-09-05"),
    outcomes=[Outcomes("2026-09-04", 600, 10, 5, 0, 2), Outcomes("2026-09-05", 600, 8, 5, 4, 0)],
    latency=[
        LatencySummary("2026-09-04", 0.1, 3.0, 900.0),
        LatencySummary("2026-09-05", 0.2, 4.0, 1000.0),
    ],
    last_hop=[LastHop("2026-09-04", 0.3, 0.02), LastHop("2026-09-05", 0.1, None)],
    read_hours=[0.1 * hour for hour in range(24)],
    calendar=[Week("wifi", 6, [0.5] * 168)],
    survival=[Survival("operator:1", [1.0, 5.0, 15.0], [1.0, 0.9, 0.2])],
    usage=[
        Carried("2026-09-04", "wifi", 4_000_000, 900, 0.0),
        Carried("2026-09-05", "wifi", 1_000_000, 100, 0.25),
    ],
    energy=[],
    channels=[
        ChannelSummary("wifi", 2, 900, 0.04, 1.1, 0.05),
        ChannelSummary("sms", 1, 4, None, None, None),
    ],
    quarantine=[Quarantined("not_json", "events-1.jsonl", 3)],
)

UNNAMED = """
() => [...document.querySelectorAll("a, button, input, select, textarea, meter, [role=img]")]
    .filter((one) => one.offsetParent !== null)
    .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim()
        || [...(one.labels ?? [])].some((label) => label.textContent.trim())))
    .map((one) => one.outerHTML)
"""
"""What somebody who hears the page would not know the name of."""


@pytest.fixture(scope="module")
def doorkeeper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the surrogate is."""
    return tmp_path_factory.mktemp("surrogate") / "doorkeeper.py"


@pytest.fixture(scope="module")
async def busy(tmp_path_factory: pytest.TempPathFactory, doorkeeper: Path) -> AsyncIterator[Fleet]:
    data = tmp_path_factory.mktemp("busy") / "data"
    with GatewayProcess(data, *with_surrogate(doorkeeper.parent)) as gateway:
        async with fleet(gateway) as made:
            yield made


async def look(page: Page, fleet: Fleet, path: str) -> None:
    """Open a page of the dashboard, and wait until it is drawn."""
    await page.goto(f"{fleet.gateway.http}/dashboard#/{path}")
    await page.locator("main h1").wait_for()
    await expect(page.locator("#status")).to_have_text("live")


async def test_throughput_and_latency_are_live(page: Page, busy: Fleet) -> None:
    await look(page, busy, "")
    accepted = page.locator("dt", has_text="accepted per second").locator("+ dd")
    await expect(accepted).to_have_text("0")
    publishing = asyncio.create_task(busy.publish(40, topic="news"))
    await expect(accepted).not_to_have_text("0")
    latency = page.locator("dt", has_text="latency").locator("+ dd")
    await expect(latency).to_have_text(re.compile(r"^[\d.,]+ ms$"))
    await expect(page.get_by_role("log", name="Events")).to_contain_text("transmitted over wifi")
    await expect(page.locator("svg path.curve.a").first).to_be_visible()
    await publishing
    await expect(page.get_by_role("table").first).to_contain_text("topic:news")


async def test_devices_show_link_session_mailbox_budgets_and_heartbeat(
    page: Page, busy: Fleet
) -> None:
    await look(page, busy, "devices")
    row = page.get_by_role("row", name=re.compile("alice-phone"))
    await expect(row).to_contain_text("wifi (ssid:home)")
    await expect(row).to_contain_text("4.5 min")
    assert (await row.locator("td").all_inner_texts())[7] == "2"
    await expect(page.get_by_role("row", name=re.compile("dave-laptop"))).to_contain_text("never")
    await page.get_by_label("Name contains").fill("carol")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("row")).to_have_count(2)
    await page.get_by_role("link", name="carol-tablet").click()
    await expect(page.locator("h1")).to_contain_text("carol-tablet")


async def test_a_device_shows_its_channels_and_what_is_left_of_its_budgets(
    page: Page, busy: Fleet
) -> None:
    await look(page, busy, "device/alice-phone")
    await expect(page.locator("main")).to_contain_text("bytes per day over mno")
    await expect(page.get_by_role("meter").last).to_be_visible()
    await look(page, busy, "device/dave-laptop")
    await expect(page.locator("h1")).to_contain_text("away")
    await expect(page.get_by_text("While you were away").first).to_be_visible()


async def test_a_device_shows_when_its_token_was_used_and_when_it_ends(
    page: Page, busy: Fleet, tmp_path: Path
) -> None:
    new = json.dumps({"name": "safe", "token_expires_in": 864_000}).encode()
    up = busy.gateway
    _, made = await asyncio.to_thread(up.request, "POST", "/v1/devices", new)
    token = f"--token={json.loads(made)['token']}"
    try:
        with DeviceProcess(up.tcp, "safe", tmp_path / "errors", token) as device:
            await asyncio.to_thread(up.push, {"device": "safe", "body": "x"})
            await asyncio.to_thread(device.line)
        await look(page, busy, "device/safe")
        await expect(page.locator("main")).to_contain_text("Token last used ")
        await expect(page.locator("main")).to_contain_text("Token expires ")
    finally:
        await asyncio.to_thread(up.request, "DELETE", "/v1/devices/safe")


async def test_a_message_tells_its_story_as_a_picture(page: Page, busy: Fleet) -> None:
    await look(page, busy, f"message/{busy.story}/alice-phone")
    drawing = page.get_by_role("img", name=re.compile("accepted: .*delivered over wifi"))
    await expect(drawing.locator("circle")).to_have_count(5)
    await expect(drawing).to_contain_text("wifi has the lowest cost")
    await page.get_by_text("Show as a table").click()
    await expect(page.get_by_role("cell", name="the application has had it")).to_be_visible()


async def test_topics_show_subscribers_and_the_ranks_of_what_waits(page: Page, busy: Fleet) -> None:
    await look(page, busy, "topics")
    await expect(page.get_by_role("row", name=re.compile("news"))).to_contain_text("What happens")
    await page.get_by_role("link", name="offers").click()
    await expect(
        page.get_by_role("img", name=re.compile("Ranks of 48 undelivered"))
    ).to_be_visible()
    assert await page.locator("svg rect.fa").count() > 5
    await expect(page.get_by_role("row", name=re.compile("door-sensor"))).to_contain_text(
        "predictive"
    )


async def test_groups_and_queues_show_who_belongs_and_what_waits(page: Page, busy: Fleet) -> None:
    await look(page, busy, "groups")
    await expect(page.get_by_role("row", name=re.compile("jobs"))).to_contain_text("To be done")
    await page.get_by_role("link", name="family").click()
    await expect(page.get_by_role("link", name="bob-phone")).to_be_visible()
    await look(page, busy, "group/queues/jobs")
    waiting = page.locator("dt", has_text="waiting").locator("+ dd")
    await expect(waiting).to_have_text("3")
    await expect(page.get_by_role("row", name=re.compile("dave-laptop"))).to_contain_text("away")


async def test_services_show_who_offers_what_and_can_be_asked(page: Page, busy: Fleet) -> None:
    await look(page, busy, "services")
    row = page.get_by_role("row", name=re.compile("pricing@1"))
    await expect(row).to_contain_text("1 of 1 in contact")
    await expect(row).to_contain_text("price, forget")
    await page.get_by_role("link", name="pricing@1").click()
    await expect(page.locator("h1")).to_contain_text("pricing@1")
    await expect(page.get_by_role("link", name="shop", exact=True)).to_be_visible()
    await expect(page.get_by_role("row", name=re.compile("forget"))).to_contain_text("no answer")
    await page.get_by_label("Operation").select_option("price")
    await page.get_by_label("Request").fill("tea")
    await page.get_by_role("button", name="Ask").click()
    await expect(page.get_by_text("tea is 3.50")).to_be_visible()


async def test_a_service_that_nobody_offers_is_said(browser: Browser, busy: Fleet) -> None:
    page = await browser.new_page()
    await look(page, busy, "service/nothing")
    await expect(page.get_by_role("alert")).to_contain_text("nobody offers this service")
    await page.close()


async def test_surrogates_show_how_they_are_and_are_loaded_anew(
    browser: Browser, busy: Fleet, doorkeeper: Path
) -> None:
    page = await browser.new_page()
    await look(page, busy, "surrogates")
    card = page.locator("section.card").filter(has_text="photos")
    await expect(card.get_by_text("ready")).to_be_visible()
    await expect(card.get_by_role("row", name=re.compile("dropped"))).to_contain_text("1")
    await expect(card.get_by_role("meter", name=re.compile("Waiting messages"))).to_be_visible()
    worker = card.locator("dt", has_text="worker").locator("+ dd")
    before = await worker.inner_text()

    def another_works() -> bool:
        now = busy.gateway.get_json("/v1/surrogates/photos")["pid"]
        return now is not None and str(now) != before

    await page.get_by_role("button", name="Reload").click()
    await expect(card.get_by_text("The surrogate was reloaded.")).to_be_visible()
    await asyncio.to_thread(eventually, another_works, "another worker has taken over")
    await page.reload()
    await expect(worker).to_have_text(re.compile(r"^\d+$"))
    await expect(worker).not_to_have_text(before)
    await asyncio.to_thread(doorkeeper.write_text, "this is no Python")
    await page.get_by_role("button", name="Reload").click()
    await expect(card.get_by_role("alert")).to_contain_text("SyntaxError")
    await asyncio.to_thread(doorkeeper.write_text, SURROGATE)
    await page.close()


async def test_without_a_surrogate_the_page_says_how_to_have_one(
    page: Page, guarded: Guarded
) -> None:
    bearer = {"Authorization": f"Bearer {guarded.admin}"}
    await page.set_extra_http_headers(bearer)
    await page.goto(f"{guarded.gateway.http}/dashboard#/surrogates")
    await expect(page.get_by_text("under [surrogates.APP]")).to_be_visible()


async def test_channels_show_latency_and_price(page: Page, busy: Fleet) -> None:
    await look(page, busy, "links")
    await expect(page.get_by_role("row", name=re.compile("mno"))).to_contain_text("0.0038")
    await expect(page.get_by_role("row", name=re.compile("wifi"))).to_contain_text(" ms")


async def test_publish_and_follow_with_nothing_but_a_keyboard(page: Page, busy: Fleet) -> None:
    await look(page, busy, "")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    for _ in range(30):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.textContent") == "Send":
            break
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("Send")
    await page.keyboard.press("Tab")
    await expect(page.get_by_label("For (device:NAME")).to_be_focused()
    await page.keyboard.type("device:alice-phone")
    await page.keyboard.press("Tab")
    await page.keyboard.type("By keyboard")
    await page.keyboard.press("Tab")
    await page.keyboard.type("No mouse was used.")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Publish")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").nth(1)).to_contain_text("delivered 1")
    assert "No mouse was used." in busy.heard
    await page.get_by_role("link", name="Its history").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_contain_text("Message")


async def test_ask_a_device_something(page: Page, busy: Fleet) -> None:
    await look(page, busy, "send/device:carol-tablet")
    await page.get_by_label("Question").fill("Are you well?")
    await page.get_by_role("button", name="Ask").click()
    await expect(page.get_by_text("Are you well? Yes: all is well.")).to_be_visible()


async def test_a_message_is_cancelled_and_another_replaced(page: Page, busy: Fleet) -> None:
    first = await busy.publish(device="dave-laptop", body="one")
    await look(page, busy, f"message/{first}")
    await page.get_by_role("button", name="Cancel the deliveries").click()
    await expect(page.get_by_text("1 deliveries cancelled; for 0 it was too late.")).to_be_visible()
    second = await busy.publish(device="dave-laptop", body="two")
    await look(page, busy, "send")
    await page.get_by_label("Message id").fill(second)
    await page.get_by_label("New text").fill("two, corrected")
    await page.get_by_role("button", name="Cancel or replace").click()
    await expect(page.get_by_text("1 replaced, 0 too late.")).to_be_visible()
    await page.get_by_label("Message id").fill(busy.story)
    await page.get_by_label("New text").fill("")
    await look(page, busy, f"message/{busy.story}")
    await expect(page.get_by_text("nothing can be cancelled or replaced")).to_be_visible()


async def test_a_mistake_is_said_where_it_was_made(browser: Browser, busy: Fleet) -> None:
    page = await browser.new_page()
    await look(page, busy, "send/device:nobody")
    await page.get_by_role("button", name="Publish").click()
    await expect(page.get_by_role("alert")).to_contain_text("no such device")
    await look(page, busy, "message/123")
    await expect(page.get_by_role("alert")).to_contain_text("a message id must have 32")
    await page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_can_be_heard_and_fits_a_phone(
    browser: Browser, busy: Fleet, scheme: str
) -> None:
    context = await browser.new_context(
        viewport={"width": 360, "height": 740},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = await context.new_page()
    shown = set()
    for path in [*PAGES, *INNER, f"message/{busy.story}/alice-phone"]:
        await look(page, busy, path)
        assert await page.evaluate(UNNAMED) == [], path
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wide) <= 0, path
        shown.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert shown == {"rgb(18, 22, 28)" if scheme == "dark" else "rgb(246, 247, 249)"}
    await context.close()


async def test_tables_and_policies_are_drawn_from_what_the_pipeline_left(
    page: Page, busy: Fleet
) -> None:
    data = busy.gateway.data
    lake = data / "lake"
    lake.mkdir()
    (lake / "summary.json").write_bytes(msgspec.json.encode(SUMMARY))
    held = {"waste_and_loss": 0.1, "live_waste_and_loss": 0.4}
    lineage = Lineage("1", SUMMARY.made_at, "2026-09-04", "2026-09-07", 2000, held)
    version = PolicyStore(data / "policies").publish(Policies(FORMAT, "draft", lineage))
    await look(page, busy, "pipeline")
    await expect(page.locator("dt", has_text="deliveries").locator("+ dd")).to_have_text("1,234")
    await expect(page.get_by_role("img", name="Deliveries by day and outcome")).to_be_visible()
    for heading in ("Latency of deliveries", "When people read", "When wifi is available"):
        await expect(page.get_by_role("heading", name=heading)).to_be_visible()
    await expect(page.get_by_text("not_json")).to_be_visible()
    await look(page, busy, "policies")
    row = page.get_by_role("row", name=re.compile(version))
    await expect(row).to_contain_text("40 %")
    await expect(row).to_contain_text("10 %")
    await expect(page.get_by_role("img", name=re.compile("Waste and loss"))).to_be_visible()
    await look(page, busy, "links")
    await expect(page.get_by_role("heading", name="Measured by the pipeline")).to_be_visible()
    measured = page.get_by_role("row", name=re.compile("wifi 2 900"))
    await expect(measured).to_contain_text("5 MB")
    await expect(measured).to_contain_text("0.25")


async def test_where_a_log_in_is_needed_it_leads_to_the_dashboard_and_out(
    page: Page, guarded: Guarded
) -> None:
    await page.goto(f"{guarded.gateway.http}/dashboard")
    await page.get_by_label("Token").fill("wrong")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_have_text("This token is unknown or was revoked.")
    await page.get_by_label("Token").fill(guarded.admin)
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text("Overview")
    assert await page.evaluate("document.cookie") == ""
    await page.get_by_role("link", name="Send").click()
    await page.get_by_label("For (device:NAME").fill("topic:news")
    await page.get_by_role("button", name="Publish").click()
    await expect(page.get_by_text("no device matches its target")).to_be_visible()
    await page.get_by_role("button", name="Log out").click()
    await expect(page.locator("h1")).to_have_text("Log in")
    await page.goto(f"{guarded.gateway.http}/dashboard")
    await expect(page.locator("h1")).to_have_text("Log in")


async def test_a_gateway_that_comes_back_is_followed_again(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    gateway = GatewayProcess(tmp_path_factory.mktemp("back") / "data")
    page = await browser.new_page()
    try:
        await page.goto(f"{gateway.http}/dashboard")
        await expect(page.locator("#status")).to_have_text("live")
        await asyncio.to_thread(gateway.kill)
        await expect(page.locator("#status")).to_have_text("not connected")
        gateway = await asyncio.to_thread(gateway.again)
        await expect(page.locator("#status")).to_have_text("live", timeout=30_000)
    finally:
        gateway.kill()
        await page.close()
