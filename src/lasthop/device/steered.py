"""The part of a session that chooses links for what is sent: wishes in, decisions out."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.clock import Micros
from lasthop.decision.budgets import Meter
from lasthop.decision.preferences import Preferences
from lasthop.device.arrivals import Arrivals
from lasthop.device.change import BUDGETS, WISHES
from lasthop.device.explanation import Explanation
from lasthop.device.message import Refusal
from lasthop.device.outbox import Outbox
from lasthop.device.outgoing import Outgoing
from lasthop.device.pilot import Pilot
from lasthop.device.snapshot import Snapshot
from lasthop.device.steering import NO_WISHES, Line, Steering
from lasthop.device.transfers import Transfers
from lasthop.wire.hop.frames import Frame


class SteeredSession:
    """What a session does for a device with wishes. The session owns all that is named here."""

    lines: dict[int, Line]
    transfers: Transfers
    arrivals: Arrivals
    _outbox: Outbox
    _pilot: Pilot | None
    _open: bool
    _durable: Snapshot
    _gate: int
    _notes: dict[str, bytes]

    _fails: list[Callable[[Outgoing, Refusal], bool]]

    def refuse(self, key: int, refusal: Refusal) -> None:
        """The gateway will not act on a message of ours, or never gets it."""
        raise NotImplementedError

    def _send_ahead(self, *, durable: bool = False) -> None:
        """Let large bodies go ahead of their messages."""
        raise NotImplementedError

    def link_up(self, channel: int, label: str, *, round_trip: Micros | None = None) -> None:
        """Messages may leave over this channel, which is known by a number above 0."""
        self.lines[channel] = Line(channel, label, round_trip)
        if self._pilot is not None:
            self._pilot.link_changed()

    def link_paused(self, channel: int, paused: bool) -> None:
        """A channel's unsent buffer is full, or has room again."""
        line = self.lines.get(channel)
        if line is not None and line.paused != paused:
            line.paused = paused
            if self._pilot is not None and not paused:
                self._pilot.link_changed()

    def prefer(self, wishes: Preferences) -> None:
        """Which links to send over, and what may be spent; durable with the next change."""
        if wishes != NO_WISHES:
            if self._pilot is not None:
                self._pilot.wish(wishes)
                return
            steering = Steering(wishes, self.lines)
            self._pilot = Pilot(steering, self._outbox, self.transfers)
            self._pilot.begin(in_contact=self._open)
        elif self._pilot is not None:
            waiting, self._pilot = self._pilot.end(), None
            self._outbox.resume_order(waiting)
            self._notes = {WISHES: b"", BUDGETS: b""}
            self._send_ahead()

    def steer(self, now: Micros, *, budget: int | None = None) -> None:
        """Decide about what waits to be sent, before the next change: at most so many bytes and a
        message. Without wishes there is nothing to decide."""
        if self._pilot is not None:
            self._pilot.steer(now, budget=budget)
            self._hear_refusals()

    def routed(self, *, piece: bool = True) -> dict[int, list[Frame]]:
        """What may leave now over particular channels, beside the `frames`."""
        pilot = self._pilot
        if pilot is None or not self._open or self._durable.n < self._gate:
            return {}
        routed = pilot.frames()
        next_piece = pilot.next_piece() if piece and self._outbox.streams else None
        if next_piece is not None:
            routed.setdefault(next_piece[0], []).append(next_piece[1])
        return routed

    @property
    def stuck(self) -> bool:
        """Whether a new contact is needed before anything more gets through."""
        return self._pilot is not None and self._pilot.stuck

    @property
    def wishes(self) -> Preferences:
        """What the user wants of what is sent."""
        return NO_WISHES if self._pilot is None else self._pilot.steering.wishes

    def explain(self, key: int) -> Explanation | None:
        """Why a message of ours went over a link, or waits."""
        return None if self._pilot is None else self._pilot.explain(key)

    def held_back(self) -> list[Explanation]:
        """Messages of ours that wait for a link or a limit, and why."""
        return [] if self._pilot is None else self._pilot.waiting()

    def spending(self, now: Micros) -> list[Meter]:
        """What is used of every limit on what we send."""
        return [] if self._pilot is None else self._pilot.steering.books.budgets.usage(now)

    def _hear_refusals(self) -> None:
        refusals, self._outbox.refusals = self._outbox.refusals, []
        for item, against in refusals:
            if not any(fails(item, against) for fails in self._fails):
                self.refuse(item.key, against)
