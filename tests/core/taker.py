"""A device at the rig that takes bodies in pieces, and a ledger of the bytes that were handed to
its links: what left is counted by who saw it leave, not by who decided it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lasthop.clock import DAY
from lasthop.core.effects import Effect, Send, SendPiece
from lasthop.decision.budgets import Limit
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    Ack,
    Ending,
    EndStatus,
    Frame,
    MessageFrame,
    Piece,
    Skip,
    Taken,
)
from tests.core.rig import Rig

GENEROUS = 1 << 30


class Ledger:
    """Bytes by day, device, link and queue."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, str, str, str]] = Counter()
        self.queues: dict[int, str] = {}
        """Of every message, by its key."""

    def count(self, day: int, device: str, link: str, frame: Frame) -> None:
        if isinstance(frame, Piece):
            key: int | None = frame.transfer
        elif isinstance(frame, MessageFrame):
            key = frame.key
        else:
            return
        if frame.body and key in self.queues:
            self._counts[day, device, link, self.queues[key]] += len(frame.body)

    def most(self, limit: Limit, device: str | None = None) -> int:
        """The most that was used on any day of what a limit is about."""
        days: Counter[int] = Counter()
        for (day, who, link, queue), size in self._counts.items():
            if device not in (None, who) or limit.link not in (None, link):
                continue
            if not limit.queues or queue in limit.queues:
                days[day] += size
        return max(days.values(), default=0)

    @property
    def total(self) -> int:
        return sum(self._counts.values())


class CountingRig(Rig):
    """Every byte is counted when it is handed to its channel."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._links: dict[int, str] = {}
        super().__init__()

    def connect(
        self, name: str = "phone", *, reliable: bool = True, run: bool = True, **claims: Any
    ) -> int:
        self._links[self.channels + 1] = claims.get("link", "")
        return super().connect(name, reliable=reliable, run=run, **claims)

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send | SendPiece):
                frames = effect.frames if isinstance(effect, Send) else [effect.piece]
                device, link = self.names[effect.channel], self._links[effect.channel]
                for frame in frames:
                    self.ledger.count(self.now // DAY, device, link, frame)
        super()._perform(effects)


class Taker:
    """One device with some links."""

    def __init__(self, rig: Rig, name: str) -> None:
        self._rig = rig
        self.name = name
        self.lines: dict[int, str] = {}
        self._seen: Counter[int] = Counter()
        self._has: Counter[int] = Counter()
        self._received: set[int] = set()

    @property
    def _next(self) -> int:
        number = 0
        while number in self._received:
            number += 1
        return number

    def connect(self, link: str) -> None:
        """Dial anew, over one link."""
        self.lines = {}
        self._received = set()
        channel = self._rig.connect(self.name, link=link, features=int(ALL_FEATURES))
        self._begin(channel, link)

    def _begin(self, channel: int, link: str) -> None:
        if channel in self._rig.sent:  # It has not reached its limit.
            self.lines[channel] = link

    def join(self, link: str) -> None:
        """One more link, if it is another one, or the first."""
        self._drop_lost()
        if not self.lines:
            self.connect(link)
        if link in self.lines.values() or not self.lines:
            return
        welcome = self._rig.welcome(max(self.lines))
        channel = self._rig.connect(
            self.name,
            link=link,
            features=int(ALL_FEATURES),
            join=True,
            incarnation=welcome.incarnation,
            epoch=welcome.epoch,
            received=self._next,
            delivered=self._next,
        )
        self._begin(channel, link)

    def _news(self) -> list[tuple[int, Frame]]:
        """What has come since the last time."""
        found: list[tuple[int, Frame]] = []
        for channel in self.lines:
            frames = self._rig.sent.get(channel, [])
            found += [(channel, frame) for frame in frames[self._seen[channel] :]]
            self._seen[channel] = len(frames)
        self._drop_lost()
        return found

    def _drop_lost(self) -> None:
        gone = {over.channel for over in self._rig.disconnected}
        self.lines = {c: link for c, link in self.lines.items() if c not in gone}

    def answer(self) -> bool:
        """Take what has come, and say so; false if nothing has."""
        news = self._news()
        for channel, frame in news:
            if channel not in self.lines:
                continue
            if isinstance(frame, Piece):
                self._piece(channel, frame)
            elif isinstance(frame, Ending) and frame.status == EndStatus.COMPLETE:
                self._ending(channel, frame)
            elif isinstance(frame, MessageFrame) and frame.seq is not None:
                self._received.add(frame.seq)
                self._acknowledge(channel)
            elif isinstance(frame, Skip):
                self._received.update(range(frame.first, frame.first + frame.count))
                self._acknowledge(channel)
        return bool(news)

    def _piece(self, channel: int, piece: Piece) -> None:
        key = piece.transfer
        if piece.offset == self._has[key]:
            self._has[key] += len(piece.body)
        self._rig.hear(channel, Taken(key, self._has[key], GENEROUS), run=False)

    def _ending(self, channel: int, ending: Ending) -> None:
        key = ending.transfer
        if self._has[key] == ending.size:
            self._rig.hear(channel, Ending(key, EndStatus.CONFIRMED), run=False)
        else:
            self._rig.hear(channel, Taken(key, self._has[key], GENEROUS), run=False)

    def _acknowledge(self, channel: int) -> None:
        self._rig.hear(channel, Ack(self._next, self._next), run=False)
