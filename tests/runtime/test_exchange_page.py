"""The page about exchanges is true: its code runs as it stands, and so do its commands.

About `docs/how-to/exchange.md`.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from lasthop.device.client import Device
from lasthop.device.exchange.binding import Text
from lasthop.device.exchange.exchange import Exchange
from tests.device.gateway import until
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import GatewayProcess

PAGE = Path("docs/how-to/exchange.md")


def code() -> dict[str, Any]:
    """Everything that the page defines."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


page = code()


@pytest.mark.timeout(120)
async def test_the_code_on_the_page_runs(up: GatewayProcess, lasthop: Lasthop) -> None:
    def device(name: str) -> Device:
        return Device(up.tcp, app="default", name=name, learn_heartbeat=False)

    async with device("phone") as phone, device("shop") as shop, device("till") as till:
        for one in (phone, shop, till):
            await one.contact(timeout=30)
        assert await page["ask"](phone, shop) == ("tea is 3.50", "milk is 3.50")
        got: list[str] = []
        await page["call_back"](phone, Exchange(phone, Text()), got)
        await until(lambda: sorted(got) == ["milk is 3.50", "tea is 3.50"], timeout=30)
        assert await page["converse"](phone, shop) == "two, wrapped"
        assert await page["everyone"](phone, [shop, till]) == {"shop": "coming", "till": "coming"}
        assert await page["serve"](phone, shop) == "3.50"

        path = "/v1/services/pricing/price?timeout=20"
        status, body = await asyncio.to_thread(up.request, "POST", path, b"tea")
        assert (status, body) == (200, b"3.50")
        listed = lasthop("service", "list", "--url", up.http).out
        assert "pricing@1" in listed
        assert "What things cost" in listed
        shown = lasthop("service", "show", "pricing", "--url", up.http).out
        assert "offered by shop; 1 in contact" in shown
        assert "price" in shown
        (offer,) = lasthop("service", "show", "pricing@1", "--json", "--url", up.http).json
        assert offer["devices"] == ["shop"]
        found = lasthop("service", "list", "--operation", "price", "--json", "--url", up.http).json
        assert found == [offer]
        missing = lasthop("service", "show", "x", "--url", up.http, fails=True)
        assert "nobody offers this service" in missing.error
