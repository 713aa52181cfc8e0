"""The thread that a live gateway writes from.

The event loop submits commits and goes on; this thread applies all commits that have gathered since
it last looked, together, and reports them. Group commit needs no timer: the slower the disk, the
larger the groups.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition, Thread
from typing import NamedTuple, TypeAlias, TypeVar

from lasthop.errors import StoreBroken, StoreError
from lasthop.store.base import Store
from lasthop.store.commit import Commit

Done: TypeAlias = Callable[[int, StoreError | None], None]
"""Called with the number of a commit, and the error if it was refused. Runs on the writer's
thread."""

Result = TypeVar("Result")


class _Submission(NamedTuple):
    commit: Commit
    done: Done


_Work: TypeAlias = Callable[[], None]


class CommitWriter:
    """Owns a thread and, until it is closed, a store that has been opened.

    When a commit is refused for want of room, nothing of it was written. All later ones are refused
    with the same error until that commit is submitted again. When the store is broken, everything
    is refused from then on: commits that were not confirmed may or may not be there after a
    restart, which is the only way on.
    """

    def __init__(self, store: Store, *, next_commit: int) -> None:
        self._store = store
        self._next = next_commit
        self._refusal: StoreError | None = None
        self._submitted: list[_Submission] = []
        self._asked: list[_Work] = []
        self._something_to_do = Condition()
        self._closed = False
        self._thread = Thread(target=self._run, name="lasthop-store")
        self._thread.start()

    def submit(self, commit: Commit, done: Done) -> None:
        """Write this commit after those submitted before it; `done` is called with the result."""
        with self._something_to_do:
            self._refuse_if_closed()
            self._submitted.append(_Submission(commit, done))
            self._something_to_do.notify()

    def call(self, work: Callable[[Store], Result]) -> Future[Result]:
        """Run `work` with the store between commits, such as a step of `retire`; return its future
        result.

        Commits submitted before have been written by then.
        """
        future: Future[Result] = Future()

        def carry_out() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = work(self._store)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        with self._something_to_do:
            self._refuse_if_closed()
            self._asked.append(carry_out)
            self._something_to_do.notify()
        return future

    def close(self) -> None:
        """Write what was submitted, stop the thread, and close the store. Closing twice is
        allowed."""
        with self._something_to_do:
            self._closed = True
            self._something_to_do.notify()
        self._thread.join()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreBroken("the writer is closed")

    def _run(self) -> None:
        try:
            while True:
                submitted, asked = self._take()
                if not (submitted or asked):
                    return
                self._write(submitted)
                for work in asked:
                    work()
        finally:
            self._store.close()

    def _take(self) -> tuple[list[_Submission], list[_Work]]:
        """Return everything that waits, as soon as something does; nothing once closed."""
        with self._something_to_do:
            while not (self._submitted or self._asked or self._closed):
                self._something_to_do.wait()
            taken = self._submitted, self._asked
            self._submitted, self._asked = [], []
            return taken

    def _write(self, submitted: list[_Submission]) -> None:
        group: list[_Submission] = []
        for submission in submitted:
            if self._refusal is not None and submission.commit.n != self._next + len(group):
                # Submitted before its sender could know that an earlier commit was refused.
                submission.done(submission.commit.n, self._refusal)
            else:
                group.append(submission)
        if group:
            self._apply(group)

    def _apply(self, group: list[_Submission]) -> None:
        if not isinstance(self._refusal, StoreBroken):
            self._refusal = self._outcome([submission.commit for submission in group])
        if self._refusal is None:
            self._next = group[-1].commit.n + 1
        for commit, done in group:
            done(commit.n, self._refusal)

    def _outcome(self, commits: list[Commit]) -> StoreError | None:
        try:
            self._store.apply(*commits)
        except StoreError as error:
            return error
        except Exception as error:
            broken = StoreBroken("the store failed", cause=repr(error))
            broken.__cause__ = error
            return broken
        return None
