"""The page about PAP, executed: its commands, its requests and what is shown of their answers.

About `docs/how-to/pap.md`.
"""

from __future__ import annotations

import http.client
import json
import re
import shlex
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from tests.runtime.conftest import Lasthop
from tests.runtime.processes import GatewayProcess, Process

PAGE = (Path(__file__).parents[2] / "docs/how-to/pap.md").read_text()
GATEWAY, LISTENER = "http://127.0.0.1:8080", "http://127.0.0.1:9000"

_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_TOKEN = re.compile(r"^[\w-]{43}$", re.MULTILINE)


class Reader:
    """Does what the page says."""

    def __init__(
        self, lasthop: Lasthop, up: GatewayProcess, listener: str, directory: Path
    ) -> None:
        self._lasthop = lasthop
        self._up = up
        self._ear = listener
        self._directory = directory
        self.token = ""

    def follow(self, command: str, shown: str) -> None:
        """Run a command; it must print what is shown."""
        words = [self._here(word) for word in shlex.split(command)]
        if words[0] == "curl":
            said = self._post(words)
        else:
            path = "/pap" if words[1] == "pap" else ""
            fails = re.search(r"(^|  )2\d\d\d ", shown) is not None and "state" not in command
            fails = fails and words[2] != "status"
            said = self._lasthop(*words[1:], "--url", self._up.http + path, fails=fails).out
            if words[1:3] == ["device", "register"]:
                self.token = said.strip()
        assert plain(self._there(said)) == plain(shown), command

    def _here(self, text: str) -> str:
        return text.replace(GATEWAY, self._up.http).replace(f"{LISTENER}/", self._ear)

    def _there(self, text: str) -> str:
        return text.replace(self._up.http, GATEWAY).replace(self._ear, f"{LISTENER}/")

    def _post(self, words: list[str]) -> str:
        url = urlsplit(words[-1])
        name, _, value = words[words.index("-H") + 1].partition(": ")
        if "--data-binary" in words:
            file = words[words.index("--data-binary") + 1].removeprefix("@")
            body = self._here((self._directory / file).read_text())
        else:
            body = words[words.index("-d") + 1]
        connection = http.client.HTTPConnection(url.netloc, timeout=30)
        connection.request("POST", url.path, body.encode(), {name: value})
        response = connection.getresponse()
        assert (response.status == 202) == (url.path == "/pap")
        said = response.read().decode()
        connection.close()
        return said


def plain(text: str) -> str:
    """Without what differs from run to run."""
    text = _TIME.sub("TIME", _TOKEN.sub("TOKEN", text))
    text = re.sub(r'"id":"[0-9a-f]{16}"', '"id":"ID"', text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def test_the_page_shows_what_happens(lasthop: Lasthop, tmp_path: Path) -> None:
    blocks = re.findall(r"^```(.+?)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    listening = ["pap", "listen", "--port", "0"]
    with (
        GatewayProcess(tmp_path / "data") as up,
        Process(listening, tmp_path / "listen.log") as listener,
        ExitStack() as stack,
    ):
        first = listener.line().decode().strip()
        reader = Reader(lasthop, up, first.removeprefix("listening at "), tmp_path)
        done = 0
        for head, content in blocks:
            if (name := re.search(r"file=(\S+)", head)) is not None:
                (tmp_path / name.group(1)).write_text(content)
            elif head == "console device":
                shown = content.splitlines()[1]
                run = ["device", "run", "--name", "phone", "--token", reader.token]
                # It stays: what it prints it acknowledges a moment later.
                device = Process([*run, "--url", up.tcp], tmp_path / "device.log")
                said = stack.enter_context(device).line().decode()
                assert json.loads(plain(said)) == json.loads(plain(shown))
            elif head == "console listener":
                shown_lines = content.splitlines()[2:]
                heard = [plain(listener.line().decode()) for _ in shown_lines]
                assert sorted(heard) == sorted(map(plain, shown_lines))
            else:
                assert head == "console"
                for part in content.removeprefix("$ ").split("\n$ "):
                    command, _, shown = part.partition("\n")
                    reader.follow(command, shown)
                    done += 1
        assert done > 10
