"""The page about pushing over the air: its commands do what it says.

About `docs/how-to/over-the-air.md`.
"""

from __future__ import annotations

import re
import shlex
import socket
import tomllib
from pathlib import Path

import httpx
import msgspec

from lasthop.decision.routes import Route
from lasthop.runtime.settings import load
from lasthop.wire.ota.terminal import described
from lasthop.wire.wsp.pdus import Push, decode_unit
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import GatewayProcess

PAGE = (Path(__file__).parents[2] / "docs/how-to/over-the-air.md").read_text()


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def test_its_commands_reach_a_handset(lasthop: Lasthop, up: GatewayProcess) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handset:
        handset.bind(("127.0.0.1", 0))
        handset.settimeout(20)
        port = str(handset.getsockname()[1])
        register, push = re.findall(r"\$ lasthop (.*)\n(.*)\n", block("console"))
        lasthop(*shlex.split(register[0].replace("HANDSET", port)), "--url", up.http)
        key = lasthop(*shlex.split(push[0]), "--url", up.http).out.split()[0]
        _, pdu = decode_unit(handset.recv(9999))
    assert isinstance(pdu, Push)
    assert pdu.data == b"The parcel is here"
    # What it says of itself may be written a moment later.
    status = httpx.get(f"{up.http}/v1/messages/{key}?wait=final&timeout=20", timeout=30)
    assert status.json()["deliveries"][0]["state"] == "sent"
    told = lasthop("explain", key, "handset", "--url", up.http).out
    assert "sent" in told.lower()


def test_its_routes_settings_and_capabilities_are_read(tmp_path: Path) -> None:
    (route,) = msgspec.json.decode(block("json"), type=dict[str, list[Route]])["routes"]
    assert route.endpoint() == ("192.0.2.10", 2948)
    file = tmp_path / "lasthop.toml"
    file.write_text(block("toml"))
    assert load(file).ota.sessions == tomllib.loads(block("toml"))["ota"]["sessions"]
    rows = re.findall(r"^\| `(ota\.[a-z-]+)` \| .* \| `(.*)` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 6
    assert described(dict(rows)).max_size == 3000
