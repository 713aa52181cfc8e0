"""The page about short messages: its commands do what it says.

About `docs/how-to/short-messages.md`.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from lasthop.runtime.settings import load
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import GatewayProcess, Process

PAGE = (Path(__file__).parents[2] / "docs/how-to/short-messages.md").read_text()


def found(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_its_settings_are_read(tmp_path: Path) -> None:
    file = tmp_path / "lasthop.toml"
    file.write_text("\n".join(found("toml")))
    settings = load(file)
    route = settings.default_routes["phones"].route("phones")
    assert route.covers("PLMN:+15551999073")
    assert [route.admits(f"publisher:{each}") for each in ("shop", "news-1", "me")] == [
        True,
        True,
        False,
    ]
    smsc = settings.smsc["local"]
    assert (smsc.place, smsc.sender) == (("127.0.0.1", 2775, False), "2948")


def test_its_commands_reach_a_phone(tmp_path: Path, lasthop: Lasthop) -> None:
    started, commands = found("console")
    (smsc_line,) = re.findall(r"\$ lasthop (.*)\n", started)
    arguments = shlex.split(smsc_line.replace(":2775", ":0"))
    with Process(arguments, tmp_path / "smsc.log") as smsc:
        at = re.findall(r"SMSC at 127\.0\.0\.1:(\d+), press Ctrl-C to stop", smsc.line().decode())[
            0
        ]
        file = tmp_path / "lasthop.toml"
        file.write_text(found("toml")[0].replace("2775", at))
        with GatewayProcess(tmp_path / "data", "--config", str(file)) as up:
            for line in re.findall(r"\$ lasthop (.*)\n", commands):
                lasthop(*shlex.split(line), "--url", up.http)
            (printed,) = re.findall(r"the SMSC prints `(.*?)`", PAGE)
            assert smsc.line().decode().strip() == printed
