"""What other systems do with an absent device: their documented rules, on our traces.

All of them forward events at once, in order of arrival, while the device is in contact; none of
them knows a rank. They differ in what they keep while the device is absent, which is all that is
modelled here. An expired event is not forwarded if the system has a notion of expiration. On the
device the user reads the best of what is there, so that no system suffers from a poor reader.

Every rule says which settings it stands for. They are the usual defaults. The tests compare the
rule of Mosquitto with the real one; the other systems behave differently with other settings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from lasthop.clock import HOUR, Micros
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import Forward
from lasthop.decision.volume.inputs import Arrived
from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.trace import LINK, LOOK, Trace

Waiting = deque[tuple[Micros, Arrived]]
"""Events that are kept for the device, each with its time of arrival."""


class SystemRule:
    """The simplest rule: keep everything. Every other system overrides some of it."""

    expires = True
    """Whether events that have expired are left out."""

    def __init__(self) -> None:
        self.waiting: Waiting = deque()

    def arrived(self, event: Arrived, now: Micros) -> None:
        """Keep an event that arrives while the device is away."""
        self.waiting.append((now, event))

    def replayed(self, now: Micros) -> list[Arrived]:
        """Return what the device gets when it is back, in this order."""
        waiting, self.waiting = self.waiting, deque()
        return [event for _, event in waiting if not self.expires or lives(event, now)]

    def _forget_expired(self, now: Micros) -> None:
        """Remove expired events, as a full queue does before it turns anything away."""
        if self.expires:
            self.waiting = deque(row for row in self.waiting if lives(row[1], now))


def lives(event: Arrived, now: Micros) -> bool:
    """Return whether an event has not expired."""
    return event.expires_at is None or event.expires_at > now


class RefuseNew(SystemRule):
    """A full queue accepts nothing more. Mosquitto: `max_queued_messages` 1000 for a client with a
    persistent session. VerneMQ: `max_offline_messages` 1000, first in, first out: tail drop."""

    LIMIT = 1000

    def arrived(self, event: Arrived, now: Micros) -> None:
        if len(self.waiting) >= self.LIMIT:
            self._forget_expired(now)
        if len(self.waiting) < self.LIMIT:
            super().arrived(event, now)


class DropOldest(SystemRule):
    """A full queue drops its oldest message. EMQX: `max_mqueue_len` 1000, for as long as the
    session lasts, which the client chooses. RabbitMQ: `max-length` with `overflow` at its default
    of drop-head; without a policy there is no limit, so 1000 stands for one that was set."""

    LIMIT = 1000

    def arrived(self, event: Arrived, now: Micros) -> None:
        if len(self.waiting) >= self.LIMIT:
            self._forget_expired(now)
        super().arrived(event, now)
        while len(self.waiting) > self.LIMIT:
            self.waiting.popleft()


class DiscardAll(SystemRule):
    """Firebase Cloud Messaging: 100 messages wait for a device; the next one discards all of them,
    and the app is told that something was deleted. Later messages are stored again."""

    LIMIT = 100

    def arrived(self, event: Arrived, now: Micros) -> None:
        if len(self.waiting) >= self.LIMIT:
            self._forget_expired(now)
        if len(self.waiting) >= self.LIMIT:
            self.waiting.clear()
        else:
            super().arrived(event, now)


class OneSlot(SystemRule):
    """Apple's push service: only the last notification of an app waits for a device."""

    def arrived(self, event: Arrived, now: Micros) -> None:
        self.waiting.clear()
        super().arrived(event, now)


class NtfyCache(SystemRule):
    """ntfy: messages stay in the server's cache (`cache-duration` 12h), and a client that
    subscribes with `since` gets all messages that it has missed. A message has no expiration."""

    expires = False
    DURATION: Micros = 12 * HOUR

    def arrived(self, event: Arrived, now: Micros) -> None:
        super().arrived(event, now)
        self._age(now)

    def replayed(self, now: Micros) -> list[Arrived]:
        self._age(now)
        return super().replayed(now)

    def _age(self, now: Micros) -> None:
        while self.waiting and self.waiting[0][0] + self.DURATION <= now:
            self.waiting.popleft()


ZOO: dict[str, Callable[[], SystemRule]] = {
    "Mosquitto": RefuseNew,
    "VerneMQ": RefuseNew,
    "EMQX": DropOldest,
    "RabbitMQ": DropOldest,
    "FCM": DiscardAll,
    "APNs": OneSlot,
    "ntfy": NtfyCache,
}
"""The rules of all modelled systems, by the system's name."""


class Cage:
    """One trace under another system's rule; the counterpart of `Scenario`."""

    def __init__(self, parameters: Parameters, rule: SystemRule) -> None:
        self._threshold = parameters.threshold
        self._max = parameters.max
        self._rule = rule
        self._device = DeviceQueue(max_per_read=parameters.max)
        self.read: set[int] = set()
        self.forwarded = 0

    def play(self, trace: Trace) -> None:
        """Go through all moments of a trace. Falls of rank are ignored, since these systems know no
        ranks."""
        linked = False
        for now, kind, given in trace.inputs():
            if kind == LOOK:
                self.read.update(self._device.read_offline(self._max, now))
            elif kind == LINK:
                linked = not linked
                if linked:
                    for event in self._rule.replayed(now):
                        self._forward(event, now)
            elif isinstance(given, Arrived) and given.rank >= self._threshold:
                if linked:
                    self._forward(given, now)
                else:
                    self._rule.arrived(given, now)

    def _forward(self, event: Arrived, now: Micros) -> None:
        self.forwarded += 1
        if lives(event, now):  # An expired one was sent in vain.
            effect = Forward(event.key, "forwarded")
            self._device.forward(effect, rank=event.rank, expires_at=event.expires_at)
