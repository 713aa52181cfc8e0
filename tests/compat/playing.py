"""The two lives of a scenario: as they are recorded, and as they are played again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.compat.adapter import Stage
from tests.compat.files import HERE, VERSIONS, kept, kept_json
from tests.compat.javascript import ScriptDevice
from tests.compat.scenarios import SCENARIOS, Scenario
from tests.compat.tape import Tape


class Recording:
    """What is kept of one scenario in the folder of one version."""

    def __init__(self, version: Path, name: str) -> None:
        self.name = name
        self.version = version.name
        self.stores = version / "stores"
        self.conversations = version / "conversations"
        self.logs = version / "logs" / name
        self.findings = version / "logs" / f"{name}.json.gz"
        """What readers, checkers and replay make of the log."""
        self.store = self.stores / f"{name}.db.gz"
        self.crashed = self.stores / f"{name}.crashed.json.gz"
        """What those who died have to remember: when it was, names, what applications have had."""
        self.rows = self.stores / f"{name}.rows.json.gz"
        """What the files tell whoever opens them."""
        self.restored = self.stores / f"{name}.restored.json.gz"
        """What can be asked of the gateway that has started from them."""
        self.ended = self.stores / f"{name}.ended.json.gz"
        """The same when everything has come to its end, and what everybody has had."""

    def __str__(self) -> str:
        return f"{self.version}-{self.name}"

    def inbox(self, device: str) -> Path:
        return self.stores / f"{self.name}.{device}.inbox.gz"

    def tape(self, life: str) -> Path:
        return self.conversations / f"{self.name}.{life}.txt.gz"

    def said(self, life: str) -> Tape:
        """What was said in one of the two lives."""
        return Tape.read(kept(self.tape(life)).decode())

    def memory(self) -> dict[str, Any]:
        """What those who died have to remember."""
        found: dict[str, Any] = kept_json(self.crashed)
        return found

    def unpack(self, directory: Path) -> dict[str, Any]:
        """Put everything where a new life looks for it; what it has to remember."""
        (directory / "store").mkdir(parents=True)
        (directory / "store" / "store.db").write_bytes(kept(self.store))
        memory = self.memory()
        for device in (*memory["devices"], *memory["others"]):
            (directory / f"{device}.inbox").write_bytes(kept(self.inbox(device)))
        return memory


RECORDINGS = [
    recording
    for version in VERSIONS
    for name in SCENARIOS
    if (recording := Recording(HERE / version, name)).store.exists()
]


def first_life(
    scenario: Scenario,
    directory: Path,
    *,
    devices_say: Tape | None = None,
    gateway_says: Tape | None = None,
) -> Stage:
    """Until the crash, after which only files are left."""
    stage = Stage(directory, scenario.setting, devices_say=devices_say, gateway_says=gateway_says)
    scenario.first(stage)
    return stage


def second_life(
    scenario: Scenario,
    directory: Path,
    memory: Mapping[str, Any],
    *,
    devices_say: Tape | None = None,
    gateway_says: Tape | None = None,
) -> Stage:
    """From the files; nobody has done anything yet."""
    stage = Stage(
        directory,
        scenario.setting,
        now=memory["now"],
        life=2,
        names=memory["names"],
        devices_say=devices_say,
        gateway_says=gateway_says,
    )
    for name, remembered in memory["devices"].items():
        stage.device(name, **remembered["terms"]).remember(remembered)
    for name, remembered in memory["others"].items():
        ScriptDevice(stage, name, **remembered["terms"]).remember(remembered)
    return stage


def memory_of(stage: Stage) -> dict[str, Any]:
    """What those who die now have to remember."""
    return {
        "now": stage.time,
        "names": stage.names,
        "devices": {name: device.memory() for name, device in stage.devices.items()},
        "others": {name: device.memory() for name, device in stage.others.items()},
    }


def standing(stage: Stage, scenario: Scenario) -> dict[str, Any]:
    """What can be asked of a gateway: by its REST door, and by the stories of its deliveries."""
    named = {name: stage.ask(f"/v1/messages/{identity}") for name, identity in stage.names.items()}
    streams = {name: stage.ask(f"/v1/streams/{identity}") for name, identity in stage.names.items()}
    return {
        "answers": {path: stage.ask(path) for path in scenario.questions},
        "messages": named,
        "streams": {name: found for name, found in streams.items() if isinstance(found, dict)},
        "stories": stage.stories(),
        "surrogate": {} if scenario.setting.surrogate is None else stage.surrogate_state(),
    }


def outcome(stage: Stage, scenario: Scenario) -> dict[str, Any]:
    """How it all ended, for everybody."""
    return {
        **standing(stage, scenario),
        "said": stage.answers,
        "posts": [post.decode() for post in stage.posts],
        "devices": {name: device.memory() for name, device in stage.devices.items()},
        "others": {name: device.memory() for name, device in stage.others.items()},
    }
