"""Exports events from the store to sealed segments: each event once, in order, despite
interruptions.

The store keeps an event until it is told that it was exported, which happens after the segment with
it is sealed. So everything in an unsealed segment is still in the store: after a crash or a failed
write the segment is discarded and written again. (Continuing it from its last whole line would save
little and prove nothing: after a loss of power any block before that line may be missing.)

An exporter has no thread and no clock: its owner calls `step`, and again at the time that `step`
returns.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from lasthop.clock import SECOND, Micros
from lasthop.errors import StoreBroken, StoreError, StoreFull
from lasthop.eventlog.files import RealFiles
from lasthop.eventlog.segment import (
    OpenSegment,
    day_of,
    end_stamps,
    sealed_segments,
    stamp_of,
    stamps_of,
    unsealed_files,
)
from lasthop.eventlog.source import EventPages, Page

STEP_BYTES = 256 << 10
"""Bytes copied in one step: about a thousand events, and less than a millisecond in which the
interpreter does nothing else."""

POLL = 1 * SECOND
"""How soon to look for new events when there were few: well within a segment's age, and long enough
to copy many at once."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """The size and age at which a segment is sealed and the next one begins; a new date always
    begins a new segment."""

    size: int = 64 << 20
    """Bytes after which a segment is sealed: Spark reads files of 32 to 128 MB best."""
    age: Micros = 10 * SECOND
    """Age at which a segment is sealed: how far the sealed log may lag behind. Only a busy gateway
    has a file that often: without events there is no segment."""


class Exporter:
    """Copies committed events to segments under `log`.

    `confirm` is the store's `exported`, on whichever thread that may be called. `rolling` may be
    changed at any time: seal often while segments are being followed, rarely while they are not.
    """

    def __init__(
        self,
        log: Path,
        pages: EventPages,
        *,
        confirm: Callable[[int], None],
        rolling: Rolling | None = None,
        files: RealFiles | None = None,
    ) -> None:
        self.rolling = rolling or Rolling()
        self._log = log
        self._pages = pages
        self._confirm = confirm
        self._files = files or RealFiles()
        self._next: int | None = None
        """The offset to copy next; None until the existing segments were examined."""
        self._open: OpenSegment | None = None
        self._since: Micros = 0
        """The time from which the age of the open segment counts."""

    def step(self, now: Micros) -> Micros:
        """Copy a bounded amount, seal what is due, and return when to call again.

        Raises `StoreFull` when the disk has no room, another `StoreError` when it fails: nothing is
        lost then, and the next step begins again after the last sealed segment.
        """
        with self._starting_over_on_failure():
            copied = self._copy_some(now)
            if self._open is not None and now - self._since >= self.rolling.age:
                self._seal()
            if copied >= STEP_BYTES // 2:
                return now
            if self._open is not None:
                return min(now + POLL, self._since + self.rolling.age)
            return now + POLL

    def finish(self, now: Micros) -> None:
        """Export and seal all events, however new, because the gateway is about to stop."""
        with self._starting_over_on_failure():
            while self._copy_some(now):
                pass
            self._seal()

    @contextmanager
    def _starting_over_on_failure(self) -> Iterator[None]:
        """After any failure discard the open segment, so that the next step examines the files
        again."""
        try:
            yield
        except BaseException as error:
            self._next = None
            unfinished, self._open = self._open, None
            if unfinished is not None:
                with suppress(OSError):
                    unfinished.discard()
            if isinstance(error, OSError):
                raise _cause(error, self._log) from error
            raise

    def _copy_some(self, now: Micros) -> int:
        """Copy the next events; return how many bytes they had."""
        if self._next is None:
            self._next = self._recover()
        pages = self._pages.events(self._next, STEP_BYTES)
        for page in pages:
            self._copy(page, now)
        return sum(len(page.lines) for page in pages)

    def _recover(self) -> int:
        """Remove what was interrupted, and return the offset of the first event that is in no
        segment."""
        self._files.make_directory(self._log)
        self._files.sync_directory(self._log.parent)
        for path in unsealed_files(self._log):
            self._files.remove(path)
        exported = self._pages.exported_to()
        segments = sealed_segments(self._log)
        if not segments:
            return exported
        newest = segments[-1]
        line = newest.last_line()
        end = stamp_of(line).n + 1
        if end <= exported:
            return exported
        # The segment is sealed, but the store was not told. Its name may not be on the disk yet
        # either.
        if self._pages.event_at(end - 1) != line:
            raise StoreBroken(
                "these segments are of another incarnation of the store (was it restored from a"
                " backup?): move them away",
                segment=str(newest.path),
                exported=exported,
            )
        self._files.sync_directory(newest.path.parent)
        self._confirm(end)
        return end

    def _copy(self, page: Page, now: Micros) -> None:
        first, last = end_stamps(page.lines)
        whole = last.n - first.n + 1 == page.count == page.lines.count(b"\n")
        if page.first != self._next or first.n != page.first or not whole:
            raise StoreBroken("the store's events have a gap", wanted=self._next, got=page.first)
        if day_of(first.t) == day_of(last.t):
            # A page is one commit, and while a gateway runs its time does not go back: the events
            # in between are of the same day and need not be examined.
            self._append(page.lines, page.count, time=first.t, now=now)
            return
        stamps = stamps_of(page.lines)
        lines = iter(page.lines.splitlines(keepends=True))
        for _, group in groupby(stamps, key=lambda stamp: day_of(stamp.t)):
            run = list(group)
            part = b"".join(next(lines) for _ in run)
            self._append(part, len(run), time=run[0].t, now=now)

    def _append(self, lines: bytes, count: int, *, time: Micros, now: Micros) -> None:
        """Write events of one day, in a new segment if the open one is of another day."""
        assert self._next is not None
        day = day_of(time)
        if self._open is not None and self._open.day != day:
            self._seal()
        if self._open is None:
            self._open = OpenSegment(self._files, self._log, first=self._next, day=day)
            # By the event's own time, so that a gateway that restarts often still seals segments.
            self._since = min(time, now)
        self._open.add(lines)
        self._next += count
        if self._open.size >= self.rolling.size:
            self._seal()

    def _seal(self) -> None:
        if self._open is None:
            return
        assert self._next is not None
        self._open.seal()
        self._open = None
        self._confirm(self._next)


def _cause(error: OSError, log: Path) -> StoreError:
    if error.errno in _NO_ROOM:
        return StoreFull("no room for the event log; the store keeps the events", path=str(log))
    return StoreError(f"the event log cannot be written: {error}", path=str(log))
