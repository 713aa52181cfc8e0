"""How tests come to the door."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from lasthop.access.direct import Request, Response, Take
from lasthop.access.rest import Door
from lasthop.access.rest.app import MESSAGES


class WayIn:
    """Publishing requests go to the door as whole requests, or by ASGI."""

    direct = False


def knock(
    door: Door, *, peer: str = "127.0.0.1", token: str | None = None, app: str | None = None
) -> httpx.AsyncClient:
    """A client, by default an anonymous one on the same machine."""
    headers: dict[str, str] = {}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    if app is not None:
        headers["x-app"] = app

    async def enter(scope: Any, receive: Any, send: Any) -> None:
        known_length = b"content-length" in dict(scope["headers"])
        plain = scope["method"] == "POST" and scope["path"] == MESSAGES and known_length
        if WayIn.direct and plain and not scope["query_string"]:
            await hand_over(door.take, scope, receive, send)
        else:
            await door(scope, receive, send)

    transport = httpx.ASGITransport(enter, client=(peer, 4321))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)


async def hand_over(
    take: Take, scope: Any, receive: Any, send: Any, *, certificate: str | None = None
) -> None:
    """Let a request of ASGI be taken as a whole."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    request = Request(dict(scope["headers"]), body, scope["client"][0], certificate)
    take(request, answer.set_result)
    response = await answer
    kind = (b"content-type", response.content_type)
    start = {"type": "http.response.start", "status": response.status}
    await send({**start, "headers": [kind, *response.headers]})
    await send({"type": "http.response.body", "body": response.body})


def refusal(answer: httpx.Response) -> tuple[int, str, str | None]:
    """Status, code and field of a refusal, in the form of REST or of ntfy."""
    told: dict[str, Any] = answer.json()
    if isinstance(told["error"], str):
        assert set(told) <= {"code", "http", "error", "problem", "field"}
        assert told["http"] == answer.status_code == told["code"] // 100, told
        return answer.status_code, told["problem"], told.get("field")
    error: dict[str, Any] = told["error"]
    assert set(error) <= {"code", "detail", "field"}
    assert error["detail"]
    return answer.status_code, error["code"], error.get("field")


def detail(answer: httpx.Response) -> str:
    """What a refusal says to people."""
    error: Any = answer.json()["error"]
    return str(error if isinstance(error, str) else error["detail"])
