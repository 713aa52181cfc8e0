"""Requests, gathers and services over REST."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from lasthop.access.rest import RestSettings, make_app
from lasthop.core.limits import Limits
from lasthop.message import first_key_at, parse_id
from lasthop.wire.hop.frames import Headers, MessageFrame, Operation
from lasthop.wire.hop.services import (
    DECLINED_TYPE,
    OPERATION_HEADER,
    Service,
    ServiceOperation,
    encode,
)
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory, Phone

PRICING = Service(
    "pricing", "2", "What things cost", (ServiceOperation("price", "text/plain", "text/plain"),)
)


async def ask_all(http: httpx.AsyncClient, *, within: float = 60) -> str:
    question = {"topic": "news", "body": "?", "reply_within": within}
    id_: str = (await http.post("/v1/messages", json=question)).json()["id"]
    return id_


@pytest.fixture
def phones(live: LiveInMemory) -> list[Phone]:
    for name in "abc":
        live.register(name, "news")
    return [live.connect(name) for name in "abc"]


async def replies(http: httpx.AsyncClient, id_: str, **query: Any) -> dict[str, Any]:
    answer = await http.get(f"/v1/messages/{id_}/replies", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


class TestGathering:
    async def test_waits_until_everyone_has_answered(
        self, http: httpx.AsyncClient, phones: list[Phone]
    ) -> None:
        id_ = await ask_all(http)
        waiting = asyncio.ensure_future(replies(http, id_, timeout=10))
        for phone, text in zip(phones, "xyz", strict=True):
            await asyncio.sleep(0)
            assert not waiting.done()
            phone.acknowledge(1)
            phone.reply(parse_id(id_)[0], text.encode())
        found = await waiting
        listed = found["replies"]
        assert isinstance(listed, list)
        assert [(r["device"], r["body"]) for r in listed] == [("a", "x"), ("b", "y"), ("c", "z")]
        assert (found["missing"], found["complete"], found["more"]) == ([], True, False)

    async def test_is_content_with_as_many_as_were_wanted(
        self, http: httpx.AsyncClient, phones: list[Phone]
    ) -> None:
        id_ = await ask_all(http)
        phones[2].reply(parse_id(id_)[0], b"\xff")
        found = await replies(http, id_, timeout=10, most=1)
        assert found["complete"]
        assert found["missing"] == ["a", "b"]
        (reply,) = found["replies"]
        assert (reply["device"], reply["body_base64"]) == ("c", "/w==")

    async def test_counts_a_device_once(self, http: httpx.AsyncClient, phones: list[Phone]) -> None:
        id_ = await ask_all(http)
        phones[0].reply(parse_id(id_)[0], b"first")
        phones[0].reply(parse_id(id_)[0], b"second")
        (reply,) = (await replies(http, id_))["replies"]
        assert reply["body"] == "first"

    async def test_ends_at_the_deadline_of_the_question(
        self, http: httpx.AsyncClient, live: LiveInMemory, phones: list[Phone]
    ) -> None:
        id_ = await ask_all(http, within=5)
        phones[0].reply(parse_id(id_)[0], b"in time")
        waiting = asyncio.ensure_future(replies(http, id_, timeout=100))
        await asyncio.sleep(0)
        live.pass_time(6)
        phones[1].reply(parse_id(id_)[0], b"late")
        found = await waiting
        assert (found["missing"], found["complete"]) == (["b", "c"], False)
        assert len((await replies(http, id_))["replies"]) == 1

    async def test_does_not_wait_for_those_who_never_had_it(
        self, http: httpx.AsyncClient, live: LiveInMemory, phones: list[Phone]
    ) -> None:
        id_ = await ask_all(http)
        phones[0].reply(parse_id(id_)[0], b"x")
        for name in "bc":
            await http.delete(f"/v1/devices/{name}")
        found = await replies(http, id_, timeout=10)
        # Something had left for them: they may have had it.
        assert (found["complete"], found["missing"]) == (True, [])

    async def test_is_not_over_before_everyone_was_asked(self) -> None:
        live = LiveInMemory(limits=Limits(fanout_batch=1))
        for name in "ab":
            live.register(name, "news")
        phone = live.connect("a")
        live.slow = True
        async with knock(make_app(live, RestSettings(open_house=True))) as http:
            id_ = await ask_all(http)
            phone.reply(parse_id(id_)[0], b"x")
            live.slow = False
            found = await replies(http, id_)
            assert (len(found["replies"]), found["complete"]) == (1, False)
            live.turn()
            assert (await replies(http, id_))["missing"] == ["b"]

    async def test_names_what_does_not_fit(
        self,
        http: httpx.AsyncClient,
        phones: list[Phone],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("lasthop.access.rest.replies.MOST_BYTES", 4)
        id_ = await ask_all(http)
        phones[0].reply(parse_id(id_)[0], b"1234")
        phones[1].reply(parse_id(id_)[0], b"5")
        first, second = (await replies(http, id_))["replies"]
        assert first["body"] == "1234"
        assert "body" not in second
        fetched = await http.get(f"/v1/messages/{id_}/reply?device=b")
        assert fetched.content == b"5"

    @pytest.mark.parametrize("query", ["most=0", "timeout=-1", "timeout=1e9", "wait=all"])
    async def test_a_bad_question_is_refused(
        self, http: httpx.AsyncClient, phones: list[Phone], query: str
    ) -> None:
        id_ = await ask_all(http)
        answer = await http.get(f"/v1/messages/{id_}/replies?{query}")
        assert refusal(answer)[:2] == (400, "invalid_request")


class TestDeadlines:
    async def test_an_answer_after_the_deadline_is_none(
        self, http: httpx.AsyncClient, live: LiveInMemory, phones: list[Phone]
    ) -> None:
        id_ = await ask_all(http, within=5)
        live.pass_time(6)
        phones[0].reply(parse_id(id_)[0], b"late")
        answer = await http.get(f"/v1/messages/{id_}/reply?timeout=10")
        assert refusal(answer)[:2] == (404, "no_reply")

    async def test_a_device_does_not_get_an_answer_that_it_waits_for_no_longer(
        self, http: httpx.AsyncClient, live: LiveInMemory, phones: list[Phone]
    ) -> None:
        id_ = await ask_all(http)
        question = Headers(
            operation=Operation.REPLY, in_reply_to=parse_id(id_)[0], reply_within=5000
        )
        phones[0].send(question, b"which one?", key=first_key_at(live.time))
        asked = (await http.get(f"/v1/messages/{id_}/reply")).headers["x-message-id"]
        answered = await http.post(f"/v1/messages/{asked}/reply", json={"body": "this"})
        assert answered.status_code == 202
        (_, frame) = phones[0].messages()
        assert frame.headers is not None
        assert frame.headers.answer
        assert frame.headers.deliver_within == 5000
        live.pass_time(6)
        late = await http.post(f"/v1/messages/{asked}/reply", json={"body": "that"})
        assert refusal(late)[:2] == (422, "expired")


class TestServices:
    @pytest.fixture(autouse=True)
    def phone(self, live: LiveInMemory) -> Phone:
        live.register("phone")
        phone = live.connect("phone")
        phone.send(Headers(operation=Operation.OFFER), encode(PRICING))
        return phone

    async def test_are_listed_and_shown(self, http: httpx.AsyncClient) -> None:
        offer = {
            "service": {
                "name": "pricing",
                "version": "2",
                "about": "What things cost",
                "operations": [{"name": "price", "takes": "text/plain", "gives": "text/plain"}],
            },
            "providers": 1,
            "in_contact": 1,
            "devices": ["phone"],
        }
        expected = {"services": [offer], "more": False}
        for path in ("", "/pricing", "/pricing@2", "?operation=price"):
            assert (await http.get(f"/v1/services{path}")).json() == expected
        assert (await http.get("/v1/services?operation=x")).json()["services"] == []
        assert refusal(await http.get("/v1/services/nothing"))[:2] == (404, "not_found")

    async def ask(
        self, http: httpx.AsyncClient, phone: Phone, path: str = "pricing/price"
    ) -> tuple[asyncio.Task[httpx.Response], MessageFrame]:
        asking = asyncio.create_task(
            http.post(
                f"/v1/services/{path}?timeout=5",
                content=b"tea",
                headers={"content-type": "text/x-goods"},
            )
        )
        while not phone.messages():  # noqa: ASYNC110
            await asyncio.sleep(0)
        return asking, phone.messages()[-1]

    async def test_are_asked_in_one_request(self, http: httpx.AsyncClient, phone: Phone) -> None:
        asking, question = await self.ask(http, phone)
        assert question.headers is not None
        assert question.body == b"tea"
        assert question.headers.content_type == "text/x-goods"
        assert dict(question.headers.extra)[OPERATION_HEADER] == "price"
        assert question.headers.reply_within == question.headers.deliver_within == 5000
        assert question.key is not None
        phone.reply(question.key, b"3.50")
        answer = await asking
        assert (answer.status_code, answer.content) == (200, b"3.50")

    @pytest.mark.parametrize(
        "body, told", [(b'{"reason": "sold_out", "detail": "no tea"}', "no tea"), (b"{", "unknown")]
    )
    async def test_may_decline(
        self, http: httpx.AsyncClient, phone: Phone, body: bytes, told: str
    ) -> None:
        asking, question = await self.ask(http, phone)
        assert question.key is not None
        phone.reply(question.key, body, DECLINED_TYPE)
        answer = await asking
        assert refusal(answer)[:2] == (422, "declined")
        assert told in answer.json()["error"]["detail"]

    async def test_that_do_not_answer_in_time_are_said_to(
        self, http: httpx.AsyncClient, live: LiveInMemory, phone: Phone
    ) -> None:
        asking, _ = await self.ask(http, phone)
        live.pass_time(5)
        assert refusal(await asking)[:2] == (404, "no_reply")

    async def test_that_nobody_offers_are_not_asked(self, http: httpx.AsyncClient) -> None:
        answer = await http.post("/v1/services/nothing/price", content=b"tea")
        assert refusal(answer)[:2] == (404, "not_found")

    async def test_are_not_waited_for_without_end(self, http: httpx.AsyncClient) -> None:
        for timeout in ("0", "1e9"):
            answer = await http.post(f"/v1/services/pricing/price?timeout={timeout}")
            assert refusal(answer)[:2] == (400, "invalid_request")

    async def test_are_no_addresses(self, http: httpx.AsyncClient) -> None:
        answer = await http.put("/v1/addresses/USER:x", json={"target": "service:pricing"})
        assert refusal(answer)[:2] == (400, "invalid_request")

    async def test_get_messages_like_devices(self, http: httpx.AsyncClient, phone: Phone) -> None:
        await http.post("/v1/messages", json={"to": "service:pricing", "body": "x"})
        assert phone.messages()[-1].body == b"x"
