"""Every pattern of an exchange, between real devices through a real gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from lasthop.clock import SECOND
from lasthop.device.client import Device
from lasthop.device.exchange.binding import Bytes, Content, Json, Text
from lasthop.device.exchange.declining import Declined
from lasthop.device.exchange.exchange import Exchange
from lasthop.device.exchange.received import Asking, Received
from lasthop.device.exchange.switchboard import MOST_PARKED
from lasthop.device.handle import MessageRefused
from lasthop.device.runner import HandlerFailed
from lasthop.errors import Conflict, InvalidRequest
from lasthop.wire.hop.services import Service, ServiceOperation
from tests.device.gateway import APP, LiveGateway, live_gateway, until

pytestmark = pytest.mark.timeout(30)


class Order(msgspec.Struct):
    goods: str
    count: int = 1


@pytest.fixture
async def gateway() -> AsyncIterator[LiveGateway]:
    async with live_gateway() as gateway:
        yield gateway


def device(gateway: LiveGateway, name: str, inbox: Path | None = None) -> Device:
    return Device(gateway.tcp_url, app=APP, name=name, inbox=inbox, learn_heartbeat=False)


@pytest.fixture
async def phone(gateway: LiveGateway) -> AsyncIterator[Device]:
    async with device(gateway, "phone") as phone:
        await phone.contact(timeout=5)
        yield phone


@pytest.fixture
async def shop(gateway: LiveGateway) -> AsyncIterator[Device]:
    async with device(gateway, "shop") as shop:
        await shop.contact(timeout=5)
        yield shop


async def test_a_call_is_answered_with_what_the_handler_returns(
    phone: Device, shop: Device
) -> None:
    orders = Exchange(shop, Json(Order))

    @orders.on_message
    def take(received: Received[Order]) -> Order:
        assert received.source == "device:phone"
        return Order(received.value.goods, received.value.count * 2)

    answer = await Exchange(phone, Json(Order)).call("device:shop", Order("tea", 2), timeout=5)
    assert answer == Order("tea", 4)


async def test_a_message_without_a_question_is_taken_and_not_answered(
    phone: Device, shop: Device
) -> None:
    got: list[str] = []
    Exchange(shop, Text()).on_message(lambda received: got.append(received.value))
    await Exchange(phone, Text()).send("device:shop", "hello", title="T", priority=7)
    await until(lambda: got == ["hello"])


async def test_a_future_is_looked_at_later(phone: Device, shop: Device) -> None:
    Exchange(shop, Text()).on_message(lambda received: received.value.upper())
    pending = await Exchange(phone, Text()).begin("device:shop", "a", timeout=5)
    assert await pending.value() == "A"
    assert pending.done()
    assert (await pending.received()).source == "device:shop"


async def test_a_future_that_is_cancelled_lets_its_answer_go(phone: Device, shop: Device) -> None:
    release = asyncio.Event()

    async def slow(received: Received[str]) -> str:
        await release.wait()
        return received.value

    Exchange(shop, Text()).on_message(slow)
    exchange = Exchange(phone, Text())
    first = await exchange.begin("device:shop", "a", timeout=20)
    second = await exchange.begin("device:shop", "b", timeout=20)
    first.cancel()
    release.set()
    assert await second.value() == "b"
    with pytest.raises(asyncio.CancelledError):
        await first.value()


async def test_a_caller_that_is_cancelled_waits_no_longer(phone: Device, shop: Device) -> None:
    exchange = Exchange(phone, Text())
    calling = asyncio.ensure_future(exchange.call("device:shop", "a", timeout=20))
    assert phone._runner is not None
    requests = phone._runner.session.requests
    await until(lambda: requests.waiting == 1)
    calling.cancel()
    await until(lambda: requests.waiting == 0)


async def test_answers_come_in_the_order_of_the_requests(phone: Device, shop: Device) -> None:
    held: list[Received[str]] = []
    Exchange(shop, Text()).on_message(held.append)
    exchange = Exchange(phone, Text())
    got: list[str] = []
    for text in ("a", "b"):
        await exchange.send_callback("device:shop", text, lambda r: got.append(r.value), timeout=20)
    loose = Exchange(phone, Text(), ordered=False)
    await loose.send_callback("device:shop", "c", lambda r: got.append(r.value), timeout=20)
    await until(lambda: len(held) == 3)
    for received in reversed(held):
        handle = await received.reply(received.value.upper())
        await handle.accepted()
    await until(lambda: len(got) == 3)
    assert got == ["C", "A", "B"]


async def test_a_missing_answer_holds_others_up_until_its_deadline(
    phone: Device, shop: Device
) -> None:
    def take(received: Received[str]) -> str | None:
        return None if received.value == "silence" else "answer"

    Exchange(shop, Text()).on_message(take)
    exchange = Exchange(phone, Text())
    got: list[str] = []

    def note(received: Received[str]) -> None:
        got.append(received.value if received.error is None else type(received.error).__name__)

    await exchange.send_callback("device:shop", "silence", note, timeout=0.3)
    await exchange.send_callback("device:shop", "speak", note, timeout=20)
    await until(lambda: got == ["TimeoutError", "answer"])


async def test_who_declines_says_why(phone: Device, shop: Device) -> None:
    def take(received: Received[str]) -> str:
        raise Declined("sold_out", "no tea today")

    Exchange(shop, Text()).on_message(take)
    with pytest.raises(Declined, match="no tea today") as caught:
        await Exchange(phone, Text()).call("device:shop", "tea", timeout=5)
    assert caught.value.reason == "sold_out"


async def test_a_handler_that_fails_at_a_request_fails_for_who_asked(
    phone: Device, shop: Device
) -> None:
    def take(received: Received[str]) -> str:
        return {"tea": "3.50"}[received.value]

    Exchange(shop, Text()).on_message(take)
    exchange = Exchange(phone, Text())
    with pytest.raises(Declined, match="the handler failed"):
        await exchange.call("device:shop", "coffee", timeout=5)
    assert await exchange.call("device:shop", "tea", timeout=5) == "3.50"


async def test_a_handler_that_fails_at_a_message_ends_the_device(gateway: LiveGateway) -> None:
    shop = device(gateway, "shop")
    await shop.open()
    await shop.contact(timeout=5)

    @Exchange(shop, Text()).on_message
    def take(received: Received[str]) -> None:
        raise KeyError(received.value)

    await gateway.publish("x", target="device:shop")
    with pytest.raises(HandlerFailed):
        await shop.run()


async def test_a_request_that_cannot_be_read_is_declined(phone: Device, shop: Device) -> None:
    Exchange(shop, Json(Order)).on_message(lambda received: received.value)
    exchange: Exchange[dict[str, str]] = Exchange(phone, Json())
    with pytest.raises(Declined, match="the body is not the expected JSON"):
        await exchange.call("device:shop", {"nonsense": "x"}, timeout=5)
    await exchange.send("device:shop", {"nonsense": "x"})
    order = Exchange(phone, Json(Order))
    assert await order.call("device:shop", Order("tea"), timeout=5) == Order("tea")


async def test_a_request_that_nobody_takes_is_declined(phone: Device, shop: Device) -> None:
    Exchange(shop, Json()).on_message(lambda received: received.value)
    with pytest.raises(Declined, match="this device has no handler for the request"):
        await Exchange(phone, Text()).call("device:shop", "x", timeout=5)


async def test_a_request_that_the_gateway_refuses_says_so(phone: Device) -> None:
    exchange = Exchange(phone, Text())
    with pytest.raises(MessageRefused):
        await exchange.call("device:nobody", "x", timeout=5)
    got: list[Received[str]] = []
    await exchange.send_callback("device:nobody", "x", got.append, timeout=5)
    await until(lambda: len(got) == 1)
    with pytest.raises(MessageRefused):
        _ = got[0].value


async def test_an_answer_of_another_kind_is_an_error_of_the_call(
    phone: Device, shop: Device
) -> None:
    Exchange(shop, Bytes()).on_message(lambda received: b"\xff")
    with pytest.raises(InvalidRequest, match="the body is not text in UTF-8"):
        await Exchange(phone, Text()).call("device:shop", "x", timeout=5)


# Conversations.


async def test_a_conversation_goes_on_for_as_many_turns_as_it_takes(
    phone: Device, shop: Device
) -> None:
    async def sell(received: Received[str]) -> str:
        answer = received
        for question in ("how many?", "with milk?"):
            answer = await answer.ask(question, timeout=5)
        await answer.reply(f"{received.value} {answer.value}")
        return "never sent, since the last word was said"

    Exchange(shop, Text()).on_message(sell)
    talk = await Exchange(phone, Text()).ask("device:shop", "tea", timeout=5)
    assert (talk.value, talk.wants_reply) == ("how many?", True)
    talk = await talk.ask("two", timeout=5)
    assert talk.value == "with milk?"
    talk = await talk.ask("yes", timeout=5)
    assert (talk.value, talk.wants_reply) == ("tea yes", False)


async def test_a_handler_may_return_a_question_and_go_on_with_other_messages(
    phone: Device, shop: Device
) -> None:
    def sell(received: Received[str]) -> Asking[str]:
        return Asking("how many?", then=deliver, timeout=5)

    def deliver(received: Received[str]) -> str:
        return f"{received.value} on their way"

    Exchange(shop, Text()).on_message(sell)
    exchange = Exchange(phone, Text())
    one = await exchange.ask("device:shop", "tea", timeout=5)
    two = await exchange.ask("device:shop", "coffee", timeout=5)
    assert (await one.ask("two", timeout=5)).value == "two on their way"
    assert (await two.ask("six", timeout=5)).value == "six on their way"


async def test_a_turn_that_is_not_answered_in_time_ends_the_conversation(
    phone: Device, shop: Device
) -> None:
    ended: list[Exception | None] = []

    def sell(received: Received[str]) -> Asking[str]:
        return Asking("how many?", then=lambda r: ended.append(r.error), timeout=0.2)

    Exchange(shop, Text()).on_message(sell)
    await Exchange(phone, Text()).ask("device:shop", "tea", timeout=5)
    await until(lambda: len(ended) == 1)
    assert isinstance(ended[0], TimeoutError)


# Callbacks by name.


async def test_a_registered_callback_gets_its_answer_in_the_next_life(
    gateway: LiveGateway, shop: Device, tmp_path: Path
) -> None:
    held: list[Received[str]] = []
    Exchange(shop, Text()).on_message(held.append)
    async with device(gateway, "phone", tmp_path / "inbox") as phone:
        exchange = Exchange(phone, Text())
        await exchange.send_callback("device:shop", "tea", "prices", timeout=20)
        await until(lambda: len(held) == 1)
    await held[0].reply("3.50")
    got: list[str] = []
    async with device(gateway, "phone", tmp_path / "inbox") as phone:
        Exchange(phone, Text()).register("prices", lambda received: got.append(received.value))
        await until(lambda: got == ["3.50"])
    async with device(gateway, "phone", tmp_path / "inbox") as phone:
        Exchange(phone, Text()).register("prices", lambda received: got.append(received.value))
        await phone.contact(timeout=5)
        assert got == ["3.50"]


async def test_a_registered_callback_gets_its_timeout_in_the_next_life(
    gateway: LiveGateway, shop: Device, tmp_path: Path
) -> None:
    async with device(gateway, "phone", tmp_path / "inbox") as phone:
        await Exchange(phone, Text()).send_callback("device:shop", "tea", "prices", timeout=0.05)
    got: list[Exception | None] = []
    async with device(gateway, "phone", tmp_path / "inbox") as phone:
        Exchange(phone, Text()).register("prices", lambda received: got.append(received.error))
        await until(lambda: len(got) == 1)
    assert isinstance(got[0], TimeoutError)


async def test_an_outcome_waits_for_its_callback_to_be_registered(
    gateway: LiveGateway, phone: Device, shop: Device
) -> None:
    Exchange(shop, Text()).on_message(lambda received: received.value.upper())
    exchange = Exchange(phone, Text())
    others: list[str] = []
    exchange.on_message(lambda received: others.append(received.value))
    await exchange.send_callback("device:shop", "tea", "prices", timeout=20)
    await exchange.send_callback("device:nobody", "tea", "prices", timeout=20)
    board = phone.switchboard
    assert board is not None
    await until(lambda: len(board._parked.get("prices", [])) == 2)
    await gateway.publish("plain")
    await until(lambda: others == ["plain"])
    got: list[str] = []

    def note(received: Received[str]) -> None:
        got.append(received.value if received.error is None else type(received.error).__name__)

    exchange.register("prices", note)
    await until(lambda: sorted(got) == ["MessageRefused", "TEA"])
    with pytest.raises(Conflict, match="a callback of this name is registered already"):
        exchange.register("prices", note)
    exchange.deregister("prices")
    exchange.register("prices", note)


async def test_a_sender_can_be_sent_to_at_any_later_time(phone: Device, shop: Device) -> None:
    """Subscribe and notify between two devices: the subscriber's callback is an address."""
    subscribers: list[str] = []

    def subscribe(received: Received[str]) -> None:
        assert received.sender is not None
        subscribers.append(received.sender)

    prices = Exchange(shop, Text())
    prices.on_message(subscribe)
    got: list[str] = []
    exchange = Exchange(phone, Text())
    exchange.register("prices", lambda received: got.append(received.value))
    await exchange.send("device:shop", "tea, please", sender="prices")
    await until(lambda: subscribers == ["device:phone#prices"])
    for price in ("3.50", "3.60"):
        await prices.send(subscribers[0], price)
    await until(lambda: got == ["3.50", "3.60"])


async def test_strangers_cannot_fill_a_device_with_messages_for_nobody(
    phone: Device, shop: Device
) -> None:
    exchange = Exchange(shop, Text())
    got: list[str] = []
    exchange.on_message(lambda received: got.append(received.value))
    sender = Exchange(phone, Text())
    for _ in range(MOST_PARKED):
        await sender.send("device:shop#nothing", "x")
    with pytest.raises(Declined, match="no callback nothing is registered"):
        await sender.call("device:shop#nothing", "x", timeout=5)
    await sender.send("device:shop", "plain")
    await until(lambda: got == ["plain"])


async def test_messages_wait_for_somebody_to_take_them_and_keep_their_order(
    gateway: LiveGateway, phone: Device
) -> None:
    exchange = Exchange(phone, Text())
    exchange.register("other", lambda received: None)
    await gateway.publish("a", "b")
    board = phone.switchboard
    assert board is not None
    await until(lambda: len(board._parked.get("", ())) == 2)
    got: list[str] = []
    release = asyncio.Event()

    async def slow(received: Received[str]) -> None:
        await release.wait()
        got.append(received.value)

    exchange.on_message(slow)
    await gateway.publish("c")
    await until(lambda: len(board._parked.get("", ())) == 1)
    release.set()
    await until(lambda: got == ["a", "b", "c"])
    await gateway.publish("d")
    await until(lambda: got[-1] == "d")
    assert not board._parked


async def test_what_waits_past_its_deadline_is_let_go(
    gateway: LiveGateway, phone: Device, shop: Device
) -> None:
    exchange = Exchange(phone, Text())
    exchange.register("other", lambda received: None)
    sender = Exchange(shop, Text())
    await sender.send("device:phone", "late", expires_in=0.3)
    await sender.send("device:phone", "fine")
    board = phone.switchboard
    assert board is not None
    await until(lambda: len(board._parked.get("", ())) == 2)
    late = board._parked[""][0].deadline
    assert late is not None
    await until(lambda: phone.now() >= late)
    got: list[str] = []
    exchange.on_message(lambda received: got.append(received.value))
    await until(lambda: got == ["fine"])


async def test_a_callback_that_goes_amid_its_messages_leaves_them_waiting(
    phone: Device, shop: Device
) -> None:
    exchange = Exchange(phone, Text())
    exchange.register("other", lambda received: None)
    sender = Exchange(shop, Text())
    for text in ("a", "b"):
        await sender.send("device:phone#prices", text)
    board = phone.switchboard
    assert board is not None
    await until(lambda: len(board._parked.get("prices", ())) == 2)
    got: list[str] = []

    def once(received: Received[str]) -> None:
        got.append(received.value)
        exchange.deregister("prices")

    exchange.register("prices", once)
    await until(lambda: got == ["a"] and "prices" not in board._catching_up)
    exchange.register("prices", lambda received: got.append(received.value))
    await until(lambda: got == ["a", "b"])


async def test_a_binding_that_fails_fails_for_the_caller(phone: Device, shop: Device) -> None:
    class Broken(Text):
        def decode(self, content: Content, peer: str) -> str:
            raise ZeroDivisionError

    Exchange(shop, Text()).on_message(lambda received: "x")
    with pytest.raises(ZeroDivisionError):
        await Exchange(phone, Broken()).call("device:shop", "x", timeout=5)


# Many.


async def test_topics_are_followed_and_notified(phone: Device, shop: Device) -> None:
    exchange = Exchange(phone, Json(Order))
    got: list[tuple[str | None, Order]] = []
    handle = await exchange.subscribe("orders.*", lambda r: got.append((r.topic, r.value)))
    await handle.accepted(timeout=5)
    await Exchange(shop, Json(Order)).notify("orders.new", Order("tea"))
    await until(lambda: got == [("orders.new", Order("tea"))])
    await (await exchange.unsubscribe("orders.*")).accepted(timeout=5)
    await (await Exchange(shop, Json(Order)).notify("orders.new", Order("c"))).accepted(timeout=5)
    exchange.on_message(lambda received: received.value)
    back = Exchange(shop, Json(Order))
    assert await back.call("device:phone", Order("last"), timeout=5) == Order("last")
    assert len(got) == 1


async def test_answers_are_gathered_with_who_declined_and_who_is_missing(
    gateway: LiveGateway, phone: Device
) -> None:
    names = ("a", "b", "c")
    devices = [device(gateway, name) for name in names]
    for other in devices:
        await other.open()

    def decline(received: Received[str]) -> str:
        raise Declined("busy")

    try:
        for other, handler in zip(devices, (lambda r: "A", decline, lambda r: None), strict=True):
            exchange = Exchange(other, Text())
            await (await exchange.subscribe("all", handler)).accepted(timeout=5)
        replies = await Exchange(phone, Text()).gather("topic:all", "?", timeout=0.5)
        assert replies.values == {"a": "A"}
        assert [type(error) for error in replies.declined.values()] == [Declined]
        assert (replies.missing, replies.complete) == (("c",), False)
    finally:
        for other in devices:
            await other.close()


async def test_a_service_answers_its_operations(phone: Device, shop: Device) -> None:
    service = Service("pricing", operations=(ServiceOperation("price"), ServiceOperation("ping")))
    handle = await Exchange(shop, Text()).serve(
        service,
        {"price": lambda r: "3.50", "": lambda r: f"no {r.operation}, only price"},
    )
    await handle.accepted(timeout=5)
    exchange = Exchange(phone, Text())
    assert await exchange.call("service:pricing", "tea", operation="price", timeout=5) == "3.50"
    assert await exchange.call("service:pricing@1", "", operation="ping", timeout=5) == (
        "no ping, only price"
    )


async def test_the_clock_of_a_request_is_the_devices(phone: Device) -> None:
    assert phone.now() > 1_700_000_000 * SECOND
