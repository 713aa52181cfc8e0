"""Streams and the behaviour of an app over REST."""

from __future__ import annotations

import zlib

import httpx
import pytest

from tests.access.knocking import refusal
from tests.access.live import LiveInMemory

CONTENT = bytes(range(256)) * 40
BEHAVIOUR = "/v1/apps/default/behaviour"


@pytest.fixture(autouse=True)
def phone(live: LiveInMemory) -> None:
    live.register("phone")


async def opened(http: httpx.AsyncClient, to: str = "publisher:") -> str:
    answer = await http.post("/v1/streams", json={"to": to, "title": "film"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_what_is_sent_can_be_fetched_and_ends_with_a_checksum(
    http: httpx.AsyncClient,
) -> None:
    stream = await opened(http)
    place = f"/v1/streams/{stream}"
    sent = (await http.put(f"{place}/content?offset=0", content=CONTENT)).json()
    assert (sent["position"], sent["state"]) == (len(CONTENT), "open")
    # What came before is passed over.
    again = await http.put(f"{place}/content?offset=100", content=CONTENT[100:] + b"more")
    assert again.json()["position"] == len(CONTENT) + 4
    first = await http.get(f"{place}/content?offset=0")
    assert first.content == CONTENT + b"more"
    checksum = f"{zlib.crc32(CONTENT + b'more'):08x}"
    end = await http.post(f"{place}/end", json={"size": len(CONTENT) + 4, "checksum": checksum})
    assert end.json()["state"] == "complete"
    last = await http.get(f"{place}/content?offset={len(CONTENT) + 4}")
    assert (last.content, last.headers["x-stream-state"]) == (b"", "complete")
    assert last.headers["x-stream-checksum"] == checksum
    over = (await http.get(place)).json()
    assert (over["state"], over["taken"]) == ("complete", len(CONTENT) + 4)
    assert (await http.get("/v1/streams")).json() == {"streams": []}


async def test_a_sender_is_held_back_when_the_window_is_full(
    live: LiveInMemory, http: httpx.AsyncClient
) -> None:
    live.patient = False
    stream = await opened(http, "device:phone")
    window = live.gateway.streams.window
    answer = await http.put(f"/v1/streams/{stream}/content?offset=0", content=bytes(window + 10))
    assert (answer.json()["position"], answer.json().get("room", 0)) == (window, 0)
    listed = (await http.get("/v1/streams")).json()["streams"]
    assert [(row["id"], row["to"], row["taken"]) for row in listed] == [(stream, "device:phone", 0)]


async def test_what_does_not_fit_together_is_refused(http: httpx.AsyncClient) -> None:
    stream = await opened(http)
    place = f"/v1/streams/{stream}"
    gap = await http.put(f"{place}/content?offset=5", content=b"x")
    assert refusal(gap) == (409, "conflict", None)
    assert "the stream goes on at its position" in gap.text
    await http.put(f"{place}/content?offset=0", content=b"abc")
    short = await http.post(f"{place}/end", json={"size": 4})
    assert (short.status_code, "some bytes of the stream are missing" in short.text) == (409, True)
    wrong = await http.post(f"{place}/end", json={"checksum": "00000000"})
    assert (wrong.status_code, "the checksum does not match" in wrong.text) == (400, True)
    beyond = await http.get(f"{place}/content?offset=9")
    assert (beyond.status_code, "has not reached this offset" in beyond.text) == (409, True)
    await http.get(f"{place}/content?offset=2")
    behind = await http.get(f"{place}/content?offset=0")
    assert (behind.status_code, "was fetched already" in behind.text) == (409, True)
    assert (await http.get("/v1/streams/0000000000000001")).status_code == 404
    assert (await http.get("/v1/streams/nonsense")).status_code == 400


async def test_a_stream_goes_to_one_device_or_to_publishers(http: httpx.AsyncClient) -> None:
    for to in ("topic:news", "user:eve", "app:"):
        answer = await http.post("/v1/streams", json={"to": to})
        assert (answer.status_code, "a stream must go to one device" in answer.text) == (400, True)
    assert (await http.post("/v1/streams", json={"to": "device:nobody"})).status_code == 404


async def test_a_stream_that_is_given_up_takes_no_more(http: httpx.AsyncClient) -> None:
    stream = await opened(http, "device:phone")
    place = f"/v1/streams/{stream}"
    assert (await http.delete(place)).json()["state"] == "aborted"
    assert (await http.get(place)).json()["state"] == "aborted"
    assert (await http.put(f"{place}/content", content=b"x")).status_code == 404


async def test_a_behaviour_gives_defaults_and_limits(
    live: LiveInMemory, http: httpx.AsyncClient
) -> None:
    assert (await http.get(BEHAVIOUR)).json() == {}
    wanted = {
        "handling": "silent",
        "reliability": "at-least-once-processing",
        "content_types": ["text/*"],
        "max_size": 10,
        "fixed": ["handling"],
    }
    assert (await http.put(BEHAVIOUR, json=wanted)).json() == wanted
    answer = await http.post("/v1/messages", json={"device": "phone", "body": "hello"})
    message = live.store.messages([int(answer.json()["id"][:16], 16)])
    (kept,) = message.values()
    assert (kept.handling.name, kept.reliability.name) == ("SILENT", "AT_LEAST_ONCE_PROCESSING")
    bad: list[tuple[dict[str, object], int, str]] = [
        ({"body": "x" * 11}, 413, "body too large for this app"),
        ({"json": 1}, 415, "does not permit this content type"),
        ({"body": "x", "handling": "notify"}, 400, "handling is fixed for this app"),
    ]
    for fields, status, words in bad:
        answer = await http.post("/v1/messages", json={"device": "phone", **fields})
        assert (answer.status_code, words in answer.text) == (status, True), answer.text
    said = {"device": "phone", "body": "x", "reliability": "exactly-once"}
    assert (await http.post("/v1/messages", json=said)).status_code == 202
    assert (await http.delete(BEHAVIOUR)).json() == {}
    assert (
        await http.post("/v1/messages", json={"device": "phone", "body": "x" * 11})
    ).status_code == 202


async def test_a_behaviour_that_makes_no_sense_is_refused(http: httpx.AsyncClient) -> None:
    for body in ({"handling": "loud"}, {"max_size": -1}, {"content_types": ["text"]}, {"x": 1}):
        assert (await http.put(BEHAVIOUR, json=body)).status_code == 400
    large = await http.put(BEHAVIOUR, json={"max_size": 1 << 40})
    assert (large.status_code, "send larger bodies as streams" in large.text) == (400, True)
    assert (await http.get("/v1/apps/other/behaviour")).status_code == 404
