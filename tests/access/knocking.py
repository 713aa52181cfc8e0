"""How tests come to the door."""

from __future__ import annotations

from typing import Any

import httpx

from lasthop.access.rest import Door


def knock(
    door: Door, *, peer: str = "127.0.0.1", token: str | None = None, app: str | None = None
) -> httpx.AsyncClient:
    """A client, by default an anonymous one on the same machine."""
    headers: dict[str, str] = {}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    if app is not None:
        headers["x-app"] = app
    transport = httpx.ASGITransport(door, client=(peer, 4321))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)


def refusal(answer: httpx.Response) -> tuple[int, str, str | None]:
    """Status, code and field of a refusal."""
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) <= {"code", "detail", "field"}
    assert error["detail"]
    return answer.status_code, error["code"], error.get("field")
