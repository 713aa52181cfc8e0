"""Several deliveries become one report per address, and a replacement is decided by a table."""

from itertools import combinations_with_replacement, permutations

import pytest
from hypothesis import given, strategies as st

from lasthop.message import DeliveryMethod
from lasthop.wire.pap.codes import STATES, MessageState
from lasthop.wire.pap.documents import (
    CancelResult,
    Document,
    QualityOfService,
    ReplaceMethod,
    StatusQueryResponse,
)
from lasthop.wire.pap.outcomes import (
    ABSENT,
    PRECEDENCE,
    RELEASED,
    REPLACEMENT,
    Audience,
    PushReport,
    Replacement,
    cancel_code,
    cancel_results,
    combine,
    report,
    status_results,
)
from lasthop.wire.pap.reader import read_document
from lasthop.wire.pap.writer import write_document

S = MessageState


def state(*states: str, audience: Audience = Audience.PERSON) -> str:
    return combine([report(s) for s in states], audience).state


@pytest.mark.parametrize(
    "states, person, everyone",
    [
        (["delivered"], "delivered", "delivered"),
        (["delivered", "pending"], "delivered", "pending"),
        (["delivered", "expired", "aborted"], "delivered", "delivered"),
        (["pending", "aborted"], "pending", "pending"),
        (["pending", "cancelled"], "pending", "pending"),
        (["aborted", "timeout", "expired"], "aborted", "aborted"),
        (["timeout", "cancelled"], "timeout", "timeout"),
        (["cancelled", "expired", "undeliverable"], "cancelled", "cancelled"),
        (["expired", "undeliverable"], "expired", "expired"),
        (["undeliverable", "rejected", "unknown"], "undeliverable", "undeliverable"),
        ([], "undeliverable", "undeliverable"),
    ],
)
def test_the_table(states: list[str], person: str, everyone: str) -> None:
    for order in permutations(states):
        assert state(*order) == person
        assert state(*order, audience=Audience.EVERYONE) == everyone


def test_every_state_has_a_place() -> None:
    assert set(PRECEDENCE) == set(MessageState)
    assert len(PRECEDENCE) == len(MessageState)


@pytest.mark.parametrize("audience", Audience)
def test_once_final_it_stays_so(audience: Audience) -> None:
    ends = [s for s in MessageState if STATES[s].final]
    for states in combinations_with_replacement(MessageState, 3):
        before = state(*states, audience=audience)
        if not STATES[MessageState(before)].final:
            continue
        # Whatever becomes of those that are still pending:
        for end in ends:
            after = [end if s is S.PENDING else s for s in states]
            assert state(*after, audience=audience) == before


def test_the_deciding_delivery_is_reported() -> None:
    first = PushReport(S.DELIVERED, 1000, 5, DeliveryMethod.CONFIRMED)
    second = PushReport(S.DELIVERED, 1000, 9, DeliveryMethod.UNCONFIRMED)
    for order in permutations([first, second, report("pending"), PushReport(S.DELIVERED, 1000)]):
        assert combine(order) == first
    for order in permutations([first, second, PushReport(S.EXPIRED, 4000, 20)]):
        assert combine(order, Audience.EVERYONE) == second
    early, late = PushReport(S.ABORTED, 5027, 1), PushReport(S.ABORTED, 5029, 2)
    for order in permutations([early, late, PushReport(S.ABORTED, 5000)]):
        assert combine(order) == late


def test_nobody_there_is_address_not_found() -> None:
    assert combine([]) == PushReport(S.UNDELIVERABLE, 2003)


reports = st.builds(
    PushReport, st.sampled_from(MessageState), st.just(1000), st.none() | st.integers(0, 9)
)


@given(st.lists(reports, max_size=6), st.sampled_from(Audience))
def test_order_does_not_matter(parts: list[PushReport], audience: Audience) -> None:
    one, other = combine(parts, audience), combine(reversed(parts), audience)
    assert (one.state, one.event_time) == (other.state, other.event_time)


def test_codes_fit_their_states() -> None:
    for found in MessageState:
        made = report(found)
        assert made.code in STATES[made.state].codes
    assert report("aborted", code=5027).code == 5027
    assert report("delivered", code=5027).code == 1000
    assert report("expired", event_time=3).event_time == 3
    with pytest.raises(ValueError, match="lost"):
        report("lost")


def test_one_result_for_each_distinct_outcome() -> None:
    arrived = PushReport(S.DELIVERED, 1000, 5, DeliveryMethod.CONFIRMED)
    found = status_results([("a", arrived), ("b", report("pending")), ("c", arrived)])
    assert [(r.state, r.addresses, r.event_time) for r in found] == [
        ("delivered", ("a", "c"), 5),
        ("pending", ("b",), None),
    ]
    assert found[0].quality == QualityOfService(method=DeliveryMethod.CONFIRMED)
    assert found[1].quality is None
    answer = StatusQueryResponse("1", found)
    data = write_document(Document(answer))
    # Seconds are all that PAP has of a time.
    again = read_document(data).message
    assert isinstance(again, StatusQueryResponse)
    assert [r.addresses for r in again.results] == [("a", "c"), ("b",)]
    assert status_results([]) == ()


def test_cancellations_are_answered_truly() -> None:
    assert cancel_results([("a", 1000), ("b", 2008), ("c", 1000)]) == (
        CancelResult(1000, "OK", ("a", "c")),
        CancelResult(2008, "Cancellation Not Possible", ("b",)),
    )
    # A device that may have it makes the whole address too late.
    codes = {
        ("cancelled",): 1000,
        ("cancelled", "expired"): 1000,
        ("cancelled", "pending"): 2008,
        ("cancelled", "timeout"): 2008,
        ("delivered", "cancelled"): 2008,
        ("expired",): 2008,
        ("unknown",): 2004,
    }
    for states, code in codes.items():
        assert cancel_code(combine([report(s) for s in states])) == code


def test_a_replacement_is_defined_for_everything() -> None:
    olds = [*MessageState, RELEASED, ABSENT]
    assert set(REPLACEMENT) == {(method, old) for method in ReplaceMethod for old in olds}
    for (method, old), does in REPLACEMENT.items():
        # Only what is still here can be taken back, and then the new message takes its place.
        assert does.take_back == (old == "pending")
        assert does.send == (method is ReplaceMethod.ALL or old == "pending")
    assert REPLACEMENT[ReplaceMethod.PENDING_ONLY, RELEASED] == Replacement(False, False)
    assert REPLACEMENT[ReplaceMethod.ALL, "delivered"] == Replacement(False, True)
