"""One timer for all links: ten thousand idle ones cost an entry in a set each, not a timer.

A link says when it next wants to be woken, and is checked in the second in which that is due; if
something arrived and it wants to be woken later by then, it is postponed. So traffic hardly ever
touches a timer: only the answer to a ping brings the next one forward.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from lasthop.clock import SECOND, Clock, Micros


class Cancellable(Protocol):
    """A timer that has been set and can be cancelled."""

    def cancel(self) -> None: ...


CallLater: TypeAlias = Callable[[float, Callable[[], None]], Cancellable]


class Sleeper(Protocol):
    """An object that is to be woken at a time, such as a link."""

    slot: int
    """The second in which the alarms will check this object; 0 if it is not registered."""

    def next_timeout(self) -> Micros | None:
        """Return when to call `timeout`; None if that is not needed any more."""
        ...

    def timeout(self) -> None:
        """Act because the time of `next_timeout` has come."""
        ...


class Alarms:
    """Wakes links in the second in which they ask for it."""

    def __init__(self, clock: Clock, call_later: CallLater | None = None) -> None:
        """Start without entries; `call_later` is that of the running loop, unless a test provides
        its own."""
        self._clock = clock
        self._call_later = call_later
        self._slots: dict[int, set[Sleeper]] = {}
        self._timer: Cancellable | None = None
        self._next = 0

    def set(self, sleeper: Sleeper) -> None:
        """Register the sleeper for its next timeout; call again when that becomes earlier."""
        self.forget(sleeper)
        due = sleeper.next_timeout()
        if due is None:
            return
        sleeper.slot = slot = due // SECOND + 1
        self._slots.setdefault(slot, set()).add(sleeper)
        if self._timer is None or slot < self._next:
            self._arm(slot)

    def hasten(self, sleeper: Sleeper) -> None:
        """Register a sleeper again if its next timeout has become earlier."""
        due = sleeper.next_timeout()
        if due is not None and due // SECOND + 1 < sleeper.slot:
            self.set(sleeper)

    def forget(self, sleeper: Sleeper) -> None:
        """Remove the sleeper: do not wake it any more."""
        slot = self._slots.get(sleeper.slot)
        if slot is not None:
            slot.discard(sleeper)
            if not slot:
                del self._slots[sleeper.slot]
        sleeper.slot = 0

    def close(self) -> None:
        """Remove all sleepers and cancel the timer."""
        self._slots.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, slot: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = slot
        delay = max(0, slot * SECOND - self._clock.now()) / SECOND
        # The wall clock can be set, so that what is an hour ahead may be due at once: check at
        # least once a minute.
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
            # A sleeper that was postponed may have set the timer later than others need it.
            self._arm(min(self._slots))
