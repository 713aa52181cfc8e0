"""What there is to find in recordings: in an event log by readers, the checker and the replay of
decisions; in a conversation the frames."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lasthop.eventlog.check import LogCheck
from lasthop.eventlog.reader import LogReader
from lasthop.eventlog.story import explain
from lasthop.eventlog.tail import Tail
from lasthop.events import Event
from lasthop.pipeline.replay import (
    COLUMNS,
    ReplayRow,
    TopicHistory,
    as_logged,
    check,
    estimate,
    moments,
)
from lasthop.wire.hop.decoder import Decoder
from lasthop.wire.hop.frames import Frame
from lasthop.wire.hop.mapping import Mapping
from tests.compat.files import keep, kept
from tests.compat.tape import Tape


def keep_log(log: Path, place: Path) -> None:
    """Pack the sealed segments of a log."""
    for segment in sorted(log.rglob("*.jsonl")):
        keep(place / f"{segment.relative_to(log)}.gz", segment.read_bytes())


def unpack_log(place: Path, log: Path) -> Path:
    """Put them back where readers look for them."""
    for packed in sorted(place.rglob("*.jsonl.gz")):
        segment = log / packed.relative_to(place).with_suffix("")
        segment.parent.mkdir(parents=True, exist_ok=True)
        segment.write_bytes(kept(packed))
    return log


def findings(log: Path) -> dict[str, Any]:
    """Everything that is made of a log without Spark."""
    with LogReader(log) as reader:
        reader.refresh()
        events = list(reader.events())
        checked = LogCheck()
        checked.read(reader)
        report = checked.finish()
        followed = Tail(reader, start=0).poll(1 << 20) or []
    tallies = {
        app: [tally.accepted, tally.open, dict(sorted(tally.ended.items()))]
        for app, tally in report.apps.items()
    }
    histories = _histories(events)
    return {
        "end": report.end,
        "kinds": dict(sorted(Counter(event.kind for event in events).items())),
        "problems": report.problems,
        "tallies": tallies,
        "followed": len(followed),
        "told": [str(told) for told in explain(events)],
        "replayed": {device: _replayed(rows) for device, rows in histories.items()},
        "done": {device: _done(rows) for device, rows in histories.items()},
        "estimated": {device: _estimated(rows) for device, rows in histories.items()},
    }


def _histories(events: list[Event]) -> dict[str, list[ReplayRow]]:
    """Every device's events, in their order."""
    devices: dict[str, list[ReplayRow]] = defaultdict(list)
    for event in events:
        if event.dev:
            devices[event.dev].append(ReplayRow(*(getattr(event, name) for name in COLUMNS)))
    return devices


def _replayed(rows: list[ReplayRow]) -> list[int]:
    agreement = check(rows)
    return [agreement.decisions, agreement.same]


def _done(rows: list[ReplayRow]) -> dict[str, Any]:
    topics = sorted({row.topic for row in rows if row.topic})
    return _plain(as_logged(rows, topics))


def _estimated(rows: list[ReplayRow]) -> dict[str, Any]:
    return _plain(estimate(moments(rows), lambda _, terms: terms.decider()))


def _plain(stories: dict[str, TopicHistory]) -> dict[str, Any]:
    return {
        topic: [list(story.forwarded.items()), list(story.read.items())]
        for topic, story in sorted(stories.items())
        if story.forwarded or story.read
    }


_MAPPINGS = {"stream": Mapping.STREAM, "datagram": Mapping.DATAGRAM, "held": Mapping.UNORDERED}


def frames_in(tape: Tape) -> Iterator[tuple[str, Frame]]:
    """Every frame of a conversation, and who said it."""
    mappings = {
        said.wire: _MAPPINGS[said.data.decode().split()[0]]
        for said in tape.session_events
        if said.what == "dial"
    }
    decoders: dict[tuple[int, str], Decoder] = {}
    for said in tape.session_events:
        if said.what != "bytes":
            continue
        decoder = decoders.get((said.wire, said.who))
        if decoder is None:
            decoder = decoders[said.wire, said.who] = Decoder(mappings[said.wire])
            decoder.begin(next_seq=0)
        yield from ((said.who, frame) for frame in decoder.decode(said.data))
