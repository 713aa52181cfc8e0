"""A soak of a few seconds, and what is concluded from long ones.

About `bench/soak/`.
"""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from bench.hop import http
from bench.soak.command import show, soak
from bench.soak.flatness import judge
from bench.soak.jobs import Pouring
from bench.soak.publisher import Source
from bench.soak.watching import Sample
from lasthop.runtime.cli import main


def samples(seconds: float, **grown: float) -> list[Sample]:
    """A hundred samples; what is named grows by so much from the first to the last."""
    found = []
    for number in range(101):
        share = number / 100
        sample = Sample(
            at=seconds * share,
            memory_mb=80.0 + number % 3,
            descriptors=24,
            threads=5,
            delay_ms=1.0,
            worst_ms=9.0,
            store_mb=200.0,
            log_mb=500 * share,
            connections=900,
        )
        for name, amount in grown.items():
            setattr(sample, name, getattr(sample, name) + amount * share)
        found.append(sample)
    return found


def verdicts(found: list[Sample]) -> dict[str, str]:
    return {name: each.verdict for name, each in judge(found)}


def test_what_stays_is_flat() -> None:
    assert set(verdicts(samples(7200)).values()) == {"flat"}


@pytest.mark.parametrize(
    "name,amount",
    [
        ("memory_mb", 20),
        ("descriptors", 20),
        ("threads", 10),
        ("delay_ms", 20),
        ("store_mb", 200),
    ],
)
def test_what_grows_is_named_and_nothing_else(name: str, amount: float) -> None:
    found = verdicts(samples(7200, **{name: amount}))
    assert [each for each, verdict in found.items() if verdict == "grows"] == [name]


def test_the_slope_is_that_of_an_hour_after_the_warm_up() -> None:
    found = samples(7200, memory_mb=40)
    for sample in found[:25]:
        sample.memory_mb = 0.0
    assert dict(judge(found))["memory_mb"].slope_per_hour == pytest.approx(20, rel=0.05)


def test_a_short_run_concludes_nothing() -> None:
    assert set(verdicts(samples(60, memory_mb=1000)).values()) == {"unclear"}


@pytest.mark.slow
async def test_a_device_s_messages_cannot_overtake_each_other_on_their_way_to_the_gateway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, int, asyncio.Future[None]]] = []

    class Pool:
        def __init__(self, head: bytes, *, size: int) -> None:
            """Take what a pool of connections takes."""

        async def fill(self, port: int) -> None:
            """Open nothing."""

        def post(self, body: bytes) -> asyncio.Future[None]:
            said = json.loads(body)
            answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            asked.append((said["device"], int(said["body"]), answer))
            return answer

    monkeypatch.setattr(http, "Pool", Pool)
    source = Source(Pouring(port=0, devices=3, rate=1000))
    pouring = asyncio.ensure_future(source.pour())
    while len(asked) < 30:
        await asyncio.sleep(0.001)
        waiting = [each for each in asked if not each[2].done()]
        assert len({device for device, _, _ in waiting}) == len(waiting)
        for _, _, answer in reversed(waiting):
            answer.set_result(None)
    pouring.cancel()
    for device in {device for device, _, _ in asked}:
        numbers = [number for name, number, _ in asked if name == device]
        assert numbers == sorted(numbers)


def test_a_few_seconds_of_everything(tmp_path: Path) -> None:
    said = io.StringIO()
    result = soak(tmp_path, hours=0.001, rate=50, devices=10, console=Console(file=said))
    assert result.accepted == result.delivered > 50
    assert (result.lost, result.duplicated, result.misordered, result.refused) == (0, 0, 0, 0)
    assert result.contacts > 10
    assert result.measures["memory_mb"].mean > 20
    assert result.measures["threads"].mean >= 3
    shown = io.StringIO()
    show(result, Console(file=shown))
    assert "unclear  memory_mb: mean" in shown.getvalue().replace("\n", " ")
    assert json.dumps(result.hours) == "0.001"


def test_a_soak_needs_its_hours(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "soak"])
    assert "--hours" in capsys.readouterr().err
