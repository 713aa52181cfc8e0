"""A device that knows lanes, played frame by frame: it is as strict as the protocol allows."""

from __future__ import annotations

from random import Random
from typing import Any

from lasthop.wire.hop.frames import (
    MAX_LANES,
    Ack,
    Credit,
    Dropped,
    Feature,
    Frame,
    Hello,
    LaneClaim,
    LaneClaims,
    LaneFrame,
    Last,
    MessageFrame,
    Ranges,
    Skip,
    Welcome,
)
from lasthop.wire.hop.ranges import RangeSet
from lasthop.wire.hop.sequence import Inbound
from tests.core.rig import APP, Rig


class LaneDevice:
    """What one device remembers, and what its application got."""

    def __init__(self, rig: Rig, name: str = "phone", *, window: Credit | None = None) -> None:
        self.rig = rig
        self.name = name
        self.window = window
        self.channels: list[int] = []
        self.read: dict[int, int] = {}
        self.incarnation: bytes | None = None
        self.epoch: int | None = None
        self.keys: set[int] = set()
        self.shown: list[MessageFrame] = []
        self.waiting: list[tuple[int, MessageFrame]] = []
        """What the application has not finished, with its lanes, in the order of handing over."""
        self.sending: list[MessageFrame | LaneFrame | Skip] = []
        self.inbound: dict[int, Inbound[MessageFrame]] = {}
        self._start_over()

    def _start_over(self) -> None:
        self.inbound = {0: Inbound()}
        self.finished: dict[int, RangeSet] = {}
        self.closed = RangeSet()
        self.seen = 1
        self.waiting = [(-1, frame) for _, frame in self.waiting]

    @property
    def channel(self) -> int:
        return self.channels[-1]

    # The handshake.

    def hello(self, *, join: bool = False, **more: Any) -> Hello:
        claims: dict[str, Any] = {}
        if self.epoch is not None:
            ack = self._ack(0)
            claims = {
                "incarnation": self.incarnation,
                "epoch": self.epoch,
                "received": ack.received,
                "delivered": ack.delivered,
                "individual": ack.individual,
                "lanes": self.claims(),
            }
        features = Feature.LANES | Feature.FEEDS | Feature.GROUPS
        claims = {"features": features, "window": self.window, "join": join, **claims, **more}
        return Hello(app=APP, device=self.name, **claims)

    def claims(self) -> LaneClaims | None:
        if self.seen == 1:
            return None
        claims = []
        for n in range(1, self.seen):
            if n not in self.closed:
                lane = 2 * n + 1 if 2 * n + 1 in self.inbound else 2 * n
                ack = self._ack(lane) if lane in self.inbound else Ack(0, 0)
                claims.append(
                    LaneClaim(lane, ack.received, ack.delivered, ack.individual, ack.finished)
                )
        return LaneClaims(self.seen, tuple(claims))

    def dial(self, *, join: bool = False, reliable: bool = True, **more: Any) -> Welcome | None:
        """Connect; None if the gateway closed the channel."""
        rig = self.rig
        rig.channels += 1
        channel = rig.channels
        rig.names[channel] = self.name
        rig.gateway.channel_opened(channel, reliable=reliable)
        if not join:
            self.channels = []
        hello = self.hello(join=join, **more)
        rig.gateway.frames_received(channel, [hello], rig.now, local=True)
        rig.run()
        if not rig.sent.get(channel):
            return None
        self.channels.append(channel)
        self.read[channel] = 1
        welcome = rig.welcome(channel)
        if not welcome.resumed:
            assert not join
            self._start_over()
            self.incarnation, self.epoch = welcome.incarnation, welcome.epoch
            return welcome
        if not welcome.joined:
            self._resumed(welcome)
        return welcome

    def _resumed(self, welcome: Welcome) -> None:
        self._ready(0, self.inbound[0].close_below(welcome.closed))
        for lane, count in welcome.lane_closed:
            if lane in self.inbound:
                self._ready(lane, self.inbound[lane].close_below(count))
        kept = {lane >> 1 for lane in welcome.sending}
        for lane in [lane for lane in self.inbound if lane and lane >> 1 not in kept]:
            numbers = self.inbound[lane]
            if numbers.ahead() and not lane & 1:
                self._ready(lane, numbers.close_below(numbers.ahead()[-1][1]))
            self._forget(lane)
        for n in range(1, self.seen):
            if n not in kept and n not in self.closed:
                self.closed.add(n, n + 1)

    def _forget(self, lane: int) -> None:
        self.inbound.pop(lane, None)
        self.finished.pop(lane, None)
        self.closed.add(lane >> 1, (lane >> 1) + 1)
        self.waiting = [(-1 if at == lane else at, frame) for at, frame in self.waiting]

    # What the gateway says.

    def hear(self, most: int = 1000, channel: int | None = None) -> None:
        """Take up to so many frames of a channel."""
        channel = channel or self.channel
        frames = self.rig.sent.get(channel, [])
        start = self.read[channel]
        for frame in frames[start : start + most]:
            self.read[channel] += 1
            self.take(frame)

    def take(self, frame: Frame) -> None:
        if isinstance(frame, MessageFrame):
            numbers = self._lane(frame.lane)
            if numbers is not None and frame.seq is not None:
                unordered = bool(frame.lane & 1)
                self._ready(frame.lane, numbers.receive(frame.seq, frame, reorder=not unordered))
        elif isinstance(frame, Skip):
            self._ready(0, self.inbound[0].skip(frame.first, frame.count))
        elif isinstance(frame, LaneFrame) and isinstance(frame.frame, Skip):
            numbers = self._lane(frame.lane)
            if numbers is not None:
                self._ready(frame.lane, numbers.skip(frame.frame.first, frame.frame.count))
        elif isinstance(frame, LaneFrame) and isinstance(frame.frame, Last):
            self._last(frame.lane, frame.frame.number)

    def _last(self, lane: int, number: int) -> None:
        numbers = self._lane(lane)
        if numbers is not None:
            ack = self._ack(lane)
            assert ack.received == ack.delivered == number, "it closes before it was delivered"
            self._forget(lane)
        self.say(LaneFrame(lane, Ack(number + 1, number + 1)))

    def _lane(self, lane: int) -> Inbound[MessageFrame] | None:
        if lane not in self.inbound:
            n = lane >> 1
            if lane and n in self.closed:
                return None
            self.seen = max(self.seen, n + 1)
            self.inbound[lane] = Inbound()
            assert len(self.inbound) <= 1 + MAX_LANES
        return self.inbound[lane]

    def _ready(self, lane: int, frames: list[MessageFrame]) -> None:
        for frame in frames:
            assert frame.key is not None
            held = [each.key for _, each in self.waiting]
            if frame.key in self.keys:
                self._done(lane, frame)
            elif frame.key in held:
                # It came again: its old number is taken back, and it is finished under the new one.
                at = held.index(frame.key)
                old, known = self.waiting[at]
                if old >= 0 and known.seq is not None:
                    self._deliver(old, known.seq)
                self.waiting[at] = (lane, frame)
            else:
                self.waiting.append((lane, frame))

    def _done(self, lane: int, frame: MessageFrame) -> None:
        if lane >= 0 and frame.seq is not None:
            self._deliver(lane, frame.seq)

    def _deliver(self, lane: int, seq: int) -> None:
        if lane in self.inbound:
            self.inbound[lane].deliver(seq)
            if lane & 1:
                self.finished.setdefault(lane, RangeSet()).add(seq, seq + 1)

    def finish(self, index: int = 0) -> None:
        """The application is done with one of the messages that it has."""
        lane, frame = self.waiting.pop(index)
        assert frame.key is not None
        assert frame.key not in self.keys, "a message is shown twice"
        self.keys.add(frame.key)
        self.shown.append(frame)
        self._done(lane, frame)

    def finish_one(self, random: Random) -> None:
        """The application is done with the first message of one of the lanes."""
        firsts: dict[int, int] = {}
        for index, (lane, _) in enumerate(self.waiting):
            firsts.setdefault(lane, index)
        # What is left of an earlier epoch, or of a closed lane, comes before everything else.
        self.finish(firsts.get(-1, random.choice(list(firsts.values()))))

    def forget_everything(self) -> None:
        """The device loses its numbering, but not what its application had."""
        self.incarnation = self.epoch = None
        self.waiting = []
        if self.channels:
            for channel in list(self.channels):
                self.lose(channel)

    def finish_all(self) -> None:
        while self.waiting:
            self.finish()

    # What the device says.

    def _ack(self, lane: int) -> Ack:
        ack = self.inbound[lane].acknowledgement()
        if not lane & 1:
            return ack
        done = self.finished.setdefault(lane, RangeSet())
        done.drop_below(ack.delivered)
        finished: Ranges = done.ranges()
        return Ack(ack.received, ack.delivered, ack.individual, finished)

    def acknowledge(self) -> None:
        self.say(*(self._about(lane, self._ack(lane)) for lane in list(self.inbound)))

    @staticmethod
    def _about(lane: int, frame: Ack | Credit | Dropped) -> Frame:
        return LaneFrame(lane, frame) if lane else frame

    def say(self, *frames: Frame) -> None:
        if self.channels:
            self.rig.hear(self.channel, *frames)

    def lose(self, channel: int | None = None) -> None:
        """A channel breaks; what it carried and was not heard is lost."""
        channel = channel or self.channel
        self.channels.remove(channel)
        self.rig.lose(channel)

    def round(self) -> None:
        """Hear, show and acknowledge until there is nothing left to do."""
        for _ in range(200):
            before = (dict(self.read), len(self.shown))
            for channel in list(self.channels):
                self.hear(channel=channel)
            self.finish_all()
            self.acknowledge()
            if (dict(self.read), len(self.shown)) == before:
                return
        raise AssertionError("the device never comes to rest")
