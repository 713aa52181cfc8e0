"""The choice against brute force: the formula as printed, every link, every limit, looked at one by
one; and drawn-out schedules in which no limit breaks and no deadline is missed without need."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import log
from random import Random

import pytest

from lasthop.clock import MINUTE, SECOND
from lasthop.decision.budgets import BudgetHold, Budgets, Limit
from lasthop.decision.choice import Attempt, Choice, MessageToPlace, QueueTerms
from lasthop.decision.cost import Weights
from lasthop.decision.decide import Action
from lasthop.decision.link_calendar import LinkCalendar
from lasthop.decision.links import Link
from lasthop.decision.localtime import period_at, zone
from lasthop.decision.reasons import Code
from lasthop.decision.transmission import MARGIN, RECEIPT_FACTOR, choose
from tests.decision.worlds import (
    LABELS,
    random_calendar,
    random_limit,
    random_link,
    random_message,
    random_now,
    random_queue,
)

CASES = 10_000
NEAR = 1e-7


def f(link: Link, size: int, weights: Weights) -> float:
    """The printed formula, in its own units (currency, milliwatts, milliseconds, metres)."""
    tariff = link.tariff
    if tariff.per_unit == tariff.per_volume == 0:
        money = 1e-10
    else:
        parts = max(1, -(-size // tariff.unit)) if tariff.unit else 1
        money = max(
            1e-9, (tariff.per_unit * parts + tariff.per_volume * size / tariff.volume) / 1e6
        )
    energy = 1500 if link.energy is None else max(1, link.energy)
    coverage = 10 if link.coverage is None else max(1, link.coverage)
    return (
        weights.price * log(money)
        + weights.energy * log(energy)
        + weights.latency * log(max(1.0, takes(link, size) / 1000))
        + weights.coverage * log(1 / coverage)
    )


def takes(link: Link, size: int) -> int:
    latency = 10 * SECOND if link.latency is None else link.latency
    sending = 0 if link.throughput is None else size * SECOND // link.throughput
    return round(latency * link.contention) + sending


class Spending:
    """What was sent so far, as a plain list; limits are checked by adding all of it up."""

    def __init__(self, every: list[Limit], zone_name: str) -> None:
        self.limits = every
        self._tz = zone(zone_name)
        self._sent: list[tuple[str, Link, int, int]] = []

    def add(self, queue: str, link: Link, size: int, now: int) -> None:
        self._sent.append((queue, link, size, now))

    def _total(self, limit: Limit, now: int) -> int:
        start, end = period_at(now, limit.period, self._tz)
        return sum(
            getattr(link.tariff.charge(size), limit.measure)
            for queue, link, size, at in self._sent
            if start <= at < end
            and (not limit.queues or queue in limit.queues)
            and limit.link in (None, link.label)
        )

    def allows(self, queue: str, link: Link, size: int, now: int) -> bool:
        for limit in self.limits:
            if (limit.queues and queue not in limit.queues) or limit.link not in (None, link.label):
                continue
            asked = getattr(link.tariff.charge(size), limit.measure)
            if asked and self._total(limit, now) + asked > limit.amount:
                return False
        return not self.closed(link, now)

    def closed(self, link: Link, now: int) -> bool:
        return any(
            (least := getattr(link.tariff.charge(1), limit.measure))
            and self._total(limit, now) + least > limit.amount
            for limit in self.limits
            if limit.link == link.label and not limit.queues
        )

    def broken(self, now: int) -> list[Limit]:
        return [limit for limit in self.limits if self._total(limit, now) > limit.amount]


def minutes_probability(calendar: LinkCalendar, label: str, start: int, end: int) -> float:
    """Looked up minute by minute."""
    week = calendar.hours.get(label)
    if week is None or end <= start:
        return 0.0
    tz = zone(calendar.zone)
    best = 0.0
    at = start
    while at < end:
        here = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)).astimezone(tz)
        best = max(best, week[24 * here.weekday() + here.hour])
        at = (at // MINUTE + 1) * MINUTE
    return best


def verify(
    choice: Choice,
    message: MessageToPlace,
    *,
    queue: QueueTerms,
    current: list[Link],
    best: list[Link],
    calendar: LinkCalendar | None,
    spending: Spending,
    now: int,
) -> None:
    deadline = message.deliver_before
    if deadline is not None and deadline <= now:
        assert choice.action is Action.EXPIRE
        return
    assert choice.action is not Action.EXPIRE

    def may(link: Link) -> bool:
        return (queue.links is None or link.label in queue.links) and spending.allows(
            queue.name, link, message.size, now
        )

    def punctual(link: Link) -> bool:
        return deadline is None or now + takes(link, message.size) < deadline

    def price(link: Link) -> float:
        return f(link, message.size, queue.weights)

    allowed = [link for link in current if may(link)]
    in_time = [link for link in allowed if punctual(link)]
    assert {closure.link for closure in choice.close} == {
        link.label
        for link in current
        if (queue.links is None or link.label in queue.links) and spending.closed(link, now)
    }
    if choice.action is Action.HOLD:
        assert choice.until is None or now < choice.until
        if deadline is not None:
            assert choice.until is not None
            assert choice.until <= deadline
    if not allowed:
        assert choice.action is Action.HOLD
        return

    def tries(link: Link) -> int:
        return [(a.link, a.channel) for a in message.attempts].count((link.label, link.channel))

    if message.attempts:
        last = message.attempts[-1]
        patience = last.receipt_by
        round_trip = last.sent_at + (last.receipt_by - last.sent_at) // RECEIPT_FACTOR
        for link in in_time:
            if deadline is not None and not tries(link):
                moment = deadline - takes(link, message.size) - MARGIN
                if moment < patience:
                    patience = max(moment, round_trip)
        up = (last.link, last.channel) in {(link.label, link.channel) for link in current}
        if up and now < patience:
            assert choice.action is Action.HOLD
            return
    if not in_time:
        assert choice.action is Action.SEND
        chosen = _chosen(choice, allowed)
        assert takes(chosen, message.size) == min(takes(link, message.size) for link in allowed)
        return
    fewest = min(map(tries, in_time))
    lowest = min(price(link) for link in in_time if tries(link) == fewest)
    if not message.attempts and calendar is not None:
        dmax = queue.max_delay
        if message.delay_tolerance is not None:
            dmax = min(dmax, message.delay_tolerance)
        up_labels = {link.label for link in current}
        better = [
            link
            for link in best
            if link.label not in up_labels
            and may(link)
            and punctual(link)
            and price(link) < lowest - NEAR
        ]
        unclear = any(abs(price(link) - lowest) <= NEAR for link in best)
        chance = max(
            (minutes_probability(calendar, b.label, now, message.since + dmax) for b in better),
            default=0.0,
        )
        until = message.since + round(chance * dmax)
        if deadline is not None:
            leaders = [link for link in in_time if price(link) <= lowest + NEAR]
            unclear = unclear or len(leaders) > 1
            until = min(until, deadline - takes(leaders[0], message.size) - MARGIN)
        if not unclear:
            assert (choice.action is Action.HOLD) == (now < until)
            if choice.action is Action.HOLD:
                assert choice.until == until
                assert set(choice.wanted) == {link.label for link in better}
    if choice.action is Action.SEND:
        chosen = _chosen(choice, in_time)
        assert tries(chosen) == fewest
        assert price(chosen) <= lowest + NEAR


def _chosen(choice: Choice, links: list[Link]) -> Link:
    return next(
        link for link in links if (link.label, link.channel) == (choice.link, choice.channel)
    )


def test_the_chosen_link_is_that_of_brute_force_and_breaks_no_limit() -> None:
    random = Random(4)
    actions = dict.fromkeys(Action, 0)
    waits = 0
    cases = 0
    while cases < CASES:
        zone_name = random.choice(["UTC", "Europe/Berlin", "America/New_York"])
        every = [random_limit(random) for _ in range(random.randrange(5))]
        budgets = Budgets(every, zone_name=zone_name)
        spending = Spending(every, zone_name)
        calendar = random_calendar(random)
        best = [random_link(random, label, 0) for label in random.sample(LABELS, 4)]
        now = random_now(random)
        for _ in range(8):
            now += random.choice([0, SECOND, 5 * MINUTE, 11 * 60 * MINUTE])
            current = [
                random_link(random, random.choice(LABELS), channel)
                for channel in range(random.randrange(5))
            ]
            queue = random_queue(random)
            message = random_message(random, now, current)
            choice = choose(
                message,
                queue=queue,
                current=current,
                budgets=budgets,
                now=now,
                best=best,
                calendar=calendar,
            )
            verify(
                choice,
                message,
                queue=queue,
                current=current,
                best=best,
                calendar=calendar,
                spending=spending,
                now=now,
            )
            actions[choice.action] += 1
            waits += any(reason.code is Code.WAITS_FOR_LINK for reason in choice.reasons)
            cases += 1
            if choice.action is Action.SEND:
                assert choice.link is not None
                assert choice.charge is not None
                hold = budgets.reserve(choice.charge, queue=queue.name, link=choice.link, now=now)
                assert isinstance(hold, BudgetHold), "a SEND can always be booked"
                budgets.commit(hold.number, now=now)
                spending.add(queue.name, _chosen(choice, current), message.size, now)
                assert spending.broken(now) == []
    assert min(*actions.values(), waits) > CASES // 50, "every answer is exercised"


@pytest.mark.parametrize("seed", range(5))
def test_a_deadline_is_missed_only_if_every_allowed_link_would(seed: int) -> None:
    """The links stay as they are, and the driver wakes when it was told to: then a message that any
    allowed link could have delivered in time is delivered in time, however long it waits first."""
    random = Random(seed)
    waited = 0
    for _ in range(400):
        start = random_now(random)
        current = [random_link(random, label, 0) for label in random.sample(LABELS, 3)]
        best = [random_link(random, label, 0) for label in LABELS]
        queue = random_queue(random)
        budgets = Budgets([random_limit(random) for _ in range(3)], zone_name="UTC")
        deadline = start + random.randrange(1, 90) * SECOND
        size = random.randrange(2000)
        allowed = [
            link
            for link in current
            if (queue.links is None or link.label in queue.links)
            and budgets.closure(link.label, tariff=link.tariff, now=start) is None
            and not budgets.refusal(
                link.tariff.charge(size), queue=queue.name, link=link.label, now=start
            )
        ]
        possible = any(start + takes(link, size) < deadline for link in allowed)
        now = start
        calendar = random_calendar(random)
        while True:
            choice = choose(
                MessageToPlace(size, start, deadline),
                queue=queue,
                current=current,
                budgets=budgets,
                now=now,
                best=best,
                calendar=calendar,
            )
            if choice.action is not Action.HOLD:
                break
            assert choice.until is not None
            waited += 1
            now = choice.until
        arrives = (
            now + takes(_chosen(choice, current), size) if choice.action is Action.SEND else None
        )
        assert (arrives is not None and arrives < deadline) == possible
    assert waited > 20


@pytest.mark.parametrize("seed", range(3))
def test_every_link_gets_its_try_before_one_gets_a_second(seed: int) -> None:
    random = Random(seed)
    for _ in range(100):
        now = random_now(random)
        current = [random_link(random, label, 0) for label in LABELS]
        attempts: tuple[Attempt, ...] = ()
        for _ in range(2 * len(LABELS)):
            choice = choose(
                MessageToPlace(100, now, attempts=attempts),
                queue=QueueTerms("urgent"),
                current=current,
                budgets=Budgets((), zone_name="UTC"),
                now=now,
            )
            assert choice.link is not None
            assert choice.receipt_by is not None
            attempts += (Attempt(choice.link, choice.channel, now, choice.receipt_by),)
            now = choice.receipt_by
        order = [attempt.link for attempt in attempts]
        assert sorted(order[:5]) == sorted(LABELS)
        assert order[:5] == order[5:]
