"""Every way to connect, as a user meets it: settings, commands, the page about them."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from lasthop.device.client import Device
from lasthop.errors import InvalidRequest, StoreError
from lasthop.runtime.failure import Failure
from lasthop.runtime.serve import running
from lasthop.runtime.settings import Settings, load
from lasthop.transport.seqpacket import l2cap_socket
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import DeviceProcess, GatewayProcess, eventually
from tests.transport.certificates import Authority

PAGE = Path("docs/how-to/interconnects.md")


def code() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


code_in_repository = code()


def settings(tmp_path: Path, **options: str) -> Settings:
    listen = {"http.listen": "127.0.0.1:0", "tcp.listen": "127.0.0.1:0"}
    return load(options={"data": str(tmp_path / "data"), **listen, **options})


def never(error: StoreError) -> None:
    raise AssertionError(error)


def test_the_reference_device_uses_every_kind(tmp_path: Path) -> None:
    """In one process each, as on the page."""
    path = tmp_path / "hop.seq"
    more = ("--beep", "127.0.0.1:0", "--seqpacket", str(path))
    with GatewayProcess(tmp_path / "data", *more) as up:
        places = up.places
        urls = [places[name] for name in ("tcp", "websocket", "requests", "beep", "seqpacket")]
        urls.append(f"poll+{places['requests']}?every=0.1")
        for number, url in enumerate(urls):
            name = f"by-{number}"
            with DeviceProcess(url, name, tmp_path / f"log-{number}", "--topic", name) as device:
                eventually(lambda name=name: _subscribed(up, name), f"{url} has subscribed")  # type: ignore[misc]
                assert up.request("POST", f"/{name}", f"by {url}".encode())[0] == 200
                assert json.loads(device.line())["body"] == f"by {url}"
                assert device.terminate() == 0
        assert path.exists()
        assert up.terminate() == 0
    assert not path.exists(), "the socket goes with the gateway"


def _subscribed(up: GatewayProcess, name: str) -> bool:
    devices = up.get_json("/v1/devices")["devices"]
    return any(device["name"] == name and device["subscriptions"] for device in devices)


async def test_the_code_on_the_page_runs(tmp_path: Path) -> None:
    page = code_in_repository
    with pytest.raises(InvalidRequest, match="over encrypted links only"):
        page["phone"]("tcp://127.0.0.1:1", "secret")
    assert isinstance(page["phone"]("https://localhost/hop", "secret"), Device)
    path = str(tmp_path / "hop.seq")
    async with (
        running(settings(tmp_path, **{"seqpacket.path": path}), never) as places,
        Device(places.tcp, app="default", name="phone", learn_heartbeat=False) as device,
    ):
        assert places.requests is not None
        assert places.seqpacket is not None
        await device.contact(timeout=20)
        await page["on_wifi"](device, places.requests)
        await page["both"](device, places.seqpacket)
        assert device.channels >= 1


async def test_tls_holds_for_every_listener(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    options = {
        "tls.cert": str(authority._chain),
        "tls.key": str(authority._key),
        "tls.required": "true",
        "beep.listen": "127.0.0.1:0",
    }
    async with running(settings(tmp_path, **options), never) as places:
        urls = [places.tcp, places.websocket, places.requests, places.beep]
        assert [str(url).partition(":")[0] for url in urls] == ["tcps", "wss", "https", "beeps"]
        for url in urls:
            device = Device(
                str(url),
                app="default",
                name="phone",
                enc=True,
                tls=authority.client(),
                learn_heartbeat=False,
            )
            async with device:
                await device.contact(timeout=20)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"tls.required": "true"}, "tls.required needs tls.cert and tls.key"),
        (
            {"tls.required": "true", "tls.cert": "c", "tls.key": "k", "seqpacket.psm": "4097"},
            "tls.required rules out seqpacket.psm: Bluetooth has no TLS",
        ),
        ({"beep.listen": "nowhere"}, "beep.listen: expected an address"),
        ({"seqpacket.psm": "70000"}, "seqpacket.psm: Expected int <= 65535"),
        ({"http.requests": "hop"}, "http.requests: Expected str matching regex"),
        ({"http.requests": "/hop/"}, "http.requests: Expected str matching regex"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        load(options=options)
    assert message in str(refused.value)


async def test_a_socket_that_was_left_behind_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "hop.seq"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(path))
    async with running(settings(tmp_path, **{"seqpacket.path": str(path)}), never) as places:
        assert places.seqpacket == f"seqpacket:{path}"
        other = load(
            options={
                "data": str(tmp_path / "other"),
                "http.listen": "127.0.0.1:0",
                "tcp.listen": "127.0.0.1:0",
                "seqpacket.path": str(path),
            }
        )
        with pytest.raises(Failure, match="another process listens there"):
            async with running(other, never):
                raise AssertionError
        assert path.exists()


async def test_a_file_is_not_taken_for_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("keep me")
    with pytest.raises(Failure, match="another process listens there"):
        async with running(settings(tmp_path, **{"seqpacket.path": str(path)}), never):
            raise AssertionError
    assert path.read_text() == "keep me"


async def test_without_bluetooth_it_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "AF_BLUETOOTH", raising=False)
    with pytest.raises(Failure, match="this Python was built without Bluetooth"):
        async with running(settings(tmp_path, **{"seqpacket.psm": "4097"}), never):
            raise AssertionError


def test_a_machine_without_bluetooth_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "AF_BLUETOOTH", socket.AF_UNIX, raising=False)
    monkeypatch.setattr(socket, "BTPROTO_L2CAP", 99, raising=False)
    with pytest.raises(OSError, match="this machine has no Bluetooth"):
        l2cap_socket()


def test_the_command_refuses_a_plain_link_where_enc_is_asked_for(lasthop: Lasthop) -> None:
    result = lasthop(
        "device", "run", "--name", "phone", "--enc", "--url", "http://127.0.0.1:9/hop", fails=True
    )
    assert "the device speaks over encrypted links only" in result.error


def test_the_command_says_what_is_wrong_with_authorities(lasthop: Lasthop, tmp_path: Path) -> None:
    nothing = tmp_path / "none.pem"
    result = lasthop(
        "device", "run", "--name", "phone", "--ca", str(nothing), "--url", "tcps://h", fails=True
    )
    assert f"cannot use the authorities in {nothing}" in result.error
