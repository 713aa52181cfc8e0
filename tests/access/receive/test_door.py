"""Receiving topics over HTTP and WebSocket; about `access/receive/receive_door.py`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from lasthop.access.ntfy.ntfy_event import NtfyEvent
from lasthop.access.receive.encoded import EncodedEvent, ReceiveForm, frame
from lasthop.access.receive.hub import Hub, ReceiveSettings, TooManyListeners
from lasthop.access.receive.topic_listener import MOST_BEHIND, MOST_UNSENT, TopicListener
from lasthop.access.rest import Door, RestSettings, make_app
from lasthop.core.apps.credentials import Scope
from lasthop.core.effects import Appeared
from lasthop.message import parse_id
from tests.access.knocking import knock
from tests.access.live import LiveInMemory


class Pipe:
    """An outlet that a test reads, or does not."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.waiting = 0

    def write(self, data: bytes) -> None:
        self.written.append(data)

    @property
    def unsent(self) -> int:
        return self.waiting


def listener_of(
    hub: Hub, pipe: Pipe, *topics: str, form: ReceiveForm = ReceiveForm.JSON
) -> TopicListener:
    listener = TopicListener(
        "default",
        ",".join(topics),
        form,
        pipe,
        chunked=False,
        wants=None,
        over=lambda: None,
        fell_behind=hub.note_fallen_behind,
    )
    hub.join(listener, topics)
    return listener


@pytest.fixture
def hub(live: LiveInMemory, door: Door) -> Hub:
    live.listeners = door.hub.appeared
    return door.hub


def lines(pipe: Pipe) -> list[dict[str, Any]]:
    return [json.loads(each) for each in pipe.written]


def texts(events: Iterable[dict[str, Any]]) -> list[str]:
    return [event["message"] for event in events if event["event"] == "message"]


class TestLive:
    async def test_all_listeners_get_what_appears(self, http: httpx.AsyncClient, hub: Hub) -> None:
        pipes = [Pipe(), Pipe()]
        for pipe in pipes:
            for seat in listener_of(hub, pipe, "news", "other").seats:
                seat.catch_up()
        await http.post("/news", content=b"1")
        await http.post("/other", content=b"2")
        await http.post("/third", content=b"3")
        assert [texts(lines(pipe)) for pipe in pipes] == [["1", "2"], ["1", "2"]]
        await hub.close()

    async def test_a_message_is_encoded_once(self, http: httpx.AsyncClient, hub: Hub) -> None:
        pipes = [Pipe(), Pipe()]
        for pipe in pipes:
            for seat in listener_of(hub, pipe, "news").seats:
                seat.catch_up()
        await http.post("/news", content=b"1")
        assert pipes[0].written[0] is pipes[1].written[0]
        await hub.close()

    async def test_what_comes_while_it_catches_up_comes_once(
        self, http: httpx.AsyncClient, hub: Hub, live: LiveInMemory
    ) -> None:
        pipe = Pipe()
        listener = listener_of(hub, pipe, "news")
        first = (await http.post("/news", content=b"1")).json()["message_id"]
        await http.post("/news", content=b"2", headers={"Cache": "no"})
        await http.post("/news", content=b"3")
        assert pipe.written == []
        history = live.gateway.topics.histories.find("default", "news")
        assert history is not None
        (entry, _) = history.newest_first(live.gateway.durable, live.time)
        assert entry.key != parse_id(first)[0]
        listener.seats[0].after = parse_id(first)[0]  # It was given the first.
        listener.seats[0].catch_up()
        assert texts(lines(pipe)) == ["2", "3"]
        await hub.close()

    async def test_nobody_is_told_after_leaving(self, http: httpx.AsyncClient, hub: Hub) -> None:
        pipe = Pipe()
        listener = listener_of(hub, pipe, "news")
        listener.seats[0].catch_up()
        hub.leave(listener)
        await http.post("/news", content=b"1")
        assert pipe.written == []
        assert hub.count == 0

    async def test_a_message_that_is_in_the_store_only_keeps_its_place(
        self, http: httpx.AsyncClient, hub: Hub, live: LiveInMemory
    ) -> None:
        pipe = Pipe()
        for seat in listener_of(hub, pipe, "news").seats:
            seat.catch_up()
        told: list[Appeared] = []
        live.listeners = told.append
        for text in ("1", "2"):
            await http.post("/news", content=text)
        (one, two) = told
        hub.appeared(Appeared(one.app, one.topic, one.key, one.place, None))
        hub.appeared(two)
        for _ in range(9):
            await asyncio.sleep(0)
        assert texts(lines(pipe)) == ["1", "2"]
        await hub.close()


class TestSlowListeners:
    async def test_are_ended_with_the_id_to_go_on_from(
        self, http: httpx.AsyncClient, hub: Hub
    ) -> None:
        pipe = Pipe()
        listener = listener_of(hub, pipe, "news")
        listener.seats[0].catch_up()
        first = (await http.post("/news", content=b"1")).json()["id"]
        pipe.waiting = MOST_UNSENT + 1
        await http.post("/news", content=b"2")
        assert listener.ended
        last = lines(pipe)[-1]
        assert (last["event"], last["since"]) == ("closed", first)
        assert hub.fallen_behind == 1
        text = (await http.get(f"/news/json?poll=1&since={last['since']}")).text
        assert texts(map(json.loads, text.splitlines())) == ["2"]
        await hub.close()

    async def test_so_are_those_that_never_catch_up(self, hub: Hub) -> None:
        pipe = Pipe()
        listener = listener_of(hub, pipe, "news")
        encoded = EncodedEvent(NtfyEvent(id="x", event="message", topic="news", message="x"))
        for place in range(MOST_BEHIND + 1):
            listener.seats[0].put_off(place, encoded)
        assert listener.ended
        await hub.close()


class TestLimits:
    async def test_in_all_and_by_address(self, live: LiveInMemory) -> None:
        hub = Hub(live, ReceiveSettings(listeners=1, per_address=1))
        hub.admit("192.0.2.1")
        with pytest.raises(TooManyListeners):
            hub.admit("192.0.2.1")
        hub.admit("192.0.2.2")
        listener_of(hub, Pipe(), "news")
        with pytest.raises(TooManyListeners):
            hub.admit("192.0.2.3")
        hub.dismiss("192.0.2.1")
        await hub.close()


class TestForms:
    EVENT = NtfyEvent(id="a", event="message", topic="t", message="1\n<2>")

    def test_a_line_of_json(self) -> None:
        part = EncodedEvent(self.EVENT).part(ReceiveForm.JSON)
        assert part.endswith(b"\n")
        assert b"\\u003c2\\u003e" in part

    def test_server_sent_events(self) -> None:
        assert EncodedEvent(self.EVENT).part(ReceiveForm.SSE).startswith(b'data: {"id":"a"')
        opened = EncodedEvent(NtfyEvent(id="a", event="open", topic="t")).part(ReceiveForm.SSE)
        assert opened.startswith(b"event: open\ndata: {")
        assert opened.endswith(b"}\n\n")

    def test_text(self) -> None:
        assert EncodedEvent(self.EVENT).part(ReceiveForm.RAW) == b"1 <2>\n"
        assert (
            EncodedEvent(NtfyEvent(id="a", event="keepalive", topic="t")).part(ReceiveForm.RAW)
            == b"\n"
        )

    def test_websocket_has_a_sequence_id_in_any_case(self) -> None:
        encoded = EncodedEvent(self.EVENT)
        assert json.loads(encoded.part(ReceiveForm.WS))["sequence_id"] == "a"
        assert "sequence_id" not in json.loads(encoded.part(ReceiveForm.JSON))

    def test_chunks_and_frames(self) -> None:
        part = EncodedEvent(self.EVENT).part(ReceiveForm.JSON)
        wire = EncodedEvent(self.EVENT).wire(ReceiveForm.JSON, chunked=True)
        assert wire == b"%x\r\n%b\r\n" % (len(part), part)
        for size, head in ((5, 2), (200, 4), (70_000, 10)):
            assert len(frame(b"x" * size)) == size + head


class TestWhoMay:
    async def test_a_scope_is_needed(self, live: LiveInMemory) -> None:
        for number, scope in enumerate((Scope.PUBLISH, Scope.DEVICES, Scope.SUBSCRIBE)):
            live.gateway.credentials.add(f"t{number}", "default", f"c{number}", {scope}, 0)
        async with knock(make_app(live, RestSettings())) as http:
            assert (await http.get("/news/json?poll=1")).json()["code"] == 40101
            for number, status in enumerate((403, 403, 200)):
                headers = {"authorization": f"Bearer t{number}"}
                answer = await http.get("/news/json?poll=1", headers=headers)
                assert answer.status_code == status
            answer = await http.get("/news/auth?auth=QmVhcmVyIHQy")
            assert answer.json() == {"success": True}
            assert (await http.get("/news/auth?auth=!")).status_code == 401
            wrong = await http.post("/news", headers={"authorization": "Bearer t2"})
            assert wrong.json()["code"] == 40301

    async def test_other_methods_are_refused(self, http: httpx.AsyncClient) -> None:
        for method in ("HEAD", "PATCH"):
            assert (await http.request(method, "/news/json")).status_code in (404, 405)

    async def test_a_browser_may_ask(self, http: httpx.AsyncClient) -> None:
        answer = await http.request("OPTIONS", "/news")
        assert answer.headers["access-control-allow-origin"] == "*"
