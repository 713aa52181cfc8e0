"""The ledger of chaos: whatever promise is broken, it is found, from files alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lasthop.runtime.chaos.account import Account, AccountLine, Said, read_account
from lasthop.runtime.chaos.ledger import MOST_FINDINGS, ChaosVerdict, Ledger, read_texts

BOTH = ["phone", "tablet"]

Run = tuple[list[AccountLine], dict[str, list[str]]]


def entry(number: int, said: Said, devices: list[str] | None = None, **more: str) -> AccountLine:
    return AccountLine(number, said, f"shop-{number}", devices or BOTH, **more)


def good_run() -> Run:
    """Four messages for two devices: three accepted, one refused."""
    account = []
    for number in range(4):
        account.append(entry(number, Said.SENT))
        known = Said.REFUSED if number == 2 else Said.ACCEPTED
        account.append(entry(number, known, id=f"id-{number}"))
    texts = ["shop-0", "shop-1", "shop-3"]
    return account, {"phone": list(texts), "tablet": list(texts)}


def judge(run: Run, in_time: dict[str, int] | None = None) -> ChaosVerdict:
    ledger = Ledger()
    ledger.add("shop", run[0])
    return ledger.judge(run[1], in_time)


def counts(verdict: ChaosVerdict) -> dict[str, int]:
    """The broken promises, those that there are."""
    names = ("lost", "duplicated", "misordered", "untrue", "stuck")
    return {name: getattr(verdict, name) for name in names if getattr(verdict, name)}


def test_a_run_that_keeps_every_promise_is_good() -> None:
    verdict = judge(good_run())
    assert (verdict.accepted, verdict.delivered, verdict.refused) == (6, 6, 2)
    assert verdict.good
    assert (counts(verdict), verdict.findings) == ({}, [])


def lose(run: Run) -> None:
    run[1]["tablet"].remove("shop-1")


def double(run: Run) -> None:
    run[1]["phone"].append("shop-0")


def swap(run: Run) -> None:
    texts = run[1]["phone"]
    texts[0], texts[1] = texts[1], texts[0]


def deliver_what_was_refused(run: Run) -> None:
    run[1]["phone"].insert(2, "shop-2")


def deny_what_was_accepted(run: Run) -> None:
    run[0].append(entry(1, Said.DENIED, why="accepted before, and now unknown"))


def change_a_text(run: Run) -> None:
    run[1]["phone"].insert(0, "shqp-0")


def deliver_to_another(run: Run) -> None:
    run[0].extend([entry(9, Said.SENT, ["tablet"]), entry(9, Said.ACCEPTED, ["tablet"])])
    for texts in run[1].values():
        texts.append("shop-9")


def leave_without_an_answer(run: Run) -> None:
    run[0].append(entry(7, Said.SENT))


PLANTED: list[tuple[Callable[[Run], None], dict[str, int], str]] = [
    (lose, {"lost": 1}, "lost: tablet never got shop-1 (id-1)"),
    (double, {"duplicated": 1}, "duplicated: phone got shop-0 again"),
    (swap, {"misordered": 1}, "misordered: phone got shop-0 after number 1"),
    (deliver_what_was_refused, {"untrue": 1}, "untrue: phone got shop-2, which was refused: "),
    (deny_what_was_accepted, {"untrue": 1}, "untrue: shop-1: accepted before, and now unknown"),
    (change_a_text, {"untrue": 1}, "untrue: phone got 'shqp-0', which nobody sent there"),
    (deliver_to_another, {"untrue": 1}, "untrue: phone got 'shop-9', which nobody sent there"),
    (leave_without_an_answer, {"stuck": 1}, "stuck: shop-7 was never answered"),
]


@pytest.mark.parametrize("plant,broken,finding", PLANTED, ids=[row[0].__name__ for row in PLANTED])
def test_a_planted_bug_is_found(
    plant: Callable[[Run], None], broken: dict[str, int], finding: str
) -> None:
    run = good_run()
    plant(run)
    verdict = judge(run)
    assert counts(verdict) == broken
    assert verdict.findings == [finding]
    assert not verdict.good


def test_what_comes_after_the_time_is_up_was_stuck_and_is_not_lost() -> None:
    verdict = judge(good_run(), {"phone": 3, "tablet": 2})
    assert counts(verdict) == {"stuck": 1}
    assert verdict.findings == ["stuck: tablet got shop-3 too late"]
    assert verdict.delivered == verdict.accepted


def test_a_device_that_had_nothing_in_time_was_stuck_with_everything() -> None:
    assert counts(judge(good_run(), {"phone": 3, "tablet": 0})) == {"stuck": 3}


def test_order_holds_for_each_publisher_and_not_between_them() -> None:
    ledger = Ledger()
    ledger.add("shop", [entry(n, Said.ACCEPTED, ["phone"]) for n in range(2)])
    ledger.add("press", [AccountLine(n, Said.ACCEPTED, f"press-{n}", ["phone"]) for n in range(2)])
    assert ledger.judge({"phone": ["press-0", "press-1", "shop-0", "shop-1"]}).good


def test_everything_is_counted_though_not_everything_is_described() -> None:
    account = [entry(n, Said.ACCEPTED, ["phone"]) for n in range(MOST_FINDINGS * 2)]
    verdict = judge((account, {"phone": []}))
    assert (verdict.lost, len(verdict.findings)) == (MOST_FINDINGS * 2, MOST_FINDINGS)


def test_a_run_is_complete_when_every_device_has_what_was_accepted_for_it() -> None:
    account, devices = good_run()
    ledger = Ledger()
    ledger.add("shop", account)
    assert ledger.complete(devices)
    devices["tablet"][-1] = "shop-0"
    assert not ledger.complete(devices), "what came twice stands for nothing else"


def test_an_account_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "account.jsonl"
    assert list(read_account(path)) == []
    account = Account(path)
    written, _ = good_run()
    for each in written:
        account.write(each)
    account.close()
    assert list(read_account(path)) == written


def test_a_line_that_is_not_finished_was_not_written(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    path.write_text('{"id":"1","body":"one"}\n{"id":"2","text":"two"}\n{"id":"3","bo')
    assert read_texts(path) == ["one", "two"]
