"""Whose message it is: every operation that names one, and everybody who may ask for it.

About `access/rest/operations/` and `access/callers.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import httpx
import pytest

from lasthop.access.rest import RestSettings, make_app
from lasthop.access.rest.operations import EXPLAIN, OPERATIONS
from lasthop.core.apps.credentials import Scope
from lasthop.message import first_key_at, parse_id
from lasthop.wire.hop.frames import Headers
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory, Phone


class Asked(NamedTuple):
    """A request about something of the owner's, and how it is answered if it may be made."""

    about: str
    status: int
    json: dict[str, Any] | None = None
    content: bytes | None = None
    query: str = ""


TABLE = {
    "get_messages_id": Asked("pending", 200),
    "put_messages_id": Asked("pending", 200, {"body": "new"}),
    "patch_messages_id": Asked("pending", 200, {"rank": 2}),
    "delete_messages_id": Asked("pending", 200),
    "get_messages_id_reply": Asked("answered", 200),
    "post_messages_id_reply": Asked("answer", 202, {"body": "thanks"}),
    "get_messages_id_replies": Asked("answered", 200),
    "get_messages_id_explain": Asked("pending", 200, query="?device=tablet"),
    "get_streams_id": Asked("stream", 200),
    "put_streams_id_content": Asked("stream", 200, content=b"abc"),
    "get_streams_id_content": Asked("stream", 400),
    "post_streams_id_end": Asked("stream", 200),
    "delete_streams_id": Asked("stream", 200),
}

NAMING = {o.id: o for o in (*OPERATIONS, EXPLAIN) if "{id}" in o.path}

CALLERS = {
    # Name of the caller: name, app and scope of its credential, and whether it is let in.
    "owner": ("shop", "default", Scope.PUBLISH, True),
    "the owner's second credential": ("shop", "default", Scope.PUBLISH, True),
    "other publisher": ("other", "default", Scope.PUBLISH, False),
    "publisher of another app": ("shop", "elsewhere", Scope.PUBLISH, False),
    "administrator": ("root", "default", Scope.ADMIN, True),
    "anonymous": (None, None, None, True),
}


@pytest.fixture
async def callers(live: LiveInMemory) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    """Everybody, at the door of an open gateway."""

    async def explain(key: int, device: int) -> object:
        return {}

    door = make_app(live, RestSettings(open_house=True), explain=explain)
    async with AsyncExitStack() as stack:
        found: dict[str, httpx.AsyncClient] = {}
        for caller, (name, app, scope, _) in CALLERS.items():
            token = None
            if name is not None and app is not None and scope is not None:
                token = caller.replace(" ", "-")
                live.gateway.admin.admit(token, app, name, {scope}, live.time)
            found[caller] = await stack.enter_async_context(knock(door, token=token))
        yield found


@pytest.fixture
def phone(live: LiveInMemory) -> Phone:
    live.register("phone")
    live.register("tablet")
    return live.connect("phone")


@pytest.fixture
async def things(callers: dict[str, httpx.AsyncClient], phone: Phone) -> dict[str, str]:
    """What the owner has: ids by name."""
    owner = callers["owner"]

    async def sent(**fields: Any) -> str:
        return str((await owner.post("/v1/messages", json={"body": "x"} | fields)).json()["id"])

    answered = await sent(device="phone", reply_within=60)
    phone.acknowledge(1)
    phone.reply(parse_id(answered)[0], b"yes")
    status = (await owner.get(f"/v1/messages/{answered}")).json()
    stream = await owner.post("/v1/streams", json={"to": "device:tablet"})
    return {
        "pending": await sent(device="tablet"),
        "answered": answered,
        "answer": status["deliveries"][0]["reply"],
        "stream": stream.json()["id"],
    }


async def ask(http: httpx.AsyncClient, operation: str, id_: str) -> httpx.Response:
    asked, path = TABLE[operation], NAMING[operation].path.replace("{id}", id_)
    return await http.request(
        NAMING[operation].method, path + asked.query, json=asked.json, content=asked.content
    )


def test_every_operation_that_names_a_message_or_stream_is_in_the_table() -> None:
    assert set(TABLE) == set(NAMING)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("operation", TABLE)
async def test_a_message_is_there_for_its_publisher_and_for_administrators(
    callers: dict[str, httpx.AsyncClient],
    things: dict[str, str],
    operation: str,
    caller: str,
) -> None:
    asked, http = TABLE[operation], callers[caller]
    id_ = things[asked.about]
    answer = await ask(http, operation, id_)
    if CALLERS[caller][-1]:
        assert answer.status_code == asked.status, answer.text
        return
    # It is answered as if there was none: nobody can find out what others have sent.
    unknown = "0" * (len(id_) - 1) + "1"
    nothing = await ask(http, operation, unknown)
    assert refusal(answer) == (404, "not_found", None)
    assert nothing.status_code == 404
    assert answer.text.replace(id_, "ID") == nothing.text.replace(unknown, "ID")
    mine = await callers["owner"].get(f"/v1/messages/{things['pending']}")
    assert mine.json()["summary"]["states"] == {"pending": 1}


async def test_what_a_device_answered_can_be_looked_at_by_whom_it_answered(
    callers: dict[str, httpx.AsyncClient], things: dict[str, str]
) -> None:
    for caller, (*_, let_in) in CALLERS.items():
        answer = await callers[caller].get(f"/v1/messages/{things['answer']}")
        assert answer.status_code == (200 if let_in else 404), caller


@pytest.mark.parametrize(
    "method, json", [("PUT", {"body": "x"}), ("PATCH", {"rank": 1}), ("DELETE", None)]
)
async def test_what_a_device_sent_is_changed_by_no_publisher(
    callers: dict[str, httpx.AsyncClient],
    things: dict[str, str],
    method: str,
    json: dict[str, Any] | None,
) -> None:
    place = f"/v1/messages/{things['answer']}"
    answer = await callers["owner"].request(method, place, json=json)
    assert refusal(answer) == (404, "not_found", None)


async def test_what_one_device_sent_to_another_is_no_publishers(
    callers: dict[str, httpx.AsyncClient], phone: Phone, live: LiveInMemory
) -> None:
    phone.send(Headers(to="device:tablet"), b"hello")
    (row,) = live.store.all_deliveries()
    id_ = live.store.messages([row.message])[row.message].id
    for caller, status in {"owner": 404, "administrator": 200}.items():
        assert (await callers[caller].get(f"/v1/messages/{id_}")).status_code == status
        assert (await callers[caller].delete(f"/v1/messages/{id_}")).status_code == status


async def test_a_replace_key_takes_the_place_of_ones_own_message_only(
    callers: dict[str, httpx.AsyncClient], phone: Phone, live: LiveInMemory
) -> None:
    for caller in "owner", "other publisher", "administrator", "owner":
        line = {"device": "tablet", "body": caller, "replace_key": "score"}
        assert (await callers[caller].post("/v1/messages", json=line)).status_code == 202
    bodies = [frame.body.decode() for frame in live.connect("tablet").messages()]
    assert bodies == ["other publisher", "administrator", "owner"]


class TestStreams:
    async def test_are_listed_for_those_whom_they_concern(
        self, callers: dict[str, httpx.AsyncClient], things: dict[str, str], phone: Phone
    ) -> None:
        from_phone = await self.opened_by_phone(callers, phone)
        for caller, (_, app, _, let_in) in CALLERS.items():
            listed = (await callers[caller].get("/v1/streams")).json()["streams"]
            expected = [things["stream"]] if let_in else []
            if app != "elsewhere":
                expected.append(from_phone)
            assert [stream["id"] for stream in listed] == expected, caller

    async def test_that_a_device_sends_to_publishers_are_fetched_by_any_of_its_app(
        self, callers: dict[str, httpx.AsyncClient], phone: Phone
    ) -> None:
        place = f"/v1/streams/{await self.opened_by_phone(callers, phone)}"
        for path in place, f"{place}/content":
            assert (await callers["other publisher"].get(path)).status_code == 200
            stranger = await callers["publisher of another app"].get(path)
            assert refusal(stranger) == (404, "not_found", None)
        assert (await callers["publisher of another app"].delete(place)).status_code == 404
        assert (await callers["other publisher"].delete(place)).json()["state"] == "stopped"

    async def test_to_publishers_are_sent_and_ended_by_whoever_opened_them(
        self, callers: dict[str, httpx.AsyncClient]
    ) -> None:
        owner, other = callers["owner"], callers["other publisher"]
        id_ = (await owner.post("/v1/streams", json={"to": "publisher:"})).json()["id"]
        place = f"/v1/streams/{id_}"
        assert (await owner.put(f"{place}/content", content=b"abc")).status_code == 200
        for refused in (
            await other.put(f"{place}/content?offset=3", content=b"def"),
            await other.post(f"{place}/end"),
            await other.delete(place),
        ):
            assert refusal(refused) == (404, "not_found", None)
        assert (await other.get(f"{place}/content")).content == b"abc"

    async def opened_by_phone(self, callers: dict[str, httpx.AsyncClient], phone: Phone) -> str:
        before = await self.ids(callers)
        key = first_key_at(phone._live.time)
        phone.send(Headers(to="publisher:", stream=True), b"", key=key)
        (new,) = await self.ids(callers) - before
        return new

    async def ids(self, callers: dict[str, httpx.AsyncClient]) -> set[str]:
        listed = (await callers["administrator"].get("/v1/streams")).json()["streams"]
        return {stream["id"] for stream in listed}
