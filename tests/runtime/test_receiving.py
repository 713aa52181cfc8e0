"""A real gateway, and listeners of topics as anybody may write them: a WebSocket client and lines
of HTTP; about `access/receive/receive_door.py`."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.runtime.processes import DEADLINE, GatewayProcess

THROUGH_A_PROXY = {"X-Forwarded-For": "203.0.113.5"}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("receiving") / "data") as process:
        yield process


def test_a_websocket_gets_what_is_remembered_and_what_is_new(up: GatewayProcess) -> None:
    up.request("POST", "/news", b"one")
    address = up.http.replace("http://", "ws://")
    with connect(f"{address}/news/ws?last=1&wierd=1") as listener:
        opened = json.loads(listener.recv(DEADLINE))
        assert (opened["event"], opened["ignored"]) == ("open", ["wierd"])
        assert json.loads(listener.recv(DEADLINE))["message"] == "one"
        up.request("POST", "/news", b"x" * 3000)
        assert json.loads(listener.recv(DEADLINE))["message"] == "x" * 3000
        listener.send("x" * 100)  # A listener only listens.
        with pytest.raises(ConnectionClosed) as closed:
            listener.recv(DEADLINE)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason[:6]) == (1000, "since=")


@pytest.mark.parametrize(
    "path, headers, status",
    [
        ("/news/ws", THROUGH_A_PROXY, 401),
        ("/news/ws?as=me", {}, 400),
        ("/news/ws?since=never", {}, 400),
        ("/a%20b/ws", {}, 400),
        ("/v1/ws", {}, 403),
        ("/nowhere", {}, 403),
    ],
)
def test_a_handshake_is_refused(
    up: GatewayProcess, path: str, headers: dict[str, str], status: int
) -> None:
    address = up.http.replace("http://", "ws://")
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(address + path, additional_headers=headers),
    ):
        pass
    assert refused.value.response.status_code == status


def test_lines_come_as_they_are_published(up: GatewayProcess) -> None:
    connection = http.client.HTTPConnection(up.http.removeprefix("http://"), timeout=DEADLINE)
    try:
        connection.request("GET", "/alpha,beta/json")
        lines = connection.getresponse()
        assert json.loads(lines.readline())["topic"] == "alpha,beta"
        for topic in ("alpha", "beta", "alpha"):
            up.request("POST", f"/{topic}", b"text")
            assert json.loads(lines.readline())["topic"] == topic
    finally:
        connection.close()


def test_a_gateway_that_stops_ends_its_listeners(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "data") as up:
        connection = http.client.HTTPConnection(up.http.removeprefix("http://"), timeout=DEADLINE)
        connection.request("GET", "/news/json")
        lines = connection.getresponse()
        assert json.loads(lines.readline())["event"] == "open"
        assert up.terminate() == 0
        connection.close()
