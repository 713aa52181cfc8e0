"""Checks a data directory: the store's files, and whether the store and the event log agree on how
far they are."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from lasthop.errors import StoreBroken
from lasthop.eventlog.reader import LogReader
from lasthop.events import Event, Kind
from lasthop.runtime.places import LOG_DIRECTORY
from lasthop.store.sqlite import SqliteReader
from lasthop.store.sqlite.check import FileCheck, check_files

MOST_READ = 100_000
"""Events behind the store's end that are looked at to say whom they concern."""

WHO = """\
publishers: messages that had been answered as accepted are gone ({accepted} that the event log\
 has). Publish them again; with the same idempotency keys nothing is doubled.
devices: those that had acknowledged what is gone ({acknowledged} acknowledgements that the event\
 log has) claim more than the gateway knows. They get a new numbering, and recognise by its id\
 what they have had already: nothing comes twice.
devices that sent: what the gateway had acknowledged and does not have any more is lost, since it\
 is no longer in their outbox."""
"""What a store without its last commits means for whom."""


@dataclass(slots=True)
class StoreReport:
    """What `lasthop store check` has to say."""

    files: FileCheck
    problems: list[str]
    notes: list[str]
    cut_off: bool = False
    """Whether commits that others know of are gone."""
    log_end: int = 0

    @property
    def sound(self) -> bool:
        return not self.problems


def check_store(data: Path) -> StoreReport:
    """Check a data directory, whether or not a gateway is using it; raise StoreBroken if there is
    no store."""
    # In this order a gateway that goes on meanwhile can only make the store look newer.
    exported = _exported(data)
    with LogReader(data / LOG_DIRECTORY) as reader:
        log_end = reader.end()
        files = check_files(data)
        report = StoreReport(files, list(files.problems), [], log_end=log_end)
        if files.log.ignored:
            report.cut_off = True
            report.problems.append(
                f"the store's log is damaged: {files.log.ignored} commits behind the damage were"
                " written and are gone"
            )
        if log_end > files.next_event and files.next_commit:
            report.cut_off = True
            report.problems.append(
                f"the last commits were cut off: the store ends before event {files.next_event},"
                f" the event log has events up to {log_end - 1}"
            )
        if report.cut_off:
            report.problems += _whom(_beyond(reader, files.next_event))
    if exported is not None and log_end < exported:
        report.problems.append(
            f"the event log is cut off: events {log_end} to {exported - 1} were exported, and their"
            " files are gone; deliveries are not affected, explanations and the pipeline lack them"
        )
    if files.log.torn:
        report.notes.append(
            f"{files.log.torn} bytes of a commit that was not finished: nobody was told of it"
        )
    if files.unchecked:
        report.notes.append(
            f"{files.unchecked} pages were written before there were checksums, and have none"
        )
    return report


def _exported(data: Path) -> int | None:
    try:
        with closing(SqliteReader.beside(data)) as store:
            return store.exported_to()
    except StoreBroken:
        # Either there is no store, or it is so damaged that `check_files` will say so.
        return None


def _beyond(reader: LogReader, offset: int) -> list[Event]:
    events: list[Event] = []
    # Where the log is damaged too, what precedes the damage is counted.
    with suppress(StoreBroken):
        events.extend(reader.events(offset, offset + MOST_READ))
    return events


def _whom(gone: list[Event]) -> list[str]:
    """Say what it means that these events' commits are gone."""
    accepted = len({event.msg for event in gone if event.kind == Kind.ACCEPTED})
    acknowledged = sum(event.kind in (Kind.RECEIVED, Kind.DELIVERED) for event in gone)
    return WHO.format(accepted=accepted, acknowledged=acknowledged).splitlines()
