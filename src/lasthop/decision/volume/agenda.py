"""When a topic may show something unasked: its quiet hours, its times of the day, its daily
maximum."""

from __future__ import annotations

from datetime import date
from math import inf

from lasthop.clock import Micros
from lasthop.decision.localtime import local, zone
from lasthop.decision.volume.memory import AgendaState
from lasthop.decision.volume.subscription import Mode, Subscription
from lasthop.decision.volume.times_of_day import next_of


class Agenda:
    """Says, for one subscription and any time of the day, whether events may be shown without the
    user asking."""

    def __init__(self, subscription: Subscription, now: Micros) -> None:
        self._subscription = subscription
        self._zone = zone(subscription.zone)
        self._on_line = subscription.mode is Mode.ON_LINE
        self._quiet = False
        self._muted = False
        self.open = False
        """Whether an arriving event is shown at once."""
        self.due = False
        """Whether one of the times of the day at which events are shown has come, and nothing has
        been shown since."""
        self.next_change: Micros | None = None
        """When `open` or `due` may change by time alone; None: never."""
        self._day: date | None = None
        self._shown_today = 0
        self._look(now)

    @property
    def catching_up(self) -> bool:
        """Whether a device in contact is to be shown the best of the waiting events."""
        return self.open or (self.due and not self._quiet and not self._muted)

    def mute(self, quiet: bool) -> None:
        """Silence the topic because of the user's context, or end the silence."""
        self._muted = quiet
        self._decide()

    def turn(self, now: Micros) -> bool:
        """Move the agenda on to the time `now`; return whether a catch-up, which shows the waiting
        events, begins now."""
        if self.next_change is None or now < self.next_change:
            return False
        s = self._subscription
        was_open = self.open
        if s.times and next_of(s.times, self._zone, self.next_change - 1) <= now:
            self.due = True
        self._look(now)
        return self.catching_up and not was_open

    def allowance(self, now: Micros) -> int | None:
        """Return how many events a catch-up may show; `None`: no limit."""
        s = self._subscription
        if s.max_per_day is None:
            return s.max
        self.shown(0, now)
        left = max(0, s.max_per_day - self._shown_today)
        return left if s.max is None else min(left, s.max)

    def shown(self, count: int, now: Micros) -> None:
        """Count events that were shown without the user asking; events that interrupt are counted
        too, but are never held up."""
        s = self._subscription
        if s.max_per_day is not None:
            today = local(now, self._zone).date()
            if today != self._day:
                self._day, self._shown_today = today, 0
            self._shown_today += count

    def state(self) -> AgendaState:
        """Return the state of the agenda as plain values."""
        day = None if self._day is None else self._day.toordinal()
        return AgendaState(
            self._quiet, self._muted, self.due, self.next_change, day, self._shown_today
        )

    def resume(self, state: AgendaState) -> None:
        """Continue from a stored state; the next `turn` notices a time that has passed
        meanwhile."""
        self._quiet = state.quiet
        self._muted = state.muted
        self.due = state.due
        self.next_change = state.next_change
        self._day = None if state.day is None else date.fromordinal(state.day)
        self._shown_today = state.shown_today
        self._decide()

    def _look(self, now: Micros) -> None:
        """Find out whether it is quiet now, and when to look again."""
        s = self._subscription
        changes = [next_of(s.times, self._zone, now)] if s.times else []
        if s.quiet is not None:
            end = s.quiet.next(now, -inf)
            self._quiet = end != now
            if end is None or end == now:
                end = next_of([s.quiet.start], zone(s.quiet.zone), now)
            changes.append(end)
        self.next_change = min(changes, default=None)
        self._decide()

    def _decide(self) -> None:
        timed = bool(self._subscription.times)
        self.open = self._on_line and not timed and not self._quiet and not self._muted
