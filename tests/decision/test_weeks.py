"""Weeks in the life of a few devices: messages in flight, lost receipts, changing links, and limits
of their own and of all, with everything settled late and out of order.

About `decision/transmission.py` and `decision/budgets.py`.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from lasthop.clock import DAY, HOUR, MINUTE, SECOND
from lasthop.decision.budgets import BudgetHold, Budgets, Closure, Limit, Measure
from lasthop.decision.choice import Attempt, Choice, MessageToPlace, QueueTerms
from lasthop.decision.decide import Action
from lasthop.decision.link_calendar import CalendarEntry, LinkCalendar
from lasthop.decision.links import Link
from lasthop.decision.localtime import Period, period_at, zone
from lasthop.decision.transmission import choose
from tests.decision.worlds import BLUETOOTH, MNO, MONDAY, SMS, WIFI

LINKS = (WIFI, MNO, SMS, BLUETOOTH)
QUEUES = (
    QueueTerms("urgent"),
    QueueTerms("news", max_delay=30 * MINUTE),
    QueueTerms("mail", max_delay=5 * HOUR, links=("wifi", "mno")),
)
CALENDAR = LinkCalendar.of(
    [
        CalendarEntry("wifi", (0, 1, 2, 3, 4), 9, 18, 0.8),
        CalendarEntry("bluetooth", (5, 6), 0, 24, 0.3),
    ],
    zone_name="America/New_York",
)
OWN = (
    Limit(40, Measure.UNITS, Period.WEEK, link="sms"),
    Limit(20_000, Measure.BYTES, Period.DAY, link="mno"),
    Limit(60, Measure.MESSAGES, Period.DAY, queues=("news", "mail")),
    Limit(4, Measure.MESSAGES, Period.DAY, link="wifi"),
    Limit(60_000, Measure.MONEY, Period.MONTH),
)
COMMON = (Limit(70, Measure.UNITS, Period.MONTH, link="sms"),)


class Device:
    """One device's view, and an independent account of what it was sent."""

    def __init__(self, random: Random, shared: Budgets) -> None:
        self._random = random
        self.budgets = Budgets(OWN, zone_name="America/New_York", shared=shared)
        self.in_flight: list[tuple[BudgetHold, Link]] = []
        self.waiting: list[tuple[MessageToPlace, QueueTerms]] = []
        self.sent: list[tuple[int, str, Link, int]] = []
        self.closed: dict[str, Closure] = {}

    def arrive(self, now: int) -> None:
        random = self._random
        before = random.choice([None, now + random.randrange(1, 3600) * SECOND])
        message = MessageToPlace(random.randrange(1, 3000), now, before)
        self.waiting.append((message, random.choice(QUEUES)))

    def decide(self, now: int) -> list[Choice]:
        random = self._random
        current = [link for link in LINKS if random.random() < 0.6]
        still: list[tuple[MessageToPlace, QueueTerms]] = []
        choices = []
        for message, queue in self.waiting:
            choice = choose(
                message,
                queue=queue,
                current=current,
                budgets=self.budgets,
                now=now,
                best=LINKS,
                calendar=CALENDAR,
            )
            choices.append(choice)
            if choice.action is Action.EXPIRE:
                continue
            sending = choice.action is Action.SEND
            after = self._send(choice, message, queue, now) if sending else message
            delivered = after.attempts and random.random() < 0.5
            if not delivered:
                still.append((after, queue))
        self.waiting = still[-20:]
        return choices

    def _send(
        self, choice: Choice, message: MessageToPlace, queue: QueueTerms, now: int
    ) -> MessageToPlace:
        assert choice.link is not None
        assert choice.charge is not None
        assert choice.receipt_by is not None
        known = self.closed.get(choice.link)
        assert known is None or now >= known.until, "a closed link is not used before its time"
        hold = self.budgets.reserve(choice.charge, queue=queue.name, link=choice.link, now=now)
        assert isinstance(hold, BudgetHold)
        link = next(link for link in LINKS if link.label == choice.link)
        self.in_flight.append((hold, link))
        attempt = Attempt(choice.link, choice.channel, now, choice.receipt_by)
        return MessageToPlace(
            message.size, message.since, message.deliver_before, None, (*message.attempts, attempt)
        )

    def settle(self, now: int) -> None:
        self._random.shuffle(self.in_flight)
        while self.in_flight and self._random.random() < 0.7:
            hold, link = self.in_flight.pop()
            if self._random.random() < 0.8:
                self.budgets.commit(hold.number, now=now)
                self.sent.append((now, hold.queue, link, hold.charge.bytes))
            else:
                self.budgets.refund(hold.number, now=now)

    def note_closures(self, choices: list[Choice]) -> None:
        for choice in choices:
            for closure in choice.close:
                self.closed[closure.link] = closure


def spent_per_period(
    limit: Limit, sent: list[tuple[int, str, Link, int]], zone_name: str
) -> dict[int, int]:
    totals: dict[int, int] = defaultdict(int)
    for at, queue, link, size in sent:
        if (not limit.queues or queue in limit.queues) and limit.link in (None, link.label):
            start, _ = period_at(at, limit.period, zone(zone_name))
            totals[start] += getattr(link.tariff.charge(size), limit.measure)
    return totals


@pytest.mark.parametrize("seed", range(6))
def test_weeks_of_traffic_break_no_limit_and_reopen_no_link(seed: int) -> None:
    random = Random(seed)
    shared = Budgets(COMMON, zone_name="UTC")
    devices = [Device(random, shared) for _ in range(3)]
    now = MONDAY + random.choice([60, 63, 296, 300]) * DAY  # around the changes of the clock
    refused = closed = 0
    for _ in range(1500):
        now += random.randrange(1, 20) * MINUTE
        device = random.choice(devices)
        if random.random() < 0.8:
            device.arrive(now)
        choices = device.decide(now)
        device.note_closures(choices)
        closed += sum(bool(choice.close) for choice in choices)
        refused += sum("break" in str(r) for choice in choices for r in choice.reasons)
        assert all(choice.reasons and all(map(str, choice.reasons)) for choice in choices)
        device.settle(now)
    for device in devices:
        for limit in OWN:
            used = spent_per_period(limit, device.sent, "America/New_York")
            assert max(used.values(), default=0) <= limit.amount
    everything = [one for device in devices for one in device.sent]
    for limit in COMMON:
        assert max(spent_per_period(limit, everything, "UTC").values()) <= limit.amount
    assert min(refused, closed, len(everything)) > 50, "the limits were felt"
