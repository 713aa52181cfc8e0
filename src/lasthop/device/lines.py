"""The open links of a device: the one that it sends over, the frames for the others, and the links
that have reached a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lasthop.clock import Clock, Micros
from lasthop.decision.preferences import Preferences
from lasthop.device.pricing import dearest_first, round_trip
from lasthop.device.turns import Turns
from lasthop.device.way import GatewayWay
from lasthop.transport.link import ChannelLink
from lasthop.wire.hop.frames import Frame, Piece


class Lines:
    """The open links, by the channel numbers under which the session knows them."""

    def __init__(
        self, turns: Turns, *, clock: Clock, way_of: Callable[[ChannelLink], GatewayWay]
    ) -> None:
        self._turns = turns
        self._clock = clock
        self._way_of = way_of
        self.open: list[ChannelLink] = []
        """The open links; the main one, over which the device sends, is the last."""
        self.closed: dict[str, Micros] = {}
        """The links that have reached a limit, by name, and the time until which they are not
        used."""
        self._numbers: dict[ChannelLink, int] = {}
        self._suspects: set[ChannelLink] = set()
        """The links over which the gateway does not answer at present."""
        self._count = 0
        self._preferences: Preferences | None = None
        self._fed: ChannelLink | None = None
        self._fed_at: Micros = 0

    def add(self, link: ChannelLink) -> None:
        """Add a link over which the gateway has welcomed the device."""
        self.open.append(link)
        self._count += 1
        self._numbers[link] = self._count
        self._turns.room = self._turns.drained = True
        self._up(link)
        self._choose()

    def _up(self, link: ChannelLink) -> None:
        number, label, measured = (
            self._numbers[link],
            self._way_of(link).link or "",
            round_trip(link),
        )
        self._turns.post(lambda session, _now: session.link_up(number, label, round_trip=measured))

    def remove(self, link: ChannelLink) -> int:
        """Remove a link that has ended; return its number, 0 if the gateway had not welcomed the
        device on it."""
        if link in self.open:
            self.open.remove(link)
        self._suspects.discard(link)
        return self._numbers.pop(link, 0)

    def suspects(self) -> list[ChannelLink]:
        """Return the open links over which the gateway does not answer."""
        return [link for link in self.open if link in self._suspects]

    def suspect(self, link: ChannelLink) -> None:
        """Send over the other links from now on, because the gateway does not answer over this
        one."""
        if link in self.open and link not in self._suspects:
            self._suspects.add(link)
            self._choose()
            if len(self.open) > len(self._suspects):
                self.passed_over(link)

    def passed_over(self, link: ChannelLink) -> None:
        """Send again over the other links what may have been lost on a suspect one."""
        number = self._numbers[link]
        self._turns.room = self._turns.drained = True
        self._turns.post(lambda session, _now: session.rerouted(number))

    def trusted(self, link: ChannelLink) -> None:
        """Send over a link again over which the gateway answers after all."""
        if link in self._suspects:
            self._suspects.remove(link)
            self._up(link)
            self._choose()

    def numbered(self, channel: int) -> ChannelLink | None:
        """Return the open link of this number; None if it has ended."""
        return next((link for link, number in self._numbers.items() if number == channel), None)

    def prefer(self, preferences: Preferences) -> None:
        """Send over the best link according to these preferences."""
        self._preferences = preferences
        self._choose()

    def _choose(self) -> None:
        before = self.open[-1] if self.open else None
        if self._preferences is not None and len(self.open) > 1:
            labels = {link: self._way_of(link).link or "" for link in self.open}
            self.open = dearest_first(self.open, labels, self._preferences)
            self._turns.room = True
        if self._suspects:
            self.open.sort(key=lambda link: link not in self._suspects)
            self._turns.room = self._turns.room or self.open[-1] is not before

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
