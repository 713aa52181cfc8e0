"""Whom an open gateway takes for a process of this machine: the same people at every HTTP door.

About `access/callers.py` and `runtime/front.py`.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from lasthop.wire.hop.bundling import units
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Hello
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.requests.bodies import UnitsToSend, unpack
from tests.runtime.processes import DEADLINE, GatewayProcess

Headers = list[tuple[str, str]]
Door = Callable[[GatewayProcess, Headers], bool]
"""Whether a request with these headers is let in."""

WELCOME = 0x41
"""The type of the frame that a device hears when it is let in; otherwise it hears CLOSE."""

numbers = count(1)


def address(up: GatewayProcess) -> str:
    return up.http.removeprefix("http://")


def ask(
    up: GatewayProcess, method: str, path: str, headers: Headers, body: bytes = b""
) -> tuple[int, bytes]:
    """One request with these headers, as often and in the case that they are given."""
    connection = http.client.HTTPConnection(address(up), timeout=DEADLINE)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in [*headers, ("Content-Length", str(len(body)))]:
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def door(method: str, path: str, body: bytes = b"", *more: tuple[str, str]) -> Door:
    def enter(up: GatewayProcess, headers: Headers) -> bool:
        status, _ = ask(up, method, path, [*headers, *more], body)
        assert status in (200, 202, 400, 401, 403), status
        return status < 300

    return enter


def hello(mapping: Mapping, device: str | None = None, token: str | None = None) -> list[bytes]:
    """The first word of a device that is new, unless it is named."""
    packing = units(Encoder(mapping), mapping, bundled=False)
    name = device or f"device-{next(numbers)}"
    packing.add(Hello(app="default", device=name, token=token))
    return packing.take()


def by_requests(path: str) -> Door:
    def enter(up: GatewayProcess, headers: Headers) -> bool:
        outgoing = UnitsToSend()
        outgoing.add(hello(Mapping.UNORDERED))
        status, answer = ask(up, "POST", path, headers, outgoing.pack())
        return status != 400 and unpack(answer)[0][0] == WELCOME

    return enter


def by_websocket(
    up: GatewayProcess, headers: Headers, device: str | None = None, token: str | None = None
) -> bool:
    (unit,) = hello(Mapping.DATAGRAM, device, token)
    host, port = address(up).split(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE) as line:
        upgrade = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "c29tZXRoaW5nIHJhbmRvbQ=="),
        ]
        said = [f"{name}: {value}" for name, value in [*headers, *upgrade]]
        line.sendall("\r\n".join(["GET /hop HTTP/1.1", *said, "", ""]).encode())
        with line.makefile("rb") as heard:
            if heard.readline().split()[1] != b"101":
                return False
            while heard.readline() != b"\r\n":
                pass
            # A short binary message in one frame, masked with zeros.
            line.sendall(bytes((0x82, 0x80 | len(unit), 0, 0, 0, 0)) + unit)
            return heard.read(3)[2] == WELCOME


MESSAGE = b'{"topic":"news","body":"hello"}'
QUERY = b"""<?xml version="1.0"?>
<!DOCTYPE pap PUBLIC "-//WAPFORUM//DTD PAP 2.0//EN" "http://www.wapforum.org/DTD/pap_2.0.dtd">
<pap><statusquery-message push-id="1"/></pap>"""
XML = ("Content-Type", "application/xml")

DOORS: dict[str, Door] = {
    "REST": door("GET", "/v1/credentials"),
    "publishing": door("POST", "/v1/messages", MESSAGE),
    "publishing by ASGI": door("POST", "/v1/messages?", MESSAGE),
    "the one-line form": door("POST", "/news", b"hello"),
    "PAP": door("POST", "/pap", QUERY, XML),
    "PAP by ASGI": door("POST", "/pap?", QUERY, XML),
    "the dashboard": door("GET", "/dashboard/data/about"),
    "the dashboard's REST": door("GET", "/dashboard/v1/devices"),
    "a change by the dashboard": door(
        "POST", "/dashboard/v1/messages", MESSAGE, ("X-Lasthop-Dashboard", "1")
    ),
    "devices by requests": by_requests("/hop"),
    "devices that poll": by_requests("/hop?poll=30"),
    "devices by WebSocket": by_websocket,
}

HERE = ("Host", "{here}")
FROM_HERE = ("Origin", "http://{here}")

OURS: dict[str, Headers] = {
    "a program": [HERE],
    "a program that says localhost": [("host", "LocalHost:8080")],
    "a page of the gateway": [HERE, FROM_HERE, ("Sec-Fetch-Site", "same-origin")],
    "somebody at the address bar": [HERE, ("Sec-Fetch-Site", "none")],
}

STRANGERS: dict[str, Headers] = {
    "another host's name": [("Host", "gateway.example")],
    "two hosts, the first foreign": [("Host", "gateway.example"), HERE],
    "two hosts, the last foreign": [HERE, ("Host", "gateway.example")],
    "a proxy": [HERE, ("X-Forwarded-For", "192.0.2.1")],
    "a proxy that says it twice": [HERE, ("via", "1.1 a"), ("VIA", "1.1 b")],
    "a proxy that knows the standard": [HERE, ("forwarded", "for=192.0.2.1;proto=https")],
    "a proxy that says nothing but how": [HERE, ("X-FORWARDED-PROTO", "https")],
    "a proxy that says nothing but where": [HERE, ("x-forwarded-host", "gateway.example")],
    "nginx as many set it up": [HERE, ("X-Real-IP", "192.0.2.1")],
    "a proxy that speaks for this machine": [HERE, ("X-Forwarded-For", "127.0.0.1")],
    "a tunnel": [HERE, ("Cf-Connecting-Ip", "192.0.2.1")],
    "a content delivery network": [HERE, ("True-Client-IP", "192.0.2.1")],
    "a page from elsewhere": [HERE, ("Origin", "https://page.example")],
    "a page of another port": [HERE, ("Origin", "http://localhost:3000")],
    "a page of another port, by number": [HERE, ("Origin", "http://127.0.0.1:3000")],
    "a page of the default port": [HERE, ("Origin", "http://127.0.0.1")],
    "a page in a sandbox": [HERE, ("Origin", "null")],
    "two origins, the last ours": [HERE, ("Origin", "http://page.example"), FROM_HERE],
    "a page of the same site": [HERE, ("Sec-Fetch-Site", "same-site")],
    "a link on another site's page": [HERE, ("Sec-Fetch-Site", "cross-site")],
    "a page that says both": [
        HERE,
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-origin"),
    ],
}


THROUGH = ("X-Forwarded-For", "127.0.0.1")

OURS_BY_PROXY: dict[str, Headers] = {
    "somebody here": [HERE, THROUGH],
    "somebody here, by the standard": [HERE, ("Forwarded", 'for="[::1]";proto=https')],
    "somebody here, by a host that was kept": [
        ("Host", "inside"),
        THROUGH,
        ("X-Forwarded-Host", "{here}"),
    ],
    "a page of the gateway by TLS": [
        ("Host", "inside"),
        ("X-Forwarded-Host", "localhost"),
        ("Origin", "https://localhost"),
        ("X-Forwarded-Proto", "https"),
        THROUGH,
    ],
    "a program that needs no proxy": [HERE],
}

STRANGERS_BY_PROXY: dict[str, Headers] = {
    "somebody elsewhere": [HERE, ("X-Forwarded-For", "192.0.2.1")],
    "somebody who says that they are here": [HERE, ("X-Forwarded-For", "127.0.0.1, 192.0.2.1")],
    "somebody who says so in a header before": [HERE, THROUGH, ("X-Forwarded-For", "192.0.2.1")],
    "somebody elsewhere, by the standard": [HERE, ("Forwarded", "for=127.0.0.1,for=192.0.2.1")],
    "somebody hidden": [HERE, ("Forwarded", "for=unknown")],
    "somebody at another host": [HERE, THROUGH, ("X-Forwarded-Host", "gateway.example")],
    "somebody behind another proxy": [HERE, THROUGH, ("Via", "1.1 a")],
    "a proxy that says nothing but how": [HERE, ("X-Forwarded-Proto", "https")],
    "a page from elsewhere": [HERE, THROUGH, ("Origin", "https://page.example")],
}

MALFORMED: dict[str, Headers] = {
    "no address": [HERE, ("X-Forwarded-For", "me")],
    "a chain without end": [HERE, ("X-Forwarded-For", ", ".join(["127.0.0.1"] * 33))],
    "two callers": [HERE, THROUGH, ("Forwarded", "for=192.0.2.1")],
    "no scheme": [HERE, THROUGH, ("X-Forwarded-Proto", "javascript")],
    "no host": [HERE, THROUGH, ("X-Forwarded-Host", "a/b")],
}


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that trusts the proxies of this machine."""
    directory = tmp_path_factory.mktemp("behind")
    config = directory / "lasthop.toml"
    config.write_text('[http]\ntrusted_proxies = ["127.0.0.1"]\n')
    with GatewayProcess(directory / "data", "--config", str(config)) as process:
        yield process


def placed(up: GatewayProcess, headers: Headers) -> Headers:
    return [(name, value.format(here=address(up))) for name, value in headers]


@pytest.mark.parametrize("who", OURS)
@pytest.mark.parametrize("name", DOORS)
def test_a_process_of_this_machine_is_let_in(up: GatewayProcess, name: str, who: str) -> None:
    assert DOORS[name](up, placed(up, OURS[who]))


@pytest.mark.parametrize("who", STRANGERS)
@pytest.mark.parametrize("name", DOORS)
def test_nobody_else_is_let_in_without_a_credential(
    up: GatewayProcess, name: str, who: str
) -> None:
    assert not DOORS[name](up, placed(up, STRANGERS[who]))


@pytest.mark.parametrize("who", OURS_BY_PROXY)
@pytest.mark.parametrize("name", DOORS)
def test_a_trusted_proxy_lets_a_process_of_this_machine_in(
    behind: GatewayProcess, name: str, who: str
) -> None:
    assert DOORS[name](behind, placed(behind, OURS_BY_PROXY[who]))


@pytest.mark.parametrize("who", STRANGERS_BY_PROXY)
@pytest.mark.parametrize("name", DOORS)
def test_a_trusted_proxy_lets_no_stranger_in(behind: GatewayProcess, name: str, who: str) -> None:
    assert not DOORS[name](behind, placed(behind, STRANGERS_BY_PROXY[who]))


@pytest.mark.parametrize("who", MALFORMED)
@pytest.mark.parametrize("name", DOORS)
def test_what_a_trusted_proxy_cannot_mean_is_refused_at_every_door(
    behind: GatewayProcess, name: str, who: str
) -> None:
    headers = placed(behind, MALFORMED[who])
    assert not DOORS[name](behind, headers)
    assert ask(behind, "GET", "/health", headers)[0] == 400


def test_the_cookie_is_for_tls_if_a_trusted_proxy_says_so(behind: GatewayProcess) -> None:
    headers = [HERE, THROUGH, ("X-Forwarded-Proto", "https"), ("X-Lasthop-Dashboard", "1")]
    connection = http.client.HTTPConnection(address(behind), timeout=DEADLINE)
    connection.request("POST", "/dashboard/logout", headers=dict(placed(behind, headers)))
    assert "; Secure" in str(connection.getresponse().getheader("set-cookie"))
    connection.close()


def test_a_page_of_another_port_makes_no_credential(up: GatewayProcess) -> None:
    page = [HERE, ("Origin", "http://localhost:3000"), ("Content-Type", "text/plain")]
    new = b'{"name":"mine","scopes":["admin"]}'
    assert ask(up, "POST", "/v1/credentials", placed(up, page), new)[0] == 401


# Whoever names two hosts is told 400, with whatever credential.
@pytest.mark.parametrize("who", [who for who in STRANGERS if "two hosts" not in who])
def test_a_credential_needs_no_place(up: GatewayProcess, who: str) -> None:
    new = json.dumps({"name": f"svc-{next(numbers)}", "scopes": ["devices"]}).encode()
    _, made = ask(up, "POST", "/v1/credentials", placed(up, [HERE]), new)
    bearer = ("Authorization", f"Bearer {json.loads(made)['token']}")
    stranger = placed(up, STRANGERS[who])
    assert ask(up, "GET", "/v1/devices", [*stranger, bearer])[0] == 200


# Whoever has two origins is turned away by the WebSocket server itself.
@pytest.mark.parametrize("who", [who for who in STRANGERS if "two " not in who])
def test_neither_does_a_device_with_its_token(up: GatewayProcess, who: str) -> None:
    name = f"phone-{next(numbers)}"
    new = json.dumps({"name": name}).encode()
    _, made = ask(up, "POST", "/v1/devices", placed(up, [HERE]), new)
    stranger = placed(up, STRANGERS[who])
    assert by_websocket(up, stranger, name, json.loads(made)["token"])
    assert not by_websocket(up, stranger, name)
