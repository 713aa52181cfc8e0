"""Plans what a device does with its ways: which connection to make next, over which to speak, and
which channels are no longer needed. `ways` has the inputs that lead to a new plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lasthop.clock import MILLISECOND, MINUTE, SECOND, Micros
from lasthop.device.retry import Backoff, ChannelReplaced, verdict
from lasthop.device.way import (
    AskWay,
    ConnectWay,
    GatewayWay,
    LeaveWay,
    NoWay,
    RenewWay,
    SayHello,
    WayAction,
    WayDown,
    WayEvent,
    WayIdentity,
    WayState,
    WaySuspect,
)
from lasthop.device.way_track import LINES, WayTrack
from lasthop.errors import LasthopError
from lasthop.wire.hop.frames import Close, CloseCode
from lasthop.wire.hop.heartbeat import UNHEARD

LEAST_PATIENCE: Micros = SECOND
MOST_PATIENCE: Micros = 2500 * MILLISECOND
"""How long a frame may remain unanswered before its way is suspect: half of the five seconds
after which a device with another way shall be in contact again."""

LONGEST_HELLO: Micros = 30 * SECOND
"""How long a HELLO may remain unanswered at most: the wait doubles whenever it was vain, so that a
slow gateway is not asked over one way after the other for ever."""

ATTEMPT: Micros = 8 * SECOND
"""How long a connection may take if there are other ways. After that a new attempt sends at once,
where the old one would wait long between its repetitions."""

HOPELESS: Micros = 10 * SECOND
"""How long a suspect way keeps its channel while the gateway answers over another one."""

SHORT_REST: Micros = SECOND // 2
"""How long the other ways wait for the one that is preferred, when that has just ended."""

EAGER: Micros = 2 * MINUTE
EAGER_REST: Micros = 4 * SECOND
"""The longest rest of a way in the first two minutes without contact."""


class WayPlan:
    """The ways of one device, and the actions and events that follow from their states."""

    def __init__(
        self, ways: Iterable[GatewayWay], *, backoff: Callable[[], Backoff], now: Micros
    ) -> None:
        """Begin without contact; `backoff` makes the pauses of one way."""
        self._backoff = backoff
        self._tracks: dict[WayIdentity, WayTrack] = {}
        self._count = 0
        self._chosen: WayTrack | None = None
        """The way that the application has switched to; it comes before any preference."""
        self._actions: list[WayAction] = []
        self._events: list[WayEvent] = []
        self._now = now
        self._next_start: Micros = now
        self._hello_patience: Micros = LEAST_PATIENCE
        self._alone_since: Micros | None = now
        """Since when the gateway answers over no way; None while it does."""
        self._despaired = False
        """Whether the application was told that no way works."""
        self._renewed: WayTrack | None = None
        """The suspect way because of which another one has a new channel."""
        self._problem = ""
        self._errors: dict[WayIdentity, LasthopError] = {}
        self._replaced: LasthopError | None = None
        for way in ways:
            self._track(way, now)

    def _track(self, way: GatewayWay, now: Micros) -> WayTrack:
        self._count += 1
        track = WayTrack(way, self._backoff(), self._count, now)
        self._tracks[way.identity] = track
        return track

    # The order of ways.

    def _rank(self, track: WayTrack) -> tuple[bool, bool, int, int, Micros, int]:
        """The place of a way among those that are tried: by preference, but last what has failed
        again and again."""
        chosen = track is self._chosen
        prefers, usual = -track.way.preference, track.usual or 0
        return track.failures > 1, not chosen, prefers, track.failures, usual, track.order

    def _better(self, one: WayTrack, other: WayTrack) -> bool:
        """Whether one way is preferred to another, as far as both work."""
        if one is self._chosen or other is self._chosen:
            return one is self._chosen and other is not self._chosen
        return one.way.preference > other.way.preference

    def _lines(self) -> list[WayTrack]:
        return [track for track in self._tracks.values() if track.state in LINES]

    def _healthy(self, now: Micros) -> list[WayTrack]:
        """The ways over which the device can send, the best first."""
        tracks = self._tracks.values()
        found = [each for each in tracks if each.state is WayState.OPEN and each.spent <= now]
        return sorted(found, key=self._rank)

    def _answering(self, now: Micros) -> list[WayTrack]:
        """The ways over which device and gateway can speak, the best first. The gateway sends over
        the newest channel: while that one is suspect, it sends in vain."""
        newest = max(self._lines(), key=_age, default=None)
        if newest is None or newest.state is WayState.SUSPECT:
            return []
        return self._healthy(now)

    def _speaker(self) -> WayTrack | None:
        """The way over which a HELLO that replaces all channels waits for its answer."""
        return next((t for t in self._tracks.values() if t.said is not None and t.hello), None)

    def _late(self, speaker: WayTrack, now: Micros) -> bool:
        return speaker.said is not None and now >= speaker.said + self._hello_patience

    # Plans.

    def _plan(self, now: Micros) -> None:
        """Wake what has rested, leave what is not needed, speak, and start the next connection."""
        self._now = now
        if self._replaced is not None:
            return
        for track in self._tracks.values():
            over = track.until if track.state is WayState.RESTING else track.closed
            if track.state in (WayState.RESTING, WayState.CLOSED) and over <= now:
                track.enter(WayState.IDLE, now)
        self._retire(now)
        self._speak(now)
        while now >= self._next_start:
            candidates = self._candidates(now)
            if not candidates:
                break
            self._connect(candidates[0], now)
        self._renew(now)
        self._despair(now)

    def _renew(self, now: Micros) -> None:
        """Open a new channel over a way that works, if the gateway speaks into the void and there
        is no other way."""
        healthy, busy = self._healthy(now), (WayState.IDLE, WayState.CONNECTING)
        if not healthy or self._answering(now):
            self._renewed = None
            return
        newest = max(self._lines(), key=_age)
        if self._renewed is not newest and not any(
            track.state in busy for track in self._tracks.values()
        ):
            self._renewed = newest
            self._actions.append(RenewWay(healthy[0].way))

    def _candidates(self, now: Micros) -> list[WayTrack]:
        """The ways to connect to now, the best first."""
        speaker = self._speaker()
        if speaker is not None and not self._late(speaker, now):
            return []
        tracks = self._tracks.values()
        idle = [t for t in tracks if t.state is WayState.IDLE and not t.outdated]
        idle.sort(key=self._rank)
        fit = [track for track in idle if track.spent <= now]
        answering = self._answering(now)
        if answering:
            return [t for t in fit if t.kept or self._better(t, answering[0])]
        if not fit and not any(t.state in (*LINES, WayState.CONNECTING) for t in tracks):
            # Over a link on which it may send nothing a device can at least receive.
            return idle
        return fit

    def _connect(self, track: WayTrack, now: Micros) -> None:
        track.enter(WayState.CONNECTING, now)
        track.connecting = now
        self._next_start = now + track.stagger
        self._actions.append(ConnectWay(track.way))

    def _speak(self, now: Micros) -> None:
        """Send the HELLO over connections that are ready."""
        ready = [t for t in self._tracks.values() if t.ready and t.said is None]
        for track in sorted(ready, key=self._rank):
            speaker = self._speaker()
            if self._lines():
                track.said, track.hello = now, False
                self._actions.append(SayHello(track.way, join=True))
                continue
            if speaker is not None and self._late(speaker, now):
                self._hello_patience = min(2 * self._hello_patience, LONGEST_HELLO)
                self._give_up(speaker, now, "the gateway did not answer in time")
                speaker = None
            if speaker is None:
                track.said, track.hello = now, True
                self._actions.append(SayHello(track.way, join=False))

    def _retire(self, now: Micros) -> None:
        """Leave the ways that are not needed beside better ones."""
        for track in self._lines():
            others = [each for each in self._healthy(now) if each is not track]
            if others and track.spent > now:
                self._leave(track, now, "it has reached a limit of the device")
            elif (
                track.state is WayState.OPEN
                and not track.kept
                and any(self._surpasses(each, track) for each in others)
            ):
                self._leave(track, now, "another way is used in its place")
        healthy = self._answering(now)
        for track in self._tracks.values():
            unsaid = track.state is WayState.CONNECTING and track.said is None
            if healthy and unsaid and not (track.kept or self._better(track, healthy[0])):
                self._leave(track, now, "another way was quicker")

    def _surpasses(self, one: WayTrack, other: WayTrack) -> bool:
        """Whether a channel makes another one superfluous. The newer one stays, because the gateway
        sends over it; the way of the other is opened anew if it is the better one."""
        if _age(one) > _age(other):
            return not one.kept or self._better(one, other) or self._suspected(other)
        return False

    def _despair(self, now: Micros) -> None:
        """Tell the application once when nothing is left to be tried now."""
        busy = (*LINES, WayState.CONNECTING, WayState.IDLE)
        if self._despaired or any(track.state in busy for track in self._tracks.values()):
            return
        self._despaired = True
        dues = [due for track in self._tracks.values() for due in self._dues(track)]
        self._events.append(NoWay(min(dues, default=None), self._problem))

    def _suspected(self, track: WayTrack) -> bool:
        """Whether another channel was opened because this one had been suspect."""
        return track.since > track.opened

    # What is due.

    def _look(self, track: WayTrack, now: Micros) -> None:
        """Do what is due about one way."""
        if track.state is WayState.OPEN:
            if track.waiting is not None and now >= track.waiting + track.patience:
                track.enter(WayState.SUSPECT, now, "the gateway does not answer")
                self._actions.append(AskWay(track.way))
                self._events.append(WaySuspect(track.way))
                self._race(now)
        elif track.state is WayState.SUSPECT:
            if self._hopeless(track) and now >= track.since + HOPELESS:
                self._give_up(track, now, UNHEARD)
        elif self._hangs(track) and now >= track.connecting + ATTEMPT:
            self._give_up(track, now, "the connection took too long")
        elif self._joins(track) and self._late(track, now):
            self._hello_patience = min(2 * self._hello_patience, LONGEST_HELLO)
            self._give_up(track, now, "the gateway did not answer in time")

    def _hopeless(self, track: WayTrack) -> bool:
        """Whether the gateway has answered over another way since this one is suspect, so that it
        is not the gateway that stalls."""
        return any(each.heard > track.since for each in self._tracks.values())

    def _hangs(self, track: WayTrack) -> bool:
        connecting = track.state is WayState.CONNECTING and track.said is None
        return connecting and not track.ready and len(self._tracks) > 1

    def _joins(self, track: WayTrack) -> bool:
        """Whether the gateway is to answer a HELLO that joins other channels."""
        return track.said is not None and not track.hello and len(self._tracks) > 1

    def _dues(self, track: WayTrack) -> Iterator[Micros]:
        if track.state is WayState.RESTING:
            yield track.until
        elif track.state is WayState.CLOSED:
            yield track.closed
        elif track.state is WayState.OPEN and track.waiting is not None:
            yield track.waiting + track.patience
        elif track.state is WayState.SUSPECT and self._hopeless(track):
            yield track.since + HOPELESS
        elif self._hangs(track):
            yield track.connecting + ATTEMPT
        elif track.said is not None and (self._joins(track) or not self._late(track, self._now)):
            yield track.said + self._hello_patience
        if track.spent > self._now:
            yield track.spent

    # What becomes of a way.

    def _race(self, now: Micros, *, but: WayTrack | None = None) -> None:
        """Let ways that rest be tried at once, unless the gateway has asked to wait."""
        if self._alone_since is None and not self._answering(now):
            self._alone_since = now
        if not self._answering(now):
            for track in list(self._tracks.values()):
                if track.state is WayState.SUSPECT and self._hopeless(track) and track is not but:
                    # A new connection answers sooner than one whose network has been away.
                    self._give_up(track, now, UNHEARD)
        for track in self._tracks.values():
            if track.state is WayState.RESTING and track.asked <= now and track is not but:
                track.enter(WayState.IDLE, now)
        self._next_start = min(self._next_start, now)

    def _fail(
        self,
        track: WayTrack,
        problem: str,
        now: Micros,
        close: Close | None = None,
        *,
        welcomed: bool = False,
    ) -> None:
        """Rest, close or bar a way whose attempt or channel has ended."""
        was_line = track.state in LINES
        track.failures += not welcomed
        self._problem = problem
        self._events.append(WayDown(track.way, problem))
        error = verdict(close, welcomed=welcomed)
        if isinstance(error, ChannelReplaced):
            self._replaced = error
        if error is not None:
            track.enter(WayState.BARRED, now, problem)
            self._errors[track.way.identity] = error
        elif close is not None and close.code == CloseCode.LINK_CLOSED:
            self._close_link(track, now + close.retry_after_ms * MILLISECOND, now, problem)
        else:
            asked = close.retry_after_ms * MILLISECOND if close is not None else 0
            alone = self._alone_since
            eager = alone is not None and now - alone < EAGER
            track.rest(now, problem, asked=asked, longest=EAGER_REST if eager else None)
        if track.outdated:
            self._forget(track)
        if was_line:
            self._without(track, now)

    def _close_link(self, track: WayTrack, until: Micros, now: Micros, problem: str) -> None:
        """Use no way over a link before `until`."""
        link = track.way.link or ""
        for each in self._tracks.values():
            unused = each.state in (WayState.IDLE, WayState.RESTING, WayState.CLOSED)
            if each is track or (unused and (each.way.link or "") == link):
                each.enter(WayState.CLOSED, now, problem)
                # Devices of one owner shall not all come back at the same instant.
                each.closed = until + round(each.backoff.delay() * 1_000_000)

    def _without(self, track: WayTrack, now: Micros) -> None:
        """Look for another way in place of one that has gone."""
        if self._answering(now):
            return
        self._race(now, but=track)
        others = [each for each in self._tracks.values() if each is not track]
        brief = track.state is WayState.RESTING and track.until <= now + SHORT_REST
        if brief and all(self._better(track, each) for each in others):
            # The way that is preferred has the first chance to come back.
            self._next_start = max(self._next_start, track.until)

    def _give_up(self, track: WayTrack, now: Micros, problem: str) -> None:
        self._actions.append(LeaveWay(track.way, problem))
        self._fail(track, problem, now)

    def _leave(self, track: WayTrack, now: Micros, reason: str) -> None:
        """End what there is of a way that has not failed."""
        was_line = track.state in LINES
        if was_line or track.state is WayState.CONNECTING:
            self._actions.append(LeaveWay(track.way, reason))
            track.enter(WayState.IDLE, now)
        if was_line:
            self._events.append(WayDown(track.way, reason))
            if track.outdated:
                self._forget(track)
            self._without(track, now)

    def _leave_all(self, now: Micros, reason: str) -> None:
        for track in list(self._tracks.values()):
            self._leave(track, now, reason)

    def _forget(self, track: WayTrack) -> None:
        self._tracks.pop(track.way.identity, None)
        self._errors.pop(track.way.identity, None)
        if self._chosen is track:
            self._chosen = None


def _age(track: WayTrack) -> tuple[Micros, int]:
    """The order in which channels were opened, which is that of the gateway."""
    return track.opened, track.order
