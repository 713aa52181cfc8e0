"""Combines many deliveries into one answer: what PAP reports for an address that stands for several
devices, and what a replacement means for each address.

Both are tables. States here are in PAP's words; the core translates its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, TypeVar

from lasthop.clock import Micros
from lasthop.message import DeliveryMethod
from lasthop.wire.pap.codes import CODES, STATES, MessageState
from lasthop.wire.pap.documents import (
    CancelResult,
    QualityOfService,
    ReplaceMethod,
    StatusQueryResult,
)


class Audience(StrEnum):
    """What an address that stands for several devices means."""

    PERSON = "person"
    """Any one device is enough: a user is reached when one of their devices is."""
    EVERYONE = "everyone"
    """Each device counts: the outcome for a group is known when the last one is."""


class PushReport(NamedTuple):
    """The state of one delivery, or of all deliveries of one address."""

    state: MessageState
    code: int
    event_time: Micros | None = None
    method: DeliveryMethod | None = None
    """The delivery method that was really used; None if unknown."""
    remark: str = ""
    """What is known besides, for people."""


PRECEDENCE: tuple[MessageState, ...] = (
    # One delivery that arrived outweighs any that did not.
    MessageState.DELIVERED,
    # While one delivery can still arrive, nothing is final.
    MessageState.PENDING,
    # A device has answered, although it refused.
    MessageState.ABORTED,
    # A device may have the push without our knowing.
    MessageState.TIMEOUT,
    # Only devices that cannot have the push are left. A cancellation is reported as successful
    # exactly when the address then counts as cancelled, so it comes before the other failures.
    MessageState.CANCELLED,
    MessageState.EXPIRED,
    MessageState.UNDELIVERABLE,
    MessageState.REJECTED,
    MessageState.UNKNOWN,
)
"""The order of states: an address has the first of these states that one of its deliveries has. For
a group, `pending` comes before `delivered`."""

_FOR_GROUPS = (MessageState.PENDING, MessageState.DELIVERED, *PRECEDENCE[2:])
_RANKS: dict[Audience, dict[MessageState, int]] = {
    Audience.PERSON: {state: rank for rank, state in enumerate(PRECEDENCE)},
    Audience.EVERYONE: {state: rank for rank, state in enumerate(_FOR_GROUPS)},
}


def combine(deliveries: Iterable[PushReport], audience: Audience = Audience.PERSON) -> PushReport:
    """Return the one report for a push at an address.

    A final report stays final, whatever the remaining deliveries do: only `delivered` can come
    before the last one has ended, and it outweighs all others. The report is that of the deciding
    delivery: the first that arrived at a person, otherwise the last that reached the state. An
    address without any delivery is undeliverable, because no device was there.
    """
    best: PushReport | None = None
    for report in deliveries:
        if best is None or _decides(report, best, audience):
            best = report
    if best is None:
        return PushReport(MessageState.UNDELIVERABLE, 2003)
    return best


def _decides(new: PushReport, old: PushReport, audience: Audience) -> bool:
    ranks = _RANKS[audience]
    if new.state is not old.state:
        return ranks[new.state] < ranks[old.state]
    if new.event_time is None or old.event_time is None:
        return old.event_time is None
    if audience is Audience.PERSON and new.state is MessageState.DELIVERED:
        return new.event_time < old.event_time
    return new.event_time > old.event_time


def report(state: str, *, code: int | None = None, event_time: Micros | None = None) -> PushReport:
    """Return a report for a state by its name, with the state's usual code if no better one is
    known.

    A code that cannot occur with the state is replaced as well.
    """
    found = MessageState(state)
    facts = STATES[found]
    return PushReport(found, code if code in facts.codes and code else facts.code, event_time)


def status_results(reports: Iterable[tuple[str, PushReport]]) -> tuple[StatusQueryResult, ...]:
    """Return reports by address as the results of a status query: one for each distinct outcome, in
    the order of their first addresses."""
    return tuple(
        StatusQueryResult(
            found.state,
            found.code,
            found.remark or (CODES[found.code].name if found.code in CODES else None),
            found.event_time,
            addresses,
            QualityOfService(method=found.method) if found.method else None,
        )
        for found, addresses in _by_outcome(reports)
    )


def cancel_results(answers: Iterable[tuple[str, int]]) -> tuple[CancelResult, ...]:
    """Return codes by address as the results of a cancellation: one for each distinct code, in the
    order of their first addresses."""
    return tuple(
        CancelResult(code, CODES[code].name if code in CODES else None, addresses)
        for code, addresses in _by_outcome(answers)
    )


def cancel_code(after: PushReport) -> int:
    """Return the code of a cancellation, from the report of the address after the attempt.

    A cancellation succeeded exactly if the address now counts as cancelled. A push that was on its
    way, or had ended otherwise, could not be cancelled any more; an unknown push or address has its
    own code.
    """
    if after.state is MessageState.CANCELLED:
        return 1000
    return after.code if after.state is MessageState.UNKNOWN else 2008


_Outcome = TypeVar("_Outcome")


def _by_outcome(pairs: Iterable[tuple[str, _Outcome]]) -> list[tuple[_Outcome, tuple[str, ...]]]:
    grouped: dict[_Outcome, list[str]] = {}
    for address, outcome in pairs:
        grouped.setdefault(outcome, []).append(address)
    return [(outcome, tuple(addresses)) for outcome, addresses in grouped.items()]


RELEASED = "released"
"""The state of a delivery that is pending in PAP's words, but already sent: it can no longer be
cancelled."""

ABSENT = "absent"
"""The state at an address that the old push was not for."""


class Replacement(NamedTuple):
    """What a replacing push does at one address (PPG service, 5.1.1.1)."""

    take_back: bool
    """Whether the old message is withdrawn and reported as cancelled."""
    send: bool
    """Whether the new message is sent to this address."""


_SWAP, _ADD, _NOTHING = Replacement(True, True), Replacement(False, True), Replacement(False, False)
_GONE = tuple(state for state in MessageState if state is not MessageState.PENDING)

REPLACEMENT: dict[tuple[ReplaceMethod, str], Replacement] = {
    (ReplaceMethod.ALL, MessageState.PENDING): _SWAP,
    (ReplaceMethod.PENDING_ONLY, MessageState.PENDING): _SWAP,
    # The new message follows the old one.
    **{(ReplaceMethod.ALL, state): _ADD for state in (*_GONE, RELEASED, ABSENT)},
    # Addresses that have or will have the old message, or never were among its addresses, are left
    # alone.
    **{(ReplaceMethod.PENDING_ONLY, state): _NOTHING for state in (*_GONE, RELEASED, ABSENT)},
}
"""What to do at each address of the *new* push: by method, and by the state of the old push there
at the commit that decides. Within an address of several devices the table applies to each
device."""
