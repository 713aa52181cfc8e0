"""Logs of a fleet whose gateways crash, and whose users change their minds.

Every gateway has some of the devices and a log of its own. Its crashes are silent: no contact is
logged as lost, and the devices that were connected come back half a minute later, if their link is
still there. Some users change Max, and some end a subscription and begin it again two days later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from lasthop.clock import DAY, SECOND, Micros
from lasthop.decision.policies import POLICIES, Tuning
from lasthop.decision.policies.memory import memory_of, recall
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import RankChanged
from lasthop.decision.volume.subscription import Subscription
from lasthop.eventlog.segment import directory_of
from lasthop.events import SCHEMA_VERSION, Kind
from lasthop.simulation.fleet.rehearse import DOWN, UP, FleetDevice, FleetLogLine, FleetTopic
from lasthop.simulation.fleet.world import BEGINS, Interest, person

BACK_AFTER = 30 * SECOND

Agenda = list[tuple[Micros, int, Callable[[Micros, Any], None], Any]]


class FaultyDevice(FleetDevice):
    """A device whose gateway dies, and whose user changes terms and subscriptions."""

    def __init__(
        self, seed: int, number: int, days: int, *, policy: str, crashes: Sequence[Micros]
    ) -> None:
        super().__init__(seed, person(seed, number), days, policy=policy, told=None)
        self._crashes = crashes
        self._chance = Random(f"faulty/{seed}/{number}")
        self._away: dict[str, FleetTopic] = {}
        self._reach: tuple[str, str] | None = None
        """The link and network that are there now, whether or not they are in use."""

    def _agenda(self) -> Agenda:
        plan: Agenda = super()._agenda()
        for at in self._crashes:
            plan.append((at, -2, self._crash, None))
            plan.append((at + BACK_AFTER, 5, self._come_back, None))
        for topic in list(self._topics.values()):
            for _ in range(self._chance.choice((0, 1, 3))):
                at = BEGINS + self._chance.randrange(self._days * DAY)
                plan.append((at, 6, self._renew, (topic.name, self._chance.choice((1, 2, 8)))))
            if self._days > 3 and self._chance.random() < 0.4:
                at = BEGINS + self._chance.randrange((self._days - 3) * DAY)
                plan.append((at, 6, self._leave, topic.name))
                plan.append((at + 2 * DAY, 6, self._return, topic.name))
        plan.sort(key=lambda step: step[:2])
        return plan

    def _connect(self, at: Micros, given: Any) -> None:
        self._reach = given
        super()._connect(at, given)

    def _disconnect(self, at: Micros, given: Any) -> None:
        self._reach = None
        if self._link:
            super()._disconnect(at, given)

    def _crash(self, at: Micros, given: Any) -> None:
        if self._link:
            self._link = self._network = ""
            self._trial = None
            for topic in self._topics.values():
                self._take(topic, DOWN, at)

    def _come_back(self, at: Micros, given: Any) -> None:
        if self._reach is not None and not self._link:
            self._connect(at, self._reach)

    def _arrive(self, at: Micros, given: Any) -> None:
        if given[0] in self._topics.values():
            super()._arrive(at, given)

    def _fall(self, at: Micros, given: Any) -> None:
        topic, key = given
        if topic in self._topics.values() and key in topic.known:
            super()._fall(at, given)

    def _renew(self, at: Micros, given: Any) -> None:
        name, most = given
        topic = self._topics.get(name)
        if topic is None:
            return
        old, learned = topic.feed, memory_of(topic.feed._policy)
        entries = [entry for key in old.entries() if (entry := old.entry(key)) is not None]
        topic.subscription = Subscription(max=most, threshold=0.0)
        topic.tuning = {"max": most}
        policy = POLICIES[topic.policy](msgspec.convert(topic.tuning, Tuning))
        recall(policy, learned)
        topic.feed = Feed(topic.subscription, policy, now=at)
        topic.feed.resume(old.state(), entries)
        topic.device.limit(most)
        self._write(at, Kind.SUBSCRIBED, topic=name, terms=topic.terms())
        for entry in entries:
            self._take(topic, RankChanged(entry.key, entry.rank), at)
        self._report(topic, at)

    def _leave(self, at: Micros, name: Any) -> None:
        topic = self._away[name] = self._topics.pop(name)
        self._write(at, Kind.UNSUBSCRIBED, topic=topic.name)

    def _return(self, at: Micros, name: Any) -> None:
        old = self._away.pop(name)
        interest = Interest(name, 0.0, None, old.subscription.max, 0.0)
        topic = FleetTopic(interest, old.policy)
        topic.feed = Feed(topic.subscription, topic.feed._policy, now=at)
        topic.device = DeviceQueue(max_per_read=topic.subscription.max)
        # What was planned for the old subscription goes to the new one.
        old.__dict__.update(topic.__dict__)
        self._topics[name] = old
        self._write(at, Kind.SUBSCRIBED, topic=name, terms=old.terms())
        self._report(old, at)

    def _report(self, topic: FleetTopic, at: Micros) -> None:
        if self._link:
            self._write(at, Kind.REPORTED, topic=topic.name, count=0)
            self._take(topic, UP, at)


def write_faulty_log(
    root: Path,
    *,
    gateways: int,
    devices: int,
    days: int,
    seed: int,
    policy: str,
    name: str | None = None,
) -> None:
    """Write the logs of several gateways with some devices each: `root/<number>/date=.../...`.

    With `name`, all of them have the same name.
    """
    for number in range(gateways):
        chance = Random(f"crashes/{seed}/{number}")
        spread = range(chance.choice((0, 1, 4, 9)))
        crashes = sorted(BEGINS + chance.randrange(days * DAY) for _ in spread)
        lines: list[FleetLogLine] = []
        for device in range(number * devices, (number + 1) * devices):
            one = FaultyDevice(seed, device, days, policy=policy, crashes=crashes)
            one.live()
            lines.extend(one.lines)
        _write(root / str(number), name or f"gw-{number}", lines, crashes)


def _write(log: Path, gateway: str, lines: list[FleetLogLine], crashes: Sequence[Micros]) -> None:
    started = [BEGINS, *crashes]
    begins = [
        FleetLogLine(at, -1, -1, 0, False, b'"t":%d,"kind":"gateway_started","count":%d}' % (at, n))
        for n, at in enumerate(started, 1)
    ]
    ordered = sorted([*begins, *lines], key=attrgetter("t"))
    boot = 0
    days: dict[int, list[bytes]] = {}
    for n, line in enumerate(ordered):
        boot += line.device < 0
        head = f'{{"v":{SCHEMA_VERSION},"gw":"{gateway}","boot":{boot},"n":{n},'
        days.setdefault(line.t // DAY, []).append(head.encode() + line.rest + b"\n")
    first = 0
    for day, texts in sorted(days.items()):
        directory = log / directory_of(day)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"events-{first:020d}.jsonl").write_bytes(b"".join(texts))
        first += len(texts)
