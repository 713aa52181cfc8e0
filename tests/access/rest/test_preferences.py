"""Preferences and budgets of a device over REST."""

from __future__ import annotations

import httpx
import pytest

from tests.access.knocking import refusal
from tests.access.live import LiveInMemory

PREFERENCES = {
    "zone": "Europe/Oslo",
    "links": [{"label": "mno", "tariff": {"per_unit": 1000}, "latency": 500000}],
    "limits": [{"amount": 1, "measure": "messages", "period": "day"}],
    "quiet": [],
}


async def test_preferences_are_kept_and_shown(http: httpx.AsyncClient, live: LiveInMemory) -> None:
    live.register("phone")
    before = await http.get("/v1/devices/phone/preferences")
    assert before.json()["links"] == []
    changed = await http.put("/v1/devices/phone/preferences", json=PREFERENCES)
    assert changed.status_code == 200, changed.text
    shown = (await http.get("/v1/devices/phone/preferences")).json()
    assert shown == changed.json()
    assert shown["zone"] == "Europe/Oslo"
    assert shown["limits"][0]["amount"] == 1


async def test_budgets_show_what_is_used_and_what_waits(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    live.register("phone")
    assert (await http.get("/v1/devices/phone/budgets")).json() == {
        "device": "phone",
        "limits": [],
        "held": 0,
    }
    await http.put("/v1/devices/phone/preferences", json=PREFERENCES)
    live.connect("phone")
    for _ in range(3):
        await http.post("/v1/messages", json={"device": "phone", "body": "hello"})
    said = (await http.get("/v1/devices/phone/budgets")).json()
    (usage,) = said["limits"]
    assert (usage["used"], usage["reserved"], usage["shared"]) == (1, 0, False)
    assert usage["limit"]["period"] == "day"
    assert usage["until"].endswith("Z")
    assert said["held"] == 2


@pytest.mark.parametrize(
    "preferences, detail",
    [
        ({"zone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"limits": [{"amount": 1, "measure": "miles", "period": "day"}]}, "miles"),
        ({"likes": 1}, "likes"),
        ({"links": [{"label": "", "tariff": {}}]}, "a link needs a label"),
    ],
)
async def test_impossible_preferences_are_refused(
    http: httpx.AsyncClient, live: LiveInMemory, preferences: dict[str, object], detail: str
) -> None:
    live.register("phone")
    answer = await http.put("/v1/devices/phone/preferences", json=preferences)
    assert answer.status_code == 400, answer.text
    assert detail in answer.text


async def test_there_must_be_such_a_device(http: httpx.AsyncClient) -> None:
    for path in ("preferences", "budgets"):
        answer = await http.get(f"/v1/devices/nobody/{path}")
        assert refusal(answer) == (404, "not_found", None)


async def test_a_message_that_can_never_come_is_refused_with_what_is_to_blame(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    live.register("phone")
    always = {"quiet": [{"zone": "UTC", "start": 0, "end": 1440, "override": 5.0}]}
    await http.put("/v1/devices/phone/preferences", json=always)
    batch = [{"device": "phone", "rank": 7}, {"device": "phone", "ttl": 60}]
    refused = await http.post("/v1/messages", json=batch)
    assert refused.status_code == 422
    error = refused.json()["error"]
    assert (error["code"], error["field"]) == ("contradiction", "[1]")
    assert error["conflict"] == ["quiet hours 00:00-24:00 UTC"]
    assert error["detail"].startswith("message 1: no moment satisfies all constraints")
    assert live.store.counts().messages == 0
