"""Recorded conversations: one side says again what it said, the other one has to answer as it did,
byte by byte and at the same time."""

from __future__ import annotations

from pathlib import Path

from tests.compat.files import as_json, kept_json
from tests.compat.playing import Recording, first_life, second_life
from tests.compat.scenarios import SCENARIOS


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
    scenario = SCENARIOS[recording.name]
    said = recording.said("first")
    stage = first_life(scenario, tmp_path / "first", gateway_says=said)
    stage.crash()
    assert stage.tape.said_by("device") == said.said_by("device")
    said = recording.said("second")
    memory = recording.unpack(tmp_path / "second")
    stage = second_life(scenario, tmp_path / "second", memory, gateway_says=said)
    scenario.second(stage)
    had = as_json({name: device.memory() for name, device in stage.devices.items()})
    stage.crash()
    assert stage.tape.said_by("device") == said.said_by("device")
    assert had == kept_json(recording.ended)["devices"]
