"""A gateway as users run it, and what anybody may do to its HTTP port without a credential.

About `runtime/guard.py` and `runtime/front.py`.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.runtime.conftest import Lasthop
from tests.runtime.processes import DEADLINE, GatewayProcess, eventually

MUCH = 50_000_000
UPGRADE = (
    b"GET /hop HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def call(up: GatewayProcess) -> socket.socket:
    host, _, port = up.http.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=DEADLINE)


def memory(up: GatewayProcess) -> int:
    """Bytes of the gateway that are in memory."""
    return int(Path(f"/proc/{up.pid}/statm").read_text().split()[1]) * 4096


def answer(up: GatewayProcess, start: bytes, more: bytes = b"", much: int = 0) -> bytes:
    """What comes back when `more` is sent after `start`, again and again, until the gateway has
    enough."""
    with call(up) as connection:
        with suppress(ConnectionError):
            connection.sendall(start)
            for _ in range(0, much, 100_000):
                connection.sendall(more * (100_000 // len(more)))
        heard = b""
        with suppress(ConnectionError):
            while piece := connection.recv(65536):
                heard += piece
        return heard


@pytest.mark.parametrize(
    "start, more, status",
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n", b"a:b\r\n", b"431"),
        (b"POST /v1/messages HTTP/1.1\r\nHost: x\r\n", b"a:b\r\n", b"431"),
        (b"GET /hop HTTP/1.1\r\nUpgrade: websocket\r\n", b"a:b\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nA: ", b"x", b"431"),
        (b"GET /", b"x", b"414"),
    ],
)
def test_what_has_no_end_takes_no_memory(
    up: GatewayProcess, start: bytes, more: bytes, status: bytes
) -> None:
    up.get_json("/v1/devices")
    before = memory(up)
    heard = answer(up, start, more, MUCH)
    assert memory(up) - before < 8_000_000
    assert heard.startswith(b"HTTP/1.1 " + status), heard[:100]


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /v1/messages HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /v1/devices HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: b\r\n\r\n",
        UPGRADE,
    ],
)
def test_two_hosts_are_one_too_many(up: GatewayProcess, request_: bytes) -> None:
    heard = answer(up, request_)
    assert heard.startswith(b"HTTP/1.1 400 "), heard
    assert json.loads(heard.partition(b"\r\n\r\n")[2])["error"]["field"] == "Host"


def test_refusals_are_counted(up: GatewayProcess) -> None:
    answer(up, b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b'lasthop_http_errors_total{code="target_too_long"}' in up.request("GET", "/metrics")[1]


@pytest.fixture
def small(tmp_path: Path, lasthop: Lasthop) -> Iterator[tuple[GatewayProcess, str]]:
    """A gateway with four connections, and an administrator's token."""
    config = tmp_path / "lasthop.toml"
    config.write_text('[http]\nconnections = 4\n[access]\nanonymous = "never"\n')
    data = tmp_path / "data"
    added = lasthop("credential", "add", "root", "--scope", "admin", "--data", str(data), "--json")
    with GatewayProcess(data, "--config", str(config)) as process:
        yield process, added.json["token"]


def test_a_crowd_leaves_room_for_health_and_administrators(
    small: tuple[GatewayProcess, str],
) -> None:
    up, token = small
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(call(up))
        began = time.monotonic()
        for path in ("/health", "/ready", "/metrics"):
            assert up.request("GET", path)[0] == 200
        status, body = up.request("GET", "/v1/devices", Authorization=f"Bearer {token}")
        assert (status, json.loads(body)) == (200, {"devices": []})
        for headers in ({}, {"Authorization": "Bearer nobody"}):
            status, body = up.request("POST", "/v1/messages", b"{}", **headers)
            assert (status, json.loads(body)["error"]["code"]) == (503, "overloaded")
        open_ = int(up.request("GET", "/metrics")[1].split(b"\nlasthop_http_connections ")[1][:2])
        assert open_ <= 4 + 64
        assert time.monotonic() - began < 25, "or the crowd has been let go"
    eventually(lambda: up.request("GET", "/v1/devices")[0] == 401, "there is room again")
