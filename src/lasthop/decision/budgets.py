"""Budgets for bytes, messages, carrier units and money, per day, week or month.

A limit covers some queues or all, and one link or all. A transmission first reserves its charge,
which counts from then on. The charge is committed when the message is handed to a transport, and
refunded if the message never leaves. A charge is booked in the period in which it is committed, and
a reservation survives the end of a period, so `used` never passes the limit in any order of calls
(McGill thesis, section 3.5.1). The time of a decision grows with the number of limits that apply
to its queue and link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from zoneinfo import ZoneInfo

import msgspec

from lasthop.clock import Micros
from lasthop.decision.links import Charge, Tariff
from lasthop.decision.localtime import Period, period_at, zone
from lasthop.decision.reasons import Code, Reason, because
from lasthop.errors import InvalidRequest, TooLarge

MAX_LIMITS = 64
"""The largest number of limits of one device, and of the budgets that all devices share. Every
limit that applies is looked at for every message; people set a handful, and a device must not be
able to slow the gateway down."""


class Measure(StrEnum):
    """The quantity that a limit counts; the names are those of the fields of `Charge`."""

    BYTES = "bytes"
    MESSAGES = "messages"
    UNITS = "units"
    MONEY = "money"


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The largest amount per period, for the named queues (none named: all) over one link (`None`:
    all)."""

    amount: int
    measure: Measure
    period: Period
    queues: tuple[str, ...] = ()
    link: str | None = None

    def __post_init__(self) -> None:
        if self.amount < 0:
            raise InvalidRequest("a limit cannot be negative", amount=self.amount)
        if "" in self.queues or self.link == "":
            raise InvalidRequest(
                "the name of a queue or link in a limit must not be empty: leave it out for all"
            )

    def __str__(self) -> str:
        over = f" over {self.link}" if self.link else ""
        of = f" of {'+'.join(self.queues)}" if self.queues else ""
        return f"{self.amount} {self.measure} per {self.period}{of}{over}"


_LIMIT = re.compile(
    r"(?P<amount>\d{1,15}) (?P<measure>\w+) per (?P<period>\w+)"
    r"(?: of (?P<queues>[^ ;]+))?(?: over (?P<link>[^ ;]+))?"
)


def parse_limits(text: str) -> tuple[Limit, ...]:
    """Parse limits as people write them and as `str` shows them, separated by semicolons.

    >>> print(*parse_limits("5 messages per day of news over mno; 1000 bytes per week"), sep=", ")
    5 messages per day of news over mno, 1000 bytes per week
    """
    limits = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        found = _LIMIT.fullmatch(part)
        measures, periods = set(Measure), set(Period)
        if not found or found["measure"] not in measures or found["period"] not in periods:
            raise InvalidRequest(
                "a limit must read like `5 messages per day of QUEUE over LINK`, of bytes,"
                " messages, units or money, per day, week or month",
                limit=part,
            )
        queues = tuple(found["queues"].split("+")) if found["queues"] else ()
        measure, period = Measure(found["measure"]), Period(found["period"])
        limits.append(Limit(int(found["amount"]), measure, period, queues, found["link"]))
    return tuple(limits)


class BudgetMeter(msgspec.Struct):
    """A limit and what was taken from it. `used` belongs to the period that ends at `ends`; `held`
    is reserved, and will belong to the period in which it is committed."""

    limit: Limit
    used: int = 0
    held: int = 0
    ends: Micros = 0

    def turn(self, now: Micros, tz: ZoneInfo) -> None:
        """Begin the period that contains `now` if it is later than the present one. A clock that
        was set back begins no period."""
        if now >= self.ends:
            self.used = 0
            self.ends = period_at(now, self.limit.period, tz)[1]


class BudgetRefusal(msgspec.Struct, frozen=True):
    """The limit that a charge would break, and when the limit's period ends.

    `until` is `None` if the charge is more than the whole limit, so that waiting does not help.
    """

    limit: Limit
    taken: int
    asked: int
    until: Micros | None

    def reason(self, link: str) -> Reason:
        if self.until is None:
            return because(Code.NEVER_FITS, link=link, charge=self.asked, limit=str(self.limit))
        return because(
            Code.OVER_LIMIT,
            link=link,
            used=self.taken,
            limit=str(self.limit),
            charge=self.asked,
            until=self.until,
        )


class Closure(msgspec.Struct, frozen=True):
    """A link that has reached a limit of its own: it is to be closed until the limit's period
    ends."""

    link: str
    limit: Limit
    until: Micros

    def reason(self) -> Reason:
        return because(Code.LINK_CLOSED, link=self.link, limit=str(self.limit), until=self.until)


class BudgetHold(msgspec.Struct, frozen=True):
    """A reservation in the budgets of a device. `above` is the number of the corresponding
    reservation in the budgets that all devices share."""

    number: int
    queue: str
    link: str
    charge: Charge
    above: int | None = None


class BudgetState(msgspec.Struct):
    """The complete state of budgets, for the store and for replay."""

    zone: str
    meters: list[BudgetMeter]
    holds: list[BudgetHold] = []
    next_number: int = 0


class Budgets:
    """The limits of one device and what was used of them; or the limits that all devices share, to
    which `shared` of each device refers."""

    def __init__(
        self, limits: Sequence[Limit], *, zone_name: str, shared: Budgets | None = None
    ) -> None:
        state = BudgetState(zone_name, [BudgetMeter(limit) for limit in limits])
        self._load(state, shared)

    @classmethod
    def restore(cls, state: BudgetState, *, shared: Budgets | None = None) -> Budgets:
        """Return budgets that continue from a snapshot. Reservations in the snapshot stay reserved:
        the caller commits or refunds each one that `outstanding` lists, and commits it if the
        outcome is unknown."""
        budgets = cls.__new__(cls)
        budgets._load(state, shared)
        return budgets

    def _load(self, state: BudgetState, shared: Budgets | None) -> None:
        if len(state.meters) > MAX_LIMITS:
            raise TooLarge("too many limits", limits=len(state.meters), most=MAX_LIMITS)
        self._tz = zone(state.zone)
        self._shared = shared
        self._meters = [msgspec.structs.replace(meter) for meter in state.meters]
        self._holds = {hold.number: hold for hold in state.holds}
        self._next_number = state.next_number
        self._index()

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits of these budgets, without those that are shared with other devices."""
        return tuple(meter.limit for meter in self._meters)

    @property
    def shared(self) -> Budgets | None:
        """The budgets that this device shares with all others, if there are any."""
        return self._shared

    def _index(self) -> None:
        self._queues = {queue for meter in self._meters for queue in meter.limit.queues}
        self._links = {meter.limit.link for meter in self._meters if meter.limit.link}
        self._applying: dict[tuple[str, str], tuple[BudgetMeter, ...]] = {}

    def snapshot(self) -> BudgetState:
        """Return a copy of the state of these budgets, without that of the shared budgets."""
        meters = [msgspec.structs.replace(meter) for meter in self._meters]
        return BudgetState(self._tz.key, meters, list(self._holds.values()), self._next_number)

    def usage(self, now: Micros) -> list[BudgetMeter]:
        """Return a copy of every limit's meter, for the period of `now`."""
        for meter in self._meters:
            meter.turn(now, self._tz)
        return self.snapshot().meters

    def outstanding(self) -> list[BudgetHold]:
        """Return the reservations that are neither committed nor refunded."""
        return list(self._holds.values())

    def change(self, limits: Sequence[Limit]) -> None:
        """Replace the limits. A limit that differs only in its amount keeps what was used."""
        if len(limits) > MAX_LIMITS:
            raise TooLarge("too many limits", limits=len(limits), most=MAX_LIMITS)
        known = {_subject(meter.limit): meter for meter in self._meters}
        self._meters = []
        for limit in limits:
            old = known.get(_subject(limit))
            if old is None:
                held = sum(
                    getattr(hold.charge, limit.measure)
                    for hold in self._holds.values()
                    if _covers(limit, hold.queue, hold.link)
                )
                self._meters.append(BudgetMeter(limit, held=held))
            else:
                self._meters.append(msgspec.structs.replace(old, limit=limit))
        self._index()

    def refusal(
        self, charge: Charge, *, queue: str, link: str, now: Micros
    ) -> BudgetRefusal | None:
        """Return the limit that this charge would break now, or None; if there are several, the
        limit that blocks the charge longest."""
        worst: BudgetRefusal | None = None
        until: Micros | None = None
        for meter in self._apply(queue, link):
            meter.turn(now, self._tz)
            limit = meter.limit
            asked: int = getattr(charge, limit.measure)
            taken = meter.used + meter.held
            if asked and taken + asked > limit.amount:
                if asked > limit.amount:
                    return BudgetRefusal(limit, taken, asked, None)
                if until is None or meter.ends > until:
                    until = meter.ends
                    worst = BudgetRefusal(limit, taken, asked, until)
        if self._shared is None:
            return worst
        above = self._shared.refusal(charge, queue=queue, link=link, now=now)
        return above if worst is None else _longer(worst, above)

    def reserve(
        self, charge: Charge, *, queue: str, link: str, now: Micros
    ) -> BudgetHold | BudgetRefusal:
        """Reserve a charge in every budget that applies to it, or in none."""
        refusal = self.refusal(charge, queue=queue, link=link, now=now)
        if refusal is not None:
            return refusal
        return self._hold(charge, queue, link, now)

    def _hold(self, charge: Charge, queue: str, link: str, now: Micros) -> BudgetHold:
        above = self._shared._hold(charge, queue, link, now).number if self._shared else None
        for meter in self._apply(queue, link):
            meter.turn(now, self._tz)
            meter.held += getattr(charge, meter.limit.measure)
        hold = BudgetHold(self._next_number, queue, link, charge, above)
        self._next_number += 1
        self._holds[hold.number] = hold
        return hold

    def spend(self, charge: Charge, *, queue: str, link: str, now: Micros) -> None:
        """Book a charge that was already spent, after its reservation was refunded."""
        self.commit(self._hold(charge, queue, link, now).number, now=now)

    def commit(self, number: int, *, now: Micros) -> bool:
        """Book a reservation as spent: its message leaves now. Return False if it was settled
        before."""
        return self._settle(number, now, spent=True)

    def refund(self, number: int, *, now: Micros) -> bool:
        """Give a reservation back: its message never left. Return False if it was settled
        before."""
        return self._settle(number, now, spent=False)

    def _settle(self, number: int, now: Micros, *, spent: bool) -> bool:
        hold = self._holds.pop(number, None)
        if hold is None:
            return False
        for meter in self._apply(hold.queue, hold.link):
            meter.turn(now, self._tz)
            asked: int = getattr(hold.charge, meter.limit.measure)
            meter.held -= asked
            if spent:
                meter.used += asked
        if self._shared is not None and hold.above is not None:
            self._shared._settle(hold.above, now, spent=spent)
        return True

    def closure(self, link: str, *, tariff: Tariff, now: Micros) -> Closure | None:
        """Return a closure if a limit of the whole link has no room for even the smallest message.

        Only what is spent counts: a reservation may be refunded, and a link that was closed must
        not come back before its period ends.
        """
        longest: Closure | None = None
        for meter in self._apply("", link):
            limit = meter.limit
            if limit.link is None:
                continue
            meter.turn(now, self._tz)
            asked: int = getattr(tariff.least(), limit.measure)
            if (asked and meter.used + asked > limit.amount) and (
                longest is None or meter.ends > longest.until
            ):
                longest = Closure(link, limit, meter.ends)
        if self._shared is None:
            return longest
        above = self._shared.closure(link, tariff=tariff, now=now)
        if longest is None or (above is not None and above.until > longest.until):
            return above
        return longest

    def _apply(self, queue: str, link: str) -> tuple[BudgetMeter, ...]:
        # Names that no limit mentions share one entry, so the index never grows beyond the limits.
        key = (queue if queue in self._queues else "", link if link in self._links else "")
        applying = self._applying.get(key)
        if applying is None:
            applying = tuple(m for m in self._meters if _covers(m.limit, *key))
            self._applying[key] = applying
        return applying


def _covers(limit: Limit, queue: str, link: str) -> bool:
    return (not limit.queues or queue in limit.queues) and limit.link in (None, link)


def _subject(limit: Limit) -> tuple[Measure, Period, tuple[str, ...], str | None]:
    return limit.measure, limit.period, limit.queues, limit.link


def _longer(one: BudgetRefusal, other: BudgetRefusal | None) -> BudgetRefusal:
    if other is None or one.until is None:
        return one
    return other if other.until is None or other.until > one.until else one
