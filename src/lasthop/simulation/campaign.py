"""A campaign: many fault schedules, over as many processes as there are cores, and their sum."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from multiprocessing import get_context

from lasthop.simulation.air.faults import run as run_air
from lasthop.simulation.faults import RehearsalOutcome, run
from lasthop.simulation.pap.faults import run as run_pap

CHUNK = 20
"""Schedules that a process takes at a time: half a second of work, so that progress is visible."""


@dataclass(slots=True)
class Tally:
    """What the schedules of a campaign have shown so far."""

    schedules: int = 0
    messages: int = 0
    crashes: int = 0
    commits: int = 0
    lost: int = 0
    duplicated: int = 0
    misordered: int = 0
    untrue: int = 0
    failing_seed: int | None = None
    """The smallest seed whose schedule breaks a promise; None if no schedule does."""
    why: str | None = None
    """The first broken promise of the schedule with the failing seed."""

    @property
    def good(self) -> bool:
        return self.failing_seed is None

    def add(self, other: Tally) -> None:
        """Add the counts of another tally; keep the smaller failing seed."""
        for name in ("schedules", "messages", "crashes", "commits"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("lost", "duplicated", "misordered", "untrue"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.failing_seed is not None and (
            self.failing_seed is None or other.failing_seed < self.failing_seed
        ):
            self.failing_seed = other.failing_seed
            self.why = other.why

    def as_dict(self) -> dict[str, object]:
        """Return the tally as a dictionary, for JSON."""
        return asdict(self)


STAGES: dict[str, Callable[..., RehearsalOutcome]] = {"hop": run, "pap": run_pap, "air": run_air}
"""What can be rehearsed: messages to devices, PAP pushes with their results, and pushes over the
air."""


def run_some(first: int, count: int, messages: int, sqlite_every: int, stage: str = "hop") -> Tally:
    """Run `count` schedules from the seed `first` on; every `sqlite_every`-th on a real SQLite
    store."""
    # The garbage of a rehearsal is collected when it is over: collecting again and again during it
    # takes a tenth of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _run_some(first, count, messages, sqlite_every, stage)
    finally:
        if collecting:
            gc.enable()
            gc.collect()


def _run_some(first: int, count: int, messages: int, sqlite_every: int, stage: str) -> Tally:
    tally = Tally()
    run = STAGES[stage]
    for seed in range(first, first + count):
        on_sqlite = sqlite_every > 0 and seed % sqlite_every == 0
        try:
            outcome = run(seed, messages=messages, sqlite=on_sqlite)
        except Exception as error:
            failed = Tally(schedules=1, lost=1, failing_seed=seed, why=repr(error))
            tally.add(failed)
            continue
        verdict = outcome.verdict
        tally.add(
            Tally(
                schedules=1,
                messages=outcome.messages,
                crashes=outcome.crashes,
                commits=outcome.commits,
                lost=verdict.lost,
                duplicated=verdict.duplicated,
                misordered=verdict.misordered,
                untrue=verdict.untrue,
                failing_seed=None if verdict.good else seed,
                why=None if verdict.good else verdict.lines[0],
            )
        )
    return tally


def campaign(
    *,
    schedules: int,
    seed: int,
    messages: int = 50,
    sqlite_every: int = 20,
    processes: int | None = None,
    stage: str = "hop",
    progress: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Run the schedules `seed`, `seed` + 1 ... and return the sum of what they show."""
    total = Tally()
    chunks = _chunks(seed, schedules)
    workers = min(processes or os.cpu_count() or 1, -(-schedules // CHUNK))
    if workers == 1:
        for first, count in chunks:
            total.add(run_some(first, count, messages, sqlite_every, stage))
            progress(total)
        return total
    # Worker processes must not inherit the threads of this process, so they are not forked from it.
    context = get_context("forkserver" if sys.platform != "win32" else "spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        running: set[Future[Tally]] = set()
        for first, count in chunks:
            running.add(pool.submit(run_some, first, count, messages, sqlite_every, stage))
            if len(running) >= 2 * workers:
                running = _collect(running, total, progress)
        while running:
            running = _collect(running, total, progress)
    return total


def _chunks(seed: int, schedules: int) -> Iterator[tuple[int, int]]:
    for first in range(seed, seed + schedules, CHUNK):
        yield first, min(CHUNK, seed + schedules - first)


def _collect(
    running: set[Future[Tally]], total: Tally, progress: Callable[[Tally], None]
) -> set[Future[Tally]]:
    done, left = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        total.add(future.result())
    progress(total)
    return left
