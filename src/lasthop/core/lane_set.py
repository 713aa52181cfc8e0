"""The lanes of one session beside lane 0, in both directions: made when a device that knows lanes
comes into contact, and kept as long as one of them matters."""

from __future__ import annotations

from typing import Any, Generic, Protocol

from msgspec.structs import replace

from lasthop.clock import Micros
from lasthop.core.inbound_lanes import InboundLanes
from lasthop.core.lane import Lane, LaneName
from lasthop.core.outbound_lanes import D, OpenLane, OutboundLanes
from lasthop.store.commit import Commit
from lasthop.store.lanes import LaneChanges
from lasthop.wire.hop.frames import Ack, Feature, Hello, LaneClaim, Welcome


class LaneSession(Protocol):
    """The session that the lanes belong to."""

    lanes: Any

    @property
    def device(self) -> Numbered: ...
    @property
    def lane(self) -> Lane[Any]: ...
    def enqueue(self, delivery: Any) -> None: ...


class Numbered(Protocol):
    """A device, by its number in the store."""

    @property
    def number(self) -> int: ...


class LaneOwner(Protocol):
    """What writes lanes, and looks at their session when something is to be done."""

    @property
    def commits(self) -> Any: ...
    @property
    def timers(self) -> Any: ...
    def touch(self, session: Any) -> None: ...


class Lanes(Generic[D]):
    """The lanes of one session beside lane 0."""

    __slots__ = ("_deliveries", "_due", "_noted", "_session", "inbound", "out", "unordered")

    def __init__(
        self, session: LaneSession, deliveries: LaneOwner, unordered: frozenset[str]
    ) -> None:
        self._session = session
        self.unordered = unordered
        """The queues whose messages may be handed over out of order."""
        self._deliveries = deliveries
        self._noted = False
        self._due: Micros | None = None
        """When the gateway's timers will look for lanes that were idle for long."""
        self.out: OutboundLanes[D] = OutboundLanes(session.lane)
        self.inbound = InboundLanes()

    # The store.

    def changed(self) -> None:
        """Write what has changed with the open commit."""
        if not self._noted and (self.out.dirty or self.inbound.dirty):
            self._noted = True
            self._deliveries.commits.note(self)

    def write(self, commit: Commit) -> None:
        """Write the lanes that have changed."""
        self._noted = False
        changes = commit.of(LaneChanges)
        number = self._session.device.number
        self.out.rows(number, changes)
        self.inbound.rows(number, changes)

    # Towards the device.

    def bind(self, name: LaneName | None) -> Lane[Any]:
        """Return the lane in which a message of a name leaves now."""
        lane = self.out.bind(name)
        self.changed()
        return lane

    def admits(self, name: LaneName | None, size: int) -> bool:
        """Return whether the device accepts one more message of a name."""
        return self.out.admits(name, size, self._session.lane.window)

    def acknowledged(self, lane: OpenLane, now: Micros) -> None:
        """Note that numbers of a lane were acknowledged."""
        self.out.settled(lane, now)
        self._watch()
        self.changed()

    def closing(self, now: Micros) -> list[OpenLane]:
        """Close lanes that are no longer needed; return them with their last numbers."""
        closing = self.out.closing(now)
        self._watch()
        self.changed()
        return closing

    def _watch(self) -> None:
        due = self.out.next_idle()
        if due is not None and (self._due is None or due < self._due):
            self._due = due
            self._deliveries.timers.add(due, self)

    def woken(self, now: Micros) -> None:
        """Let the dispatcher look for lanes that were idle for long."""
        self._due = None
        if self._session.lanes is self:
            self._deliveries.touch(self._session)

    def away(self) -> None:
        """Forget idle lanes, because the device is no longer in contact, and queue by priority
        alone what waits."""
        self.out.drop_idle()
        self.out.stop_timers()
        self.line_up_again()
        self.changed()

    def line_up_again(self) -> None:
        """Give what waits back to the session."""
        for delivery in self.out.take_waiting():
            self._session.enqueue(delivery)

    # The handshake.

    @property
    def unused(self) -> bool:
        """Whether there never was a lane in this epoch."""
        return self.out.next == 1 and self.inbound.seen == 1

    @property
    def used(self) -> bool:
        """Whether anything was received or acknowledged in a lane in this epoch."""
        acknowledged = any(lane.outbound.received for lane in self.out.open.values())
        return acknowledged or self.out.gone or self.inbound.seen > 1

    def end(self) -> None:
        """Give up lanes, because the device no longer knows them; there are none by now."""
        self.line_up_again()
        self.changed()

    def fit(self, hello: Hello) -> bool:
        """Return whether a HELLO that resumes the numbering known nothing that was never sent, and
        lacks no lane that it has to name."""
        known = hello.lanes
        named = {} if known is None else {about.lane >> 1: about for about in known.lanes}
        seen = 1 if known is None else known.seen
        if seen > self.out.next:
            return False
        for lane in self.out.open.values():
            n = lane.id >> 1
            about = named.get(n)
            if about is None:
                # A lane that was seen and is not named has closed: only its last number does that.
                if n < seen and lane.last < 0:
                    return False
            elif highest(about) > lane.sendable or (highest(about) and about.lane != lane.id):
                return False
        return True

    def claimed(self, hello: Hello) -> list[tuple[OpenLane, Ack]]:
        """Return the acknowledgements in a HELLO that resumes the numbering."""
        known = hello.lanes
        if known is None:
            return []
        found = []
        named = {about.lane: about for about in known.lanes}
        for lane in list(self.out.open.values()):
            about = named.get(lane.id)
            if about is not None:
                ack = Ack(about.received, about.delivered, about.individual, about.finished)
                found.append((lane, ack))
            elif lane.last >= 0 and lane.id >> 1 < known.seen:
                found.append((lane, Ack(lane.last + 1, lane.last + 1)))
        return found

    def resumed(self, hello: Hello) -> None:
        """Begin a contact that goes on with the numbering: the device has said which lanes it has
        open."""
        self.inbound.keep_only(hello.sending)
        self.inbound.drop_beyond()
        for lane in self.out.open.values():
            lane.limit = None
        self.changed()

    def answer(self, welcome: Welcome, hello: Hello, *, resumed: bool) -> Welcome:
        """Add what a WELCOME says about lanes."""
        if not resumed:
            known = int.from_bytes(hello.incarnation or b""), hello.epoch or 0
            held = self.inbound.held_in(*known)
            return replace(welcome, features=int(Feature.LANES), lane_superseded=held)
        closed = tuple(
            (lane.id, lane.outbound.received)
            for lane in self.out.open.values()
            if lane.outbound.received
        )
        sending = () if welcome.joined else tuple(self.out.open)
        return replace(
            welcome,
            features=int(Feature.LANES),
            lanes=self.inbound.claims(),
            lane_closed=() if welcome.joined else closed,
            sending=sending,
        )

    def restart(self, incarnation: int, epoch: int) -> None:
        """Begin a new epoch, after which the epoch that ends here may still be claimed."""
        self.line_up_again()
        self.inbound.restart(incarnation, epoch)
        self.out.restart()
        self.changed()


def highest(about: LaneClaim) -> int:
    """Return one more than the largest number that a about names."""
    return about.individual[-1][1] if about.individual else about.received
