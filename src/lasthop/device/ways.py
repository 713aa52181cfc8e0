"""Decides which ways to the gateway a device uses, without I/O: it races connections, notices ways
that have fallen silent, keeps joined ways open, and rests what does not work.

A driver reports what happens and carries out the actions that `take` returns. Time and randomness
are arguments. Only connections are raced (RFC 8305 does it for addresses): a HELLO without `join`
ends all other channels, so only one is under way at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import Micros
from lasthop.device.way import GatewayWay, Origin, WayAction, WayEvent, WayState, WayStatus, WayUp
from lasthop.device.way_plan import LEAST_PATIENCE, MOST_PATIENCE, WayPlan
from lasthop.device.way_track import LASTING, LINES, WayTrack
from lasthop.errors import LasthopError
from lasthop.wire.hop.frames import Close, CloseCode


def patience(timeout: Micros) -> Micros:
    """Return how long a frame may remain unanswered over a channel with this retransmission
    timeout, which is the smoothed round-trip time and four times its variation."""
    return min(max(timeout, LEAST_PATIENCE), MOST_PATIENCE)


class Ways(WayPlan):
    """The ways of one device: what happens to them, and what is to be done about it."""

    # What a driver asks.

    def take(self) -> list[WayAction]:
        """Return the actions since the last call, in order."""
        actions, self._actions = self._actions, []
        return actions

    def events(self) -> list[WayEvent]:
        """Return what the application is told since the last call."""
        events, self._events = self._events, []
        return events

    @property
    def final(self) -> LasthopError | None:
        """The error because of which no way is tried again; None as long as one is."""
        if self._replaced is None and self._errors and len(self._errors) == len(self._tracks):
            return next(reversed(self._errors.values()))
        return self._replaced

    def status(self) -> list[WayStatus]:
        """Return the state of every way, the first to be tried first."""
        return [track.status() for track in sorted(self._tracks.values(), key=self._rank)]

    def find(self, way: GatewayWay) -> WayStatus | None:
        """Return the state of one way; None if the device does not have it."""
        track = self._tracks.get(way.identity)
        return track.status() if track is not None else None

    def first(self) -> GatewayWay | None:
        """Return the way that is tried first; None if there is none."""
        best = min(self._tracks.values(), key=self._rank, default=None)
        return best.way if best is not None else None

    def next_due(self) -> Micros | None:
        """Return when to call `tick`; None if nothing is waited for."""
        if self._replaced is not None:
            return None
        dues = [due for track in self._tracks.values() for due in self._dues(track)]
        if self._candidates(self._now):
            dues.append(self._next_start)
        return min(dues, default=None)

    def tick(self, now: Micros) -> None:
        """Do what is due at this time."""
        self._now = now
        for track in list(self._tracks.values()):
            self._look(track, now)
        self._plan(now)

    # What happens to connections.

    def connected(self, way: GatewayWay, now: Micros) -> None:
        """Note that a connection can carry bytes."""
        track = self._tracks.get(way.identity)
        if track is not None and track.state is WayState.CONNECTING:
            track.connected(now)
            self._plan(now)

    def welcomed(self, way: GatewayWay, now: Micros) -> None:
        """Note that the gateway has welcomed the device over a way."""
        track = self._tracks.get(way.identity)
        if track is None or track.state not in (WayState.CONNECTING, *LINES):
            return
        track.enter(WayState.OPEN, now, "")
        track.opened = track.heard = now
        track.failures = 0
        self._hello_patience = LEAST_PATIENCE
        self._alone_since, self._despaired = None, False
        self._events.append(WayUp(track.way))
        self._plan(now)

    def failed(
        self, way: GatewayWay, problem: str, now: Micros, close: Close | None = None
    ) -> None:
        """Note that an attempt has ended; `close` is the gateway's answer, if it gave one."""
        track = self._tracks.get(way.identity)
        if track is None or track.state is not WayState.CONNECTING:
            return
        joined = track.said is not None and not track.hello
        self._fail(track, problem, now, close)
        if joined and close is not None and close.code in (CloseCode.BYE, CloseCode.OVERLOADED):
            self._disowned(track, now)
        self._plan(now)

    def lost(
        self,
        way: GatewayWay,
        problem: str,
        now: Micros,
        close: Close | None = None,
        *,
        ours: bool = False,
    ) -> None:
        """Note that the channel of a way has ended. `ours` says that this device has said HELLO
        since the channel was opened, so that the gateway replaced it on the device's account."""
        track = self._tracks.get(way.identity)
        if track is None or track.state not in LINES:
            return
        if now - track.opened >= LASTING:
            track.backoff.succeeded()
        if ours and close is not None and close.code == CloseCode.REPLACED:
            close = None
        self._fail(track, problem, now, close, welcomed=True)
        self._plan(now)

    def _disowned(self, track: WayTrack, now: Micros) -> None:
        """Say HELLO over the way on which the gateway has just refused to let a channel join,
        unless another way answers: there is no contact, or there are too many channels."""
        answering = self._answering(now)
        if (answering and not self._better(track, answering[0])) or track.asked > now:
            return
        if track.state is WayState.RESTING:
            self._connect(track, now)
        for line in self._lines():
            self._leave(line, now, "the gateway lets no channel join it")

    def again(self, way: GatewayWay, now: Micros) -> None:
        """Say HELLO once more over a new connection, at once and over this way first, because the
        channels that there are cannot go on."""
        self._leave_all(now, "the conversation begins anew")
        track = self._tracks.get(way.identity)
        if track is not None and track.state in (WayState.IDLE, WayState.RESTING):
            self._connect(track, now)
        self._plan(now)

    def spoke(self, way: GatewayWay, at: Micros, wait: Micros) -> bool:
        """Note that a frame left at `at` that the gateway answers within `wait`; return whether
        `next_due` has become earlier."""
        track = self._tracks.get(way.identity)
        return track is not None and track.state is WayState.OPEN and track.speaks(at, wait)

    def heard(self, way: GatewayWay, at: Micros, now: Micros) -> None:
        """Note when something last came in over a way."""
        track = self._tracks.get(way.identity)
        if track is None or track.state not in LINES or not track.hears(at):
            return
        if track.state is WayState.SUSPECT and at > track.since:
            track.enter(WayState.OPEN, now, "")
            self._alone_since, self._despaired = None, False
            self._events.append(WayUp(track.way))
            self._plan(now)

    # What happens around them.

    def network_changed(self, now: Micros) -> None:
        """Try everything anew, because the device is on another network."""
        self._leave_all(now, "the device is on another network")
        self._race(now)
        self._plan(now)

    def move_way(
        self, way: GatewayWay, *, link: str | None, network: str | None, now: Micros
    ) -> None:
        """Note that a way goes over another link or network now; `network_changed` follows."""
        track = self._tracks.get(way.identity)
        moved = msgspec.structs.replace(way, link=link, network=network)
        if track is not None and moved.identity != way.identity:
            self._leave(track, now, "the device is on another network")
            kept, chosen = track.kept, self._chosen is track
            self._forget(track)
            track.way = moved
            found = self._tracks.setdefault(moved.identity, track)
            found.kept = found.kept or kept
            self._chosen = found if chosen else self._chosen

    def hurry(self, now: Micros) -> None:
        """End the rests that the gateway has not asked for."""
        self._race(now)
        self._plan(now)

    def spent(self, link: str, until: Micros, now: Micros) -> None:
        """Note that this device may send nothing over a link before `until`; a way that may carry
        something takes its place."""
        for track in self._tracks.values():
            if (track.way.link or "") == link:
                track.spent = until
        if not self._healthy(now):
            self._race(now)
        self._plan(now)

    def told(self, ways: Iterable[GatewayWay], now: Micros) -> None:
        """Replace the ways that the gateway has told."""
        fresh = {way.identity: way for way in ways}
        for track in list(self._tracks.values()):
            if track.way.origin is Origin.GATEWAY and track.way.identity not in fresh:
                track.outdated = True
                if track.state not in LINES:
                    self._leave(track, now, "the gateway no longer tells this way")
                    self._forget(track)
        for way in fresh.values():
            found = self._tracks.get(way.identity)
            if found is None:
                self._track(way, now)
            elif found.way.origin is Origin.GATEWAY:
                found.way, found.outdated = way, False
        self._plan(now)

    # What the application wants.

    def add(self, way: GatewayWay, now: Micros) -> None:
        """Add a way, or change the credential and preference of one."""
        found = self._tracks.get(way.identity)
        if found is None:
            self._track(way, now)
        else:
            found.way, found.outdated = way, False
            self._forgive(found, now)
        self._plan(now)

    def remove(self, way: GatewayWay, now: Micros) -> None:
        """Remove a way, and leave its channel."""
        track = self._tracks.get(way.identity)
        if track is not None:
            track.outdated = True
            self._leave(track, now, "the application has removed this way")
            self._forget(track)
            self._plan(now)

    def join(self, way: GatewayWay, now: Micros) -> None:
        """Keep a way open beside those that are open, or that will be opened first."""
        track = self._tracks.get(way.identity) or self._track(way, now)
        beside = self._lines()
        others = [each for each in self._tracks.values() if each is not track]
        if not beside and others and not any(each.kept for each in others):
            beside = [min(others, key=self._rank)]
        for each in (*beside, track):
            each.kept = True
        self._at_once(track, now)

    def switch(self, way: GatewayWay, now: Micros) -> None:
        """Use this way in place of all others as soon as it works, and whenever it does."""
        track = self._tracks.get(way.identity) or self._track(way, now)
        for each in self._tracks.values():
            each.kept = False
        self._chosen = track
        self._at_once(track, now)

    def _at_once(self, track: WayTrack, now: Micros) -> None:
        self._forgive(track, now)
        if track.state is WayState.RESTING and track.asked <= now:
            track.enter(WayState.IDLE, now)
        self._next_start = min(self._next_start, now)
        self._plan(now)

    def _forgive(self, track: WayTrack, now: Micros) -> None:
        """Try a way again that the gateway has refused, because the application asks for it."""
        if track.state is WayState.BARRED:
            self._errors.pop(track.way.identity, None)
            track.enter(WayState.IDLE, now)
