"""The one table from our states to what PAP reports."""

from __future__ import annotations

import pytest

from lasthop.core.lifecycle import State
from lasthop.core.pushes.report import REPORTS, refused, report_of
from lasthop.message import DeliveryMethod
from lasthop.store.pushes import Addressee
from lasthop.wire.pap.codes import CODES, STATES, CodeUse, MessageState

NONE = DeliveryMethod.NOT_SPECIFIED


@pytest.mark.conformance("PPG-GEN-S-007")
@pytest.mark.parametrize("state", list(State))
def test_every_state_has_a_report_that_pap_allows(state: State) -> None:
    line = REPORTS[state]
    assert line.code in STATES[line.state].codes
    assert STATES[line.state].final is (state.final and state is not State.REASSIGNED)
    assert CODES[line.code].operations & {CodeUse.STATUS, CodeUse.OUTCOME}


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("code", [0, *CODES])
def test_an_exact_code_is_reported_only_with_a_state_that_it_can_stand_with(
    state: State, code: int
) -> None:
    report = report_of(state, code, 5, NONE)
    assert report.code == (code if code in STATES[report.state].codes else REPORTS[state].code)
    assert report.event_time == (5 if state.final else None)


def test_every_state_of_pap_is_reported_of_something() -> None:
    reported = {line.state for line in REPORTS.values()}
    said_of_what_was_never_accepted = {MessageState.REJECTED, MessageState.UNKNOWN}
    assert reported | said_of_what_was_never_accepted == set(MessageState)


@pytest.mark.parametrize(
    "asked, used",
    [
        (NONE, DeliveryMethod.UNCONFIRMED),
        (DeliveryMethod.UNCONFIRMED, DeliveryMethod.UNCONFIRMED),
        (DeliveryMethod.PREFER_CONFIRMED, DeliveryMethod.UNCONFIRMED),
        (DeliveryMethod.ONESHOT, DeliveryMethod.ONESHOT),
    ],
)
def test_what_was_only_sent_says_how(asked: DeliveryMethod, used: DeliveryMethod) -> None:
    assert report_of(State.SENT, 0, 5, asked).method is used
    assert report_of(State.DELIVERED, 0, 5, asked).method is DeliveryMethod.CONFIRMED


@pytest.mark.parametrize("code", [2002, 2003, 2005, 3003])
def test_an_address_that_was_not_accepted_is_reported_with_its_code(code: int) -> None:
    report = refused(Addressee("a", False, (), code), 5)
    assert (report.code, report.event_time) == (code, 5)
    assert code in STATES[report.state].codes
