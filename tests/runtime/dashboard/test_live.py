"""Samples of the gateway: right numbers for those who look, and next to no work for nobody."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from lasthop.clock import SECOND, Micros
from lasthop.core.lifecycle import State
from lasthop.decision.volume.entry import Place
from lasthop.errors import Overloaded
from lasthop.events import Event
from lasthop.message import EPOCH_MS, KEY_TIME_SHIFT, Message, Target, TargetKind
from lasthop.runtime.dashboard import live as module
from lasthop.runtime.dashboard.live import GatewayTotals, Live
from lasthop.runtime.dashboard.sessions import LIFETIME, MOST, Sessions, cookie_in, set_cookie
from lasthop.runtime.dashboard.views import BARS, bars
from lasthop.store.commit import Commit, DeliveryRow

START: Micros = 1_800_000_000 * SECOND


class Counters:
    """A gateway's counters, and a clock that moves a second with every look."""

    def __init__(self) -> None:
        self.accepted = 0
        self.delivered = 0
        self.looks = 0

    def totals(self) -> GatewayTotals:
        self.looks += 1
        ended = {"delivered": self.delivered, "expired": 0}
        return GatewayTotals(self.accepted, ended, self.looks, 0.25 * self.looks, 3, 5, 7)

    def now(self) -> Micros:
        return START + self.looks * SECOND


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Counters:
    """Samples without waiting for them."""
    monkeypatch.setattr(module, "PERIOD", 0.0)
    return Counters()


def key_at(time: Micros) -> int:
    return (time // 1000 - EPOCH_MS) << KEY_TIME_SHIFT


def commit_of(*latencies: Micros, events: int = 0, messages: int = 0) -> Commit:
    """A commit in which deliveries end that took so long."""
    commit = Commit(1, 0)
    for n, latency in enumerate(latencies):
        row = DeliveryRow(key_at(START), n, State.DELIVERED, False, 0, 0, 1, START + latency, 0)
        commit.deliveries.append(row)
    for n in range(events):
        event = Event(2, "gw", 1, n, START, "accepted", dev="phone", msg=n + 1, reason="why")
        commit.events += msgspec.json.encode(event) + b"\n"
    commit.event_count = events
    target = Target(TargetKind.TOPIC, "news")
    commit.messages = [Message(n, 0, "a", "publisher:x", target, START) for n in range(messages)]
    return commit


async def test_a_sample_has_what_changed_in_a_second(counters: Counters) -> None:
    live = Live(counters.totals, counters.now)
    watching = live.watch()
    assert await anext(watching) == []
    await anext(watching)
    counters.accepted, counters.delivered = 10, 4
    live.committed(commit_of(*(n * 1000 for n in range(1, 101)), events=1))
    (sample, *_) = await anext(watching)
    assert (sample.accepted, sample.ended, sample.commit_ms) == (10, {"delivered": 4}, 250)
    assert (sample.connections, sample.devices, sample.messages) == (3, 5, 7)
    assert list(sample.latency or ()) == [51, 90, 99]
    assert [(event.kind, event.device, event.reason) for event in sample.events] == [
        ("accepted", "phone", "why")
    ]
    await live.close()
    assert [samples async for samples in watching] == []


async def test_nothing_is_timed_or_decoded_while_nobody_looks(counters: Counters) -> None:
    live = Live(counters.totals, counters.now)
    broken = commit_of(1000, events=1, messages=50)
    broken.events = bytearray(b"this would not decode\n")
    live.committed(broken)
    assert counters.looks == 0
    assert [one.id[:16] for one in live.recent] == [f"{n:016x}" for n in range(46, 50)]


async def test_a_busy_second_costs_no_more_than_its_limit(counters: Counters) -> None:
    live = Live(counters.totals, counters.now)
    watching = live.watch()
    await anext(watching)
    live.committed(commit_of(*([1000] * 5000), events=500))
    (sample, *_) = await anext(watching)
    assert len(sample.events) == module.MOST_EVENTS
    assert live.watchers == 1
    await live.close()


async def test_there_is_room_for_so_many_watchers(
    counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WATCHERS", 1)
    live = Live(counters.totals, counters.now)
    watching = live.watch()
    await anext(watching)
    with pytest.raises(Overloaded, match="too many pages"):
        live.watch()
    await live.close()


async def test_sampling_ends_some_time_after_the_last_has_left(
    counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINGER", 3)
    live = Live(counters.totals, counters.now)
    watching = live.watch()
    await anext(watching)
    await watching.aclose()  # type: ignore[attr-defined]
    assert live.watchers == 0
    seen = -1
    while counters.looks != seen:
        seen = counters.looks
        for _ in range(5):
            await asyncio.sleep(0)
    again = live.watch()
    assert await anext(again) == []
    await live.close()


# Sessions.


def test_a_session_ends_with_its_day() -> None:
    names = iter(("one", "two"))
    sessions = Sessions(lambda: next(names))
    assert sessions.begin(b"Bearer x", 0) == "one"
    assert sessions.find("one", LIFETIME - 1) == b"Bearer x"
    assert sessions.find("one", LIFETIME) is None
    assert sessions.find("", 0) is None


def test_the_oldest_session_makes_room() -> None:
    count = iter(range(MOST + 1))
    sessions = Sessions(lambda: str(next(count)))
    for _ in range(MOST + 1):
        sessions.begin(b"x", 0)
    assert sessions.find("0", 0) is None
    assert sessions.find("1", 0) == b"x"


def test_our_cookie_is_found_among_others() -> None:
    assert cookie_in({b"cookie": b"a=1; lasthop_session=secret; b=2"}) == "secret"
    assert cookie_in({}) == ""
    assert set_cookie("x", secure=True).endswith("; Secure")


# Ranks.


def test_a_histogram_has_every_rank_in_one_bar() -> None:
    ranks = [(float(n), Place.DEVICE if n % 2 else Place.HOLDING) for n in range(101)]
    found = bars(ranks)
    assert len(found) == BARS
    assert sum(bar.here + bar.there for bar in found) == 101
    assert sum(bar.there for bar in found) == 50
    assert (found[0].low, found[-1].high) == (0, 100)


def test_one_rank_is_one_bar_and_none_is_none() -> None:
    (bar,) = bars([(3.0, Place.HOLDING), (3.0, Place.DEVICE)])
    assert (bar.low, bar.high, bar.here, bar.there) == (3, 3, 1, 1)
    assert bars([]) == []
