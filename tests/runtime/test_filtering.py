"""Large bodies and filters on a running gateway: nobody waits while they are read."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from lasthop.core.effects import MatchFilters
from lasthop.runtime.filtering import reader, worker
from lasthop.runtime.filtering.frames import HEAD, Learn, Match, decode_reading, frame
from lasthop.runtime.filtering.reader import FilterReader
from lasthop.runtime.serve import running
from lasthop_xml.weft.session import Level, WeftEncoder
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xpath.reading import Outcome, Reading
from tests.runtime.test_serve import never, settings

DEADLINE = 60.0

AT_MOST = 0.05
"""Seconds of work, with nobody served in between. What the loop's thread has worked is measured and
not what time it was: other processes do not count."""

MAX = "application/x-weft+max"


def order(goods: str, count: int) -> bytes:
    """An order of many lines."""
    lines = b"".join(b"<line>%x</line>" % (n * 2654435761 % 2**32) for n in range(count))
    return b"<order><goods>%s</goods>%s</order>" % (goods.encode(), lines)


def dense(goods: str, count: int) -> bytes:
    return WeftEncoder(Level.MAX).encode(parse_xml(order(goods, count)))


class Heartbeat:
    """Looks often whether the loop still turns."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def beat(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0.002)
            now = time.thread_time()
            self.longest = max(self.longest, now - last)
            last = now


@asynccontextmanager
async def heartbeat() -> AsyncIterator[Heartbeat]:
    heart = Heartbeat()
    task = asyncio.create_task(heart.beat())
    await asyncio.sleep(0.01)
    try:
        yield heart
        await asyncio.sleep(0.01)
    finally:
        task.cancel()


@asynccontextmanager
async def orders(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A gateway with two devices that want orders of tea, or of milk."""
    async with (
        running(settings(tmp_path), never) as places,
        httpx.AsyncClient(base_url=places.http, timeout=DEADLINE) as client,
    ):
        for goods in ("tea", "milk"):
            await client.post("/v1/devices", json={"name": goods})
            subscription = f"/v1/devices/{goods}/subscriptions/orders"
            await client.put(subscription, params={"xpath": f"/order[goods = '{goods}']"})
        yield client


async def deliveries(client: httpx.AsyncClient, message: str, count: int) -> dict[str, Any]:
    """The deliveries of a message by device, once there are so many."""
    async with asyncio.timeout(DEADLINE):
        while True:
            found = (await client.get(f"/v1/messages/{message}")).json()["deliveries"]
            if len(found) == count:
                return {one["device"]: one for one in found}
            await asyncio.sleep(0.01)


async def publish(client: httpx.AsyncClient, body: bytes, content_type: str) -> str:
    answer = await client.post("/orders", content=body, headers={"Content-Type": content_type})
    assert answer.is_success, answer.text
    return str(answer.json()["message_id"])


async def test_nobody_waits_while_a_large_body_is_read_for_filters(tmp_path: Path) -> None:
    body = dense("tea", 9_000)  # 27,000 events, which take a quarter of a second.
    async with orders(tmp_path) as client:
        await publish(client, order("warm", 2000), "application/xml")
        async with heartbeat() as heart:
            first = await publish(client, body, MAX)
            second = await publish(client, order("milk", 20_000), "application/xml")
            assert list(await deliveries(client, first, 1)) == ["tea"]
            assert list(await deliveries(client, second, 1)) == ["milk"]
        assert heart.longest < AT_MOST


async def test_what_is_too_large_for_a_filter_reaches_its_device_with_a_reason(
    tmp_path: Path,
) -> None:
    body = dense("tea", 12_000)
    async with orders(tmp_path) as client:
        async with heartbeat() as heart:
            message = await publish(client, body, MAX)
            assert set(await deliveries(client, message, 2)) == {"tea", "milk"}
        assert heart.longest < AT_MOST
        told = (await client.get(f"/v1/messages/{message}/explain?device=milk")).json()
        assert "its filter could not read the body" in str(told)
        assert "a message has too many events (most=30000)" in str(told)
        metrics = (await client.get("/metrics")).text
        assert 'lasthop_filter_messages_total{outcome="too_large"} 1.0' in metrics


async def test_a_message_that_was_being_read_is_read_again_after_a_restart(tmp_path: Path) -> None:
    async with orders(tmp_path) as client:
        message = await publish(client, order("tea", 30_000), "application/xml")
    async with (
        running(settings(tmp_path), never) as places,
        httpx.AsyncClient(base_url=places.http, timeout=DEADLINE) as client,
    ):
        assert list(await deliveries(client, message, 1)) == ["tea"]


class LiveGateway:
    """A gateway that wants bodies read."""

    def __init__(self, *expressions: str) -> None:
        self.expressions = [("app", xpath) for xpath in expressions]
        self.readings: asyncio.Queue[Reading] = asyncio.Queue()

    def filters_matched(self, message: int, reading: Reading) -> None:
        self.readings.put_nowait(reading)

    def filter_expressions(self) -> list[tuple[str, str]]:
        return self.expressions


@asynccontextmanager
async def reading(live: LiveGateway) -> AsyncIterator[FilterReader]:
    of_filters = FilterReader()
    of_filters.open(live)
    try:
        yield of_filters
    finally:
        await of_filters.close()


def ask(body: bytes = b"<a/>", changes: dict[tuple[str, str], bool] | None = None) -> MatchFilters:
    return MatchFilters(1, "app", "application/xml", body, changes)


async def test_a_worker_that_dies_is_replaced_and_knows_all_expressions() -> None:
    live = LiveGateway("/a", "/b")
    async with reading(live) as filters, asyncio.timeout(DEADLINE):
        filters.match(ask())
        assert await live.readings.get() == Reading(Outcome.READ, frozenset({"/a"}), 4)
        assert filters.pid is not None
        os.kill(filters.pid, signal.SIGKILL)
        filters.match(ask(changes={}))
        reason = "the worker that reads it ended"
        while (again := await live.readings.get()) == Reading(Outcome.FAILED, reason=reason):
            filters.match(ask(changes={}))
        assert again == Reading(Outcome.READ, frozenset({"/a"}), 4)


async def test_a_body_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    live = LiveGateway("/a")
    async with reading(live) as filters, asyncio.timeout(DEADLINE):
        monkeypatch.setattr(reader, "PATIENCE", 0.0)
        filters.match(ask())
        assert await live.readings.get() == Reading(Outcome.FAILED, reason="it took too long")
        assert filters.pid is None
        monkeypatch.setattr(reader, "PATIENCE", DEADLINE)
        filters.match(ask(changes={}))
        assert (await live.readings.get()).outcome is Outcome.READ


async def test_a_worker_follows_what_comes_and_goes() -> None:
    live = LiveGateway("/a", "/b")
    async with reading(live) as filters, asyncio.timeout(DEADLINE):
        for changes, matched in (
            (None, {"/a"}),
            ({("app", "/a"): False, ("app", "//*"): True}, {"//*"}),
            ({("app", "/a"): True, ("app", "/nothing"): False}, {"/a", "//*"}),
        ):
            filters.match(ask(changes=changes))
            assert (await live.readings.get()).matched == matched


def test_a_fault_of_the_reader_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "read", None)
    orders_ = io.BytesIO(
        frame(Learn([("app", "/a", True)])) + frame(Match("other", "application/xml", b"<a/>"))
    )
    answers = io.BytesIO()
    worker.serve(orders_, answers)
    told = decode_reading(answers.getvalue()[HEAD:])
    assert told == Reading(Outcome.FAILED, reason="TypeError")
