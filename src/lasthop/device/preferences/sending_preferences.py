"""Over which link each message of this device goes: its own wishes, links and budgets.

It asks the transmission algorithm in `decision`, as the gateway does for what it sends the other
way, and keeps the books. Who may leave, and when, is for the `preference_order`.
"""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros
from lasthop.decision.books import Books, encode_budgets, restored_budgets
from lasthop.decision.budgets import Closure
from lasthop.decision.choice import Choice, MessageToPlace as Question
from lasthop.decision.contention import Gauge
from lasthop.decision.links import Link, Tariff
from lasthop.decision.preferences import Preferences
from lasthop.decision.transmission import choose
from lasthop.device.change import BUDGETS, WISHES
from lasthop.errors import StoreBroken

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Preferences).decode

NO_WISHES = Preferences()
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

    def __init__(self, wishes: Preferences, lines: dict[int, OpenChannel]) -> None:
        self.wishes = wishes
        self.lines = lines
        """Every channel that is open; the session's own."""
        self.books: Books[int] = Books(wishes.budgets())

    @classmethod
    def restore(
        cls, notes: dict[str, bytes], lines: dict[int, OpenChannel], now: Micros
    ) -> SendingPreferences | None:
        """Go on with what an earlier life wished for and has spent."""
        if not notes.get(WISHES):
            return None
        try:
            preferences = cls(_decode(notes[WISHES]), lines)
            if notes.get(BUDGETS):
                preferences.books.budgets = restored_budgets(notes[BUDGETS], now)
                preferences.books.budgets.change(preferences.wishes.limits)
        except (msgspec.DecodeError, ValueError) as error:
            raise StoreBroken("the wishes in the inbox cannot be read", error=str(error)) from None
        return preferences

    def wish(self, wishes: Preferences) -> None:
        """The user wants it otherwise from now on; what was spent stays spent."""
        self.books.change(wishes.limits, zone_name=wishes.zone)
        self.wishes = wishes

    def encode_wishes(self) -> bytes:
        """As the inbox keeps them."""
        return _encode(self.wishes)

    def encode_budgets(self) -> bytes:
        """As the inbox keeps them."""
        return encode_budgets(self.books.budgets)

    def choice(self, question: Question, queue: str | None, now: Micros) -> Choice:
        """Over which link something goes now, or what it waits for."""
        return choose(
            question,
            queue=self.wishes.queue(queue),
            current=[self.link_of(line) for line in self.lines.values() if not line.paused],
            budgets=self.books.budgets,
            now=now,
            best=self.wishes.links,
            calendar=self.wishes.calendar,
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
        return self.wishes.link(label) or Link(label, Tariff())

    def closures(self, now: Micros) -> list[tuple[OpenChannel, Closure]]:
        """Lines whose link has reached its limit, and over which nothing is under way: to close
        one before that would make what it carries travel again, for money."""
        found = []
        for line in self.lines.values():
            if line.under_way:
                continue
            tariff = self.declared(line.label).tariff
            closure = self.books.budgets.closure(line.label, tariff=tariff, now=now)
            if closure is not None:
                found.append((line, closure))
        return found
