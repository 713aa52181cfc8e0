"""What pushes over the air cost: reserved before they leave, and counted as their carriers say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lasthop.clock import Micros
from lasthop.core.commits import Commits
from lasthop.core.delivery import Delivery, Item
from lasthop.decision.choice import Choice
from lasthop.decision.links import Charge, Link, Tariff
from lasthop.decision.routes import Route, variation
from lasthop.delivery.carrier import NeedsMore, NotReached, Outcome, Spent, Unfit
from lasthop.events import Kind

MILLION = 1_000_000
"""The divisor of costs: budgets count money in millionths."""


def bound(item: Item, routes: Sequence[Route]) -> int:
    """Return the most octets that a push takes over one of these routes, as far as is known."""
    message = item.message
    text = sum(len(name) + len(value) for name, value in message.headers)
    overhead = max((variation(route.variant).overhead for route in routes), default=0)
    return item.size + len(message.content_type) + text + overhead


def charge_of(spent: Spent, tariff: Tariff, *, left: bool) -> Charge:
    """Return what to book for what a carrier has spent, at the price that its provider named or by
    the tariff of its link."""
    money = spent.money
    if money is None:
        volume = -(-tariff.per_volume * spent.octets // tariff.volume)
        money = tariff.per_unit * spent.units + volume
    return Charge(spent.octets, int(left), spent.units, money)


def most_of(choice: Choice | None) -> Spent | None:
    """Return what a carrier may spend on a parcel; None if nothing limits it."""
    if choice is None or choice.charge is None:
        return None
    return Spent(choice.charge.bytes, choice.charge.units)


class CarriedDelivery(NamedTuple):
    """A delivery that is with a carrier, its route, and the number of its parcel."""

    delivery: Delivery
    route: Route
    number: int


def count(commits: Commits, delivery: Delivery, link: Link, outcome: Outcome, now: Micros) -> None:
    """Charge what a carrier has spent on a delivery, and log it where it costs or is limited."""
    left = not isinstance(outcome, NotReached | NeedsMore | Unfit)
    spent = outcome.spent or (None if left else Spent())
    sender = delivery.session.sender
    charge = None if spent is None else charge_of(spent, sender.tariff(link), left=left)
    counted = sender.carried(delivery, charge, now)
    if counted is None and charge is not None and charge.money:
        counted = charge
    if counted is None or counted == Charge():
        return
    event = commits.record_step(delivery, Kind.COUNTED, now, "")
    event.link = link.label
    event.bytes = counted.bytes
    event.count = counted.units
    event.cost = counted.money / MILLION
    event.attempt = delivery.attempts
