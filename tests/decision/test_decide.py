"""Send, hold or let go: every reason has its turn."""

from __future__ import annotations

from hypothesis import given, strategies as st

from lasthop.decision.decide import Action, decide

times = st.none() | st.integers(0, 9)


@given(after=times, before=times, contact=st.booleans(), credit=st.booleans(), now=times)
def test_a_decision_follows_from_what_it_sees(
    after: int | None, before: int | None, contact: bool, credit: bool, now: int | None
) -> None:
    now = now or 0
    decision = decide(
        deliver_after=after, deliver_before=before, in_contact=contact, has_credit=credit, now=now
    )
    expired = before is not None and before <= now
    early = after is not None and after > now
    assert (decision.action is Action.EXPIRE) == expired
    assert (decision.action is Action.SEND) == (contact and credit and not expired and not early)
    assert decision.until == (after if early and not expired else None)
    assert decision.reason


def test_the_first_obstacle_is_the_reason() -> None:
    def reason(**facts: object) -> str:
        seen = {"deliver_after": None, "deliver_before": None, "in_contact": True}
        return decide(**{**seen, "has_credit": True, "now": 5, **facts}).reason  # type: ignore[arg-type]

    assert reason() == "in contact"
    assert reason(has_credit=False) == "waiting for credit"
    assert reason(has_credit=False, in_contact=False) == "no contact"
    assert reason(in_contact=False, deliver_after=6) == "deliver_after lies ahead"
    assert reason(deliver_after=6, deliver_before=5) == "deliver_before has passed"
