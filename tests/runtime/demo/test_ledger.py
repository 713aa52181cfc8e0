"""The demo's books notice whatever goes wrong."""

from __future__ import annotations

from hypothesis import given, strategies as st

from lasthop.runtime.demo.ledger import DemoLedger, Glance, LedgerLane

LANE = LedgerLane("shop", "phone")


def ledger_of(sent: int) -> DemoLedger:
    ledger = DemoLedger()
    for number in range(1, sent + 1):
        assert ledger.sending(LANE, float(number)) == number
        ledger.accepted(LANE, number, f"id-{number}")
    return ledger


def test_everything_once_and_in_order_is_good() -> None:
    ledger = ledger_of(3)
    for number in (1, 2, 3):
        ledger.saw(LANE, number, number + 0.5)
    found = ledger.verdict()
    assert (found.sent, found.accepted, found.delivered, found.missing) == (3, 3, 3, 0)
    assert found.good
    assert list(ledger.latencies()) == [("phone", 0.5)] * 3


@given(st.integers(1, 8), st.lists(st.integers(1, 10), max_size=20))
def test_every_sighting_is_judged_as_by_a_list(sent: int, seen: list[int]) -> None:
    ledger = ledger_of(sent)
    for at, number in enumerate(seen):
        ledger.saw(LANE, number, float(at))
    ours = [number for number in seen if number <= sent]
    first = list(dict.fromkeys(ours))
    found = ledger.verdict()
    assert found.foreign == len(seen) - len(ours)
    assert found.delivered == ledger.delivered == len(first)
    assert found.duplicated == len(ours) - len(first)
    assert found.missing == sent - len(first)
    assert found.misordered == sum(
        any(earlier > number for earlier in first[:place]) for place, number in enumerate(first)
    )
    assert sorted(message for _, message in ledger.missing()) == sorted(
        f"id-{n}" for n in range(1, sent + 1) if n not in first
    )


def test_lanes_do_not_mix() -> None:
    ledger = ledger_of(2)
    other = LedgerLane("shop", "tablet")
    ledger.sending(other, 0.0)
    ledger.accepted(other, 1, "x")
    ledger.saw(LANE, 2, 3.0)
    ledger.saw(other, 1, 3.0)
    assert ledger.verdict().misordered == 0
    ledger.saw(LANE, 1, 4.0)
    assert ledger.verdict().misordered == 1


def test_a_refused_message_is_not_missing_and_one_without_an_answer_is_uncertain() -> None:
    ledger = DemoLedger()
    ledger.refused(LANE, ledger.sending(LANE, 0.0))
    ledger.sending(LANE, 0.0)
    found = ledger.verdict()
    assert (found.refused, found.uncertain, found.missing) == (1, 1, 0)


def look(*glances: tuple[int, float], ledger: DemoLedger | None = None) -> DemoLedger:
    ledger = ledger or DemoLedger()
    seen = [Glance(*glance) for glance in glances]
    ledger.looked("phone", "news", seen, most=2, threshold=1.0)
    return ledger


def test_a_look_shows_the_best_first_above_the_threshold_and_not_too_many() -> None:
    assert look((1, 5.0), (2, 4.0)).looks.good
    assert look().looks.good
    assert look((1, 4.0), (2, 5.0)).looks.unsorted == 1
    assert look((1, 4.0), (2, 0.5)).looks.too_low == 1
    assert look((1, 5.0), (2, 4.0), (3, 3.0)).looks.too_many == 1
    twice = look((1, 5.0), ledger=look((1, 5.0)))
    assert (twice.looks.again, twice.looks.shown, twice.shown["phone"]) == (1, 2, 2)
    for broken in ("unsorted", "too_low", "too_many", "again"):
        ledger = DemoLedger()
        setattr(ledger.looks, broken, 1)
        assert not ledger.looks.good
