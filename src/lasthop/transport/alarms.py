"""One timer for all links: ten thousand idle ones cost an entry in a set each, not a timer.

A link says when it next wants to be woken. It is looked at in the second in which that is due; if
it wants to be woken later by then, because something arrived, it is put off. So traffic hardly
ever touches a timer: only the answer to a ping brings the next one forward.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from lasthop.clock import SECOND, Clock, Micros


class Cancellable(Protocol):
    """A timer that has been set."""

    def cancel(self) -> None: ...


CallLater: TypeAlias = Callable[[float, Callable[[], None]], Cancellable]


class Sleeper(Protocol):
    """Somebody who wants to be woken."""

    slot: int
    """Where the alarms keep it; 0: nowhere."""

    def next_timeout(self) -> Micros | None:
        """When it wants to be woken; None: not any more."""
        ...

    def timeout(self) -> None:
        """It is time."""
        ...


class Alarms:
    """Wakes links in the second in which they want it."""

    def __init__(self, clock: Clock, call_later: CallLater | None = None) -> None:
        """`call_later` is the running loop's, unless a test brings its own."""
        self._clock = clock
        self._call_later = call_later
        self._slots: dict[int, set[Sleeper]] = {}
        self._timer: Cancellable | None = None
        self._next = 0

    def set(self, sleeper: Sleeper) -> None:
        """Wake it when it wants; call again when that is earlier than it was."""
        self.forget(sleeper)
        due = sleeper.next_timeout()
        if due is None:
            return
        sleeper.slot = slot = due // SECOND + 1
        self._slots.setdefault(slot, set()).add(sleeper)
        if self._timer is None or slot < self._next:
            self._arm(slot)

    def hasten(self, sleeper: Sleeper) -> None:
        """Something happened to a sleeper: if that makes it want to be woken earlier, it is."""
        due = sleeper.next_timeout()
        if due is not None and due // SECOND + 1 < sleeper.slot:
            self.set(sleeper)

    def forget(self, sleeper: Sleeper) -> None:
        """Do not wake it any more."""
        slot = self._slots.get(sleeper.slot)
        if slot is not None:
            slot.discard(sleeper)
            if not slot:
                del self._slots[sleeper.slot]
        sleeper.slot = 0

    def close(self) -> None:
        """Wake nobody any more."""
        self._slots.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, slot: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = slot
        delay = max(0, slot * SECOND - self._clock.now()) / SECOND
        # Seen from a clock that can be set, an hour ahead may be now: look once a minute at least.
        call_later = self._call_later or asyncio.get_running_loop().call_later
        self._timer = call_later(min(delay, 60), self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = self._clock.now()
        for slot in sorted(slot for slot in self._slots if slot * SECOND <= now):
            for sleeper in self._slots.pop(slot):
                sleeper.slot = 0
                due = sleeper.next_timeout()
                if due is not None and due <= now:
                    sleeper.timeout()
                if sleeper.slot == 0:
                    self.set(sleeper)
        if self._slots:
            # Whoever was put off may have set the timer, and later than others want it.
            self._arm(min(self._slots))
