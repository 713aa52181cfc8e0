"""A device of the JavaScript SDK on a stage: a process of Node that is told what happens, one event
after the other, on the stage's own clock."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.compat.adapter import APP, DATAGRAM, DeviceEnd, Stage, TapedLink
from tests.compat.files import HERE

SOFTWARE = HERE / "device.mjs"


class ScriptDevice:
    """One such device. It dials by itself, and again when it has lost a link.

    Everything that it is told to do is left out when the devices' side of a recording is played.
    """

    def __init__(self, stage: Stage, name: str, **terms: Any) -> None:
        self.terms = terms
        self.had: list[list[Any]] = []
        self.heard: list[list[Any]] = []
        self._stage = stage
        self._inbox = stage.directory / f"{name}.inbox"
        self._name = name
        self._links: dict[int, TapedLink] = {}
        self._woken: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        stage.others[name] = self

    def remember(self, memory: Mapping[str, Any]) -> None:
        """What the application itself has kept of its earlier life."""
        self.had = [list(line) for line in memory["had"]]
        self.heard = [list(line) for line in memory["heard"]]

    def memory(self) -> dict[str, Any]:
        """The same, to be kept."""
        return {"terms": self.terms, "had": self.had, "heard": self.heard}

    def start(self) -> None:
        """Come to life, and dial."""
        if self._stage.played is not None:
            return
        self._stage.directory.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            ["node", str(SOFTWARE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        whoever = {"app": APP, "name": self._name, "inbox": str(self._inbox)}
        self._tell("start", **whoever, terms=self.terms)

    def crash(self) -> None:
        """Die; the inbox stays."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
            Path(f"{self._inbox}.lock").unlink(missing_ok=True)

    def lose(self) -> None:
        """All links break."""
        for link in list(self._links.values()):
            self._stage.cut(link, "device")

    def call(self, method: str, *args: Any) -> None:
        """The application calls a method of the device."""
        self._tell("call", method=method, args=args)

    def take_time(self) -> None:
        """Deal with everything that was put off."""
        self._tell("takeTime")

    def _tell(self, verb: str, **said: Any) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        line = {"t": self._stage.now(), "verb": verb, **said}
        process.stdin.write(json.dumps(line).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        for what, *about in answer["done"]:
            self._do(what, *about)
        wake = answer["wake"]
        if wake is not None and wake != self._woken:
            self._woken = wake
            self._stage.kernel.at(wake, lambda: self._wake(wake))

    def _wake(self, due: int) -> None:
        if due == self._woken:
            self._woken = None
            self._tell("wake")

    def _do(self, what: str, *about: Any) -> None:
        if what == "dial":
            self._dial(*about)
        elif what == "bytes":
            wire, data = about
            DeviceEnd(self._links[wire]).write(bytes.fromhex(data))
        elif what == "close":
            DeviceEnd(self._links.pop(about[0])).close()
        elif what == "had":
            self.had.append(list(about))
        else:
            self.heard.append(list(about))

    def _dial(self, wire: int) -> None:
        def arrived(data: bytes) -> None:
            self._tell("arrived", wire=wire, data=data.hex())

        def broken() -> None:
            if self._links.pop(wire, None) is not None:
                self._tell("broken", wire=wire)

        self._links[wire] = self._stage.link_for(DATAGRAM, arrived, broken)
