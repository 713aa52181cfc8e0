"""Event logs of earlier versions: read, followed, checked, and their decisions taken again.

About `docs/event-log.md`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lasthop.events import Kind
from tests.compat.files import HERE, VERSIONS, as_json, kept_json
from tests.compat.playing import Recording
from tests.compat.reading import findings, unpack_log

UNEXPLAINED = {"ranked": 1, "javascript": 1, "backup": 2}
"""Decisions of a recorded log that its replay does not take again. Nothing in the log says that the
rank of a message fell which the user of a device had seen before; and what a device tells of a
message of a plain topic that its user has read looks like the decision of a feed. A gateway that
went back to a backup is told of messages that came after it."""


READ_LATER = ("v1", "ranked")
"""The recording whose findings count messages as read at a look whose answer came too late to be
shown; today they count as read when the user saw them."""


def untimed(histories: Any) -> Any:
    """Which messages left and were read, without the times."""
    return {
        device: {topic: [sorted(key for key, _ in part) for part in parts] for topic, parts in of}
        for device, of in ((device, topics.items()) for device, topics in histories.items())
    }


def test_a_log_tells_what_it_told_then(recording: Recording, tmp_path: Path) -> None:
    found = as_json(findings(unpack_log(recording.logs, tmp_path)))
    recorded = kept_json(recording.findings)
    if (recording.version, recording.name) == READ_LATER:
        for part in ("done", "estimated"):
            found[part], recorded[part] = untimed(found[part]), untimed(recorded[part])
    again, then = found.pop("replayed"), recorded.pop("replayed")
    assert found == recorded
    assert again.keys() == then.keys()
    for device, (decisions, same) in again.items():
        assert decisions == then[device][0]
        assert same >= then[device][1]


def test_a_recorded_log_is_whole_and_explained(recording: Recording) -> None:
    found = kept_json(recording.findings)
    assert not found["problems"]
    left = sum(decisions - same for decisions, same in found["replayed"].values())
    assert left == UNEXPLAINED.get(recording.name, 0)


def recorded_kinds() -> Counter[str]:
    """How often every kind of event was recorded, in all versions together."""
    kinds: Counter[str] = Counter()
    for version in VERSIONS:
        for path in (HERE / version / "logs").glob("*.json.gz"):
            kinds.update(kept_json(path)["kinds"])
    return kinds


SINCE = {Kind.RECEIPTED}
"""Kinds that are newer than the last recording; the next one has them."""


@pytest.mark.parametrize("kind", sorted(set(Kind) - SINCE))
def test_every_kind_of_event_was_recorded(kind: Kind) -> None:
    """If this fails for a new kind: record a new version (see README.md)."""
    assert recorded_kinds()[kind]


def test_what_is_newer_was_not_recorded() -> None:
    assert not SINCE & set(recorded_kinds())
