"""Messages of a device for the gateway itself, while its messages for others wait for a link: they
are not held back, and leave over the main channel."""

from __future__ import annotations

from collections import deque

from lasthop.device.outbox import Outbox
from lasthop.device.outgoing import Outgoing, ordinary
from lasthop.device.outgoing_lane import OutgoingLane
from lasthop.wire.hop.frames import Frame, Skip
from lasthop.wire.hop.ranges import RangeSet
from lasthop.wire.hop.sequence import DEFAULT_WINDOW as FARTHEST


class OwnFrames:
    """The messages for the gateway itself, in order, and the numbers of messages for which the
    gateway need not wait."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._unskipped: dict[int, RangeSet] = {}
        """The numbers that the gateway is still to be told to skip, by lane."""
        own = (item for item in outbox.under_way() if not ordinary(item.frame))
        self._leaving = deque(item for item in own if not item.sent)

    def add(self, item: Outgoing) -> None:
        """Number a message for the gateway, and send it."""
        self._outbox.assign(item)
        self._leaving.append(item)

    def skip(self, lane: OutgoingLane, number: int) -> None:
        """Tell the gateway not to wait for the message of this number."""
        self._unskipped.setdefault(lane.id, RangeSet()).add(number, number + 1)

    def clear(self) -> None:
        """Forget the messages that have not left."""
        self._leaving.clear()

    def say_again(self) -> None:
        """Send everything again that the gateway may not have."""
        self._unskipped = {}
        for lane in self._outbox.lanes:
            unskipped = RangeSet(lane.skips.ranges())
            unskipped.drop_below(lane.confirmed)
            if unskipped:
                self._unskipped[lane.id] = unskipped
        own = (item for item in self._outbox.under_way() if not ordinary(item.frame))
        self._leaving = deque(own)
        for item in self._leaving:
            self._outbox.mark_unsent(item)

    def frames(self) -> list[Frame]:
        """Return the frames that leave now, of messages with durable numbers."""
        durable = self._outbox.lanes.first.durable
        frames = self._skip_frames()
        while self._leaving and self._leaving[0].number < durable:
            item = self._leaving[0]
            if not item.taken and not self._outbox.put(item, frames):
                break
            self._leaving.popleft()
        return frames

    def _skip_frames(self) -> list[Frame]:
        frames: list[Frame] = []
        for number, unskipped in list(self._unskipped.items()):
            lane = self._outbox.lanes.by_id.get(number)
            if lane is None:
                del self._unskipped[number]
                continue
            for start, stop in unskipped.ranges():
                farthest = lane.limit
                if start >= farthest:
                    break
                count = min(stop, start + FARTHEST, farthest) - start
                frames.append(lane.wrap(Skip(start, count)))
                unskipped.drop_below(start + count)
                lane.said_skip(start, count)
            if not unskipped:
                del self._unskipped[number]
        return frames
