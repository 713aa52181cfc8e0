"""The open links of a device: the one that it sends over, the frames for the others, and the links
that have reached a limit."""

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


class GatewayWay(NamedTuple):
    """An address of the gateway, with the link and network by which it is reached."""

    address: GatewayAddress
    label: str | None
    network: str | None


class Lines:
    """The open links, by the channel numbers under which the session knows them."""

    def __init__(
        self, turns: Turns, *, clock: Clock, ways: Mapping[ChannelLink, GatewayWay]
    ) -> None:
        self._turns = turns
        self._clock = clock
        self._ways = ways
        self.open: list[ChannelLink] = []
        """The open links; the main one, over which the device sends, is the last."""
        self.closed: dict[str, Micros] = {}
        """The links that have reached a limit, by name, and the time until which they are not
        used."""
        self._numbers: dict[ChannelLink, int] = {}
        self._count = 0
        self._preferences: Preferences | None = None
        self._fed: ChannelLink | None = None
        self._fed_at: Micros = 0

    def add(self, link: ChannelLink) -> None:
        """Add a link over which the gateway has welcomed the device."""
        self.open.append(link)
        self._count += 1
        number = self._numbers[link] = self._count
        label, measured = self._ways[link].label or "", round_trip(link)
        self._turns.room = self._turns.drained = True
        self._turns.post(lambda session, _now: session.link_up(number, label, round_trip=measured))
        self._choose()

    def remove(self, link: ChannelLink) -> int:
        """Remove a link that has ended; return its number, 0 if the gateway had not welcomed the
        device on it."""
        if link in self.open:
            self.open.remove(link)
        return self._numbers.pop(link, 0)

    def numbered(self, channel: int) -> ChannelLink | None:
        """Return the open link of this number; None if it has ended."""
        return next((link for link, number in self._numbers.items() if number == channel), None)

    def prefer(self, preferences: Preferences) -> None:
        """Send over the best link according to these preferences."""
        self._preferences = preferences
        self._choose()

    def _choose(self) -> None:
        if self._preferences is not None and len(self.open) > 1:
            labels = {link: self._ways[link].label or "" for link in self.open}
            self.open = dearest_first(self.open, labels, self._preferences)
            self._turns.room = True

    def send(self, frames: Sequence[Frame]) -> None:
        """Send frames over the main link, and tell the other links that they were sent."""
        if self.open and frames:
            self._hand_over(self.open[-1], frames)
            for link in self.open[:-1]:
                link.sent_elsewhere(frames)

    def send_over(self, channel: int, frames: Sequence[Frame]) -> None:
        """Send frames over one particular link. If the link has ended, nothing is sent; the session
        hears of the end separately."""
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
        """Note that a link's unsent buffer is full, or has room again."""
        number = self._numbers.get(link)
        if number is None:
            return
        self._turns.post(lambda session, _now: session.link_paused(number, paused))
        if link is self.open[-1]:
            self._turns.room = not paused

    def drained(self, link: ChannelLink) -> None:
        """Note that the last piece of a transfer has left the unsent buffer of its link."""
        if link is self._fed and not self._turns.drained:
            elapsed = self._clock.now() - self._fed_at
            self._turns.drained = True
            self._turns.post(lambda session, _now: session.pieces.transfers.pace.left(elapsed))
