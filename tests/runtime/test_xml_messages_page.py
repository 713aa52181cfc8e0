"""The page about XML messages is true: its code runs as it stands.

About `docs/how-to/xml-messages.md`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lasthop.device.client import Device
from tests.device.gateway import until
from tests.runtime.processes import GatewayProcess

PAGE = Path("docs/how-to/xml-messages.md")


def code() -> dict[str, Any]:
    """Everything that the page defines."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


page = code()


@pytest.mark.timeout(120)
async def test_the_code_on_the_page_runs(up: GatewayProcess) -> None:
    plain, known = page["sizes"]()
    assert known < plain / 8
    phone = Device(up.tcp, app="default", name="phone", learn_heartbeat=False)
    shop = Device(up.tcp, app="default", name="shop", learn_heartbeat=False)
    async with phone, shop:
        await shop.contact(timeout=30)
        assert await page["ask"](phone, shop) == (Decimal("3.50"), "only tea is sold here")
        got: list[str] = []
        await page["follow"](phone, shop, got)
        await until(lambda: bool(got), timeout=30)
        assert [">9<" in text for text in got] == [True]
