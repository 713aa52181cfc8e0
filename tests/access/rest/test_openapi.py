"""The door does what its description says, and says no to the rest."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from lasthop.access.rest import Door, RestSettings, make_app
from lasthop.access.rest.operations import EXPLAIN, OPERATIONS
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory


class FromHere:
    """Puts a caller on this machine in front of the door."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def __call__(self, connection: Any, receive: Any, send: Any) -> None:
        if connection["type"] == "http":
            headers = [(n, v) for n, v in connection["headers"] if n not in {b"host", b"x-app"}]
            connection["headers"] = [(b"host", b"localhost"), *headers]
            connection["client"] = ("127.0.0.1", 1)
        await self._door(connection, receive, send)


def busy_door() -> Door:
    async def explain(key: int, device: int) -> object:
        return []

    async def erase(device: int) -> None:
        pass

    live = LiveInMemory(patient=False)
    live.register("phone", "news")
    return make_app(live, RestSettings(open_house=True), explain=explain, erase=erase)


@schemathesis.serializer("application/x-ndjson")
def lines(_: Any, text: Any) -> bytes:
    return str(text).encode("utf-8", "surrogateescape")


schema = schemathesis.openapi.from_asgi("/openapi.json", FromHere(busy_door()))


@schema.parametrize()
@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_keeps_to_its_description(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ]
    )


async def test_the_document_has_every_operation_and_every_reference_leads_somewhere() -> None:
    async with knock(busy_door()) as http:
        document = (await http.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    operations = {
        (method.upper(), path) for path, item in document["paths"].items() for method in item
    }
    assert operations == {(o.method, o.path) for o in (*OPERATIONS, EXPLAIN)}
    ids = [o["operationId"] for item in document["paths"].values() for o in item.values()]
    assert len(ids) == len(set(ids))
    for reference in re.findall(r'"\$ref":\s*"#/([^"]+)"', httpx.Response(200, json=document).text):
        found: Any = document
        for part in reference.split("/"):
            found = found[part]


async def test_the_human_page_needs_nothing_from_elsewhere(http: httpx.AsyncClient) -> None:
    answer = await http.get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    sources: list[str] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            sources.extend(value or "" for name, value in attrs if name in {"src", "href"})

    Links().feed(answer.text)
    assert set(sources) == {"openapi.json"}
    assert "prefers-color-scheme: dark" in answer.text
    assert (await http.get("/", follow_redirects=True)).url.path == "/docs"


@pytest.mark.parametrize(
    "method, path, status, code",
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1/messages", 405, "method_not_allowed"),
        ("PATCH", "/v1/devices", 405, "method_not_allowed"),
        ("GET", "/health", 404, "not_found"),
        ("DELETE", "/docs", 405, "method_not_allowed"),
    ],
)
async def test_what_is_not_there_is_refused_in_the_same_shape(
    http: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    answer = await http.request(method, path)
    assert refusal(answer) == (status, code, None)
    if status == 405:
        assert answer.headers["allow"]


async def test_a_failure_of_ours_shows_nothing_of_its_cause(live: LiveInMemory) -> None:
    async def explain(key: int, device: int) -> object:
        raise RuntimeError("private")

    live.register("phone")
    door = make_app(live, RestSettings(open_house=True), explain=explain)
    async with knock(door) as http:
        id_ = (await http.post("/v1/messages", json={"device": "phone"})).json()["id"]
        answer = await http.get(f"/v1/messages/{id_}/explain?device=phone")
    assert refusal(answer) == (500, "internal", None)
    assert "private" not in answer.text
    assert door.refused == {"internal": 1}


async def test_an_error_repeats_only_so_much_of_what_it_was_given(
    http: httpx.AsyncClient,
) -> None:
    answer = await http.get(f"/v1/messages/{'x' * 5000}")
    assert len(answer.json()["error"]["detail"]) <= 501
