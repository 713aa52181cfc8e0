"""Messages after their acceptance: followed, taken back, replaced and answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from lasthop.access.rest import Door, RestSettings, make_app
from lasthop.core.limits import Limits
from lasthop.errors import NotFound
from lasthop.message import first_key_at, parse_id
from lasthop.wire.hop.frames import Headers, Operation
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory

UNKNOWN = "0" * 31 + "1"


@pytest.fixture(autouse=True)
def phone(live: LiveInMemory) -> None:
    live.register("phone", "news", user="alice")


async def send(http: httpx.AsyncClient, **fields: Any) -> str:
    answer = await http.post("/v1/messages", json={"device": "phone", "body": "x"} | fields)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


async def status(http: httpx.AsyncClient, id_: str, **query: Any) -> dict[str, Any]:
    answer = await http.get(f"/v1/messages/{id_}", params=query)
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    return said


class TestStatus:
    async def test_a_message_is_followed_to_its_end(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http)
        assert await status(http, id_) == {
            "id": id_,
            "to": "device:phone",
            "source": "publisher:anonymous",
            "accepted_at": "2025-06-15T15:06:40Z",
            "summary": {"total": 1, "open": 1, "replies": 0, "states": {"pending": 1}},
            "deliveries": [
                {
                    "device": "phone",
                    "state": "pending",
                    "odin": "PendingSend",
                    "pap": "pending",
                    "changed_at": "2025-06-15T15:06:40Z",
                }
            ],
        }
        phone = live.connect("phone")
        delivery = (await status(http, id_))["deliveries"][0]
        assert (delivery["state"], delivery["odin"], delivery["attempts"]) == (
            "sending",
            "Sending",
            1,
        )
        phone.acknowledge(1, delivered=0)
        assert (await status(http, id_))["deliveries"][0]["odin"] == "Received"
        phone.acknowledge(1)
        said = await status(http, id_)
        assert said["deliveries"][0]["pap"] == "delivered"
        assert said["summary"] == {"total": 1, "open": 0, "replies": 0, "states": {"delivered": 1}}

    async def test_the_short_form_of_an_id_will_do(self, http: httpx.AsyncClient) -> None:
        id_ = await send(http)
        assert (await status(http, id_[:16]))["id"] == id_

    @pytest.mark.parametrize("id_", [UNKNOWN, "nonsense", "F" * 32, "f" * 32, UNKNOWN[:16]])
    @pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
    async def test_unknown_ids_are_not_found(
        self, http: httpx.AsyncClient, id_: str, method: str
    ) -> None:
        answer = await http.request(method, f"/v1/messages/{id_}", content=b"{}")
        assert refusal(answer) == (404, "not_found", None)

    async def test_an_id_with_a_wrong_random_half_is_not_found(
        self, http: httpx.AsyncClient
    ) -> None:
        id_ = await send(http)
        answer = await http.get(f"/v1/messages/{id_[:31]}{'f' if id_[31] != 'f' else 'e'}")
        assert refusal(answer) == (404, "not_found", None)

    async def test_messages_of_another_app_are_not_found(self, http: httpx.AsyncClient) -> None:
        id_ = await send(http)
        for method in "GET", "DELETE", "PUT":
            answer = await http.request(
                method, f"/v1/messages/{id_}", content=b"{}", headers={"x-app": "other"}
            )
            assert refusal(answer) == (404, "not_found", None)
        assert (await status(http, id_))["summary"]["open"] == 1

    async def test_a_long_list_of_deliveries_is_cut(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        for i in range(5):
            live.register(f"p{i}", "news")
        id_ = await send(http, device=None, topic="news")
        said = await status(http, id_, limit=2)
        assert said["summary"]["total"] == 6
        assert [d["device"] for d in said["deliveries"]] == ["phone", "p0"]
        assert said["more"] is True
        said = await status(http, id_, device="p3")
        assert [d["device"] for d in said["deliveries"]] == ["p3"]
        assert "more" not in said

    async def test_a_removed_device_has_no_name(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http)
        await http.delete("/v1/devices/phone")
        (delivery,) = (await status(http, id_))["deliveries"]
        assert delivery["device"] is None
        assert delivery["state"] == "undeliverable"
        assert "odin" not in delivery

    @pytest.mark.parametrize(
        "query, field",
        [
            ({"wait": "ever"}, "wait"),
            ({"timeout": "x"}, "timeout"),
            ({"timeout": -1}, "timeout"),
            ({"wait": "final", "timeout": 301}, "timeout"),
            ({"limit": 0}, "limit"),
            ({"limit": 1001}, "limit"),
            ({"tiemout": 3}, "tiemout"),
        ],
    )
    async def test_bad_parameters_are_named(
        self, http: httpx.AsyncClient, query: dict[str, Any], field: str
    ) -> None:
        answer = await http.get(f"/v1/messages/{await send(http)}", params=query)
        assert refusal(answer) == (400, "invalid_request", field)


class TestWaiting:
    @pytest.mark.parametrize(
        "goal, steps", [("received", 2), ("delivered", 3), ("final", 3), ("reply", 4)]
    )
    async def test_a_wait_ends_when_it_comes_to_it(
        self, http: httpx.AsyncClient, live: LiveInMemory, goal: str, steps: int
    ) -> None:
        id_ = await send(http, reply_within=60)
        waiting = asyncio.create_task(status(http, id_, wait=goal, timeout=60))
        await settle()
        phone = live.connect("phone")
        session_event: list[Callable[[], None]] = [
            lambda: phone.acknowledge(1, delivered=0),
            lambda: phone.acknowledge(1),
            lambda: phone.reply(parse_id(id_)[0], b"yes"),
        ]
        for happens in session_event[: steps - 1]:
            await settle()
            assert not waiting.done()
            happens()
        said = await asyncio.wait_for(waiting, 5)
        assert said["satisfied"] is True
        assert live.watchers == 0

    async def test_a_wait_ends_when_its_time_is_up(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http)
        waiting = asyncio.create_task(status(http, id_, wait="delivered", timeout=10))
        await settle()
        live.pass_time(9)
        await settle()
        assert not waiting.done()
        live.pass_time(1)
        said = await waiting
        assert said["satisfied"] is False
        assert said["summary"]["open"] == 1

    async def test_a_wait_ends_when_it_can_come_to_nothing_more(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http, ttl=5)
        waiting = asyncio.create_task(status(http, id_, wait="reply", timeout=60))
        await settle()
        live.pass_time(5)
        said = await waiting
        assert said["satisfied"] is False
        assert said["deliveries"][0]["state"] == "expired"

    async def test_only_so_many_may_wait(self, live: LiveInMemory) -> None:
        door = make_app(live, RestSettings(open_house=True, max_waiting=2))
        async with knock(door) as http:
            id_ = await send(http)
            waits = [asyncio.create_task(status(http, id_, wait="final")) for _ in range(2)]
            await settle()
            assert door.waiting == 2
            answer = await http.get(f"/v1/messages/{id_}", params={"wait": "final"})
            assert refusal(answer) == (503, "overloaded", None)
            assert answer.headers["retry-after"] == "5"
            live.pass_time(30)
            await asyncio.gather(*waits)
        assert door.waiting == 0

    async def test_who_leaves_waits_no_longer(
        self, http: httpx.AsyncClient, live: LiveInMemory, door: Door
    ) -> None:
        id_ = await send(http)
        left = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await left.wait()
            return {"type": "http.disconnect"}

        async def answer(message: Any) -> None:
            pytest.fail("nobody is there")

        connection = {
            "type": "http",
            "method": "GET",
            "path": f"/v1/messages/{id_}",
            "query_string": b"wait=final",
            "headers": [(b"host", b"localhost")],
            "client": ("127.0.0.1", 1),
        }
        request = asyncio.create_task(door(connection, receive, answer))
        await settle()
        assert door.waiting == live.watchers == 1
        left.set()
        await request
        assert door.waiting == live.watchers == 0


async def settle() -> None:
    """Let everybody else have a few turns."""
    for _ in range(20):
        await asyncio.sleep(0)


class TestCancel:
    async def test_what_is_pending_is_taken_back(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http)
        answer = await http.delete(f"/v1/messages/{id_}")
        assert answer.status_code == 200
        assert answer.json() == {"cancelled": 1, "too_late": 0}
        assert live.connect("phone").messages() == []

    async def test_asking_again_gets_the_same_answer(self, http: httpx.AsyncClient) -> None:
        id_ = await send(http)
        first = await http.delete(f"/v1/messages/{id_}")
        again = await http.delete(f"/v1/messages/{id_}")
        assert again.status_code == 200
        assert again.json() == first.json()

    @pytest.mark.parametrize("acknowledged", [False, True])
    async def test_what_was_sent_is_too_late(
        self, http: httpx.AsyncClient, live: LiveInMemory, acknowledged: bool
    ) -> None:
        phone = live.connect("phone")
        id_ = await send(http)
        if acknowledged:
            phone.acknowledge(1)
        answer = await http.delete(f"/v1/messages/{id_}")
        assert refusal(answer) == (409, "too_late", None)
        assert "too_late=1" in answer.json()["error"]["detail"]

    async def test_every_delivery_is_one_or_the_other(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        for i in range(4):
            live.register(f"p{i}", "news")
        live.connect("phone").acknowledge(0)
        here = live.connect("p0")
        id_ = await send(http, device=None, topic="news")
        here.acknowledge(1)
        answer = await http.delete(f"/v1/messages/{id_}")
        assert answer.json() == {"cancelled": 3, "too_late": 2}

    async def test_a_fan_out_in_mid_course_is_counted_whole(self) -> None:
        live = LiveInMemory(limits=Limits(fanout_batch=2))
        for i in range(7):
            live.register(f"p{i}", "news")
        async with knock(make_app(live, RestSettings(open_house=True))) as http:
            live.slow = True
            id_ = await send(http, device=None, topic="news")
            answer = await http.delete(f"/v1/messages/{id_}")
        assert answer.json() == {"cancelled": 7, "too_late": 0}


class TestReplace:
    async def test_a_pending_message_gives_way(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http)
        answer = await http.put(f"/v1/messages/{id_}", json={"body": "new"})
        assert answer.status_code == 200
        new = answer.json()
        assert (new["replaced"], new["too_late"]) == (1, 0)
        assert (await status(http, id_))["summary"]["states"] == {"replaced": 1}
        (frame,) = live.connect("phone").messages()
        assert frame.body == b"new"
        assert frame.key == parse_id(new["id"])[0]

    async def test_a_released_message_stays(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        phone = live.connect("phone")
        id_ = await send(http)
        answer = await http.put(f"/v1/messages/{id_}", json={"body": "new"})
        assert refusal(answer) == (409, "too_late", None)
        phone.acknowledge(1)
        answer = await http.put(f"/v1/messages/{id_}", json={"body": "new"})
        assert refusal(answer) == (409, "too_late", None)
        assert [frame.body for frame in phone.messages()] == [b"x"]

    async def test_the_target_may_be_repeated_and_not_changed(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        live.register("tablet")
        id_ = await send(http)
        other = await http.put(f"/v1/messages/{id_}", json={"device": "tablet"})
        assert refusal(other) == (400, "invalid_request", "device")
        same = await http.put(f"/v1/messages/{id_}", json={"to": "device:phone"})
        assert same.status_code == 200

    async def test_a_bad_replacement_changes_nothing(self, http: httpx.AsyncClient) -> None:
        id_ = await send(http)
        for bad in {"priority": 10}, {"ttl": 0}:
            answer = await http.put(f"/v1/messages/{id_}", json=bad)
            assert answer.status_code in {400, 422}
        assert (await status(http, id_))["summary"]["states"] == {"pending": 1}


class TestReplies:
    async def test_an_answer_comes_back_as_it_was_sent(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http, reply_within=60)
        phone = live.connect("phone")
        phone.acknowledge(1)
        phone.reply(parse_id(id_)[0], b"<b>yes</b>", "text/html")
        answer = await http.get(f"/v1/messages/{id_}/reply")
        assert answer.status_code == 200
        assert answer.content == b"<b>yes</b>"
        assert answer.headers["content-type"] == "text/html"
        assert "sandbox" in answer.headers["content-security-policy"]
        (delivery,) = (await status(http, id_))["deliveries"]
        assert delivery["reply"] == answer.headers["x-message-id"]

    async def test_an_answer_is_waited_for(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http, reply_within=60)
        waiting = asyncio.create_task(http.get(f"/v1/messages/{id_}/reply?timeout=60"))
        await settle()
        phone = live.connect("phone")
        phone.acknowledge(1)
        await settle()
        assert not waiting.done()
        phone.reply(parse_id(id_)[0], b"yes")
        assert (await waiting).content == b"yes"

    async def test_no_answer_is_said_as_such(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http, reply_within=60)
        assert refusal(await http.get(f"/v1/messages/{id_}/reply")) == (404, "no_reply", None)
        waiting = asyncio.create_task(http.get(f"/v1/messages/{id_}/reply?timeout=60"))
        await settle()
        live.pass_time(60)
        assert refusal(await waiting) == (404, "no_reply", None)

    async def test_one_of_several_answers_is_chosen_by_device(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        live.register("tablet", user="alice")
        id_ = await send(http, device=None, user="alice", reply_within=60)
        for name in "tablet", "phone":
            device = live.connect(name)
            device.acknowledge(1)
            device.reply(parse_id(id_)[0], name.encode())
        assert (await http.get(f"/v1/messages/{id_}/reply")).content == b"tablet"
        for name in "tablet", "phone":
            answer = await http.get(f"/v1/messages/{id_}/reply", params={"device": name})
            assert answer.text == name
        ghost = await http.get(f"/v1/messages/{id_}/reply", params={"device": "ghost"})
        assert refusal(ghost) == (404, "not_found", None)

    async def test_a_content_type_that_is_none_is_not_passed_on(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http, reply_within=60)
        phone = live.connect("phone")
        phone.acknowledge(1)
        phone.reply(parse_id(id_)[0], b"x", "text/plain\r\nset-cookie: a=b")
        answer = await http.get(f"/v1/messages/{id_}/reply")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert "set-cookie" not in answer.headers

    async def test_a_conversation_goes_on(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http, reply_within=60)
        phone = live.connect("phone")
        phone.acknowledge(1)
        asked = Headers(
            operation=Operation.REPLY, in_reply_to=parse_id(id_)[0], reply_within=60_000
        )
        key = first_key_at(live.time)
        phone.send(asked, b"which one?", key=key)
        question = (await status(http, id_))["deliveries"][0]["reply"]
        answer = await http.post(f"/v1/messages/{question}/reply", json={"body": "this"})
        assert answer.status_code == 202
        frame = phone.messages()[-1]
        assert frame.body == b"this"
        assert frame.headers is not None
        assert frame.headers.in_reply_to == key

    async def test_an_answer_without_a_question_names_the_message(
        self, http: httpx.AsyncClient, live: LiveInMemory
    ) -> None:
        id_ = await send(http, reply_within=60)
        phone = live.connect("phone")
        phone.acknowledge(1)
        phone.reply(parse_id(id_)[0], b"yes")
        reply = (await status(http, id_))["deliveries"][0]["reply"]
        key = {"idempotency-key": "once"}
        first = await http.post(f"/v1/messages/{reply}/reply", json={"body": "ok"}, headers=key)
        again = await http.post(f"/v1/messages/{reply}/reply", json={"body": "ok"}, headers=key)
        assert again.json() == {"id": first.json()["id"], "repeated": True}
        headers = phone.messages()[-1].headers
        assert headers is not None
        assert headers.in_reply_to == parse_id(reply)[0]

    async def test_only_what_a_device_sent_is_answered(self, http: httpx.AsyncClient) -> None:
        id_ = await send(http)
        answer = await http.post(f"/v1/messages/{id_}/reply", json={"body": "x"})
        assert refusal(answer) == (400, "invalid_request", None)


class TestExplain:
    @pytest.fixture
    async def told(self, live: LiveInMemory) -> AsyncIterator[httpx.AsyncClient]:
        async def explain(key: int, device: int) -> object:
            if not live.store.deliveries(key):
                raise NotFound("no story")
            return {"key": key, "device": device}

        door = make_app(live, RestSettings(open_house=True), explain=explain)
        async with knock(door) as client:
            yield client

    async def test_a_story_is_told(self, told: httpx.AsyncClient) -> None:
        id_ = await send(told)
        answer = await told.get(f"/v1/messages/{id_}/explain", params={"device": "phone"})
        assert answer.json() == {"key": parse_id(id_)[0], "device": 1}

    async def test_a_story_needs_a_device(self, told: httpx.AsyncClient) -> None:
        id_ = await send(told)
        nobody = await told.get(f"/v1/messages/{id_}/explain")
        ghost = await told.get(f"/v1/messages/{id_}/explain?device=ghost")
        assert refusal(nobody) == (400, "invalid_request", "device")
        assert refusal(ghost) == (404, "not_found", None)

    async def test_without_a_teller_there_is_no_such_path(self, http: httpx.AsyncClient) -> None:
        answer = await http.get(f"/v1/messages/{await send(http)}/explain?device=phone")
        assert refusal(answer) == (404, "not_found", None)
        assert "/v1/messages/{id}/explain" not in (await http.get("/openapi.json")).json()["paths"]
