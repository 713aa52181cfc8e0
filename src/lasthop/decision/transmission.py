"""The transmission algorithm: over which link a message goes now, or what it waits for.

Figure 3.6 of the McGill thesis ("A message oriented middleware for mobility", J.-F. Desjeans
Gauthier, 2010), with deadlines and receipts added. It runs unchanged on both sides of the
hop: the gateway asks it for what goes to a device, the SDK for what a device sends.

    expired? ──▶ expire
       │
    for each link that is up: allowed by the queue? closed? within every limit?
       │
    none ──▶ hold until a period ends
       │
    receipt of the last attempt still due? ──▶ hold
       │
    none of them in time? ──▶ the fastest, at once
       │
    of those in time the lowest cost
       │
    queue tolerates delay, and a link that may appear in time is better? ──▶ hold for D = P * Dmax
       │
    send
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lasthop.clock import SECOND, Micros
from lasthop.decision.budgets import BudgetRefusal, Budgets, Closure
from lasthop.decision.choice import Choice, MessageToPlace, QueueTerms
from lasthop.decision.cost import cost
from lasthop.decision.decide import Action
from lasthop.decision.delay import Wait, adapt
from lasthop.decision.link_calendar import LinkCalendar
from lasthop.decision.links import Charge, Link
from lasthop.decision.reasons import Code, Fact, Reason, because
from lasthop.errors import InvalidRequest

RECEIPT_FACTOR = 4
"""A receipt is treated as missing after four times the mean delay of the link: 200 s for a short
message, as in section 3.2.2 of the McGill thesis, and two seconds for a mobile network."""

LEAST_RECEIPT: Micros = SECOND
"""The shortest wait for a receipt. Even on a link with a round trip of a few milliseconds, a device
stores a message before it acknowledges it, and may pause."""

MARGIN: Micros = SECOND
"""A wait ends this long before the last possible moment, because timers fire late and a message
that could have been in time must be in time."""


class _Candidate(NamedTuple):
    link: Link
    cost: float
    transit: Micros
    charge: Charge
    tries: int


def choose(
    message: MessageToPlace,
    *,
    queue: QueueTerms,
    current: Sequence[Link],
    budgets: Budgets,
    now: Micros,
    best: Sequence[Link] = (),
    calendar: LinkCalendar | None = None,
) -> Choice:
    """Choose a link for one message, or say what it waits for. Nothing is reserved here: the caller
    reserves the charge of a SEND."""
    deadline = message.deliver_before
    if deadline is not None and now >= deadline:
        return Choice(Action.EXPIRE, (because(Code.EXPIRED, deadline=deadline),))
    _check_distinct(current)
    sight = _Sight(message, queue, budgets, now)
    candidates = [c for link in current if (c := sight.candidate(link)) is not None]
    if not candidates:
        return sight.hold_for_limits(current, best)
    in_time = [c for c in candidates if sight.in_time(c.transit)]
    if message.attempts and (held := sight.await_receipt(current, in_time)) is not None:
        return held
    if not in_time:
        fastest = min(candidates, key=lambda c: (c.transit, *_order(c)))
        sight.note(Code.LATE_ANYWAY, link=fastest.link.label)
        return sight.send(fastest)
    lead = in_time[0] if len(in_time) == 1 else min(in_time, key=_order)
    if queue.max_delay and not message.attempts:
        wait = sight.wait(lead, best, {link.label for link in current}, calendar)
        if wait is not None:
            return wait
    sight.compare(lead, candidates)
    return sight.send(lead)


def receipt_timeout(link: Link, size: int) -> Micros:
    """Return how long to wait for a device's receipt before another link is tried."""
    return max(LEAST_RECEIPT, RECEIPT_FACTOR * link.transit(size))


def _order(candidate: _Candidate) -> tuple[int, float, str, int]:
    """Sort candidates by failed attempts, then by cost; names only make the order of ties
    repeatable."""
    link = candidate.link
    return candidate.tries, candidate.cost, link.label, link.channel


def _check_distinct(current: Sequence[Link]) -> None:
    if len(current) > 1 and len({(c.label, c.channel) for c in current}) != len(current):
        raise InvalidRequest("two links that are up have the same label and channel")


class _Sight:
    """One decision in the making: the message, the limits that apply to it, and the reasons so
    far."""

    def __init__(
        self, message: MessageToPlace, queue: QueueTerms, budgets: Budgets, now: Micros
    ) -> None:
        self._message = message
        self._queue = queue
        self._budgets = budgets
        self._now = now
        self._reasons: list[Reason] = []
        self._close: dict[str, Closure] = {}
        self._until: Micros | None = None

    def note(self, code: Code, **facts: Fact) -> None:
        self._reasons.append(because(code, **facts))

    def candidate(self, link: Link) -> _Candidate | None:
        """Return the link as a candidate if it may carry the message; otherwise note the reason and
        return None."""
        charge = link.tariff.charge(self._message.size, whole=self._message.whole)
        obstacle = self._obstacle(link, charge)
        if obstacle is None:
            return self._weigh(link, charge)
        if isinstance(obstacle, Closure):
            self._close[link.label] = obstacle
            self._reasons.append(obstacle.reason())
            self._look_again(obstacle.until)
        elif isinstance(obstacle, BudgetRefusal):
            self._reasons.append(obstacle.reason(link.label))
            self._look_again(obstacle.until)
        else:
            self._reasons.append(obstacle)
        return None

    def _possible(self, link: Link) -> _Candidate | None:
        """Return a link that is not up as a candidate, if it might carry the message in time."""
        charge = link.tariff.charge(self._message.size, whole=self._message.whole)
        if self._obstacle(link, charge) is not None:
            return None
        possible = self._weigh(link, charge)
        return possible if self.in_time(possible.transit) else None

    def _obstacle(self, link: Link, charge: Charge) -> Closure | BudgetRefusal | Reason | None:
        """Return why the link may not carry the message (its queue, a closed link or a limit), or
        None."""
        label = link.label
        queue = self._queue
        if queue.links is not None and label not in queue.links:
            return because(Code.NOT_ALLOWED, link=label, queue=queue.name)
        closure = self._budgets.closure(label, tariff=link.tariff, now=self._now)
        if closure is not None:
            return closure
        return self._budgets.refusal(charge, queue=queue.name, link=label, now=self._now)

    def _weigh(self, link: Link, charge: Charge) -> _Candidate:
        size = self._message.size
        tries = 0
        for attempt in self._message.attempts:
            tries += attempt.link == link.label and attempt.channel == link.channel
        return _Candidate(
            link, cost(link, size, self._queue.weights), link.transit(size), charge, tries
        )

    def _look_again(self, until: Micros | None) -> None:
        if until is not None and (self._until is None or until < self._until):
            self._until = until

    def in_time(self, transit: Micros) -> bool:
        deadline = self._message.deliver_before
        return deadline is None or self._now + transit < deadline

    def _last_moment(self, transit: Micros) -> Micros | None:
        """Return until when the message may wait if this link is then to deliver it before the
        deadline."""
        deadline = self._message.deliver_before
        return None if deadline is None else deadline - transit - MARGIN

    def hold_for_limits(self, current: Sequence[Link], best: Sequence[Link]) -> Choice:
        """Hold the message because no link that is up may carry it."""
        if not current:
            self.note(Code.NO_LINK)
        up = {link.label for link in current}
        missing = [c for link in best if link.label not in up and (c := self._possible(link))]
        return self._hold(self._until, tuple(c.link.label for c in sorted(missing, key=_order)))

    def await_receipt(
        self, current: Sequence[Link], in_time: Sequence[_Candidate]
    ) -> Choice | None:
        """Hold while the last attempt may still succeed. An attempt over a lost channel has failed
        already.

        If the deadline comes before the receipt is due, another link is tried while it can still
        deliver in time.
        """
        last = self._message.attempts[-1]
        up = any(link.label == last.link and link.channel == last.channel for link in current)
        until = last.receipt_by
        # The last attempt gets the time of one round trip in any case.
        expected = last.sent_at + (last.receipt_by - last.sent_at) // RECEIPT_FACTOR
        for other in in_time:
            moment = self._last_moment(other.transit)
            if not other.tries and moment is not None and moment < until:
                until = max(moment, expected)
        if up and self._now < until:
            self.note(Code.AWAITS_RECEIPT, link=last.link, until=last.receipt_by)
            return self._hold(until)
        self.note(Code.NO_RECEIPT, link=last.link)
        return None

    def wait(
        self,
        lead: _Candidate,
        best: Sequence[Link],
        up: set[str],
        calendar: LinkCalendar | None,
    ) -> Choice | None:
        """Hold for a better link, if the queue tolerates the delay and a better link may appear.

        A link that is up is judged by its present state; only links that are not up are judged by
        their best values.
        """
        tolerance = self._message.delay_tolerance
        max_delay = self._queue.max_delay
        if tolerance is not None and tolerance < max_delay:
            max_delay = tolerance
        since = self._message.since
        if calendar is None or self._now >= since + max_delay:
            return None
        better = [
            possible
            for link in best
            if link.label not in up
            and (possible := self._possible(link)) is not None
            and possible.cost < lead.cost
        ]
        wait = adapt(
            [c.link.label for c in better],
            calendar,
            max_delay=max_delay,
            since=since,
            now=self._now,
        )
        return None if wait is None else self._hold_for(wait, lead, better)

    def _hold_for(
        self, wait: Wait, lead: _Candidate, better: Sequence[_Candidate]
    ) -> Choice | None:
        since = self._message.since
        until = since + wait.delay
        moment = self._last_moment(lead.transit)
        if moment is not None and moment < until:
            until = moment
        if self._now >= until:
            self.note(Code.WAITED_ENOUGH, link=wait.link, delay=self._now - since)
            return None
        self.note(
            Code.WAITS_FOR_LINK,
            link=wait.link,
            probability=wait.probability,
            delay=until - since,
        )
        return self._hold(until, tuple(c.link.label for c in sorted(better, key=_order)))

    def compare(self, lead: _Candidate, candidates: Sequence[_Candidate]) -> None:
        """Note for every other candidate why it was not chosen."""
        for other in candidates:
            if other is lead:
                continue
            label = other.link.label
            if self.in_time(other.transit):
                self.note(Code.DEARER, link=label, cost=other.cost)
            else:
                deadline = self._message.deliver_before
                self.note(Code.TOO_SLOW, link=label, transit=other.transit, deadline=deadline)
        self.note(Code.CHOSEN, link=lead.link.label, cost=lead.cost)

    def _hold(self, until: Micros | None, wanted: tuple[str, ...] = ()) -> Choice:
        deadline = self._message.deliver_before
        if deadline is not None and (until is None or deadline < until):
            until = deadline  # The message expires then, whatever it waits for.
        return Choice(
            Action.HOLD,
            tuple(self._reasons),
            until=until,
            wanted=wanted,
            close=tuple(self._close.values()),
        )

    def send(self, candidate: _Candidate) -> Choice:
        link = candidate.link
        return Choice(
            Action.SEND,
            tuple(self._reasons),
            link=link.label,
            channel=link.channel,
            charge=candidate.charge,
            receipt_by=self._now + receipt_timeout(link, self._message.size),
            close=tuple(self._close.values()),
        )
