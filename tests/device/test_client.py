"""The asyncio client against a real gateway on loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from lasthop.core.registry import DeviceRecord
from lasthop.delivery.tcp import TcpListener
from lasthop.device import compose
from lasthop.device.client import Device
from lasthop.device.clock import DeviceClock
from lasthop.device.handle import MessageRefused, Status
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.device.message import Message
from lasthop.device.retry import Backoff, ChannelReplaced
from lasthop.device.runner import HandlerFailed, HandlerTransaction
from lasthop.device.terms import DeviceTerms
from lasthop.device.way import WayState
from lasthop.errors import (
    Conflict,
    Expired,
    InvalidRequest,
    NotFound,
    StoreFull,
    TooLarge,
    Unauthorized,
)
from lasthop.wire.hop.frames import Credit
from lasthop.wire.hop.services import Service, ServiceOperation
from tests.delivery.board import Board
from tests.device.gateway import APP, LiveGateway, live_gateway, token_hash, until, websocket_server
from tests.transport.certificates import Authority

pytestmark = pytest.mark.anyio

QUICK = 0.01
"""Seconds between attempts to connect."""


@pytest.fixture
async def gateway() -> AsyncIterator[LiveGateway]:
    async with live_gateway() as live:
        yield live


def device(gateway: LiveGateway, *, name: str = "phone", inbox: object = None) -> Device:
    assert inbox is None or isinstance(inbox, str | Path | MemoryInbox | SqliteInbox)
    return Device(
        gateway.tcp_url, app=APP, name=name, inbox=inbox, backoff=quick_backoff(), link="wifi"
    )


def quick_backoff() -> Backoff:
    return Backoff(first=QUICK, longest=QUICK, random=lambda: 0.5)


async def take(phone: Device, count: int) -> list[Message]:
    """The next so many messages, each done."""
    messages: list[Message] = []
    async with asyncio.timeout(5):
        async for message in phone.messages(automatic=False):
            messages.append(message)
            await phone.done(message)
            if len(messages) == count:
                break
    return messages


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


async def test_messages_come_one_by_one(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        assert phone.connected
        await gateway.publish("a", "b", "c")
        got = []
        async for message in phone.messages():
            got.append(message.text)
            if message.text == "c":
                break
        assert got == ["a", "b", "c"]


async def test_what_was_not_done_comes_again(gateway: LiveGateway, tmp_path: Path) -> None:
    path = tmp_path / "inbox.db"
    async with device(gateway, inbox=path) as phone:
        await phone.contact(timeout=5)
        await gateway.publish("a", "b", "c")
        async for message in phone.messages():
            if message.text == "b":
                break
    async with device(gateway, inbox=path) as phone:
        messages = await take(phone, 2)
        assert texts(messages) == ["b", "c"]
        assert messages[0].redelivered


@pytest.mark.parametrize("kind", ["function", "coroutine"])
async def test_a_callback_gets_every_message(gateway: LiveGateway, kind: str) -> None:
    got: list[str] = []

    def hear(message: Message) -> None:
        got.append(message.text)

    async def hear_slowly(message: Message) -> None:
        await asyncio.sleep(0)
        got.append(message.text)

    async with device(gateway) as phone:
        phone.on_message(hear if kind == "function" else hear_slowly)
        await phone.contact(timeout=5)
        await gateway.publish(*map(str, range(20)))
        await until(lambda: len(got) == 20)
    assert got == [str(number) for number in range(20)]


@pytest.mark.parametrize("on_disk", [True, False])
async def test_a_transactional_handler_commits_with_its_message(
    gateway: LiveGateway, tmp_path: Path, on_disk: bool
) -> None:
    inbox = SqliteInbox(tmp_path / "inbox.db") if on_disk else MemoryInbox()

    def count(message: Message, transaction: HandlerTransaction) -> None:
        transaction.put("log", (transaction.get("log") or b"") + message.body)
        transaction.send(compose.message("device:phone", f"seen {message.text}"))

    def only_original(message: Message, transaction: HandlerTransaction) -> None:
        if not message.text.startswith("seen"):
            count(message, transaction)
        else:
            transaction.put("echo", (transaction.get("echo") or b"") + message.body)

    async with device(gateway, inbox=inbox) as phone:
        phone.transactional(only_original)
        await phone.contact(timeout=5)
        await gateway.publish("a", "b", "c")
        await until(lambda: not gateway.engine.gateway.deliveries.items)
        await until(lambda: phone._runner is not None and phone._runner.session.settled)
    if isinstance(inbox, MemoryInbox):
        kept = inbox._kept.notes
        assert (kept["log"], kept["echo"]) == (b"abc", b"seen aseen bseen c")
    else:
        again = SqliteInbox(tmp_path / "inbox.db")
        with again.transaction() as notes:
            assert notes.get("log") == b"abc"
            assert notes.get("echo") == b"seen aseen bseen c"
        again.close()


async def test_messages_that_came_before_the_handler_reach_it(gateway: LiveGateway) -> None:
    got: list[str] = []
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await gateway.publish("a", "b")
        await until(lambda: len(phone._ready) == 2)
        phone.transactional(lambda message, _transaction: got.append(message.text))
        await gateway.publish("c")
        await until(lambda: len(got) == 3)
    assert got == ["a", "b", "c"]


async def test_a_failing_transactional_handler_ends_the_device_and_undoes_its_work(
    gateway: LiveGateway, tmp_path: Path
) -> None:
    path = tmp_path / "inbox.db"

    def fail_at_b(message: Message, transaction: HandlerTransaction) -> None:
        transaction.put("log", (transaction.get("log") or b"") + message.body)
        if message.text == "b":
            raise ZeroDivisionError

    async def run() -> None:
        async with device(gateway, inbox=path) as phone:
            phone.transactional(fail_at_b)
            await phone.contact(timeout=5)
            await gateway.publish("a", "b", "c")
            await phone.run()

    with pytest.raises(HandlerFailed, match=r"the handler failed for message [0-9a-f]{16}: Zero"):
        await run()
    inbox = SqliteInbox(path)
    with inbox.transaction() as notes:
        assert notes.get("log") == b"a"
    async with device(gateway, inbox=inbox) as phone:
        assert texts(await take(phone, 2)) == ["b", "c"]


async def test_a_failing_callback_ends_the_device(gateway: LiveGateway) -> None:
    def fail(message: Message) -> None:
        raise ZeroDivisionError

    async def run() -> None:
        async with device(gateway) as phone:
            phone.on_message(fail)
            await phone.contact(timeout=5)
            await gateway.publish("a")
            await phone.run()

    with pytest.raises(HandlerFailed):
        await run()


async def test_messages_go_to_one_place_only(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        phone.on_message(lambda message: None)
        with pytest.raises(Conflict, match="already gets the messages of this device"):
            phone.transactional(lambda message, transaction: None)


# Sending.


async def test_the_handle_tells_how_far_a_message_has_come(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        handle = await phone.send("device:phone", "note", title="T", priority=7, rank=2.5)
        await handle.accepted(timeout=5)
        assert handle.status is Status.ACCEPTED
        (message,) = await take(phone, 1)
        assert (message.title, message.priority, message.rank) == ("T", 7, 2.5)
        assert message.source == "device:phone"


async def test_bytes_and_headers_arrive_as_they_were_sent(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.send("device:phone", b"\xff\x00", headers={"a": "b"}, expires_in=60)
        (message,) = await take(phone, 1)
        assert message.body == b"\xff\x00"
        assert message.content_type == "application/octet-stream"
        assert message.extra == {"a": "b"}
        assert message.deadline is not None


async def test_a_refusal_is_told_to_who_holds_the_handle(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        handle = await phone.send("device:nobody", "hello?")
        await handle.reached(Status.REFUSED, timeout=5)
        assert handle.refusal is not None
        assert handle.refusal.code == "not_found"
        with pytest.raises(MessageRefused) as caught:
            await handle.accepted()
        assert caught.value.reason == "not_found"
        assert f"id='{handle.id}'" in str(caught.value)


async def test_a_refusal_that_nobody_waits_for_is_told_to_the_application(
    gateway: LiveGateway,
) -> None:
    told: list[tuple[str, str]] = []
    async with device(gateway) as phone:
        phone.on_refused(lambda message_id, refusal: told.append((message_id, refusal.code)))
        sent = (await phone.send("device:nobody", "hello?")).id
        await until(lambda: bool(told))
    assert told == [(sent, "not_found")]


async def test_topics(gateway: LiveGateway) -> None:
    async with device(gateway) as phone, device(gateway, name="tablet") as tablet:
        await (await phone.subscribe("news")).accepted(timeout=5)
        await (await tablet.publish("news", "extra!")).accepted(timeout=5)
        (message,) = await take(phone, 1)
        assert (message.topic, message.text, message.source) == ("news", "extra!", "device:tablet")
        await (await phone.unsubscribe("news")).accepted(timeout=5)
        await (await tablet.publish("news", "unheard")).accepted(timeout=5)
        await gateway.publish("last")
        assert texts(await take(phone, 1)) == ["last"]


async def test_request_and_reply_between_devices(gateway: LiveGateway) -> None:
    async with device(gateway) as phone, device(gateway, name="tablet") as tablet:

        async def answer(message: Message) -> None:
            assert message.wants_reply
            await tablet.reply(message, f"{message.text} yourself")

        tablet.on_message(answer)
        await tablet.contact(timeout=5)
        reply = await phone.request("device:tablet", "ping", timeout=5)
        assert reply.text == "ping yourself"


async def test_a_handler_may_itself_ask(gateway: LiveGateway) -> None:
    answers: list[str] = []
    async with device(gateway) as phone, device(gateway, name="tablet") as tablet:

        async def ask_back(message: Message) -> None:
            answers.append((await phone.request("device:tablet", "what?", timeout=5)).text)

        async def answer(message: Message) -> None:
            await tablet.reply(message, "that")

        phone.on_message(ask_back)
        tablet.on_message(answer)
        await phone.contact(timeout=5)
        await tablet.contact(timeout=5)
        await gateway.publish("a", "b", "c")
        await until(lambda: len(answers) == 3)


async def test_a_request_that_nobody_answers_times_out(gateway: LiveGateway) -> None:
    async with device(gateway) as phone, device(gateway, name="tablet") as tablet:
        await tablet.contact(timeout=5)
        asking = asyncio.ensure_future(phone.request("device:tablet", "ping", timeout=0.5))
        (message,) = await take(tablet, 1)
        with pytest.raises(TimeoutError, match="no answer came in time"):
            await asking
        with pytest.raises(Expired, match="the sender no longer waits for an answer"):
            await tablet.reply(message, "too late")


async def test_a_request_that_is_refused_says_so(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        with pytest.raises(MessageRefused):
            await phone.request("device:nobody", "ping", timeout=5)


async def test_context_and_reads_are_reported(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await (await phone.report_context({"battery": 0.5})).accepted(timeout=5)
        await (await phone.report_read(topic="news", count=2, queue_size=9)).accepted(timeout=5)
        record = gateway.engine.gateway.registry.find(APP, "phone")
        assert record is not None
        assert record.record.context == {"battery": b"0.5"}


async def test_what_cannot_be_sent_is_refused_at_once(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        with pytest.raises(InvalidRequest, match="a target is device:NAME"):
            await phone.send("phone", "x")
        with pytest.raises(InvalidRequest, match="a priority must be 0 to 9"):
            await phone.send("device:phone", "x", priority=10)
        with pytest.raises(TooLarge, match="send it as a stream"):
            await phone.send("device:phone", bytes((64 << 20) + 1))


async def test_messages_sent_without_contact_leave_later(
    gateway: LiveGateway, tmp_path: Path
) -> None:
    path = tmp_path / "inbox.db"
    nowhere = Device("tcp://127.0.0.1:1", app=APP, name="phone", inbox=path)
    async with nowhere as phone:
        handle = await phone.send("device:phone", "later")
        assert handle.status is Status.QUEUED
        assert not phone.connected
    async with device(gateway, inbox=path) as phone:
        assert texts(await take(phone, 1)) == ["later"]


async def test_many_large_messages_leave_in_small_pieces(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        handles = [await phone.send("device:phone", bytes(30_000)) for _ in range(40)]
        for handle in handles:
            await handle.accepted(timeout=5)
        assert len(await take(phone, 40)) == 40


# Contact.


async def test_a_device_comes_back_after_the_gateway_crashed(
    gateway: LiveGateway, tmp_path: Path
) -> None:
    async with device(gateway, inbox=tmp_path / "inbox.db") as phone:
        await phone.contact(timeout=5)
        await gateway.publish("a")
        assert texts(await take(phone, 1)) == ["a"]
        await gateway.crash()
        await gateway.publish("b")
        assert texts(await take(phone, 1)) == ["b"]


async def test_a_device_that_moves_dials_again_at_once(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        phone.moved(link="mno", network="operator")
        session = gateway.engine.gateway.deliveries.session(
            gateway.engine.gateway.registry.find(APP, "phone")  # type: ignore[arg-type]
        )
        await until(lambda: session.link == "mno")
        assert session.network == "operator"


async def test_a_device_that_moves_while_it_dials_dials_anew() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        async with Device(url, app=APP, name="phone", backoff=quick_backoff()) as phone:
            await until(lambda: phone.ways[0].state is WayState.CONNECTING)
            since = phone.ways[0].since
            phone.moved(link="mno")
            await until(lambda: phone.ways[0].since > since)
            (status,) = phone.ways
            assert (status.way.link, status.state) == ("mno", WayState.CONNECTING)
            assert phone.problem == "the device is on another network"


async def test_an_impossible_welcome_is_answered_and_another_attempt_made() -> None:
    board = Board()
    board.welcome = replace(board.welcome, resumed=True)
    listener = TcpListener(board, clock=DeviceClock())
    bound = socket.create_server(("127.0.0.1", 0))
    await listener.start(bound)
    url = f"tcp://127.0.0.1:{bound.getsockname()[1]}"
    async with Device(url, app=APP, name="phone", backoff=quick_backoff()) as phone:
        await until(lambda: len(board.ends) >= 2)
        assert not phone.connected
    assert board.ends[0][1].startswith("a WELCOME resumes an epoch that was not claimed")
    await listener.stop()


async def test_a_gateway_that_asks_to_wait_is_not_dialled_before() -> None:
    board = Board()
    listener = TcpListener(board, clock=DeviceClock(), max_connections=0)
    bound = socket.create_server(("127.0.0.1", 0))
    await listener.start(bound)
    url = f"tcp://127.0.0.1:{bound.getsockname()[1]}"
    async with Device(url, app=APP, name="phone", backoff=quick_backoff()) as phone:
        await until(lambda: phone.problem == "too many connections")
        await asyncio.sleep(0.1)
        assert listener.errors == {"overloaded": 1}
    await listener.stop()


async def test_a_newer_channel_ends_the_older_one(gateway: LiveGateway) -> None:
    async def older() -> None:
        async with device(gateway) as phone:
            await phone.contact(timeout=5)
            async with device(gateway) as newer:
                await newer.contact(timeout=5)
                await phone.run()

    with pytest.raises(ChannelReplaced, match="a newer channel took over"):
        await older()


async def test_an_unknown_device_is_told_so() -> None:
    async with live_gateway(open_house=False) as gateway:
        phone = device(gateway)
        await phone.open()
        with pytest.raises(NotFound, match="unknown device"):
            await phone.contact(timeout=5)
        with pytest.raises(NotFound):
            await phone.send("device:phone", "x")
        with pytest.raises(NotFound):
            await anext(phone.messages())
        await phone.close()


async def test_a_wrong_token_is_told_and_a_right_one_lets_in() -> None:
    async with live_gateway(open_house=False) as gateway:
        record = DeviceRecord(registered_at=0, token_hash=token_hash("secret"))
        await gateway.engine.call(lambda core, now: core.admin.register(APP, "phone", record, now))

        async def come(token: str) -> None:
            async with Device(gateway.tcp_url, app=APP, name="phone", token=token) as phone:
                await phone.contact(timeout=5)

        with pytest.raises(Unauthorized, match="wrong token"):
            await come("guess")
        await come("secret")


async def test_no_contact_says_why() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        async with Device(
            f"tcp://127.0.0.1:{port}", app=APP, name="phone", backoff=quick_backoff()
        ) as phone:
            await asyncio.sleep(0.05)
            with pytest.raises(TimeoutError, match=r"no contact: .*[Cc]onnect"):
                await phone.contact(timeout=0.01)


async def test_a_goodbye_is_said(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        assert gateway.engine.connections == 1
    await until(lambda: gateway.engine.connections == 0)
    assert gateway.tcp.errors == {}


async def test_a_closed_device_does_nothing_more(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        with pytest.raises(Conflict, match="open already"):
            await phone.open()
    await phone.close()
    with pytest.raises(Conflict, match="the device is not open"):
        await phone.send("device:phone", "x")
    await phone.run()


async def test_a_device_that_was_never_opened_closes(gateway: LiveGateway) -> None:
    await device(gateway).close()


async def test_a_full_disk_ends_the_device_and_loses_nothing(gateway: LiveGateway) -> None:
    inbox = MemoryInbox()

    async def run() -> None:
        async with device(gateway, inbox=inbox) as phone:
            await phone.contact(timeout=5)
            inbox.refuse = StoreFull("no room")
            await gateway.publish("a")
            await phone.run()

    with pytest.raises(StoreFull, match="no room"):
        await run()
    survivor = MemoryInbox()
    survivor._kept = inbox._kept
    async with device(gateway, inbox=survivor) as phone:
        assert texts(await take(phone, 1)) == ["a"]


async def test_handles_fail_with_the_device(gateway: LiveGateway) -> None:
    async with device(gateway) as phone:
        await phone.contact(timeout=5)
        await gateway.tcp.stop()
        await until(lambda: not phone.connected)
        handle = await phone.send("device:phone", "x")
    with pytest.raises(Conflict, match="the device is closed"):
        await handle.accepted()


# Carriers.


async def test_everything_works_over_websocket(gateway: LiveGateway, tmp_path: Path) -> None:
    async with websocket_server(gateway):
        phone = Device(gateway.websocket_url, app=APP, name="phone", inbox=tmp_path / "inbox.db")
        async with phone:
            await phone.contact(timeout=5)
            await gateway.publish("a", "b")
            assert texts(await take(phone, 2)) == ["a", "b"]
            await (await phone.send("device:phone", "c" * 100_000)).accepted(timeout=5)
            (message,) = await take(phone, 1)
            assert len(message.body) == 100_000
        await until(lambda: gateway.engine.connections == 0)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


async def test_everything_works_over_tls(authority: Authority) -> None:
    async with live_gateway(tls=authority.server()) as gateway:
        phone = Device(gateway.tcp_url, app=APP, name="phone", tls=authority.client())
        async with phone:
            await phone.contact(timeout=5)
            await gateway.publish("a")
            assert texts(await take(phone, 1)) == ["a"]


async def test_a_certificate_is_checked_unless_told_otherwise(authority: Authority) -> None:
    async with (
        live_gateway(tls=authority.server()) as gateway,
        Device(gateway.tcp_url, app=APP, name="phone", backoff=quick_backoff()) as phone,
    ):
        with pytest.raises(TimeoutError, match=r"no contact: .*(certificate|CERTIFICATE)"):
            await until_problem(phone, lambda problem: "certificate" in problem.lower())


async def until_problem(phone: Device, known: Callable[[str], bool]) -> None:
    await until(lambda: known(phone.problem))
    await phone.contact(timeout=0.01)


# Limits.


async def test_a_slow_application_pauses_the_gateway_and_gets_everything(
    gateway: LiveGateway,
) -> None:
    terms = DeviceTerms(app="", name="", window=Credit(4, 10_000), inbox_messages=8, prefetch=2)
    async with Device(gateway.tcp_url, app=APP, name="phone", terms=terms) as phone:
        await phone.contact(timeout=5)
        await gateway.publish(*map(str, range(50)))
        await asyncio.sleep(0.05)
        assert phone._runner is not None
        assert phone._runner.session.held <= 8
        assert texts(await take(phone, 50)) == [str(number) for number in range(50)]


# Exchanges.


def answering(phone: Device, text: str) -> None:
    @phone.on_message
    async def answer(message: Message) -> None:
        await phone.reply(message, text)


async def test_answers_of_many_are_gathered(gateway: LiveGateway) -> None:
    async with (
        device(gateway) as phone,
        device(gateway, name="a") as a,
        device(gateway, name="b") as b,
    ):
        for other in (a, b):
            await (await other.subscribe("news")).accepted(timeout=5)
        answering(a, "A")
        answering(b, "B")
        gathered = await phone.gather("topic:news", "?", timeout=5)
        assert {name: m.text for name, m in gathered.replies.items()} == {"a": "A", "b": "B"}
        assert (gathered.missing, gathered.complete) == ((), True)
        first = await phone.gather("topic:news", "?", timeout=5, most=1)
        assert len(first.replies) == 1


async def test_a_group_is_gathered_from(gateway: LiveGateway) -> None:
    async with device(gateway) as phone, device(gateway, name="a") as a:
        await a.contact(timeout=5)
        await (await a.join_group("crew")).accepted(timeout=5)
        answering(a, "A")
        gathered = await phone.gather("group:crew", "?", timeout=5)
        assert {name: m.text for name, m in gathered.replies.items()} == {"a": "A"}
        assert (gathered.missing, gathered.complete) == ((), True)


async def test_it_is_known_who_has_not_answered(gateway: LiveGateway) -> None:
    async with device(gateway) as phone, device(gateway, name="a") as a:
        await (await a.subscribe("news")).accepted(timeout=5)
        gathered = await phone.gather("topic:news", "?", timeout=0.2)
        assert (gathered.replies, gathered.missing, gathered.complete) == ({}, ("a",), False)


async def test_a_service_is_offered_found_asked_and_withdrawn(gateway: LiveGateway) -> None:
    service = Service("pricing", operations=(ServiceOperation("price"),))
    async with device(gateway) as phone, device(gateway, name="a") as a:
        await (await a.offer(service)).accepted(timeout=5)
        answering(a, "3.50")
        (offer,) = (await phone.find(operation="price", timeout=5)).offers
        assert (offer.service, offer.devices) == (service, ("a",))
        assert (await phone.request("service:pricing", "tea", timeout=5)).text == "3.50"
        await (await a.withdraw("pricing")).accepted(timeout=5)
        assert (await phone.find(timeout=5)).offers == ()
        with pytest.raises(MessageRefused, match="nobody offers this service"):
            await phone.request("service:pricing", "tea", timeout=5)


async def test_an_answer_to_a_request_that_was_cancelled_is_shown_to_nobody(
    gateway: LiveGateway,
) -> None:
    async with device(gateway) as phone, device(gateway, name="a") as a:
        await a.contact(timeout=5)
        asking = asyncio.ensure_future(phone.request("device:a", "?", timeout=30))
        (message,) = await take(a, 1)
        asking.cancel()
        await asyncio.wait([asking])
        await (await a.reply(message, "late")).accepted(timeout=5)
        await gateway.publish("next")
        assert texts(await take(phone, 1)) == ["next"]
