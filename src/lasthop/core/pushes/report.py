"""What PAP reports of a delivery: one table from the states of the life cycle to PAP's states and
codes.

Where a delivery ended with a more exact code (a transformation that failed, a bearer that is
missing, the reason of a client that refused), that code is reported instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lasthop.clock import Micros
from lasthop.core.lifecycle import State
from lasthop.message import DeliveryMethod
from lasthop.store.commit import DeliveryRow
from lasthop.store.pushes import Addressee, PushRow
from lasthop.wire.pap.codes import STATES, MessageState
from lasthop.wire.pap.outcomes import Audience, PushReport, combine
from lasthop.wire.smpp.commands import SmsState


class ReportedState(NamedTuple):
    """The PAP state and code by which a state of the life cycle is reported."""

    state: MessageState
    code: int
    method: DeliveryMethod | None = None
    """The method by which the push was really delivered; None if it was not delivered."""


REPORTS: dict[State, ReportedState] = {
    # Not sent yet, on its way, or on the device and not with its application.
    State.PENDING: ReportedState(MessageState.PENDING, 1000),
    State.SENDING: ReportedState(MessageState.PENDING, 1000),
    State.RECEIVED: ReportedState(MessageState.PENDING, 1000),
    State.PARKED: ReportedState(MessageState.PENDING, 1000),
    # The client has confirmed it (5.1.2.2.5.2), or no confirmation was asked for (5.1.2.2.5.1).
    State.DELIVERED: ReportedState(MessageState.DELIVERED, 1000, DeliveryMethod.CONFIRMED),
    State.SENT: ReportedState(MessageState.DELIVERED, 1000, DeliveryMethod.UNCONFIRMED),
    # Its deliver-before-timestamp passed first (5.1.2.2.4).
    State.EXPIRED: ReportedState(MessageState.EXPIRED, 4000),
    # Taken back by a cancellation (5.4), or by the push that replaces it (5.1.1.1).
    State.CANCELLED: ReportedState(MessageState.CANCELLED, 1000),
    State.REPLACED: ReportedState(MessageState.CANCELLED, 1000),
    # The client refused it: codes 5026 to 5030 where it said why.
    State.ABORTED: ReportedState(MessageState.ABORTED, 5000),
    # It left, and no confirmation came.
    State.TIMED_OUT: ReportedState(MessageState.TIMEOUT, 4000),
    # Code 2005, 2006, 3006, 3007, 3009, 3010 or 4000 where it is known why.
    State.UNDELIVERABLE: ReportedState(MessageState.UNDELIVERABLE, 3003),
    # Another device of a queue has it; no push goes to a queue.
    State.REASSIGNED: ReportedState(MessageState.PENDING, 1000),
    # The device's mailbox was full, or the user does not want it.
    State.SUPPRESSED: ReportedState(MessageState.UNDELIVERABLE, 4001),
}

_REMARKS: dict[int, str] = {
    SmsState.DELIVERED: "sent; the network says that the handset has it",
    SmsState.UNKNOWN: "sent; the network does not know what became of it",
    SmsState.EXPIRED: "sent; the network says that the handset could not be reached in time",
    **dict.fromkeys(
        (SmsState.DELETED, SmsState.UNDELIVERABLE, SmsState.REJECTED),
        "sent; the network says that the handset did not get it",
    ),
}
"""What an initiator is told of a receipt: it makes no push confirmed (5.1.2.2.5.2)."""

_UNREACHED = frozenset({2002, 2003, 2005})


def report_of(
    state: State, code: int, at: Micros, method: DeliveryMethod, *, remark: str = ""
) -> PushReport:
    """Return the report of one delivery; `method` is the delivery method that was asked for."""
    line = REPORTS[state]
    if code not in STATES[line.state].codes:
        code = line.code
    used = line.method
    if state is State.SENT and method is DeliveryMethod.ONESHOT:
        used = method
    # While it is pending, the time of its last change says nothing to an initiator.
    return PushReport(line.state, code, at if state.final else None, used, remark)


def refused(addressee: Addressee, at: Micros) -> PushReport:
    """Return the report of an address for which the push was not accepted."""
    undeliverable = addressee.code in _UNREACHED
    state = MessageState.UNDELIVERABLE if undeliverable else MessageState.REJECTED
    return PushReport(state, addressee.code, at)


def withdrawn(at: Micros) -> PushReport:
    """Return the report of deliveries that were cancelled before they had begun."""
    return PushReport(MessageState.CANCELLED, 1000, at)


def audience_of(addressee: Addressee) -> Audience:
    """Return whether all devices of an address must get a push, or any one of them is enough."""
    return Audience.EVERYONE if addressee.everyone else Audience.PERSON


def reports_of(
    push: PushRow, accepted_at: Micros, method: DeliveryMethod, deliveries: Iterable[DeliveryRow]
) -> list[tuple[str, PushReport]]:
    """Return the reports of a push that is over, by address, from the rows in the store."""
    by_device = {
        row.device: report_of(
            State(row.state), row.code, row.changed_at, method, remark=_REMARKS.get(row.receipt, "")
        )
        for row in deliveries
    }
    never_begun = [withdrawn(push.withdrawn_at)] if push.withdrawn_at else []
    found: list[tuple[str, PushReport]] = []
    for addressee in push.addresses:
        if addressee.code:
            found.append((addressee.text, refused(addressee, accepted_at)))
            continue
        theirs = list(by_device.values())
        if addressee.devices is not None:
            theirs = [by_device[n] for n in addressee.devices if n in by_device]
        found.append((addressee.text, combine([*theirs, *never_begun], audience_of(addressee))))
    return found
