"""The part of a device's session that obeys the preferences for sending: which links to use, and
what may be spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lasthop.clock import Micros
from lasthop.decision.budgets import BudgetMeter
from lasthop.decision.preferences import Preferences
from lasthop.device.change import BUDGETS, PREFERENCES, Change, InboxContents
from lasthop.device.outbox_order import PieceSource
from lasthop.device.part import DevicePart
from lasthop.device.plain_order import PlainOrder
from lasthop.device.preferences.explanation import Explanation
from lasthop.device.preferences.preference_order import PreferenceOrder
from lasthop.device.preferences.sending_preferences import (
    NO_PREFERENCES,
    OpenChannel,
    SendingPreferences,
)
from lasthop.device.session_core import SessionCore
from lasthop.device.session_events import LinksWanted, SessionEvent
from lasthop.wire.hop.frames import Frame, Wanted


class PreferencePart(DevicePart):
    """The preferences of the device's user for sending; without preferences every message leaves at
    once."""

    def __init__(self, core: SessionCore, source: PieceSource, held: InboxContents) -> None:
        self._core = core
        self._source = source
        self._lines: dict[int, OpenChannel] = {}
        """The open channels, by the numbers that the driver gave them."""
        self._order: PreferenceOrder | None = None
        self._wanted: tuple[str, ...] = ()
        self._notes: dict[str, bytes] = {}
        # The time of the last message before the restart: it can only be behind.
        kept = SendingPreferences.restore(held.notes, self._lines, core.last_time)
        if kept is not None:
            self._order = self._begin(kept)

    def _begin(self, preferences: SendingPreferences) -> PreferenceOrder:
        order = PreferenceOrder(preferences, self._core, self._source)
        self._core.outbox.use(order)
        return order

    # The application.

    def prefer(self, preferences: Preferences) -> None:
        """Set which links to send over, and what may be spent; durable with the next change."""
        if preferences == NO_PREFERENCES:
            if self._order is not None:
                self._order = None
                self._core.outbox.use(PlainOrder(self._core.outbox))
                self._notes = {PREFERENCES: b"", BUDGETS: b""}
                self._core.mark.dirty = True
        elif self._order is not None:
            self._order.prefer(preferences)
        else:
            self._order = self._begin(SendingPreferences(preferences, self._lines))
            self._order.take_effect()

    @property
    def preferences(self) -> Preferences:
        """The user's preferences for what this device sends."""
        return NO_PREFERENCES if self._order is None else self._order.preferences.preferences

    def explain(self, key: int) -> Explanation | None:
        """Return why a message of this device went over a link, or waits; None if that is not
        remembered."""
        return None if self._order is None else self._order.explain(key)

    def held_back(self) -> list[Explanation]:
        """Return why messages of this device wait for a link or a limit, the oldest first."""
        return [] if self._order is None else self._order.held_back()

    def spending(self, now: Micros) -> list[BudgetMeter]:
        """Return how much of every limit on this device's sending is used."""
        return [] if self._order is None else self._order.preferences.ledger.budgets.usage(now)

    # The channel.

    def link_up(self, channel: int, label: str, round_trip: Micros | None) -> None:
        self._lines[channel] = OpenChannel(channel, label, round_trip)
        if self._order is not None:
            self._order.link_changed()

    def link_paused(self, channel: int, paused: bool) -> None:
        line = self._lines.get(channel)
        if line is not None and line.paused != paused:
            line.paused = paused
            if self._order is not None and not paused:
                self._order.link_changed()

    def rerouted(self, channel: int) -> None:
        self._lines.pop(channel, None)
        if self._order is not None:
            self._order.link_lost(channel)

    def lost(self) -> None:
        self._lines.clear()

    def frames_taken(self) -> Mapping[type[Frame], Callable[[Any, Micros], None]]:
        return {Wanted: self._links_wanted}

    def _links_wanted(self, frame: Wanted, now: Micros) -> None:
        self._wanted = frame.links

    # What has to survive.

    def collect(self, change: Change) -> None:
        change.notes, self._notes = self._notes, {}
        if self._order is not None:
            self._order.collect(change)

    def committed(self, n: int) -> None:
        if self._order is not None:
            self._order.committed(n)

    def session_events(self) -> list[SessionEvent]:
        session_events: list[SessionEvent] = []
        order = self._order
        if order is not None:
            session_events += order.closed
            order.closed = []
            if order.wanted not in ((), order.told):
                order.told = self._wanted = order.wanted
        if self._wanted:
            session_events.append(LinksWanted(self._wanted))
            self._wanted = ()
        return session_events
