"""The live driver over a store in memory and channels that a test plays itself."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator

import pytest

from lasthop.core.publishing.submission import Submission
from lasthop.core.pushes.feature import Order
from lasthop.errors import NotFound, OutcomeOpen, Overloaded, StoreBroken, StoreFull
from lasthop.message import Target, TargetKind, parse_id
from lasthop.runtime import engine as engine_module
from lasthop.store.commit import Commit
from lasthop.store.memory import MemoryStore
from lasthop.store.tables.pushes import PushesInMemory
from lasthop.wire.hop.frames import Ack, CloseCode
from lasthop.wire.pap.answers import AnswerVerdict, PapAnswer
from tests.runtime.rig import DEADLINE, Rig
from tests.store.peek import rows_of


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig(MemoryStore(incarnation=7))
    yield rig
    await rig.engine.close()


async def test_a_call_returns_when_its_change_is_durable(rig: Rig) -> None:
    await rig.connect("phone")
    receipt = await rig.push("phone", b"hi")
    key, _ = parse_id(receipt.ids[0])
    assert rig.store.messages([key])[key].body == b"hi"
    assert sum(len(commit.messages) for commit in rig.seen.commits) == 1


async def test_a_message_reaches_the_channel_and_its_end_is_seen(rig: Rig) -> None:
    line = await rig.connect("phone")
    receipt = await rig.push("phone", b"hi")
    await line.until(lambda: line.bodies == [b"hi"])
    key, _ = parse_id(receipt.ids[0])
    waiting = asyncio.ensure_future(
        rig.engine.wait(key, lambda rows: not any(row.open for row in rows), DEADLINE)
    )
    await asyncio.sleep(0)
    rig.engine.received(line, [Ack(1, 1)])
    (row,) = await waiting
    assert not row.open


async def test_an_end_that_came_just_before_the_wait_is_seen_too(rig: Rig) -> None:
    line = await rig.connect("phone")
    receipt = await rig.push("phone", b"hi")
    await line.until(lambda: line.bodies == [b"hi"])
    key, _ = parse_id(receipt.ids[0])
    rig.engine.received(line, [Ack(1, 1)])
    async with asyncio.timeout(DEADLINE):
        (row,) = await rig.engine.wait(key, lambda rows: not any(r.open for r in rows), 3600)
    assert not row.open


async def test_what_an_act_raises_comes_back_and_nothing_is_written(rig: Rig) -> None:
    await rig.connect("phone")
    with pytest.raises(NotFound):
        await rig.push("nobody", b"hi")
    assert not any(commit.messages for commit in rig.seen.commits)


async def test_a_full_disk_refuses_work_and_is_waited_out(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "RETRY_WHEN_FULL", 0.01)
    line = await rig.connect("phone")
    rig.store.refuse = StoreFull("no room")
    with pytest.raises(OutcomeOpen, match="no room; the outcome is open"):
        await rig.push("phone", b"waits")
    ready = [rig.engine.ready]
    with pytest.raises(Overloaded, match="no room; nothing was done"):
        await rig.push("phone", b"refused")
    rig.store.refuse = None
    await line.until(lambda: line.bodies == [b"waits"])
    assert [*ready, rig.engine.ready] == [False, True]
    assert not rig.failures


class SlowStore(MemoryStore):
    """Writes when it is let."""

    def __init__(self) -> None:
        super().__init__(incarnation=7)
        self.let = threading.Event()
        self.let.set()

    def apply(self, *commits: Commit) -> None:
        self.let.wait(DEADLINE)
        super().apply(*commits)


async def test_a_large_commit_is_handed_over_while_another_is_being_written() -> None:
    store = SlowStore()
    rig = Rig(store)
    line = await rig.connect("phone")
    store.let.clear()
    first = asyncio.ensure_future(rig.push("phone", b"first"))
    await _writing(rig, 1)
    small = asyncio.ensure_future(rig.push("phone", b"small"))
    await _turns()
    assert len(rig.engine._writing) == 1
    many = asyncio.ensure_future(rig.push("phone", *[b"%d" % n for n in range(60)]))
    await _writing(rig, 2)
    later = asyncio.ensure_future(rig.push("phone", *[b"%d" % n for n in range(60, 90)]))
    await _turns()
    assert len(rig.engine._writing) == 2
    assert line.bodies == []
    store.let.set()
    await asyncio.gather(first, small, many, later)
    wanted = [b"first", b"small", *(b"%d" % n for n in range(90))]
    await line.until(lambda: line.bodies == wanted)
    assert [commit.n for commit in rig.seen.commits] == sorted(c.n for c in rig.seen.commits)
    await rig.engine.close()


async def test_two_commits_that_find_the_disk_full_are_written_in_order_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_module, "RETRY_WHEN_FULL", 0.01)
    store = SlowStore()
    rig = Rig(store)
    line = await rig.connect("phone")
    store.let.clear()
    first = asyncio.ensure_future(rig.push("phone", b"first"))
    await _writing(rig, 1)
    many = asyncio.ensure_future(rig.push("phone", *[b"%d" % n for n in range(60)]))
    await _writing(rig, 2)
    store.refuse = StoreFull("no room")
    store.let.set()
    for waiting in (first, many):
        with pytest.raises(OutcomeOpen, match="no room"):
            await waiting
    store.refuse = None
    await line.until(lambda: line.bodies == [b"first", *(b"%d" % n for n in range(60))])
    assert not rig.failures
    await rig.engine.close()


async def _turns() -> None:
    """Let everything happen that is about to."""
    for _ in range(20):
        await asyncio.sleep(0)


async def _writing(rig: Rig, commits: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while len(rig.engine._writing) != commits:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_with_a_full_disk_questions_are_still_answered(rig: Rig) -> None:
    await rig.connect("phone")
    rig.store.refuse = StoreFull("no room")
    with pytest.raises(OutcomeOpen):
        await rig.push("phone", b"refused")
    assert rig.engine.look(lambda gateway: len(gateway.registry)) == 1


async def test_a_broken_store_is_reported_and_closing_does_not_hang(rig: Rig) -> None:
    await rig.connect("phone")
    rig.store.refuse = StoreBroken("bad sector")
    with pytest.raises(OutcomeOpen, match="bad sector"):
        await rig.push("phone", b"lost")
    assert [str(error) for error in rig.failures] == ["bad sector"]
    async with asyncio.timeout(DEADLINE):
        await rig.engine.close()


async def test_closing_with_a_full_disk_does_not_hang(rig: Rig) -> None:
    await rig.connect("phone")
    rig.store.refuse = StoreFull("no room")
    with pytest.raises(OutcomeOpen):
        await rig.push("phone", b"lost")
    async with asyncio.timeout(DEADLINE):
        await rig.engine.close()


@pytest.mark.parametrize("room_again", [False, True], ids=["still full", "room again"])
async def test_closing_while_a_write_is_tried_again_asks_nothing_more_of_the_store(
    monkeypatch: pytest.MonkeyPatch, room_again: bool
) -> None:
    monkeypatch.setattr(engine_module, "RETRY_WHEN_FULL", 0.01)
    faults: list[dict[str, object]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: faults.append(context))
    store = SlowStore()
    rig = Rig(store)
    monkeypatch.setattr(rig.engine, "_reader", MemoryStore(incarnation=8))  # Closed first.
    await rig.connect("phone")
    store.refuse = StoreFull("no room")
    with pytest.raises(OutcomeOpen):
        await rig.push("phone", b"waits")
    store.let.clear()
    await asyncio.sleep(0.05)  # By now the commit is with the writer again.
    closing = asyncio.ensure_future(rig.engine.close())
    await _turns()
    if room_again:
        store.refuse = None
    store.let.set()
    async with asyncio.timeout(DEADLINE):
        await closing
    await asyncio.sleep(0.05)
    assert faults == []


async def test_a_shutdown_says_goodbye_and_writes_what_is_left(rig: Rig) -> None:
    line = await rig.connect("phone")
    await rig.push("phone", b"hi")
    await line.until(lambda: line.bodies == [b"hi"])
    rig.engine.received(line, [Ack(1, 1)])
    await rig.engine.stop()
    assert line.closed == (CloseCode.SHUTTING_DOWN, "the gateway is shutting down")
    assert rig.engine.gateway.idle
    assert rig.store.counts().open_deliveries == {}
    with pytest.raises(Overloaded, match="shutting down"):
        await rig.push("phone", b"late")


async def test_a_drain_lets_those_go_who_wait_for_an_outcome(rig: Rig) -> None:
    await rig.connect("phone")
    receipt = await rig.push("phone", b"hi")
    key, _ = parse_id(receipt.ids[0])
    waiting = asyncio.ensure_future(rig.engine.wait(key, lambda rows: False, 3600))
    await asyncio.sleep(0)
    rig.engine.drain()
    async with asyncio.timeout(DEADLINE):
        (row,) = await waiting
    assert row.open


async def test_a_device_that_breaks_the_protocol_is_sent_away_and_counted(rig: Rig) -> None:
    line = await rig.connect("phone")
    rig.engine.received(line, [Ack(99, 99)])
    await line.until(lambda: line.closed is not None)
    assert rig.seen.closed == [CloseCode.OUT_OF_ORDER]


async def test_bodies_that_cannot_be_read_are_a_failure_not_a_silence(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = await rig.connect("phone")
    rig.engine.lost(line, "gone")
    receipt = await rig.push("phone", b"hi")
    key, _ = parse_id(receipt.ids[0])
    rig.engine.gateway.deliveries.items[key].evict()
    told = asyncio.Event()

    def broken(keys: object) -> dict[int, object]:
        raise StoreBroken("bad sector")

    monkeypatch.setattr(rig.store, "messages", broken)
    monkeypatch.setattr(rig.engine, "_failed", lambda error: told.set())
    await rig.connect("phone")
    async with asyncio.timeout(DEADLINE):
        await told.wait()


async def test_everything_comes_back_after_a_crash() -> None:
    rig = Rig(MemoryStore(incarnation=7))
    await rig.connect("phone")
    await rig.push("phone", b"hi")
    again = Rig(rig.store.crash())
    line = await again.connect("phone")
    await line.until(lambda: line.bodies == [b"hi"])
    for each in (again, rig):
        await each.engine.close()
    assert not [t for t in threading.enumerate() if t.name == "lasthop-store"]


class TestTelling:
    """What initiators hear of their pushes."""

    async def push(self, rig: Rig) -> tuple[str, str, bytes]:
        """Push and deliver; what the initiator is told."""
        line = await rig.connect("phone")
        order = Order(
            push_id="1",
            addresses=("WAPPUSH=phone/TYPE=USER@ppg",),
            submission=Submission(target=Target(TargetKind.PUSH, ""), body=b"hi"),
            notify_to="http://pi.example/",
        )
        await rig.engine.call(
            lambda gateway, now: gateway.pushes.submit("default", "publisher:", order, now)
        )
        await line.until(lambda: line.bodies == [b"hi"])
        rig.engine.received(line, [Ack(1, 1)])
        async with asyncio.timeout(DEADLINE):
            return await rig.told.get()

    def kinds(self, rig: Rig) -> list[str]:
        pages = rig.store.events(0, 1 << 30)
        found = re.findall(rb'"kind":"(notif\w+)"', b"".join(page.lines for page in pages))
        return [kind.decode() for kind in found]

    @pytest.mark.parametrize(
        "answer, kind",
        [
            (PapAnswer(AnswerVerdict.HEARD), "notified"),
            (PapAnswer(AnswerVerdict.REFUSED), "notification_given_up"),
            (PapAnswer(AnswerVerdict.UNREACHABLE), "notification_failed"),
            (RuntimeError("a bug"), "notification_failed"),
        ],
    )
    async def test_what_an_initiator_answers_is_handed_to_the_gateway(
        self, rig: Rig, answer: PapAnswer | Exception, kind: str
    ) -> None:
        url, content_type, body = await self.push(rig)
        assert (url, content_type) == ("http://pi.example/", "application/xml")
        assert b'message-state="delivered"' in body
        rig.answers.put_nowait(answer)
        await asyncio.gather(*rig.engine._tasks)
        await rig.engine.call(lambda gateway, now: None)
        assert self.kinds(rig) == [kind]

    async def test_a_shutdown_does_not_wait_for_an_answer(self, rig: Rig) -> None:
        await self.push(rig)
        async with asyncio.timeout(DEADLINE):
            await rig.engine.stop()
        assert len(rows_of(rig.store, PushesInMemory).notifications) == 1
