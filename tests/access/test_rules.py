"""Rules over REST: added, listed, tried out and removed by administrators.

About `access/rest/rules.py`.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from lasthop.access.rest import Door, RestSettings, make_app
from lasthop.core.rights.rule import AccessRule, Verb
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory

NEWS: dict[str, Any] = {"who": ["device:*"], "allow": ["subscribe"], "on": ["topic:news.#"]}


@pytest.fixture
def http(live: LiveInMemory) -> httpx.AsyncClient:
    door: Door = make_app(live, RestSettings(open_house=True))
    return knock(door)


async def test_a_rule_is_added_listed_and_removed(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    rule = {"name": "news", "app": "default", "deny": [], **NEWS}
    assert (await http.put("/v1/rules/news", json=NEWS)).json() == rule
    assert (await http.get("/v1/rules")).json() == {"rules": [rule]}
    assert (await http.get("/v1/rules", headers={"x-app": "other"})).json() == {"rules": []}
    assert (await http.delete("/v1/rules/news")).json() == rule
    assert (await http.get("/v1/rules")).json() == {"rules": []}
    assert refusal(await http.delete("/v1/rules/news")) == (404, "not_found", None)


async def test_rules_of_the_configuration_are_shown_and_not_changed(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    rule = AccessRule(name="fixed", app="default", who=("*",), deny=(Verb.SEND,))
    live.gateway.rules._configured["default", "fixed"] = rule
    (shown,) = (await http.get("/v1/rules")).json()["rules"]
    assert shown["configured"] is True
    assert refusal(await http.put("/v1/rules/fixed", json=NEWS)) == (409, "conflict", None)
    assert refusal(await http.delete("/v1/rules/fixed")) == (409, "conflict", None)


@pytest.mark.parametrize(
    "change, part",
    [
        ({"who": []}, "who"),
        ({"who": ["phone"]}, "a rule is for"),
        ({"on": ["news"]}, "a rule is on"),
        ({"allow": []}, "a rule allows or denies something"),
        ({"allow": ["shout"]}, "shout"),
        ({"more": 1}, "more"),
    ],
)
async def test_a_wrong_rule_is_refused_in_one_line(
    http: httpx.AsyncClient, change: dict[str, Any], part: str
) -> None:
    answer = await http.put("/v1/rules/news", json=NEWS | change)
    assert answer.status_code == 400
    assert part in answer.json()["error"]["detail"]
    assert (await http.get("/v1/rules")).json() == {"rules": []}


async def test_whoever_asks_is_told_which_rule_decides(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    live.register("phone")
    await http.put("/v1/rules/quiet", json={"who": ["*"], "deny": ["send"], "on": ["user:*"]})
    asked = {"who": "device:phone", "verb": "send", "on": "user:anna"}
    assert (await http.get("/v1/rights", params=asked)).json() == {
        "allowed": False,
        "rule": "quiet",
        "reason": "the rule quiet denies send on user:*",
    }
    free = await http.get("/v1/rights", params=asked | {"on": "device:phone"})
    assert free.json()["allowed"] is True
    unknown = await http.get("/v1/rights", params=asked | {"who": "device:nobody"})
    assert refusal(unknown) == (404, "not_found", None)
    assert (await http.get("/v1/rights", params=asked | {"on": "anna"})).status_code == 400
    assert (await http.get("/v1/rights", params=asked | {"who": "anna"})).status_code == 400


async def test_a_publisher_is_told_the_rule_that_denies(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    live.register("phone")
    await http.put("/v1/rules/no", json={"who": ["*"], "deny": ["send"], "on": ["device:phone"]})
    answer = await http.post("/v1/messages", json={"device": "phone", "body": "x"})
    assert refusal(answer) == (403, "no_right", None)
    assert "the rule no denies send on device:phone" in answer.json()["error"]["detail"]


async def test_users_are_shown_with_their_devices_and_rules(
    http: httpx.AsyncClient, live: LiveInMemory
) -> None:
    for name in ("phone", "tablet"):
        await http.post("/v1/devices", json={"name": name, "user": "anna"})
    await http.post("/v1/devices", json={"name": "watch"})
    await http.put("/v1/rules/hers", json=NEWS | {"who": ["user:anna"]})
    anna = {"name": "anna", "devices": ["phone", "tablet"], "rules": ["hers"]}
    assert (await http.get("/v1/users")).json() == {"users": [anna]}
    assert (await http.get("/v1/users/anna")).json() == anna
    assert refusal(await http.get("/v1/users/bert")) == (404, "not_found", None)
