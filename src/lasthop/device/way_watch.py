"""Watches the channels of a device: tells `ways` which frames wait for an answer and when something
came in, and wakes the device when something is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from lasthop.clock import SECOND, Clock, Micros
from lasthop.device.gateway_line import GatewayLine
from lasthop.device.way import GatewayWay
from lasthop.device.ways import Ways, patience
from lasthop.transport.address import parse
from lasthop.wire.hop.frames import Frame, MessageFrame, Piece

LONGEST_SLEEP = 60.0
"""Seconds between two looks at the ways: the clock can be set, or stop while the machine sleeps."""


class WayWatch:
    """The timer of a device's ways."""

    def __init__(
        self,
        ways: Ways,
        clock: Clock,
        *,
        lines: Callable[[], Iterable[GatewayLine]],
        due: Callable[[], None],
    ) -> None:
        """`lines` returns the open channels; `due` is called after each tick of the ways."""
        self._ways = ways
        self._clock = clock
        self._lines = lines
        self._due = due
        self._polled: dict[str, bool] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def spoke(self, line: GatewayLine, frames: Sequence[Frame]) -> None:
        """Expect an answer over a channel, if one of these frames wants one."""
        if (
            any(map(_wants_answer, frames))
            and not self._polls(line.way)
            and self._ways.spoke(line.way, self._clock.now(), patience(line.timeout))
        ):
            self.arm()

    def _polls(self, way: GatewayWay) -> bool:
        """Whether answers over a way come only when the device asks for them."""
        if way.url not in self._polled:
            self._polled[way.url] = parse(way.url).every is not None
        return self._polled[way.url]

    def arm(self) -> None:
        """Set the timer for whatever is due next."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due, now = self._ways.next_due(), self._clock.now()
        dues = [] if due is None else [due]
        for line in self._lines():
            beat = line.heartbeat
            if beat is not None and beat.pinged is None and not self._polls(line.way):
                # A PING wants an answer, too; it leaves within the second.
                dues.append(max(beat.next_due(), now) + SECOND)
        if dues and not self._stopped:
            delay = min(LONGEST_SLEEP, max(0.0, (min(dues) - now) / SECOND))
            self._timer = asyncio.get_running_loop().call_later(delay, self._wake)

    def stop(self) -> None:
        """Stop the timer: wake the device no more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _wake(self) -> None:
        self._timer = None
        now = self._clock.now()
        for line in list(self._lines()):
            self._look(line, now)
        self._ways.tick(now)
        self._due()

    def _look(self, line: GatewayLine, now: Micros) -> None:
        beat = line.heartbeat
        if beat is None:
            return
        self._ways.heard(line.way, beat.heard, now)
        if beat.pinged is not None and not self._polls(line.way):
            self._ways.spoke(line.way, beat.pinged, patience(line.timeout))


def _wants_answer(frame: Frame) -> bool:
    """Whether the gateway answers a frame at once: messages that are numbered, and pieces."""
    return type(frame) is Piece or (type(frame) is MessageFrame and frame.seq is not None)
