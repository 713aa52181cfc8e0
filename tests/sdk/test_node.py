"""The JavaScript SDK on Node: its own tests, and real gateways that are killed under it.

About `sdk/javascript/src/`.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.runtime.processes import DEADLINE, GatewayProcess, eventually
from tests.wire.installed import need

SDK = Path("sdk/javascript").absolute()
PAGE = Path("docs/how-to/javascript.md")


class NodeDevice:
    """The example device of the SDK as a process of its own."""

    def __init__(self, gateway: GatewayProcess, name: str, inbox: Path, *options: str) -> None:
        arguments = ["--url", gateway.websocket, "--name", name, "--inbox", str(inbox), *options]
        self._process = subprocess.Popen(
            ["node", str(SDK / "examples/device.js"), *arguments],
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._partly = b""
        self.seen: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def read(self, timeout: float = 0.0) -> list[dict[str, Any]]:
        """Everything that it has printed until now."""
        assert self._process.stdout is not None
        while select.select([self._process.stdout], [], [], timeout)[0]:
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            if not piece:
                break
            *lines, self._partly = (self._partly + piece).split(b"\n")
            self.seen += [json.loads(line) for line in lines]
            timeout = 0.0
        return self.seen

    @property
    def texts(self) -> list[str]:
        return [line["text"] for line in self.read()]

    def terminate(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(DEADLINE)

    def kill(self) -> None:
        """End it at this instant; what it had printed before is read."""
        self._process.kill()
        self._process.wait(DEADLINE)
        self.read()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.fixture
def up(tmp_path: Path) -> Iterator[GatewayProcess]:
    need("node")
    with GatewayProcess(tmp_path / "data") as process:
        yield process


def devices(gateway: GatewayProcess, name: str) -> list[dict[str, Any]]:
    found = gateway.get_json("/v1/devices")["devices"]
    return [device for device in found if device["name"] == name]


def in_contact(gateway: GatewayProcess, name: str) -> bool:
    return any(device["in_contact"] for device in devices(gateway, name))


def subscribed(gateway: GatewayProcess, name: str) -> bool:
    return any(device["subscriptions"] for device in devices(gateway, name))


@pytest.mark.peer
def test_its_own_tests_pass() -> None:
    need("node")
    done = subprocess.run(
        ["node", "--test", "test/"],
        cwd=SDK,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "\n# fail 0\n" in done.stdout


@pytest.mark.peer
def test_a_push_arrives_and_is_answered(up: GatewayProcess, tmp_path: Path) -> None:
    with NodeDevice(up, "node", tmp_path / "inbox", "--echo") as device:
        eventually(lambda: in_contact(up, "node"), "the device is in contact")
        up.push({"device": "node", "title": "Hello", "body": "from Python"})
        eventually(lambda: len(device.read()) == 1, "the push arrives")
        assert device.seen[0]["title"] == "Hello"
        request: dict[str, object] = {
            "device": "node",
            "body": "are you there?",
            "reply_within": "30s",
        }
        identity = up.push(request)
        status, answer = up.request("GET", f"/v1/messages/{identity}/reply?timeout=30")
        assert (status, answer) == (200, b"echo: are you there?")
        assert device.terminate() == 0


@pytest.mark.peer
def test_the_example_of_the_page_gets_a_message(up: GatewayProcess, tmp_path: Path) -> None:
    (code,) = re.findall(r"```js\n(.*?)```", PAGE.read_text(), re.DOTALL)
    packages = tmp_path / "node_modules"
    packages.mkdir()
    (packages / "lasthop").symlink_to(SDK)
    (tmp_path / "page.mjs").write_text(code.replace("ws://127.0.0.1:8080/hop", up.websocket))
    with subprocess.Popen(
        ["node", "page.mjs"], stdout=subprocess.PIPE, cwd=tmp_path, text=True
    ) as example:
        try:
            eventually(lambda: subscribed(up, "phone"), "the example has subscribed")
            up.request("POST", "/news", b"hello, world")
            assert example.stdout is not None
            assert example.stdout.readline().endswith(" hello, world\n")
        finally:
            example.kill()


@pytest.mark.peer
def test_two_devices_say_everything_that_can_be_said(up: GatewayProcess, tmp_path: Path) -> None:
    done = subprocess.run(
        ["node", "tests/sdk/conversation.mjs", up.websocket, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "all is said\n"), done.stderr


@pytest.mark.peer
def test_exactly_once_over_kills_of_the_gateway(up: GatewayProcess, tmp_path: Path) -> None:
    gateway = up
    with NodeDevice(gateway, "steady", tmp_path / "inbox", "--topic", "news") as device:
        eventually(lambda: in_contact(gateway, "steady"), "the device is in contact")
        eventually(lambda: subscribed(gateway, "steady"), "it has subscribed")
        sent: list[str] = []
        for life in range(3):
            for n in range(25):
                sent.append(f"{life}.{n}")
                gateway.push({"topic": "news", "body": sent[-1]})
            gateway.kill()
            gateway = gateway.again()
        eventually(lambda: len(device.texts) >= len(sent), "everything has arrived")
        assert device.texts == sent
        assert not any(line["redelivered"] for line in device.seen)
    gateway.kill()


@pytest.mark.peer
def test_nothing_is_lost_over_kills_of_the_device(up: GatewayProcess, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    sent: list[str] = []
    lines: list[dict[str, Any]] = []
    for life in range(3):
        with NodeDevice(up, "fragile", inbox) as device:
            eventually(lambda: in_contact(up, "fragile"), "the device is in contact")
            for n in range(20):
                sent.append(f"{life}.{n}")
                up.push({"device": "fragile", "body": sent[-1]})
            if life == 2:
                eventually(lambda: sent[-1] in device.texts, "the last one has arrived")
        lines += device.seen
    fresh = [line["text"] for line in lines if not line["redelivered"]]
    assert fresh == sorted(set(fresh), key=sent.index)
    assert {line["text"] for line in lines} == set(sent)
