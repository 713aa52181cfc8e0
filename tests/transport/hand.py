"""A clock and timers that a test moves by hand, and an owner that writes everything down."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lasthop.clock import SECOND, Micros
from lasthop.transport.alarms import Alarms
from lasthop.transport.link import ChannelLink, Ends
from lasthop.wire.hop.frames import Frame
from lasthop.wire.hop.handshake import Opened


class Timer:
    """A call that waits for its time."""

    def __init__(self, due: Micros, call: Callable[[], None]) -> None:
        self.due = due
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class HandClock:
    """Time stands still until a test moves it."""

    def __init__(self) -> None:
        self.time: Micros = 1_800_000_000 * SECOND
        self.timers: list[Timer] = []

    def now(self) -> Micros:
        return self.time

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        timer = Timer(self.time + round(delay * SECOND), call)
        self.timers.append(timer)
        return timer

    @property
    def set_timers(self) -> int:
        self.timers = [timer for timer in self.timers if not timer.cancelled]
        return len(self.timers)

    def advance(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        end = self.time + round(seconds * SECOND)
        while self.set_timers:
            timer = min(self.timers, key=lambda timer: timer.due)
            if timer.due > end:
                break
            self.time = max(self.time, timer.due)
            self.timers.remove(timer)
            timer.call()
        self.time = end


class Diary:
    """An owner of links."""

    def __init__(self) -> None:
        self.links: list[ChannelLink] = []
        self.frames: list[Frame] = []
        self.opened: list[Opened] = []
        self.pauses: list[bool] = []
        self.ends: list[str] = []
        self.drains = 0

    def connected(self, link: ChannelLink) -> None:
        self.links.append(link)

    def received(self, link: ChannelLink, frames: Sequence[Frame]) -> None:
        self.frames += frames

    def welcomed(self, link: ChannelLink, opened: Opened) -> None:
        self.opened.append(opened)

    def paused(self, link: ChannelLink, paused: bool) -> None:
        self.pauses.append(paused)

    def drained(self, link: ChannelLink) -> None:
        self.drains += 1

    def lost(self, link: ChannelLink, reason: str) -> None:
        self.ends.append(reason)


def ends(diary: Diary, clock: HandClock) -> Ends:
    return Ends(diary, clock, Alarms(clock, clock.call_later))
