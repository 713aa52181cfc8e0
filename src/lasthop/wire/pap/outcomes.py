"""Many deliveries, one answer: what PAP reports for an address that stands for several devices,
and what a replacement means for each address.

Both are tables. A state here is the word that PAP has for it; whoever keeps deliveries translates.
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
    """Any one device will do: a user is reached when one of their devices is."""
    EVERYONE = "everyone"
    """Each device counts: the outcome for a group is known when the last one is."""


class PushReport(NamedTuple):
    """What can be said about one delivery, or about all of one address."""

    state: MessageState
    code: int
    event_time: Micros | None = None
    method: DeliveryMethod | None = None
    """As it was really delivered."""


PRECEDENCE: tuple[MessageState, ...] = (
    # One delivery that arrived outweighs any that did not.
    MessageState.DELIVERED,
    # While one can still arrive, nothing is final.
    MessageState.PENDING,
    # A device has answered, though with no.
    MessageState.ABORTED,
    # A device may have it without our knowing.
    MessageState.TIMEOUT,
    # Only devices that cannot have it are left. A cancellation is reported as successful exactly
    # when the address then counts as cancelled, so it comes before the ways of failing unasked.
    MessageState.CANCELLED,
    MessageState.EXPIRED,
    MessageState.UNDELIVERABLE,
    MessageState.REJECTED,
    MessageState.UNKNOWN,
)
"""The state of an address is the first of these that one of its deliveries has. For a group,
`pending` comes before `delivered`."""

_FOR_GROUPS = (MessageState.PENDING, MessageState.DELIVERED, *PRECEDENCE[2:])
_RANKS: dict[Audience, dict[MessageState, int]] = {
    Audience.PERSON: {state: rank for rank, state in enumerate(PRECEDENCE)},
    Audience.EVERYONE: {state: rank for rank, state in enumerate(_FOR_GROUPS)},
}


def combine(deliveries: Iterable[PushReport], audience: Audience = Audience.PERSON) -> PushReport:
    """One report for a (push-id, address).

    Once final it stays so, whatever the remaining deliveries do: only `delivered` can come before
    the last one has ended, and it outweighs all others. The report speaks of the delivery that
    decided: the first that arrived at a person, otherwise the last that came to the state. An
    address without any delivery is undeliverable, for nobody was there.
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
    """A report on a state by its word, with the state's usual code if no better one is known.

    A code that cannot stand with the state is replaced as well.
    """
    found = MessageState(state)
    facts = STATES[found]
    return PushReport(found, code if code in facts.codes and code else facts.code, event_time)


def status_results(reports: Iterable[tuple[str, PushReport]]) -> tuple[StatusQueryResult, ...]:
    """Reports by address as the results of a status query: one for each distinct outcome, in the
    order of their first addresses."""
    return tuple(
        StatusQueryResult(
            found.state,
            found.code,
            CODES[found.code].name if found.code in CODES else None,
            found.event_time,
            addresses,
            QualityOfService(method=found.method) if found.method else None,
        )
        for found, addresses in _by_outcome(reports)
    )


def cancel_results(answers: Iterable[tuple[str, int]]) -> tuple[CancelResult, ...]:
    """Codes by address as the results of a cancellation, likewise."""
    return tuple(
        CancelResult(code, CODES[code].name if code in CODES else None, addresses)
        for code, addresses in _by_outcome(answers)
    )


def cancel_code(after: PushReport) -> int:
    """The answer to a cancellation, from what is reported of the address after it was tried.

    It succeeded exactly if the address now counts as cancelled. Whatever was on its way, or had
    ended otherwise, was too late to take back; a push or address that is not known says so.
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
"""Pending in the words of PAP, but already on its way: it can no longer be taken back."""

ABSENT = "absent"
"""The old push was not for this address."""


class Replacement(NamedTuple):
    """What a replacing push does at one address."""

    take_back: bool
    """The old message is withdrawn and reported as cancelled."""
    send: bool
    """The new message is sent."""


_SWAP, _ADD, _NOTHING = Replacement(True, True), Replacement(False, True), Replacement(False, False)
_GONE = tuple(state for state in MessageState if state is not MessageState.PENDING)

REPLACEMENT: dict[tuple[ReplaceMethod, str], Replacement] = {
    (ReplaceMethod.ALL, MessageState.PENDING): _SWAP,
    (ReplaceMethod.PENDING_ONLY, MessageState.PENDING): _SWAP,
    # The new message follows the old one.
    **{(ReplaceMethod.ALL, state): _ADD for state in (*_GONE, RELEASED, ABSENT)},
    # Whoever has the old message, or will have it, or was never meant to, is left alone.
    **{(ReplaceMethod.PENDING_ONLY, state): _NOTHING for state in (*_GONE, RELEASED, ABSENT)},
}
"""For each address of the *new* push: by method, and by what had become of the old push there at
the commit that decides. Within an address of several devices the table holds for each device."""
