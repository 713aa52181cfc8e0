"""The small parts of the demo: its script, its letters, its figures, its children.

About `runtime/demo/script.py`, `runtime/demo/messages.py`, `runtime/demo/report.py` and
`runtime/demo/children.py`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from random import Random
from types import SimpleNamespace

import msgspec
import pytest

from lasthop.pipeline import java
from lasthop.runtime.demo import learning, messages, script
from lasthop.runtime.demo.beside import beside
from lasthop.runtime.demo.children import ChildProcess
from lasthop.runtime.demo.counting import Act, count_lost
from lasthop.runtime.demo.ledger import DemoLedger, Exactly, LedgerLane, Looks
from lasthop.runtime.demo.profiles import PROFILES
from lasthop.runtime.demo.report import (
    DemoPeriod,
    DemoReport,
    LearningReport,
    LinkReport,
    latency,
    lines,
    rest,
)
from lasthop.runtime.failure import Failure


def test_a_script_is_its_seed() -> None:
    fleet = script.people(7, Random(3))
    assert script.write(fleet, 60, Random(5)) == script.write(fleet, 60, Random(5))
    assert script.write(fleet, 60, Random(5)) != script.write(fleet, 60, Random(6))
    assert {person.profile for person in fleet} == set(PROFILES)
    assert len({person.name for person in fleet}) == 7


def test_outages_take_the_share_of_time_that_the_profile_says() -> None:
    fleet = script.people(30, Random(3))
    written = script.write(fleet, 3000, Random(5))
    for profile in PROFILES:
        of_kind = [written.outages[p.name] for p in fleet if p.profile is profile]
        away = sum(end - start for outages in of_kind for start, end in outages)
        assert away / (3000 * len(of_kind)) == pytest.approx(profile.away, rel=0.15)
    for outages in written.outages.values():
        ends = [moment for outage in outages for moment in outage]
        assert ends == sorted(ends)
        assert not ends or ends[-1] <= 3000


def test_rates_are_what_they_say() -> None:
    fleet = script.people(3, Random(3))
    written = script.write(fleet, 4000, Random(5))
    for topic in script.TOPICS:
        count = sum(1 for _, of, _ in written.news if of is topic)
        assert count == pytest.approx(4000 / topic.interval, rel=0.1)
    assert len(written.orders) == pytest.approx(4000 / script.ORDER_INTERVAL, rel=0.1)
    assert [at for at, _, _ in written.news] == sorted(at for at, _, _ in written.news)


def test_a_letter_has_its_size_and_can_be_read_again() -> None:
    for number in (1, 10**9):
        body = messages.write("shop", number).encode()
        assert len(body) == messages.SIZE
        demo_message = messages.read(body)
        assert demo_message is not None
        assert (demo_message.publisher, demo_message.number) == ("shop", number)
    assert messages.read(b"hello") is None


def test_percentiles_are_values_that_occurred() -> None:
    assert latency([]) is None
    found = latency([number / 1000 for number in range(1, 101)])
    assert found is not None
    assert (found.p50, found.p95, found.p99, found.longest) == (50.0, 95.0, 99.0, 100.0)
    one = latency([0.25])
    assert one is not None
    assert (one.p50, one.longest) == (250.0, 250.0)


def test_the_messages_that_count_have_ended_before_the_end() -> None:
    act = Act(began=100, length=50, lead=10, tail=15, bytes_per_second=1.0)
    assert (act.since, act.until) == (110, 135)
    short = Act(began=500, length=30, lead=10, tail=15, bytes_per_second=1.0)
    assert (act.cut_to(short).since, act.cut_to(short).until) == (110, 115)
    assert short.cut_to(act) == short
    nothing = Act(began=0, length=5, lead=10, tail=15, bytes_per_second=1.0)
    assert nothing.since == nothing.until


def a_report(**changes: object) -> DemoReport:
    report = DemoReport(
        complete=True,
        seconds=120.0,
        devices=3,
        good=True,
        lost=0,
        under_way=0,
        messages=Exactly(sent=9, accepted=9, delivered=9),
        looks=Looks(looks=4, shown=8),
        latency=latency([0.1]),
        links={"wifi": LinkReport(3, 0.05, 9, latency([0.1]), 2, 4000, 300.0)},
        bytes_per_message=300.0,
        payload_per_message=256,
        learning=LearningReport(ran=False, reason="--no-pipeline"),
        before=DemoPeriod(20.0, 100, 50, 60, 6, 0.5, 0.1, 900.0),
        after=None,
    )
    return msgspec.structs.replace(report, **changes)


def test_the_report_says_what_was_not_learned_and_why() -> None:
    text = "\n".join(lines(a_report()))
    assert "9 accepted, 9 delivered, 0 lost, 0 duplicated, 0 misordered" in text
    assert "nothing was learned: --no-pipeline" in text
    assert "played   waste 50.0% of 100 forwarded, loss 10.0% of 60" in text
    assert "after" not in text.lower().replace("after 120 s", "")
    learned = LearningReport(ran=True, version="v1", devices=7, events=99, seconds=20.0)
    after = DemoPeriod(20.0, 60, 6, 60, 3, 0.1, 0.05, 700.0)
    text = "\n".join(lines(a_report(learning=learned, after=after, under_way=1)))
    assert "before   waste 50.0%" in text
    assert "7 choices learned from 99 events in 20 s: v1" in text
    assert "after    waste 10.0% of 60 forwarded, loss 5.0%" in text
    assert "1 under way" in text
    assert "The difference is between policies" in text  # Learning is not credited with all of it.
    learned.reason = "too late"
    assert "no comparison: too late" in "\n".join(lines(a_report(learning=learned)))


def test_a_report_that_is_not_complete_says_what_follows_and_then_only_that() -> None:
    learning = LearningReport(ran=False)
    text = "\n".join(lines(a_report(complete=False, learning=learning, under_way=2)))
    assert "9 accepted, 9 delivered" in text
    assert "2 under way" in text
    assert "still learning" in text
    assert "before   waste 50.0%" in text
    assert "The comparison follows" in text
    assert "nothing was learned" not in text
    learned = LearningReport(ran=True, version="v1", devices=7, events=99, seconds=20.0)
    text = "\n".join(lines(a_report(complete=False, learning=learned)))
    assert "7 choices learned" in text
    assert "The comparison follows" in text
    assert "no comparison" not in text
    after = DemoPeriod(20.0, 60, 6, 60, 3, 0.1, 0.05, 700.0)
    whole = a_report(seconds=160.0, learning=learned, after=after)
    text = "\n".join(rest(whole))
    assert text.startswith("After 160 s, the rest of the report:")
    assert "after    waste 10.0%" in text
    assert "latency" not in text
    assert "follows" not in text


class Asked:
    """A gateway that says of every message that it is over, and takes its time."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._meanwhile = meanwhile

    def ended(self, message: str) -> bool:
        self._meanwhile()
        if message == "unknown":
            raise Failure("no such message")
        return message != "open"


async def test_what_is_seen_while_we_ask_is_not_lost() -> None:
    ledger = DemoLedger()
    lane = LedgerLane("shop", "phone")
    for message in ("late", "gone", "open", "unknown"):
        ledger.accepted(lane, ledger.sending(lane, 0.0), message)

    def arrive() -> None:
        if not ledger.delivered:
            ledger.saw(lane, 1, 1.0)

    cast = SimpleNamespace(shop=Asked(arrive), initiator=None)
    assert await count_lost(ledger, cast) == 2  # type: ignore[arg-type]
    copied = ledger.copy()
    ledger.saw(lane, 2, 2.0)
    assert (copied.delivered, ledger.delivered) == (1, 2)
    assert len(copied.missing()) == 3


def test_a_machine_without_java_or_spark_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(java, "candidates", lambda: iter(()))
    said = learning.impossible()
    assert said is not None
    assert "Java" in said
    assert "\n" not in said
    monkeypatch.setattr(learning, "find_spec", lambda name: None)
    assert "lasthop[pipeline]" in (learning.impossible() or "")


async def test_a_child_that_fails_says_why() -> None:
    child = await ChildProcess.start("status", "--url", "http://127.0.0.1:1")
    with pytest.raises(Failure, match="lasthop status --url failed: no gateway at"):
        await child.output()
    child = await ChildProcess.start("up", "--http", "nonsense")
    with pytest.raises(Failure, match="ended: "):
        await child.line()


async def test_a_child_is_gone_when_it_was_stopped() -> None:
    child = await ChildProcess.start("pap", "listen", "--port", "0")
    await child.line()
    await child.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


async def test_the_first_failure_is_what_is_raised() -> None:
    async def fails() -> None:
        raise Failure("it broke")

    with pytest.raises(Failure, match="it broke"):
        async with beside(fails()):
            await asyncio.Event().wait()
    with pytest.raises(ValueError, match="ours"):
        async with beside(asyncio.sleep(3600)):
            raise ValueError("ours")
    async with beside(asyncio.sleep(3600)):
        pass
