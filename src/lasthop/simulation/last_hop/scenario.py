"""One trace under one policy: the gateway's feed and the device's queue, event by event."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.decision.policies import POLICIES, Tuning
from lasthop.decision.policies.fixed import Expiration
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import Rerank
from lasthop.decision.volume.entry import FeedEntry
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import NOTHING_NEW, RankChanged, Read, Woken
from lasthop.decision.volume.outlet import Outlet
from lasthop.simulation.last_hop.parameters import LifeJudged, Parameters
from lasthop.simulation.last_hop.trace import ARRIVAL, KIND, KIND_BITS, LINK, LOOK, Trace


class Hop(Outlet):
    """The hop between feed and device: what the feed wants done happens to the device at once."""

    def __init__(self, device: DeviceQueue) -> None:
        super().__init__(hears_of_holds=False)
        self._device = device
        self.read: set[int] = set()

    def forward(self, entry: FeedEntry, reason: str, instead_of: int | None) -> None:
        if instead_of is not None:
            self._device.forget(instead_of)
        self._device.add(entry.key, entry.rank, entry.expires_at)

    def show(self, keys: list[int], reason: str) -> None:
        for key in keys:
            self._device.forget(key)
        self.read.update(keys)

    def retract(self, key: int, reason: str) -> None:
        self._device.forget(key)

    def rerank(self, key: int, rank: float) -> None:
        self._device.rerank(Rerank(key, rank))


class JudgedAtArrival(Expiration):
    """The expiration policy to the letter of figure 7: it compares an event's whole life with the
    threshold when the event arrives, and never again."""

    def __init__(self, tuning: Tuning) -> None:
        super().__init__(tuning)
        self._short: set[Micros] = set()
        """When the events expire that do not live long enough: the interface shows a policy no
        other mark of an event."""

    def arrived(self, *, lifetime: Micros | None, now: Micros) -> Micros:
        if not super().worth(lifetime=lifetime, now=now):
            self._short.add(now + (lifetime or 0))
        return 0

    def worth(self, *, lifetime: Micros | None, now: Micros) -> bool:
        return lifetime is None or now + lifetime not in self._short


class Scenario:
    """A gateway's feed and a device's queue, connected by the link of a trace."""

    def __init__(self, parameters: Parameters) -> None:
        judged_early = parameters.life_judged is LifeJudged.ARRIVAL
        kind = JudgedAtArrival if judged_early else POLICIES[parameters.policy]
        policy = kind(parameters.tuning())
        self._feed = Feed(parameters.subscription(), policy)
        self._device = DeviceQueue(max_per_read=parameters.max)
        self._hop = Hop(self._device)
        self._max = parameters.max
        self._reads_wait = parameters.reads_wait
        self._waiting = False
        """Whether the user has looked without a link, and waits for the answer."""

    @property
    def read(self) -> set[int]:
        """Keys of the events that the user has read."""
        return self._hop.read

    @property
    def forwarded(self) -> int:
        """How many events went over the hop."""
        return self._device.received

    def play(self, trace: Trace) -> None:
        """Go through all moments of a trace."""
        feed, device, hop = self._feed, self._device, self._hop
        ranks, expiries = trace.ranks, trace.expiries
        key = fall = 0
        linked = False
        for moment in trace.moments:
            now = moment >> KIND_BITS
            kind = moment & KIND
            if feed.due <= now:
                self._wake(now)
            if kind == ARRIVAL:
                feed.arrive(key + 1, ranks[key], expiries[key], now, hop)
                key += 1
            elif kind == LINK:
                linked = not linked
                if linked:
                    feed.contact_up(device.contact() if device.reads else NOTHING_NEW, now, hop)
                    if self._waiting:
                        self._waiting = False
                        self._look(linked, now)
                else:
                    feed.contact_down(now, hop)
            elif kind == LOOK:
                self._look(linked, now)
            else:
                feed.tell(RankChanged(trace.falls[fall], trace.fallen), now, hop)
                fall += 1

    def _wake(self, now: Micros) -> None:
        """Let the feed do what it has planned for times up to `now`."""
        feed = self._feed
        while (wake := feed.next_wake()) is not None and wake <= now:
            feed.tell(Woken(), wake, self._hop)

    def _look(self, linked: bool, now: Micros) -> None:
        if linked:
            # The gateway knows what the device holds, and decides what to show.
            self._feed.tell(Read(self._max, self._device.count(now)), now, self._hop)
        else:
            self._hop.read.update(self._device.read_offline(self._max, now))
            self._waiting = self._reads_wait
