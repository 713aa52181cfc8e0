"""The links over which the gateway has welcomed a device: which one it speaks over, what goes over
the others, and which have reached a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lasthop.clock import Clock, Micros
from lasthop.decision.preferences import Preferences
from lasthop.device.pricing import dearest_first, round_trip
from lasthop.device.turns import Turns
from lasthop.transport.address import GatewayAddress
from lasthop.transport.link import ChannelLink
from lasthop.wire.hop.frames import Frame, Piece


class Way(NamedTuple):
    """How the gateway is reached."""

    address: GatewayAddress
    label: str | None
    network: str | None


class Lines:
    """Open links, by the numbers under which the session knows them."""

    def __init__(self, turns: Turns, *, clock: Clock, ways: Mapping[ChannelLink, Way]) -> None:
        self._turns = turns
        self._clock = clock
        self._ways = ways
        self.open: list[ChannelLink] = []
        """The one that we speak over is the last."""
        self.closed: dict[str, Micros] = {}
        """Labels of links that are not to be used before then: a limit of ours is reached."""
        self._numbers: dict[ChannelLink, int] = {}
        self._count = 0
        self._preferences: Preferences | None = None
        self._fed: ChannelLink | None = None
        """The link that has the last piece, and since when."""
        self._fed_at: Micros = 0

    def add(self, link: ChannelLink) -> None:
        """The gateway has welcomed us over this link."""
        self.open.append(link)
        self._count += 1
        number = self._numbers[link] = self._count
        label, measured = self._ways[link].label or "", round_trip(link)
        self._turns.room = self._turns.drained = True
        self._turns.post(lambda session, _now: session.link_up(number, label, round_trip=measured))
        self._choose()

    def remove(self, link: ChannelLink) -> int:
        """It has ended; returns its number, or 0 if it was never welcome."""
        if link in self.open:
            self.open.remove(link)
        return self._numbers.pop(link, 0)

    def numbered(self, channel: int) -> ChannelLink | None:
        """The link that the session knows by this number, while it is open."""
        return next((link for link, number in self._numbers.items() if number == channel), None)

    def prefer(self, preferences: Preferences) -> None:
        """Speak over the link that these make the best one."""
        self._preferences = preferences
        self._choose()

    def _choose(self) -> None:
        if self._preferences is not None and len(self.open) > 1:
            labels = {link: self._ways[link].label or "" for link in self.open}
            self.open = dearest_first(self.open, labels, self._preferences)
            self._turns.room = True

    def send(self, frames: Sequence[Frame]) -> None:
        """Say this over the link that we speak over; the others know of it."""
        if self.open and frames:
            self._hand_over(self.open[-1], frames)
            for link in self.open[:-1]:
                link.sent_elsewhere(frames)

    def send_over(self, channel: int, frames: Sequence[Frame]) -> None:
        """Say this over one particular link. If it is gone, the session hears of that as well."""
        link = self.numbered(channel)
        if link is not None:
            self._hand_over(link, frames)

    def _hand_over(self, link: ChannelLink, frames: Sequence[Frame]) -> None:
        link.send(frames)
        if type(frames[-1]) is Piece and frames[-1].body:
            self._turns.drained = False
            self._fed, self._fed_at = link, self._clock.now()
            link.report_drained()

    def paused(self, link: ChannelLink, paused: bool) -> None:
        """A link's unsent buffer is full, or has room again."""
        number = self._numbers.get(link)
        if number is None:
            return
        self._turns.post(lambda session, _now: session.link_paused(number, paused))
        if link is self.open[-1]:
            self._turns.room = not paused

    def drained(self, link: ChannelLink) -> None:
        """The last piece has left its link's unsent buffer."""
        if link is self._fed and not self._turns.drained:
            elapsed = self._clock.now() - self._fed_at
            self._turns.drained = True
            self._turns.post(lambda session, _now: session.pieces.transfers.pace.left(elapsed))
