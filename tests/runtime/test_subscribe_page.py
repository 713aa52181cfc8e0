"""The page about ranked topics is true: its code runs as it stands.

About `docs/how-to/subscribe.md`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lasthop.device.client import Device
from tests.runtime.processes import GatewayProcess

PAGE = Path("docs/how-to/subscribe.md")


def code() -> dict[str, Any]:
    """Everything that the page defines."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


@pytest.mark.timeout(120)
async def test_the_code_on_the_page_runs(
    up: GatewayProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = code_in_repository
    assert await page["main"](up.tcp) == []
    for rank in (2, 5, 4):
        up.push({"topic": "news", "body": f"n{rank}", "rank": rank})
    assert await page["main"](up.tcp) == ["n5", "n4"]
    async with Device(up.tcp, app="default", name="phone", inbox="phone.inbox") as device:
        page["watch"](device, {})
        await page["more"](device)
        await device.contact(timeout=30)
    listed = up.get_json("/v1/devices/phone/subscriptions")["subscriptions"]
    assert [row["topic"] for row in listed] == ["news", "papers", "photos", "traffic"]


code_in_repository = code()
