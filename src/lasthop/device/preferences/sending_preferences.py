"""Over which link each message of this device goes: its own wishes, links and budgets.

It asks the transmission algorithm in `decision`, as the gateway does for what it sends the other
way, and keeps the books. Who may leave, and when, is for the `preference_order`.
"""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros
from lasthop.decision.budgets import Closure
from lasthop.decision.choice import Choice, MessageToPlace as Question
from lasthop.decision.contention import Gauge
from lasthop.decision.ledger import Ledger, encode_budgets, restored_budgets
from lasthop.decision.links import Link, Tariff
from lasthop.decision.preferences import Preferences
from lasthop.decision.transmission import choose
from lasthop.device.change import BUDGETS, PREFERENCES
from lasthop.errors import StoreBroken

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Preferences).decode

NO_PREFERENCES = Preferences()
"""Whoever wants nothing in particular: everything leaves at once, over the newest link."""


class OpenChannel:
    """A channel that is open, as far as what leaves over it is concerned."""

    __slots__ = ("channel", "gauge", "label", "paused", "round_trip", "under_way")

    def __init__(self, channel: int, label: str, round_trip: Micros | None = None) -> None:
        self.channel = channel
        self.label = label or "link"
        self.paused = False
        """Its unsent buffer is full."""
        self.round_trip = round_trip
        """As the channel itself has seen it, before anything was measured."""
        self.gauge = Gauge()
        self.under_way: set[int] = set()
        """Keys of what left over it and nobody has acknowledged."""


class SendingPreferences:
    """One device's wishes about what it sends, and what came of them."""

    def __init__(self, preferences: Preferences, lines: dict[int, OpenChannel]) -> None:
        self.preferences = preferences
        self.lines = lines
        """Every channel that is open; the session's own."""
        self.ledger: Ledger[int] = Ledger(preferences.budgets())

    @classmethod
    def restore(
        cls, notes: dict[str, bytes], lines: dict[int, OpenChannel], now: Micros
    ) -> SendingPreferences | None:
        """Go on with what an earlier life wished for and has spent."""
        if not notes.get(PREFERENCES):
            return None
        try:
            preferences = cls(_decode(notes[PREFERENCES]), lines)
            if notes.get(BUDGETS):
                preferences.ledger.budgets = restored_budgets(notes[BUDGETS], now)
                preferences.ledger.budgets.change(preferences.preferences.limits)
        except (msgspec.DecodeError, ValueError) as error:
            raise StoreBroken("the wishes in the inbox cannot be read", error=str(error)) from None
        return preferences

    def prefer(self, preferences: Preferences) -> None:
        """The user wants it otherwise from now on; what was spent stays spent."""
        self.ledger.change(preferences.limits, zone_name=preferences.zone)
        self.preferences = preferences

    def encode_preferences(self) -> bytes:
        """As the inbox keeps them."""
        return _encode(self.preferences)

    def encode_budgets(self) -> bytes:
        """As the inbox keeps them."""
        return encode_budgets(self.ledger.budgets)

    def choice(self, question: Question, queue: str | None, now: Micros) -> Choice:
        """Over which link something goes now, or what it waits for."""
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
        """A line as the decision sees it: what was declared, corrected by what was measured."""
        declared = self.declared(line.label)
        link = msgspec.structs.replace(declared, channel=line.channel)
        if line.gauge.estimate.samples:
            return line.gauge.estimate.applied(link)
        return link.measured(latency=line.round_trip, contention=1.0)

    def declared(self, label: str) -> Link:
        """What the user says of a technology."""
        return self.preferences.link(label) or Link(label, Tariff())

    def closures(self, now: Micros) -> list[tuple[OpenChannel, Closure]]:
        """Lines whose link has reached its limit, and over which nothing is under way: to close
        one before that would make what it carries travel again, for money."""
        found = []
        for line in self.lines.values():
            if line.under_way:
                continue
            tariff = self.declared(line.label).tariff
            closure = self.ledger.budgets.closure(line.label, tariff=tariff, now=now)
            if closure is not None:
                found.append((line, closure))
        return found
