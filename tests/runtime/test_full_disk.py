"""A disk that is full: what each door says is true then, and stays true when there is room again.

A request that comes when the disk is known to be full is refused, and nothing is done. One whose
commit finds out is kept until there is room: whether it is accepted is open, and can be asked.

About `runtime/engine.py` and `store/writer.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from lasthop.access.pap import PapDoor, PapSettings
from lasthop.access.pap.destinations import Destinations
from lasthop.access.rest import Door, RestSettings, make_app
from lasthop.core.apps.credentials import Scope
from lasthop.errors import StoreFull
from lasthop.runtime import engine as engine_module
from lasthop.store.memory import MemoryStore
from lasthop.wire.hop.frames import Ack, Headers, MessageFrame
from lasthop.wire.pap.documents import (
    CancelMessage,
    CancelResponse,
    PushMessage,
    PushResponse,
    StatusQueryMessage,
    StatusQueryResponse,
)
from tests.access.knocking import WayIn, knock
from tests.access.pap.initiating import CONTENT, Initiator, user
from tests.runtime.rig import DEADLINE, Line, Rig

KEY = {"idempotency-key": "order-17"}
ONE = {"device": "phone", "body": "one"}
ALICE = user("alice")


@pytest.fixture(autouse=True, params=["asgi", "direct"])
def way_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests come in by ASGI, and as whole requests."""
    monkeypatch.setattr(WayIn, "direct", request.param == "direct")
    monkeypatch.setattr(Initiator, "direct", request.param == "direct")


class House:
    """A gateway with its doors, one device in contact, and a disk that can be full."""

    def __init__(self, store: MemoryStore) -> None:
        self.rig = Rig(store)
        self.door: Door = make_app(self.rig.engine, RestSettings(open_house=True))
        context = self.door.context
        self.http = knock(self.door)
        self.initiator = Initiator(
            PapDoor(
                self.rig.engine,
                PapSettings(),
                callers=context.callers,
                intake=context.intake,
                charge=context.charge,
                destinations=Destinations(),
            )
        )
        self.line: Line

    async def open(self) -> None:
        self.line = await self.rig.connect("phone")
        changed = await self.http.patch("/v1/devices/phone", json={"user": "alice"})
        assert changed.status_code == 200
        subscribed = await self.http.put("/v1/devices/phone/subscriptions/news")
        assert subscribed.status_code == 200

    def fill(self) -> None:
        """From now on the disk takes nothing; nobody knows it yet."""
        self.rig.store.refuse = StoreFull("no room")

    async def make_room(self) -> None:
        self.rig.store.refuse = None
        async with asyncio.timeout(DEADLINE):
            while not self.rig.engine.ready:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def delivered(self, *bodies: bytes) -> None:
        """Exactly these have come to the device."""
        await self.line.until(lambda: len(self.line.bodies) >= len(bodies))
        await self.http.put("/v1/groups/after")  # Whatever was to follow has followed.
        assert self.line.bodies == list(bodies)


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(engine_module, "RETRY_WHEN_FULL", 0.01)
    house = House(MemoryStore(incarnation=7))
    await house.open()
    yield house
    await house.http.aclose()
    await house.rig.engine.close()


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """The error of a refusal, in the form of REST or of ntfy."""
    told: dict[str, Any] = answer.json()
    if isinstance(told["error"], str):
        return told | {"code": told["problem"], "detail": told["error"]}
    error: dict[str, Any] = told["error"]
    return error


def opened(answer: httpx.Response) -> list[str]:
    """The ids in an answer that leaves open what becomes of them."""
    error = error_of(answer)
    assert (answer.status_code, error["code"]) == (503, "outcome_open")
    assert "the outcome is open" in error["detail"]
    ids: list[str] = error.get("ids", [])
    return ids


def refused(answer: httpx.Response) -> None:
    """It is said that nothing was done, and when to come again."""
    error = error_of(answer)
    assert (answer.status_code, error["code"]) == (503, "overloaded")
    assert error["detail"] == "no room; nothing was done"
    assert answer.headers["retry-after"] == "1"


PUBLISHING: list[tuple[str, Any, list[bytes]]] = [
    ("/v1/messages", ONE, [b"one"]),
    ("/v1/messages", [ONE, {"topic": "news", "body": "two"}], [b"one", b"two"]),
    ("/news", "three", [b"three"]),
]


async def publish(house: House, path: str, given: Any, **headers: str) -> httpx.Response:
    if isinstance(given, str):
        return await house.http.post(path, content=given.encode(), headers=headers)
    return await house.http.post(path, json=given, headers=headers)


@pytest.mark.parametrize("path,given,bodies", PUBLISHING, ids=["one", "many", "one line"])
class TestPublishing:
    async def test_what_is_kept_until_there_is_room_is_open_and_can_be_asked_for(
        self, house: House, path: str, given: Any, bodies: list[bytes]
    ) -> None:
        house.fill()
        answer = await publish(house, path, given)
        ids = opened(answer)
        assert len(ids) == len(bodies)
        said = error_of(answer)["detail"]
        assert f"GET /v1/messages/{ids[0]} says 404 if it was not accepted" in said
        assert "retry-after" not in answer.headers  # Who repeats it by itself would double it.
        still_open = await house.http.get(f"/v1/messages/{ids[0]}")
        assert still_open.status_code == 503
        await house.make_room()
        await house.delivered(*bodies)
        for each in ids:
            assert (await house.http.get(f"/v1/messages/{each}")).json()["id"] == each

    async def test_a_process_that_dies_first_leaves_none_and_says_so(
        self, house: House, path: str, given: Any, bodies: list[bytes]
    ) -> None:
        house.fill()
        ids = opened(await publish(house, path, given, **KEY))
        after = House(house.rig.store.crash())
        for each in ids:
            assert (await after.http.get(f"/v1/messages/{each}")).status_code == 404
        assert (await publish(after, path, given, **KEY)).status_code in (200, 202)
        assert after.rig.store.counts().messages == len(bodies)
        await after.rig.engine.close()

    async def test_repeated_under_its_key_it_is_not_doubled(
        self, house: House, path: str, given: Any, bodies: list[bytes]
    ) -> None:
        house.fill()
        first = await publish(house, path, given, **KEY)
        ids = opened(first)
        assert "repeat it with the same Idempotency-Key" in error_of(first)["detail"]
        assert first.headers["retry-after"] == "1"
        again = await publish(house, path, given, **KEY)
        assert [each[:16] for each in opened(again)] == [each[:16] for each in ids]
        await house.make_room()
        last = await publish(house, path, given, **KEY)
        assert last.status_code == 200
        told = last.json()
        assert told["repeated"] is True
        if isinstance(given, str):
            assert [told["message_id"]] == ids
        else:
            assert told == {**_accepted(path, given, ids), "repeated": True}
        await house.delivered(*bodies)

    async def test_when_the_disk_is_known_to_be_full_nothing_is_done(
        self, house: House, path: str, given: Any, bodies: list[bytes]
    ) -> None:
        house.fill()
        opened(await house.http.post("/v1/messages", json={"device": "phone", "body": "first"}))
        refused(await publish(house, path, given))
        refused(await publish(house, path, given, **KEY))
        await house.make_room()
        await house.delivered(b"first")

    async def test_what_was_accepted_before_is_known_while_the_disk_is_full(
        self, house: House, path: str, given: Any, bodies: list[bytes]
    ) -> None:
        assert (await publish(house, path, given, **KEY)).status_code in (200, 202)
        house.fill()
        opened(await house.http.put("/v1/groups/crew"))
        again = await publish(house, path, given, **KEY)
        assert (again.status_code, again.json()["repeated"]) == (200, True)


def _accepted(path: str, given: Any, ids: list[str]) -> dict[str, Any]:
    return {"ids": ids} if isinstance(given, list) else {"id": ids[0]}


async def test_a_refusal_of_its_own_is_final_though_others_are_open(house: House) -> None:
    house.fill()
    good, bad = await asyncio.gather(
        house.http.post("/v1/messages", json=ONE),
        house.http.post("/v1/messages", json={"device": "nobody"}),
    )
    assert len(opened(good)) == 1
    assert bad.status_code == 404


async def test_another_request_under_the_key_of_an_open_one_is_a_conflict(house: House) -> None:
    house.fill()
    opened(await house.http.post("/v1/messages", json=ONE, headers=KEY))
    other = await house.http.post("/v1/messages", json={**ONE, "body": "x"}, headers=KEY)
    assert other.status_code == 409


async def test_the_key_of_an_open_request_tells_another_publisher_nothing(house: House) -> None:
    await house.rig.engine.call(
        lambda gateway, now: gateway.admin.admit("secret", "default", "shop", {Scope.PUBLISH}, now)
    )
    house.fill()
    opened(await house.http.post("/v1/messages", json=ONE, headers=KEY))
    async with knock(house.door, token="secret") as shop:
        refused(await shop.post("/v1/messages", json=ONE, headers=KEY))
        refused(await shop.post("/v1/messages", json={**ONE, "body": "x"}, headers=KEY))


async def test_a_message_that_nobody_knows_is_unknown_only_when_all_is_written(
    house: House,
) -> None:
    assert (await house.http.get("/v1/messages/0000000000000001")).status_code == 404
    house.fill()
    opened(await house.http.post("/v1/messages", json=ONE))
    assert (await house.http.get("/v1/messages/0000000000000001")).status_code == 503


async def test_a_replacement_that_is_open_names_the_new_message(house: House) -> None:
    later = {**ONE, "delay": "1h"}
    old = (await house.http.post("/v1/messages", json=later)).json()["id"]
    house.fill()
    (new,) = opened(await house.http.put(f"/v1/messages/{old}", json={"body": "new"}))
    await house.make_room()
    assert (await house.http.get(f"/v1/messages/{new}")).json()["summary"]["total"] == 1
    again = await house.http.put(f"/v1/messages/{old}", json={"body": "new"})
    assert again.status_code == 409
    await house.delivered(b"new")


CHANGES: dict[str, Callable[[httpx.AsyncClient, str], Any]] = {
    "cancel": lambda http, message: http.delete(f"/v1/messages/{message}"),
    "group": lambda http, _: http.put("/v1/groups/crew"),
    "topic": lambda http, _: http.put("/v1/topics/weather"),
    "device": lambda http, _: http.patch("/v1/devices/phone", json={"user": "bob"}),
    "address": lambda http, _: http.put("/v1/addresses/user:staff", json={"target": "user:bob"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_any_other_change_is_open_too_and_can_be_repeated(
    house: House, change: Callable[[httpx.AsyncClient, str], Any]
) -> None:
    message = (await house.http.post("/v1/messages", json={**ONE, "delay": "1h"})).json()["id"]
    house.fill()
    answer = await change(house.http, message)
    assert opened(answer) == []
    assert "look for it when GET /ready answers 200" in answer.json()["error"]["detail"]
    refused(await change(house.http, message))
    await house.make_room()
    assert (await change(house.http, message)).status_code == 200
    assert house.line.bodies == []


class TestPap:
    async def test_a_push_that_is_kept_until_there_is_room_is_open(self, house: House) -> None:
        house.fill()
        result = await self._push(house, "1@pi")
        assert result.code == 4000
        assert result.desc == (
            "no room; the outcome is open: ask for the status of the push, or repeat the request,"
            " which cannot double it"
        )
        assert await self._status(house, "1@pi") == ("unknown", 4001)
        assert await house.initiator.push("1@pi", ALICE) == 4000
        assert await house.initiator.push("2@pi", ALICE) == 4001
        await house.make_room()
        assert await house.initiator.push("1@pi", ALICE) == 2007
        assert await self._status(house, "1@pi") == ("pending", 1000)
        assert await self._status(house, "2@pi") == ("unknown", 2004)
        await house.delivered(b"hello")

    async def test_a_process_that_dies_first_knows_no_such_push(self, house: House) -> None:
        house.fill()
        assert await house.initiator.push("1@pi", ALICE) == 4000
        after = House(house.rig.store.crash())
        assert await self._status(after, "1@pi") == ("unknown", 2004)
        assert await after.initiator.push("1@pi", ALICE) == 1001
        await after.rig.engine.close()

    async def test_what_was_accepted_before_is_known_while_the_disk_is_full(
        self, house: House
    ) -> None:
        assert await house.initiator.push("1@pi", ALICE) == 1001
        house.fill()
        assert await house.initiator.push("2@pi", ALICE) == 4000
        assert await house.initiator.push("1@pi", ALICE) == 2007

    async def test_a_replacement_that_is_open_is_made_once(self, house: House) -> None:
        await house.initiator.push("1@pi", ALICE)
        await house.delivered(b"hello")
        house.fill()
        assert await house.initiator.push("2@pi", ALICE, replace_push_id="1@pi") == 4000
        await house.make_room()
        assert await house.initiator.push("2@pi", ALICE, replace_push_id="1@pi") == 2007
        await house.delivered(b"hello", b"hello")

    async def test_a_cancellation_that_is_open_can_be_repeated(self, house: House) -> None:
        later = house.rig.engine.now() + 3_600_000_000
        await house.initiator.push("1@pi", ALICE, deliver_after=later)
        house.fill()
        assert await self._cancel(house, "1@pi") == 4000
        assert await self._cancel(house, "1@pi") == 4001
        await house.make_room()
        assert await self._cancel(house, "1@pi") == 1000

    @staticmethod
    async def _push(house: House, push_id: str) -> Any:
        said = await house.initiator.send(PushMessage(push_id, (ALICE,)), CONTENT)
        assert isinstance(said.document.message, PushResponse)
        return said.document.message.result

    @staticmethod
    async def _cancel(house: House, push_id: str) -> int:
        said = await house.initiator.ask(CancelMessage(push_id), CancelResponse)
        (result,) = said.results
        return result.code

    @staticmethod
    async def _status(house: House, push_id: str) -> tuple[str, int]:
        said = await house.initiator.ask(StatusQueryMessage(push_id), StatusQueryResponse)
        (result,) = said.results
        return str(result.state), result.code


async def test_a_device_is_told_nothing_until_what_it_sent_is_written(house: House) -> None:
    house.fill()
    headers = Headers(to="device:phone")
    frame = MessageFrame(0, None, None, headers, b"to myself")
    house.rig.engine.received(house.line, [frame])
    opened(await house.http.put("/v1/groups/crew"))
    house.rig.engine.received(house.line, [frame])  # As if it had come back with it.
    assert not any(isinstance(frame, Ack) for frame in house.line.sent)
    await house.make_room()
    await house.line.until(lambda: any(isinstance(frame, Ack) for frame in house.line.sent))
    await house.delivered(b"to myself")
