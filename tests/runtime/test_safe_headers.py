"""Every answer of the HTTP server tells browsers to be careful, whichever door it is from."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lasthop.access.rest.operations import EXPLAIN, OPERATIONS
from lasthop.runtime.safe_headers import HSTS, SAFE, hsts_value, is_name
from lasthop.runtime.units import Duration
from tests.runtime.processes import DEADLINE, GatewayProcess
from tests.transport.certificates import Authority

ROUTES = sorted(
    {
        *((one.method, re.sub(r"\{\w+\}", "1", one.path)) for one in (*OPERATIONS, EXPLAIN)),
        *(("GET", path) for path in ("/health", "/ready", "/metrics", "/", "/docs")),
        *(("GET", path) for path in ("/openapi.json", "/device", "/favicon.ico", "/sdk/index.js")),
        *(("GET", path) for path in ("/dashboard", "/dashboard/login", "/dashboard/static/x")),
        *(("GET", path) for path in ("/dashboard/data/about", "/dashboard/v1/devices", "/no/such")),
        *(("POST", path) for path in ("/dashboard/login", "/dashboard/logout", "/news", "/pap")),
        *(("POST", path) for path in ("/pap?", "/v1/messages?", "/hop", "/hop/none/1")),
        ("GET", "/hop"),
        ("PUT", "/health"),
    }
)
"""Every operation of the REST door, and at least one request to every other door, which refuse most
of them."""

UNREAD = [("BREW", "/v1/messages"), ("GET", "/" + "x" * 20_000)]
"""What the server itself refuses, before it knows how the caller has connected."""

NAMED = "gateway.example"


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that believes this machine's proxies that a caller has used TLS."""
    directory = tmp_path_factory.mktemp("behind")
    config = directory / "lasthop.toml"
    config.write_text('[http]\ntrusted_proxies = ["127.0.0.1"]\n')
    with GatewayProcess(directory / "data", "--config", str(config)) as process:
        yield process


def ask(up: GatewayProcess, method: str, path: str, **headers: str) -> list[tuple[str, str]]:
    """The headers of an answer, with their names in lower case."""
    address = up.http.removeprefix("http://")
    with closing(http.client.HTTPConnection(address, timeout=DEADLINE)) as connection:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, b"x" if method == "POST" else None, named)
        response = connection.getresponse()
        return [(name.lower(), value) for name, value in response.getheaders()]


@pytest.mark.parametrize("method, path", [*ROUTES, *UNREAD])
def test_every_route_is_careful(up: GatewayProcess, method: str, path: str) -> None:
    found = ask(up, method, path)
    for name, value in SAFE:
        (said,) = [value for given, value in found if given == name.decode()]
        if name == b"content-security-policy":
            assert "default-src 'none'" in said
            assert "frame-ancestors 'none'" in said
        elif name == b"cache-control":
            assert said in ("no-store", "no-cache")
        else:
            assert said == value.decode()
    assert HSTS.decode() not in dict(found)


@pytest.mark.parametrize("method, path", ROUTES)
def test_every_route_asks_browsers_to_stay_with_tls(
    behind: GatewayProcess, method: str, path: str
) -> None:
    through = {"X_Forwarded_For": "192.0.2.1", "X_Forwarded_Proto": "https"}
    name = HSTS.decode()
    assert dict(ask(behind, method, path, Host=NAMED, **through))[name] == "max-age=86400"
    assert name not in dict(ask(behind, method, path, Host="localhost:8080", **through))
    assert name not in dict(ask(behind, method, path, Host=NAMED))


def test_nobody_else_can_say_that_tls_was_used(up: GatewayProcess) -> None:
    assert HSTS.decode() not in dict(ask(up, "GET", "/", Host=NAMED, X_Forwarded_Proto="https"))


@pytest.mark.parametrize("lasts, said", [("", "max-age=86400"), ("0s", None), ("365d", "31536000")])
def test_how_long_is_a_setting(tmp_path: Path, lasts: str, said: str | None) -> None:
    authority = Authority(tmp_path)
    config = tmp_path / "lasthop.toml"
    http_section = f'[http]\nhsts = "{lasts}"\n' if lasts else ""
    config.write_text(
        f'{http_section}[tls]\ncert = "{authority._chain}"\nkey = "{authority._key}"\n'
    )
    with GatewayProcess(tmp_path / "data", "--config", str(config)) as up:
        port = int(up.http.rpartition(":")[2])
        for method, path in (("GET", "/health"), ("POST", "/v1/messages")):
            with closing(
                http.client.HTTPSConnection("localhost", port, context=authority.client())
            ) as connection:
                connection.request(method, path, headers={"Host": NAMED})
                found = connection.getresponse().getheader(HSTS.decode())
            assert (found or "").endswith(said or "")
            assert bool(found) == bool(said)


def test_hosts_that_browsers_can_be_told_about() -> None:
    assert is_name(b"gateway.example")
    assert is_name(b"Gateway:8443")
    for host in (b"", b"localhost", b"a.LOCALHOST:1", b"127.0.0.1:8080", b"[::1]:80", b"192.0.2.1"):
        assert not is_name(host)
    assert hsts_value(Duration.parse("0s")) is None
