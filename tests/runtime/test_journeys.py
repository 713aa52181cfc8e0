"""From a publisher to a device and back, between real processes over real sockets.

About `runtime/serve.py` and `runtime/cli/`.
"""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import Lasthop
from tests.runtime.processes import (
    ENVIRONMENT,
    LASTHOP,
    DeviceProcess,
    GatewayProcess,
    eventually,
)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway of the test's own."""
    with GatewayProcess(tmp_path / "data") as process:
        yield process


def subscribed(up: GatewayProcess, name: str) -> bool:
    devices = up.get_json("/v1/devices")["devices"]
    return any(device["name"] == name and device["subscriptions"] for device in devices)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def until_written(path: Path, count: int) -> None:
    eventually(
        lambda: path.exists() and path.read_bytes().count(b"\n") >= count,
        f"{path.name} has {count} lines",
    )


def test_one_line_of_curl_reaches_a_device(up: GatewayProcess, tmp_path: Path) -> None:
    with DeviceProcess(up.tcp, "curled", tmp_path / "log", "--topic", "news") as device:
        eventually(lambda: subscribed(up, "curled"), "the device has subscribed")
        assert up.request("POST", "/news", b"hello, world", Title="Greeting")[0] == 200
        got = json.loads(device.line())
        assert (got["topic"], got["title"], got["body"]) == ("news", "Greeting", "hello, world")
        assert device.terminate() == 0


def test_a_device_comes_in_by_websocket_on_the_http_port(
    up: GatewayProcess, tmp_path: Path
) -> None:
    url = up.places["websocket"]
    with DeviceProcess(url, "web", tmp_path / "log", "--topic", "weather") as device:
        eventually(lambda: subscribed(up, "web"), "the device has subscribed")
        up.push({"topic": "weather", "body": "sunny"})
        assert json.loads(device.line())["body"] == "sunny"
        assert device.terminate() == 0


def test_what_waits_for_a_device_comes_in_order_when_it_is_back(
    fresh: GatewayProcess, tmp_path: Path, lasthop: Lasthop
) -> None:
    token = lasthop("device", "register", "phone", "--url", fresh.http).out.strip()
    sent = [f"message {n}" for n in range(50)]
    ids = [fresh.push({"device": "phone", "body": text}) for text in sent]
    assert fresh.terminate() == 0
    with fresh.again() as back:
        options = ["--token", token, "--link", "wifi"]
        with DeviceProcess(back.tcp, "phone", tmp_path / "log", *options) as device:
            got = [json.loads(device.line()) for _ in sent]
            assert [each["body"] for each in got] == sent
            wait = f"/v1/messages/{ids[-1]}?wait=delivered&timeout=30"
            assert back.get_json(wait)["satisfied"]
            told = lasthop("explain", ids[-1], "phone", "--url", back.http).out
            assert "accepted: no contact" in told
            assert "delivered over wifi" in told
            assert device.terminate() == 0
        assert "the log is whole" in lasthop("log", "check", "--data", str(back.data)).out


def test_an_output_file_goes_on_where_it_was(
    fresh: GatewayProcess, tmp_path: Path, lasthop: Lasthop
) -> None:
    output = tmp_path / "output.jsonl"
    token = lasthop("device", "register", "phone", "--url", fresh.http).out.strip()
    options = ["--token", token, "--output", str(output)]
    for n in range(3):
        with DeviceProcess(fresh.tcp, "phone", tmp_path / "log", *options):
            fresh.push({"device": "phone", "body": f"{n}"})
            until_written(output, n + 1)
        with output.open("ab") as file:
            file.write(b'{"half a li')
    with DeviceProcess(fresh.tcp, "phone", tmp_path / "log", *options) as device:
        fresh.push({"device": "phone", "body": "3"})
        until_written(output, 4)
        assert device.terminate() == 0
    assert [line["body"] for line in lines(output)] == ["0", "1", "2", "3"]


def test_a_wrong_token_ends_a_device_with_one_line(up: GatewayProcess, lasthop: Lasthop) -> None:
    lasthop("device", "register", "guarded", "--url", up.http)
    done = subprocess.run(
        [*LASTHOP, "device", "run", "--url", up.tcp, "--name", "guarded", "--token", "wrong"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "wrong token" in done.stderr


def test_a_push_waits_until_the_device_has_it(
    up: GatewayProcess, tmp_path: Path, lasthop: Lasthop
) -> None:
    with DeviceProcess(up.tcp, "waiter", tmp_path / "log", "--topic", "waiting") as device:
        eventually(lambda: subscribed(up, "waiter"), "the device has subscribed")
        said = lasthop("push", "waiting", "hello", "--wait", "30", "--url", up.http)
        assert "1 delivered" in said.out
        assert json.loads(device.line())["body"] == "hello"
        page = up.request("GET", "/metrics")[1].decode()
        assert "lasthop_connections 1.0" in page


def test_a_restored_backup_repeats_nothing(
    fresh: GatewayProcess, tmp_path: Path, lasthop: Lasthop
) -> None:
    output = tmp_path / "output.jsonl"
    token = lasthop("device", "register", "phone", "--url", fresh.http).out.strip()
    options = ["--token", token, "--output", str(output)]
    fresh.push({"device": "phone", "body": "before"})
    lasthop("backup", str(tmp_path / "backup"), "--data", str(fresh.data))
    with DeviceProcess(fresh.tcp, "phone", tmp_path / "log", *options):
        last = fresh.push({"device": "phone", "body": "after"})
        # A line is there before its message is done with, and the restored gateway has no "after".
        assert fresh.get_json(f"/v1/messages/{last}?wait=final")["deliveries"][0]["state"] == (
            "delivered"
        )
        assert len(lines(output)) == 2
    fresh.kill()
    lasthop("restore", str(tmp_path / "backup"), "--data", str(tmp_path / "restored"))
    with GatewayProcess(tmp_path / "restored") as restored:
        restored.push({"device": "phone", "body": "new"})
        with DeviceProcess(restored.tcp, "phone", tmp_path / "log", *options):
            until_written(output, 3)
    assert [line["body"] for line in lines(output)] == ["before", "after", "new"]


def test_tls_encrypts_all_listeners(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *[
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ],
            *["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    config = tmp_path / "lasthop.toml"
    config.write_text(f'[tls]\ncert = "{cert}"\nkey = "{key}"\n')
    with GatewayProcess(tmp_path / "data", "--config", str(config)) as up:
        assert up.places["http"].startswith("https://")
        assert up.places["tcp"].startswith("tcps://")
        context = ssl.create_default_context(cafile=str(cert))
        assert json.loads(_https(up.places["http"], "/health", context)) == {"status": "ok"}
        trusting = {"SSL_CERT_FILE": str(cert)}
        for url, name in ((up.places["tcp"], "a"), (up.places["websocket"], "b")):
            options = ["--topic", f"over-{name}"]
            with DeviceProcess(url, name, tmp_path / "log", *options, **trusting) as device:
                eventually(lambda: _pushed(up, context, f"over-{name}"), "somebody listens")  # noqa: B023
                assert json.loads(device.line())["body"] == "secret"


def _https(base: str, path: str, context: ssl.SSLContext, body: bytes | None = None) -> bytes:
    connection = HTTPSConnection(base.removeprefix("https://"), context=context, timeout=30)
    try:
        connection.request("POST" if body is not None else "GET", path, body)
        return connection.getresponse().read()
    finally:
        connection.close()


def _pushed(up: GatewayProcess, context: ssl.SSLContext, topic: str) -> bool:
    """Push, once somebody has subscribed."""
    base = up.places["http"]
    devices = json.loads(_https(base, "/v1/devices", context))["devices"]
    if not any(topic in device["subscriptions"] for device in devices):
        return False
    _https(base, f"/{topic}", context, b"secret")
    return True
