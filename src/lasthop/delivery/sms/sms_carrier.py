"""Pushes by short message: the choice of a link, the order of their parts, and the outcome.

A push waits here for its turn: for the rate of a link, for its window, or for a link to come back.
Until its first part has left it can be taken back. The cheapest link that is up is used; among
links of one price the first with room. The parts of one push go over one link, one after another.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias

import msgspec

from lasthop.clock import MINUTE, SECOND, Clock, Micros
from lasthop.delivery.carrier import (
    NeedsMore,
    NotReached,
    Outcome,
    Parcel,
    Sent,
    Spent,
    Unanswered,
    Unfit,
    needs_more,
)
from lasthop.delivery.ota.unit import unfit
from lasthop.delivery.sms.composing import compose
from lasthop.delivery.sms.sms_link import (
    OutgoingSms,
    SmsInDoubt,
    SmsLink,
    SmsOutcome,
    SmsReceipt,
    SmsRefused,
    SmsTaken,
    SmsUnit,
)
from lasthop.errors import Rejected

PATIENCE: Micros = 30 * SECOND
"""How long a push waits while no link is up: a connection is back by then, or away for longer."""

TRIES = 3
"""How often one part is handed over again after a refusal that may be temporary."""

EARLY = 1000
"""The most receipts that are kept because nobody knows their message yet."""

EARLY_FOR: Micros = MINUTE
"""How long a receipt is kept that came before the SMSC said which id the message has."""

Report: TypeAlias = Callable[[Outcome], None]
Heard: TypeAlias = Callable[[bool], None]
"""Is told whether the message of a receipt is known, when that is durable."""


class Receipts(Protocol):
    """The part of the gateway that remembers which message a receipt is about."""

    def __call__(self, receipt: SmsReceipt, heard: Heard) -> None:
        """Note a receipt; `heard` is called once, now or later."""
        ...


@dataclass(slots=True, eq=False)
class _Push:
    """A push that has no outcome yet."""

    parcel: Parcel
    report: Report
    sms: OutgoingSms
    link: SmsLink | None = None
    units: Sequence[SmsUnit] = ()
    done: int = 0
    """The number of units that the link has accepted."""
    tries: int = 0
    octets: int = 0
    count: int = 0
    """The octets and the number of short messages that have left, whatever became of them."""
    sending: bool = False
    """Whether a unit is with the link."""
    over: bool = False
    """Whether the push has its outcome or was taken back; then it is dropped where it waits."""
    ids: list[str] = field(default_factory=list)


class SmsCarrier:
    """Sends pushes and texts to phones over any of several links."""

    def __init__(
        self,
        *,
        clock: Clock,
        wake_at: Callable[[Micros], None],
        receipts: Receipts,
        first_reference: int = 0,
    ) -> None:
        """Create a carrier without links; `wake_at` is told when to call `wake`."""
        self._clock = clock
        self._wake_at = wake_at
        self._receipts = receipts
        self._reference = first_reference
        self.links: list[SmsLink] = []
        """The links, the preferred ones first."""
        self._waiting: dict[bool, deque[_Push]] = {False: deque(), True: deque()}
        """The pushes of which nothing has left, by whether they may be attempted only once."""
        self._down_since: dict[bool, Micros | None] = {False: None, True: None}
        self._begun: deque[_Push] = deque()
        """The pushes whose next part has to leave."""
        self._numbered: dict[int, _Push] = {}
        self._deadlines: list[tuple[Micros, int, _Push]] = []
        self._pushes_by_id: dict[str, _Push] = {}
        """The pushes of which some parts are accepted, by the ids that receipts will name."""
        self._early: OrderedDict[str, tuple[Micros, SmsReceipt]] = OrderedDict()
        self._pumping = False

    def __len__(self) -> int:
        """Return the number of pushes that wait for a link."""
        return sum(map(len, self._waiting.values())) + len(self._begun)

    # For the gateway.

    def carry(self, parcel: Parcel, report: Report) -> None:
        """Send the parcel when a link takes it."""
        now = self._clock.now()
        # PPG service, 5.1.2.2.4: after its deadline nothing of a push may be sent.
        if parcel.deliver_before is not None and now >= parcel.deliver_before:
            report(NotReached("deliver_before has passed"))
            return
        if parcel.strict or parcel.response:
            report(Unfit(3007, "a phone confirms no short message"))
            return
        # PPG service, 5.1.2.2.5.3: only if the bearer itself can attempt it once.
        if parcel.once and not any(link.once for link in self.links):
            report(Unfit(3007, "no SMSC attempts a delivery only once"))
            return
        self._reference += 1
        try:
            sms = compose(parcel, reference=self._reference)
        except Rejected as error:
            report(unfit(error))
            return
        push = _Push(parcel, report, sms)
        if parcel.number:
            self._numbered[parcel.number] = push
        if parcel.deliver_before is not None:
            heapq.heappush(self._deadlines, (parcel.deliver_before, self._reference, push))
        self._waiting[parcel.once].append(push)
        self._pump(now)

    def withdraw(self, number: int) -> bool:
        """Take back a parcel of which no part has left."""
        push = self._numbered.get(number)
        if push is None or push.sending or push.done:
            return False
        self._forget(push)
        return True

    # For the links.

    def changed(self) -> None:
        """Note that a link is up or down, or has room."""
        self._pump(self._clock.now())

    def receipt(self, receipt: SmsReceipt, heard: Heard) -> None:
        """Handle a receipt; `heard` is called when the link may forget it."""
        names = [f"{receipt.link}/{message_id}" for message_id in receipt.message_ids]
        if any(name in self._pushes_by_id for name in names):
            self._keep(names[0], receipt)
            heard(True)
        else:
            self._receipts(receipt, partial(self._heard, names[0], receipt, heard))

    def _heard(self, name: str, receipt: SmsReceipt, heard: Heard, known: bool) -> None:
        if not known:
            self._keep(name, receipt)
        heard(known)

    def _keep(self, name: str, receipt: SmsReceipt) -> None:
        now = self._clock.now()
        self._early[name] = now, receipt
        while self._early:
            at, _ = next(iter(self._early.values()))
            if len(self._early) <= EARLY and now < at + EARLY_FOR:
                return
            self._early.popitem(last=False)

    def _catch_up(self, push: _Push) -> None:
        """Pass on the receipts that came before the gateway knew of their push."""
        for name in push.ids:
            self._pushes_by_id.pop(name, None)
            early = self._early.pop(name, None)
            if early is not None:
                self._receipts(early[1], lambda known: None)

    # For the clock.

    def wake(self) -> None:
        """Do what is due: pushes that are too late, links that may be used again."""
        self._pump(self._clock.now())

    # From a push to its outcome.

    def _pump(self, now: Micros) -> None:
        """Hand over all that may leave now. Links may report while they are given something."""
        if self._pumping:
            return
        self._pumping = True
        try:
            self._expire(now)
            self._continue(now)
            for once, waiting in self._waiting.items():
                self._begin(waiting, now, once=once)
        finally:
            self._pumping = False
        self._arm(now)

    def _begin(self, waiting: deque[_Push], now: Micros, *, once: bool) -> None:
        usable = [link for link in self.links if link.up and (link.once or not once)]
        if usable:
            self._down_since[once] = None
        elif waiting:
            self._without_links(waiting, now, once=once)
            return
        while waiting:
            link = _best(usable, now)
            if link is None:
                return
            push = waiting.popleft()
            if push.over:
                continue
            try:
                push.units = link.prepare(push.sms, now)
            except Rejected as error:
                self._end(push, unfit(error))
                continue
            units, octets = _sum(push.units)
            more = needs_more(push.parcel, octets, units)
            if more is not None:
                self._end(push, more)
                continue
            push.link = link
            self._send(push)

    def _without_links(self, waiting: deque[_Push], now: Micros, *, once: bool) -> None:
        since = self._down_since[once]
        if since is None:
            self._down_since[once] = now
        elif now >= since + PATIENCE:
            # New pushes do not wait again for what has been away for so long.
            while waiting:
                push = waiting.popleft()
                if not push.over:
                    self._end(push, NotReached("no SMSC can be reached"))

    def _continue(self, now: Micros) -> None:
        for _ in range(len(self._begun)):
            push = self._begun.popleft()
            link = push.link
            assert link is not None
            if push.over:
                continue
            if link.room(now):
                self._send(push)
            elif link.up:
                self._begun.append(push)
            elif push.done:
                self._end(push, Unanswered(f"{link.name} was lost between two parts"))
            else:
                self._again(push)

    def _send(self, push: _Push) -> None:
        assert push.link is not None
        push.sending = True
        push.link.send(push.units[push.done], partial(self._reported, push))

    def _reported(self, push: _Push, outcome: SmsOutcome) -> None:
        push.sending = False
        if push.over:
            return
        if not isinstance(outcome, SmsRefused):
            count, octets = _sum(push.units[push.done : push.done + 1])
            push.count += count
            push.octets += octets
        match outcome:
            case SmsTaken():
                self._taken(push, outcome.message_id)
            case SmsRefused() if outcome.code:
                self._end(push, Unfit(outcome.code, outcome.reason))
            case SmsRefused():
                self._refused(push, outcome)
            case SmsInDoubt():
                self._end(push, Unanswered(outcome.reason))
        self._pump(self._clock.now())

    def _taken(self, push: _Push, message_id: str) -> None:
        assert push.link is not None
        push.done += 1
        push.tries = 0
        if message_id:
            name = f"{push.link.name}/{message_id}"
            push.ids.append(name)
            self._pushes_by_id[name] = push
        if push.done == len(push.units):
            # PPG service, 5.1.2.2.5.1: an unconfirmed push is done once it was sent.
            self._end(push, Sent(receipts=tuple(push.ids) if push.link.receipts else ()))
        else:
            self._begun.append(push)

    def _refused(self, push: _Push, refused: SmsRefused) -> None:
        push.tries += not refused.busy
        if push.tries >= TRIES:
            gone = push.done > 0
            self._end(push, Unanswered(refused.reason) if gone else NotReached(refused.reason))
        elif push.done:
            self._begun.append(push)
        else:
            self._again(push)

    def _again(self, push: _Push) -> None:
        push.link, push.units = None, ()
        self._waiting[push.parcel.once].appendleft(push)

    def _expire(self, now: Micros) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            push = heapq.heappop(self._deadlines)[2]
            if push.over:
                continue
            if push.sending or push.done:
                self._end(push, Unanswered("no answer of the SMSC before deliver_before"))
            else:
                self._end(push, NotReached("deliver_before has passed"))

    def _end(self, push: _Push, outcome: Outcome) -> None:
        self._forget(push)
        if outcome.spent is None and not isinstance(outcome, NeedsMore):
            outcome = msgspec.structs.replace(outcome, spent=_spent(push))
        push.report(outcome)
        self._catch_up(push)

    def _forget(self, push: _Push) -> None:
        push.over = True
        self._numbered.pop(push.parcel.number, None)

    def _arm(self, now: Micros) -> None:
        """Ask to be woken when there may be something to do."""
        dues = [self._deadlines[0][0]] if self._deadlines else []
        if len(self):
            dues += [due for link in self.links if link.up and (due := link.free_at()) > now]
        for once, since in self._down_since.items():
            if since is not None and self._waiting[once]:
                dues.append(since + PATIENCE)
        if dues:
            self._wake_at(min(dues))


def _sum(units: Sequence[SmsUnit]) -> tuple[int, int]:
    """Return the number of short messages and their octets."""
    return sum(unit.count for unit in units), sum(unit.octets for unit in units)


def _spent(push: _Push) -> Spent | None:
    """Return what the operator counts for a push: every message that was handed over and not
    refused."""
    if push.link is None:
        return None
    # A part that is with the SMSC may be accepted, and paid for.
    under_way = _sum(push.units[push.done : push.done + 1]) if push.sending else (0, 0)
    count = push.count + under_way[0]
    own_price = push.parcel.route.link is not None
    return Spent(push.octets + under_way[1], count, None if own_price else count * push.link.price)


def _best(links: list[SmsLink], now: Micros) -> SmsLink | None:
    """Return the link to use now; None if those at the lowest price have no room yet."""
    if not links:
        return None
    lowest = min(link.price for link in links)
    return next((link for link in links if link.price == lowest and link.room(now)), None)
