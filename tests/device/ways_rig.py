"""Ways in a world made of paper: every way works, is closed or is silent as the test says, and
virtual time goes on."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.core.contacts.contact import MOST_LINES
from lasthop.device.retry import Backoff
from lasthop.device.way import (
    AskWay,
    ConnectWay,
    GatewayWay,
    LeaveWay,
    RenewWay,
    SayHello,
    WayAction,
    WayEvent,
    WayIdentity,
    WayState,
)
from lasthop.device.way_plan import MOST_PATIENCE
from lasthop.device.ways import Ways
from lasthop.wire.hop.frames import Close, CloseCode

DELAY: Micros = 40 * MILLISECOND
"""How long an answer takes."""

HANDSHAKE: Micros = 30 * SECOND
"""How long a WELCOME may take."""

START: Micros = 1_000 * SECOND


class PaperWorld:
    """The network, the gateway and the driver of one device."""

    def __init__(self, ways: Iterable[GatewayWay], *, seed: int = 1, talks: bool = True) -> None:
        self.random = Random(seed)
        self.now = START
        self.ways = Ways(ways, backoff=lambda: Backoff(random=self.random.random), now=self.now)
        self.works: dict[str, str] = {}
        """What happens to a way, by URL: `works`, `closed` or `silent`."""
        self.refuses: dict[str, Close] = {}
        """The CLOSE with which the gateway answers a HELLO."""
        self.open: dict[WayIdentity, GatewayWay] = {}
        """The channels that device and gateway have."""
        self.sends_over: list[tuple[WayIdentity, int]] = []
        """The channels that the gateway believes to have; it sends over the newest."""
        self.pending: list[tuple[Micros, str, GatewayWay, int]] = []
        self.attempt: dict[WayIdentity, int] = {}
        self.log: list[WayAction] = []
        self.told: list[WayEvent] = []
        self.talks = talks
        self.last_word: Micros = 0
        self.ways.tick(self.now)
        self.act()

    def state(self, way: GatewayWay) -> WayState:
        found = self.ways.find(way)
        assert found is not None
        return found.state

    def works_now(self, way: GatewayWay) -> bool:
        return self.works.get(way.url, "works") == "works"

    @property
    def contact(self) -> bool:
        """Whether the device can speak with the gateway over a channel that it trusts."""
        if not self.sends_over:
            return False
        key, attempt = self.sends_over[-1]
        way = self.open.get(key)
        if way is None or self.attempt[key] != attempt or not self.works_now(way):
            return False
        return self.state(way) is WayState.OPEN

    def act(self) -> None:
        """Do what the ways want."""
        for action in self.ways.take():
            self.log.append(action)
            key = action.way.identity
            if isinstance(action, SayHello) and not action.join:
                assert not self._lines(), "a HELLO would end channels that may still be of use"
            if isinstance(action, RenewWay):
                self.later("renew", action.way)
            elif isinstance(action, ConnectWay):
                self.attempt[key] = self.attempt.get(key, 0) + 1
                self.later("connect", action.way)
            elif isinstance(action, SayHello):
                self.later("join" if action.join else "hello", action.way)
                self.later("timeout", action.way, after=HANDSHAKE)
            elif isinstance(action, AskWay):
                self.later("answer", action.way)
            else:
                assert isinstance(action, LeaveWay)
                if self.works_now(action.way):
                    self.forget(key)
                self.attempt[key] = self.attempt.get(key, 0) + 1
                self.open.pop(key, None)
        self.told += self.ways.events()

    def _lines(self) -> list[GatewayWay]:
        states = self.ways.status()
        return [s.way for s in states if s.state in (WayState.OPEN, WayState.SUSPECT)]

    def check(self) -> None:
        """Check what holds at any time."""
        tracks = self.ways._tracks.values()
        greeting = [track for track in tracks if track.said is not None and track.hello]
        assert len(greeting) <= 1, "two HELLOs would end one another"
        assert not (greeting and self._lines())

    def later(self, what: str, way: GatewayWay, *, after: Micros = DELAY) -> None:
        self.pending.append((self.now + after, what, way, self.attempt.get(way.identity, 0)))

    def take_away(self, way: GatewayWay, how: str) -> None:
        """Let a way end: `closed`, which both sides notice, or `silent`."""
        self.works[way.url] = how
        if how == "closed" and way.identity in self.open:
            self.end(way, "the network is gone")

    def forget(self, key: WayIdentity) -> None:
        """Let the gateway know that a channel has ended."""
        self.sends_over = [each for each in self.sends_over if each != (key, self.attempt[key])]

    def end(self, way: GatewayWay, problem: str, close: Close | None = None) -> None:
        self.open.pop(way.identity, None)
        self.forget(way.identity)
        self.attempt[way.identity] = self.attempt.get(way.identity, 0) + 1
        self.ways.lost(way, problem, self.now, close)
        self.act()

    def give_back(self, way: GatewayWay) -> None:
        self.works[way.url] = "works"

    def run(self, time: Micros) -> Micros:
        """Let time go by; return for how long there was no contact at the longest."""
        end, alone, longest = self.now + time, self.now, 0
        while self.now < end:
            dues = [due for due, *_ in self.pending]
            due = self.ways.next_due()
            self.now = min(
                [*dues, *([due] if due is not None else []), end, self.now + SECOND // 10]
            )
            due_now = [item for item in self.pending if item[0] <= self.now]
            for item in sorted(due_now, key=lambda item: item[0]):
                self.pending.remove(item)
                self.happens(*item[1:])
            if self.talks:
                self.talk()
            if due is not None and due <= self.now:
                self.ways.tick(self.now)
                after = self.ways.next_due()
                assert after is None or after > self.now, "it would never sleep"
            self.act()
            self.check()
            if self.contact:
                alone = self.now
            longest = max(longest, self.now - alone)
        return longest

    def talk(self) -> None:
        """Send a message over the channel that is trusted, once a second."""
        for way in self.open.values():
            if self.state(way) is WayState.OPEN and self.now >= self.last_word + SECOND // 2:
                self.last_word = self.now
                self.ways.spoke(way, self.now, MOST_PATIENCE)
                self.later("answer", way)
                break

    def happens(self, what: str, way: GatewayWay, attempt: int) -> None:
        if attempt != self.attempt.get(way.identity, 0) or self.ways.find(way) is None:
            return
        how = self.works.get(way.url, "works")
        if what == "answer":
            if how == "works":
                self.ways.heard(way, self.now, self.now)
        elif what == "renew":
            if how == "works":
                self.forget(way.identity)
                self.sends_over.append((way.identity, attempt))
                self.ways.welcomed(way, self.now)
        elif what == "timeout":
            self.ways.failed(way, "the handshake took too long", self.now)
        elif how == "closed":
            self.ways.failed(way, "nobody is there", self.now)
        elif what == "connect":
            # A middlebox accepts connections that lead nowhere.
            self.ways.connected(way, self.now)
        elif how == "works":
            self.hear(what, way)
        self.act()

    def hear(self, what: str, way: GatewayWay) -> None:
        close = self.refuses.get(way.url)
        if what == "join" and not self.sends_over:
            close = Close(CloseCode.BYE, 0, "there is no contact to join")
        elif what == "join" and len(self.sends_over) >= MOST_LINES:
            close = Close(CloseCode.OVERLOADED, 0, "a device may have 4 channels at most")
        if close is not None:
            self.ways.failed(way, close.reason, self.now, close)
            return
        if what == "hello":
            for other in list(self.open.values()):
                self.end(other, "a newer channel took over", Close(CloseCode.REPLACED))
            self.sends_over.clear()
        self.open[way.identity] = way
        self.sends_over.append((way.identity, self.attempt[way.identity]))
        self.ways.welcomed(way, self.now)
