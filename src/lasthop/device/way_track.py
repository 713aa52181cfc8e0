"""What `ways` remembers of one way: its state, how it has worked, and what is waited for on it."""

from __future__ import annotations

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.device.retry import Backoff
from lasthop.device.way import GatewayWay, WayState, WayStatus

LASTING: Micros = 2 * SECOND
"""How long a contact must last before the pause between attempts is reset to the shortest: a
gateway that accepts connections and closes them at once must not be dialled without pauses."""

STAGGER: Micros = 250 * MILLISECOND
"""How long the next connection waits for the one before it (RFC 8305, section 8), until it is known
how long connections over a way take."""

LEAST_STAGGER: Micros = 100 * MILLISECOND
MOST_STAGGER: Micros = 2 * SECOND

LINES = (WayState.OPEN, WayState.SUSPECT)
"""The states of a way that has a channel."""


class WayTrack:
    """One way of a device, with its past."""

    __slots__ = (
        "asked",
        "backoff",
        "closed",
        "connecting",
        "failures",
        "heard",
        "hello",
        "kept",
        "opened",
        "order",
        "outdated",
        "patience",
        "problem",
        "ready",
        "said",
        "since",
        "spent",
        "spoke",
        "state",
        "until",
        "usual",
        "waiting",
        "way",
    )

    def __init__(self, way: GatewayWay, backoff: Backoff, order: int, now: Micros) -> None:
        self.way = way
        self.backoff = backoff
        self.order = order
        self.state = WayState.IDLE
        self.since = now
        self.problem = ""
        self.until: Micros = 0
        """When the rest of this way ends."""
        self.asked: Micros = 0
        """The time before which the gateway has asked not to be dialled."""
        self.closed: Micros = 0
        """The time until which the link may not be used at all."""
        self.spent: Micros = 0
        """The time until which this device may send nothing over the link."""
        self.kept = False
        """Whether the application has joined this way, so that it is opened beside others."""
        self.outdated = False
        """Whether the gateway no longer tells this way, which goes when its channel ends."""
        self.failures = 0
        """The number of attempts that failed since the gateway last answered over this way."""
        self.connecting: Micros = 0
        """When the present attempt to connect began."""
        self.ready = False
        """Whether there is a connection over which nothing was said yet."""
        self.said: Micros | None = None
        """When the HELLO left; None before."""
        self.hello = False
        """Whether the HELLO that left was to replace all other channels."""
        self.usual: Micros | None = None
        """How long a connection over this way takes."""
        self.opened: Micros = 0
        """When the gateway last welcomed the device over this way."""
        self.waiting: Micros | None = None
        """When the oldest frame that still waits for an answer left."""
        self.spoke: Micros = 0
        """When the last frame that wants an answer left."""
        self.heard: Micros = 0
        """When something last came in over this way."""
        self.patience: Micros = 0
        """How long the gateway may take to answer over this way."""

    @property
    def stagger(self) -> Micros:
        """How long to wait for a connection over this way before the next one is tried."""
        if self.usual is None:
            return STAGGER
        return min(max(2 * self.usual, LEAST_STAGGER), MOST_STAGGER)

    def enter(self, state: WayState, now: Micros, problem: str | None = None) -> None:
        """Come into a state, and forget what was waited for."""
        self.state, self.since = state, now
        self.ready, self.said, self.hello, self.waiting = False, None, False, None
        if problem is not None:
            self.problem = problem

    def connected(self, now: Micros) -> None:
        """Note that the connection is ready."""
        took = now - self.connecting
        self.usual = took if self.usual is None else (7 * self.usual + took) // 8
        self.ready = True

    def speaks(self, at: Micros, patience: Micros) -> bool:
        """Note that a frame has left that wants an answer; return whether it is the first that
        waits for one."""
        self.spoke = max(self.spoke, at)
        if self.waiting is not None or at <= self.heard:
            return False
        self.waiting, self.patience = at, patience
        return True

    def hears(self, at: Micros) -> bool:
        """Note when something last came in; return whether that is news."""
        if at <= self.heard:
            return False
        self.heard = at
        if self.waiting is not None and at >= self.waiting:
            self.waiting = self.spoke if self.spoke > at else None
        return True

    def rest(self, now: Micros, problem: str, *, asked: Micros, longest: Micros | None) -> None:
        """Let the way rest after an attempt or a channel has ended."""
        self.asked = now + asked
        pause = self.backoff.delay(longest=longest / SECOND if longest is not None else None)
        self.enter(WayState.RESTING, now, problem)
        self.until = self.asked + round(pause * SECOND)

    def status(self) -> WayStatus:
        """Return the state of the way, for the application."""
        until: Micros | None = None
        if self.state is WayState.RESTING:
            until = self.until
        elif self.state is WayState.CLOSED:
            until = self.closed
        return WayStatus(self.way, self.state, self.since, self.problem, until)
