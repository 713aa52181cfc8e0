"""The preferences, links and budgets by which a link is chosen for each message of this device.

The choice is made by the transmission algorithm in `decision`, as at the gateway for the other
direction; the ledger of budgets is kept here. `preference_order` decides when messages leave.
"""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros
from lasthop.decision.budgets import Closure
from lasthop.decision.choice import Choice, MessageToPlace as Question
from lasthop.decision.contention import Gauge
from lasthop.decision.ledger import BudgetLedger, encode_budgets, restored_budgets
from lasthop.decision.links import Link, Tariff
from lasthop.decision.preferences import Preferences
from lasthop.decision.transmission import choose
from lasthop.device.change import BUDGETS, PREFERENCES
from lasthop.errors import StoreBroken

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Preferences).decode

NO_PREFERENCES = Preferences()
"""The preferences of a user without any: everything leaves at once, over the newest link."""


class OpenChannel:
    """An open channel, with its measurements and the messages that are under way on it."""

    __slots__ = ("channel", "gauge", "label", "paused", "round_trip", "under_way")

    def __init__(self, channel: int, label: str, round_trip: Micros | None = None) -> None:
        self.channel = channel
        self.label = label or "link"
        self.paused = False
        """Whether the channel's unsent buffer is full."""
        self.round_trip = round_trip
        """The round-trip time that the channel reported when it was opened; used until measurements
        are known."""
        self.gauge = Gauge()
        self.under_way: set[int] = set()
        """Keys of messages that left over the channel and are not acknowledged."""


class SendingPreferences:
    """One device's preferences for sending, with the ledger of its budgets."""

    def __init__(self, preferences: Preferences, lines: dict[int, OpenChannel]) -> None:
        self.preferences = preferences
        self.lines = lines
        """All open channels, in the same dictionary that the session uses."""
        self.ledger: BudgetLedger[int] = BudgetLedger(preferences.budgets())

    @classmethod
    def restore(
        cls, notes: dict[str, bytes], lines: dict[int, OpenChannel], now: Micros
    ) -> SendingPreferences | None:
        """Restore the preferences and the spending from before a restart; None if there were no
        preferences. Raises StoreBroken if they cannot be read."""
        if not notes.get(PREFERENCES):
            return None
        try:
            preferences = cls(_decode(notes[PREFERENCES]), lines)
            if notes.get(BUDGETS):
                preferences.ledger.budgets = restored_budgets(notes[BUDGETS], now)
                preferences.ledger.budgets.change(preferences.preferences.limits)
        except (msgspec.DecodeError, ValueError) as error:
            raise StoreBroken(
                "the preferences in the inbox cannot be read", error=str(error)
            ) from None
        return preferences

    def prefer(self, preferences: Preferences) -> None:
        """Replace the preferences; the spending so far still counts against the limits."""
        self.ledger.change(preferences.limits, zone_name=preferences.zone)
        self.preferences = preferences

    def encode_preferences(self) -> bytes:
        """Encode the preferences for the inbox."""
        return _encode(self.preferences)

    def encode_budgets(self) -> bytes:
        """Encode the state of the budgets for the inbox."""
        return encode_budgets(self.ledger.budgets)

    def choice(self, question: Question, queue: str | None, now: Micros) -> Choice:
        """Decide over which link a message or some bytes leave now, or what they wait for."""
        return choose(
            question,
            queue=self.preferences.queue(queue),
            current=[self.link_of(line) for line in self.lines.values() if not line.paused],
            budgets=self.ledger.budgets,
            now=now,
            best=self.preferences.links,
            calendar=self.preferences.calendar,
        )

    def link_of(self, line: OpenChannel) -> Link:
        """Return the properties of a channel's link: as the user declared them, corrected by
        measurements."""
        declared = self.declared(line.label)
        link = msgspec.structs.replace(declared, channel=line.channel)
        if line.gauge.estimate.samples:
            return line.gauge.estimate.applied(link)
        return link.measured(latency=line.round_trip, contention=1.0)

    def declared(self, label: str) -> Link:
        """Return the properties that the user declares for a link; a link without a declaration
        costs nothing."""
        return self.preferences.link(label) or Link(label, Tariff())

    def closures(self, now: Micros) -> list[tuple[OpenChannel, Closure]]:
        """Return the channels whose link has reached its limit and that have no messages under way.
        If a channel were closed earlier, its messages would have to be sent and paid for again."""
        found = []
        for line in self.lines.values():
            if line.under_way:
                continue
            tariff = self.declared(line.label).tariff
            closure = self.ledger.budgets.closure(line.label, tariff=tariff, now=now)
            if closure is not None:
                found.append((line, closure))
        return found
