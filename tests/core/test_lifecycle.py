"""The table: every step that is possible, and no other."""

from __future__ import annotations

from itertools import product

import pytest

from lasthop.core.lifecycle import (
    CONFIRMED_BY,
    ODIN_VIEW,
    RELIABILITY_OF_METHOD,
    STATE_NAMES,
    TRANSITIONS,
    State,
    Step,
)
from lasthop.message import DeliveryMethod, Reliability

TAKING_BACK = {Step.CANCEL, Step.REPLACE, Step.ABORT, Step.REASSIGN, Step.SUPPRESS}


def test_nothing_leads_on_from_an_end() -> None:
    assert all(not state.final for state, _ in TRANSITIONS)


def test_every_state_can_be_reached_and_every_open_one_can_end() -> None:
    reached = {State.PENDING} | {state for state, _ in TRANSITIONS.values()}
    assert reached == set(State)
    for state in (s for s in State if not s.final):
        assert any(TRANSITIONS[at][0].final for at in TRANSITIONS if at[0] is state)


def test_only_what_is_open_can_be_taken_back() -> None:
    for state, step in product(State, TAKING_BACK):
        assert (state, step) not in TRANSITIONS or not state.final
        assert (state, step) in TRANSITIONS or state is not State.PENDING


def test_only_a_group_takes_back_what_is_under_way() -> None:
    under_way = {State.SENDING, State.RECEIVED}
    for state, step in product(under_way, TAKING_BACK):
        assert ((state, step) in TRANSITIONS) == (step is not Step.REASSIGN)


def test_only_a_release_leads_to_a_number_and_only_a_requeue_back() -> None:
    into = {state: {at for at, to in TRANSITIONS.items() if to[0] is state} for state in State}
    assert into[State.SENDING] == {(State.PENDING, Step.RELEASE)}
    assert {step for _, step in into[State.PENDING]} == {Step.REQUEUE}


def test_an_event_says_where_its_step_led() -> None:
    for state, kind in TRANSITIONS.values():
        if state.final or state is State.RECEIVED:
            assert kind.value == state.name.lower()


def test_stored_numbers_never_change() -> None:
    assert {state.name: int(state) for state in State} == {
        "PENDING": 0,
        "SENDING": 1,
        "RECEIVED": 2,
        "PARKED": 3,
        "DELIVERED": 10,
        "SENT": 11,
        "EXPIRED": 12,
        "CANCELLED": 13,
        "REPLACED": 14,
        "ABORTED": 15,
        "TIMED_OUT": 16,
        "UNDELIVERABLE": 17,
        "REASSIGNED": 18,
        "SUPPRESSED": 19,
    }


def test_the_views_cover_what_they_speak_of() -> None:
    assert set(STATE_NAMES) == set(State)
    assert list(ODIN_VIEW.values()) == ["PendingSend", "Sending", "Received", "Delivered"]
    assert set(CONFIRMED_BY) == set(Reliability)


@pytest.mark.parametrize("method", DeliveryMethod)
def test_every_delivery_method_asks_for_a_reliability_or_leaves_it(method: DeliveryMethod) -> None:
    reliability = RELIABILITY_OF_METHOD[method]
    assert (reliability is None) == (method is DeliveryMethod.NOT_SPECIFIED)
