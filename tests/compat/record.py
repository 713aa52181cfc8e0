"""Record a version: `python -m tests.compat.record v2`. See the README before you do.

Nothing here depends on the clock or on chance: the same code records the same files.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.compat.adapter import held, restored
from tests.compat.files import HERE, copy_database, keep, keep_json
from tests.compat.playing import (
    Recording,
    first_life,
    memory_of,
    outcome,
    second_life,
    standing,
)
from tests.compat.reading import findings, keep_log
from tests.compat.scenarios import SCENARIOS, Scenario


def record(scenario: Scenario, version: Path, scratch: Path) -> None:
    """Play a scenario from its beginning to its end, and keep everything."""
    recording = Recording(version, scenario.name)
    if recording.store.exists():
        raise SystemExit(f"{recording} was recorded before, which is how it stays")
    stage = first_life(scenario, scratch / "first")
    memory = memory_of(stage)
    memory["said"] = stage.answers
    memory["posts"] = [post.decode() for post in stage.posts]
    stage.crash()
    keep(recording.tape("first"), stage.tape.text().encode())
    store = copy_database(scratch / "first" / "store" / "store.db", scratch / "copy")
    keep(recording.store, store)
    for name in stage.devices:
        inbox = copy_database(scratch / "first" / f"{name}.inbox", scratch / "copy")
        keep(recording.inbox(name), inbox)
    for name in stage.others:
        keep(recording.inbox(name), (scratch / "first" / f"{name}.inbox").read_bytes())
    keep_json(recording.crashed, memory)
    memory = recording.unpack(scratch / "rows")
    rows = {
        "store": restored(scratch / "rows" / "store"),
        "inboxes": {name: held(scratch / "rows" / f"{name}.inbox") for name in memory["devices"]},
    }
    keep_json(recording.rows, rows)
    stage = second_life(scenario, scratch / "second", recording.unpack(scratch / "second"))
    keep_json(recording.restored, standing(stage, scenario))
    scenario.second(stage)
    keep_json(recording.ended, outcome(stage, scenario))
    stage.export(scratch / "log")
    keep(recording.tape("second"), stage.tape.text().encode())
    stage.crash()
    keep_log(scratch / "log", recording.logs)
    keep_json(recording.findings, findings(scratch / "log"))


def main(version: str, names: list[str]) -> None:
    """Record all scenarios, or some."""
    for name in names or list(SCENARIOS):
        with tempfile.TemporaryDirectory(prefix="lasthop-compat-") as scratch:
            record(SCENARIOS[name], HERE / version, Path(scratch))
        print(name)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
