"""A clock of a process's own, which can be moved: libfaketime between the process and its system.

Linux lets nobody move the time of day for one process, and a time namespace moves only the clocks
that nobody reads the date from. A library that is loaded into the process can; a user's gateway
does not run with one, so that chaos moves clocks only when it is asked to.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lasthop.runtime.failure import Failure


class MovableClock:
    """The clock of one process, by a file that the process looks at once a second."""

    def __init__(self, library: Path, file: Path) -> None:
        self._file = file
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            # Only the time of day: event loops wait by the other clock.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_CACHE_DURATION": "1",
            "NO_FAKE_STAT": "1",
        }
        """What the process is to be started with."""
        self.move(0)

    def move(self, seconds: int) -> None:
        """Put the clock so many seconds ahead of the system's, or behind it."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.rename(self._file)  # Nobody reads half a number.


def check_library(library: Path) -> None:
    """Raise `Failure` if there is no such library."""
    if not library.is_file():
        raise Failure(f"--faketime {library}: there is no such file (Debian: apt install faketime)")
