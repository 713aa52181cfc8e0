"""Recorded conversations: one side says again what it said, the other one has to answer as it did,
byte by byte and at the same time."""

from __future__ import annotations

from pathlib import Path

from tests.compat.files import as_json, kept_json
from tests.compat.playing import Recording, first_life, memory_of, second_life
from tests.compat.scenarios import JAVASCRIPT, SCENARIOS
from tests.wire.installed import need


def test_the_gateway_says_the_same_bytes(recording: Recording, tmp_path: Path) -> None:
    scenario = SCENARIOS[recording.name]
    said = recording.said("first")
    stage = first_life(scenario, tmp_path / "first", devices_say=said)
    stage.crash()
    assert stage.tape.said_by("gateway") == said.said_by("gateway")
    said = recording.said("second")
    memory = recording.unpack(tmp_path / "second")
    stage = second_life(scenario, tmp_path / "second", memory, devices_say=said)
    scenario.second(stage)
    stage.crash()
    assert stage.tape.said_by("gateway") == said.said_by("gateway")


def test_a_device_says_the_same_bytes(recording: Recording, tmp_path: Path) -> None:
    if recording.name == JAVASCRIPT:
        need("node")
    scenario = SCENARIOS[recording.name]
    said = recording.said("first")
    stage = first_life(scenario, tmp_path / "first", gateway_says=said)
    stage.crash()
    assert stage.tape.said_by("device") == said.said_by("device")
    said = recording.said("second")
    memory = recording.unpack(tmp_path / "second")
    stage = second_life(scenario, tmp_path / "second", memory, gateway_says=said)
    scenario.second(stage)
    had = as_json(memory_of(stage))
    stage.crash()
    assert stage.tape.said_by("device") == said.said_by("device")
    ended = kept_json(recording.ended)
    assert (had["devices"], had["others"]) == (ended["devices"], ended["others"])
