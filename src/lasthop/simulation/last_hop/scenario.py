"""A trace lived through under one policy: the gateway's feed and the device's queue."""

from __future__ import annotations

from typing import Final

from lasthop.clock import Micros
from lasthop.decision.policies import POLICIES
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import Effect, Forward, Rerank, Retract, Show
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import Arrived, Woken
from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.trace import LINK, LOOK, UP, Trace

WOKEN: Final = Woken()


class Scenario:
    """A gateway's feed and a device's queue, joined by the link of a trace."""

    def __init__(self, parameters: Parameters) -> None:
        policy = POLICIES[parameters.policy](parameters.tuning())
        self._feed = Feed(parameters.subscription(), policy)
        self._device = DeviceQueue(max_per_read=parameters.max)
        self._max = parameters.max
        self._events: list[Arrived] = []
        self._linked = False
        self.read: set[int] = set()
        self.forwarded = 0

    def play(self, trace: Trace) -> None:
        """Live through it."""
        feed, device = self._feed, self._device
        self._events = trace.events
        for now, kind, given in trace.moments:
            while feed.due <= now and (wake := feed.next_wake()) is not None and wake <= now:
                self._apply(feed.take(WOKEN, wake))
            if kind == LOOK:
                self._look(now)
                continue
            if kind == LINK:
                self._linked = given is UP
            effects = feed.take(device.contact() if given is UP else given, now)
            if effects:
                self._apply(effects)

    def _look(self, now: Micros) -> None:
        if self._linked:
            self._apply(self._feed.take(self._device.ask(self._max, now), now))
        else:
            self.read.update(self._device.read_offline(self._max, now))

    def _apply(self, effects: list[Effect]) -> None:
        device = self._device
        for effect in effects:
            if type(effect) is Forward:
                event = self._events[effect.key - 1]
                device.forward(effect, rank=event.rank, expires_at=event.expires_at)
                self.forwarded += 1
            elif type(effect) is Show:
                self.read.update(device.show(effect))
            elif type(effect) is Retract:
                device.retract(effect)
            elif type(effect) is Rerank:
                device.rerank(effect)
