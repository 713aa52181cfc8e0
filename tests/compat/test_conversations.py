"""Recorded conversations: one side says again what it said, the other one has to answer as it did,
byte by byte and at the same time, and to write to its disk what it wrote then.

About `docs/hop-protocol.md`.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from lasthop.wire.hop.frames import Frame, MessageFrame, Operation
from tests.compat.adapter import as_written_today, held, restored
from tests.compat.files import as_json, kept, kept_json, known
from tests.compat.playing import RECORDINGS, Recording, first_life, memory_of, second_life
from tests.compat.reading import frames_in
from tests.compat.scenarios import NEED_NODE, SCENARIOS
from tests.wire.installed import need


def test_the_gateway_says_the_same_bytes(recording: Recording, tmp_path: Path) -> None:
    scenario = SCENARIOS[recording.name]
    said = recording.said("first")
    stage = first_life(scenario, tmp_path / "first", devices_say=said)
    stage.crash()
    assert stage.tape.said_by("gateway") == said.said_by("gateway")
    rows = as_written_today(kept_json(recording.rows)["store"], recording.version)
    assert known(as_json(restored(tmp_path / "first" / "store")), rows) == rows
    said = recording.said("second")
    memory = recording.unpack(tmp_path / "second")
    stage = second_life(scenario, tmp_path / "second", memory, devices_say=said)
    scenario.second(stage)
    stage.crash()
    assert stage.tape.said_by("gateway") == said.said_by("gateway")


def test_a_device_says_the_same_bytes(recording: Recording, tmp_path: Path) -> None:
    if recording.name in NEED_NODE:
        need("node")
    scenario = SCENARIOS[recording.name]
    said = recording.said("first")
    stage = first_life(scenario, tmp_path / "first", gateway_says=said)
    stage.crash()
    assert stage.tape.said_by("device") == said.said_by("device")
    for name, rows in kept_json(recording.rows)["inboxes"].items():
        assert known(as_json(held(tmp_path / "first" / f"{name}.inbox")), rows) == rows
    for name in stage.others:
        inbox = (tmp_path / "first" / f"{name}.inbox").read_bytes()
        assert inbox == kept(recording.inbox(name))
    said = recording.said("second")
    memory = recording.unpack(tmp_path / "second")
    stage = second_life(scenario, tmp_path / "second", memory, gateway_says=said)
    scenario.second(stage)
    had = as_json(memory_of(stage))
    stage.crash()
    assert stage.tape.said_by("device") == said.said_by("device")
    ended = kept_json(recording.ended)
    assert (had["devices"], had["others"]) == (ended["devices"], ended["others"])


def test_every_frame_and_every_operation_was_said() -> None:
    """If this fails for a new one: record a new version (see README.md)."""
    said: set[str] = set()
    for recording in RECORDINGS:
        for life in ("first", "second"):
            for _, frame in frames_in(recording.said(life)):
                said.add(type(frame).__name__)
                if isinstance(frame, MessageFrame) and frame.headers is not None:
                    said.add(Operation(frame.headers.operation).name)
    # No side offers lanes yet, so no conversation has any; other ways are told only where they are
    # configured.
    assert {kind.__name__ for kind in get_args(Frame)} - {"LaneFrame", "OtherWays"} <= said
    assert {operation.name for operation in Operation} <= said
