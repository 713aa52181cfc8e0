"""The configurations of docs/how-to/reverse-proxy.md, in real proxies before a gateway.

About `docs/how-to/reverse-proxy.md` and `runtime/proxies.py`.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.requests.bodies import UnitsToSend, unpack
from tests.docs.blocks import ROOT, blocks
from tests.runtime.processes import DEADLINE, DeviceProcess, GatewayProcess, eventually
from tests.runtime.test_doors import WELCOME, hello
from tests.runtime.test_proxies import result_notifier
from tests.transport.certificates import Authority

pytestmark = pytest.mark.peer

PAGE = ROOT / "docs/how-to/reverse-proxy.md"
WHOLE = {block.language: block.text for block in blocks(PAGE)}

NGINX = """daemon off;
pid {directory}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    include {directory}/lasthop.conf;
}}
"""
"""What a distribution's own nginx.conf would say."""

PUBLIC = "gateway.example"
KINDS = ("nginx", "haproxy")


def program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed: scripts/system-packages peers")
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@dataclass(frozen=True)
class Answer:
    """An answer that was read to its end."""

    response: http.client.HTTPResponse
    body: bytes

    @property
    def status(self) -> int:
        return self.response.status


@dataclass(frozen=True)
class Proxy:
    """A running proxy, and the authority that has signed its certificate."""

    port: int
    tls: ssl.SSLContext
    authority: Path

    def connection(self, source: str = "") -> http.client.HTTPSConnection:
        """A new connection, from this address."""
        return http.client.HTTPSConnection(
            "localhost",
            self.port,
            context=self.tls,
            timeout=DEADLINE,
            source_address=(source, 0) if source else None,
        )

    def ask(
        self, method: str, path: str, body: bytes = b"", *, source: str = "", **headers: Any
    ) -> Answer:
        """One request on a connection of its own."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(self.connection(source)) as connection:
            connection.request(method, path, body, named)
            response = connection.getresponse()
            return Answer(response, response.read())


@contextmanager
def proxy(kind: str, backend: str, directory: Path) -> Iterator[Proxy]:
    """The proxy of the page before `backend` (an address with a port)."""
    name, port = program(kind), free_port()
    authority = Authority(directory)
    both = authority._chain.read_text() + authority._key.read_text()
    for file, text in {
        "cert.pem": authority._chain.read_text(),
        "key.pem": authority._key.read_text(),
        "both.pem": both,
    }.items():
        (directory / file).write_text(text)
    text = WHOLE[kind].replace("/etc/lasthop/", f"{directory}/")
    text = text.replace("listen 443 ", f"listen 127.0.0.1:{port} ")
    text = text.replace("bind :443 ", f"bind 127.0.0.1:{port} ")
    assert "127.0.0.1:8080" in text
    (directory / "lasthop.conf").write_text(text.replace("127.0.0.1:8080", backend))
    main = directory / "nginx.conf"
    main.write_text(NGINX.format(directory=directory))
    command = {
        "nginx": [name, "-e", "stderr", "-p", str(directory), "-c", str(main)],
        "haproxy": [name, "-db", "-f", str(directory / "lasthop.conf")],
    }[kind]
    with (directory / "proxy.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        eventually(lambda: listens(port, process), f"{kind} listens")
        yield Proxy(port, authority.client(), authority.certificate)
    finally:
        process.terminate()
        process.wait(DEADLINE)


def listens(port: int, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the proxy has ended"
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module", params=KINDS)
def before(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Proxy, GatewayProcess]]:
    """The proxy before an open gateway, which tells strangers from processes of this machine."""
    directory = tmp_path_factory.mktemp(str(request.param))
    config = directory / "lasthop.toml"
    config.write_text(WHOLE["toml"].replace('anonymous = "never"', 'anonymous = "loopback"'))
    with (
        GatewayProcess(directory / "data", "--config", str(config)) as up,
        proxy(request.param, up.http.removeprefix("http://"), directory) as found,
    ):
        yield found, up


Before = tuple[Proxy, GatewayProcess]


def test_rest_passes_with_its_callers(before: Before) -> None:
    proxy, up = before
    message = json.dumps({"topic": "news", "body": "x" * 100_000}).encode()
    # A process of this machine, through a proxy of this machine.
    assert proxy.ask("POST", "/v1/messages", message).status == 202
    assert proxy.ask("POST", "/v1/messages", message, Host=PUBLIC).status == 401
    forged = {"X_Forwarded_Host": "localhost", "X_Forwarded_For": "127.0.0.1"}
    assert proxy.ask("POST", "/v1/messages", message, Host=PUBLIC, **forged).status == 401
    forged = {"Forwarded": "for=127.0.0.1;host=localhost"}
    assert proxy.ask("POST", "/v1/messages", message, Host=PUBLIC, **forged).status == 401
    made = up.request("POST", "/v1/credentials", b'{"name":"shop","scopes":["publish"]}')[1]
    bearer = {"Authorization": f"Bearer {json.loads(made)['token']}"}
    assert proxy.ask("POST", "/v1/messages", message, Host=PUBLIC, **bearer).status == 202
    assert proxy.ask("POST", "/pap", b"", Host=PUBLIC).status == 401


def test_metrics_stay_inside(before: Before) -> None:
    proxy, up = before
    assert up.request("GET", "/metrics")[0] == 200
    for path in ("/metrics", "/metrics?", "/%6detrics"):
        assert proxy.ask("GET", path).status == 404
    assert proxy.ask("GET", "/health", Host=PUBLIC).status == 200


def test_the_dashboard_s_figures_come_as_they_are_made(before: Before) -> None:
    proxy, _ = before
    with closing(proxy.connection()) as connection:
        connection.request("GET", "/dashboard/live")
        with connection.getresponse() as response:
            assert response.status == 200
            lines = [response.readline() for _ in range(5)]
            assert any(line.startswith(b"data: ") for line in lines)


def test_the_cookie_is_for_tls_only(before: Before) -> None:
    proxy, _ = before
    port = proxy.port
    headers: Any = {"Origin": f"https://localhost:{port}", "Sec_Fetch_Site": "same-origin"}
    response = proxy.ask("POST", "/dashboard/logout", **headers).response
    assert response.status == 303
    assert "; Secure" in str(response.getheader("set-cookie"))
    foreign: Any = {"Origin": "https://page.example"}
    assert proxy.ask("POST", "/dashboard/logout", **foreign).status == 403


@pytest.mark.parametrize("scheme", ["wss", "https", "poll+https"])
def test_devices_get_their_messages(before: Before, scheme: str, tmp_path: Path) -> None:
    proxy, up = before
    name = f"phone-{scheme.replace('+', '-')}"
    every = "?every=0.1" if scheme.startswith("poll") else ""
    url = f"{scheme}://localhost:{proxy.port}/hop{every}"
    trusting = ("--ca", str(proxy.authority))
    with DeviceProcess(url, name, tmp_path / "device.log", *trusting) as device:
        eventually(lambda: in_contact(up, name), f"{name} is in contact")
        up.push({"device": name, "body": "hello"})
        assert json.loads(device.line())["body"] == "hello"
        assert device.terminate() == 0


def in_contact(up: GatewayProcess, name: str) -> bool:
    devices = up.get_json("/v1/devices")["devices"]
    return any(device["name"] == name and device["in_contact"] for device in devices)


async def test_a_stranger_s_device_needs_its_token(before: Before) -> None:
    """A stranger is who comes by the public name; both names lead to the same proxy here."""
    proxy, up = before
    made = await asyncio.to_thread(up.request, "POST", "/v1/devices", b'{"name":"far"}')
    token = json.loads(made[1])["token"]
    assert not await asyncio.to_thread(by_requests, proxy, None)
    assert not await asyncio.to_thread(by_requests, proxy, None, X_Forwarded_Host="localhost")
    assert await asyncio.to_thread(by_requests, proxy, token)
    assert not await by_websocket(proxy, None)
    assert await by_websocket(proxy, token)


def by_requests(proxy: Proxy, token: str | None, **headers: str) -> bool:
    """Whether a device is let in that comes by HTTP requests, to the public name."""
    outgoing = UnitsToSend()
    outgoing.add(hello(Mapping.UNORDERED, "far", token))
    answer = proxy.ask("POST", "/hop", outgoing.pack(), Host=PUBLIC, **headers)
    return unpack(answer.body)[0][0] == WELCOME


async def by_websocket(proxy: Proxy, token: str | None) -> bool:
    """Whether a device is let in that comes by WebSocket, to the public name."""
    (unit,) = hello(Mapping.DATAGRAM, "far", token)
    place: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": proxy.port,
        "server_hostname": "localhost",
    }
    async with connect(f"wss://{PUBLIC}/hop", ssl=proxy.tls, **place) as line:
        await line.send(unit)
        heard = await line.recv()
    assert isinstance(heard, bytes)
    return heard[0] == WELCOME


@pytest.mark.parametrize("kind", KINDS)
async def test_the_caller_s_address_is_the_one_that_the_proxy_sees(
    kind: str, tmp_path: Path
) -> None:
    """Whatever the caller says."""
    async with result_notifier("127.0.0.1") as port:
        with proxy(kind, f"127.0.0.1:{port}", tmp_path) as found:
            seen = ["127.0.0.5", "https", PUBLIC]
            forged: Any = {"X_Forwarded_For": "192.0.2.1", "X_Forwarded_Host": "other.example"}
            forged |= {"Forwarded": "for=192.0.2.2", "X_Forwarded_Proto": "http"}
            plain: Any = {}
            for headers in (plain, forged):
                ask = partial(found.ask, source="127.0.0.5", Host=PUBLIC, **headers)
                answer = await asyncio.to_thread(ask, "GET", "/")
                assert json.loads(answer.body) == seen
            url = f"wss://localhost:{found.port}/"
            async with connect(url, ssl=found.tls, local_addr=("127.0.0.5", 0)) as line:
                told = json.loads(await line.recv())
            assert told == ["127.0.0.5", "wss", f"localhost:{found.port}"]
