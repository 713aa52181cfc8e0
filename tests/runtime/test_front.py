"""Which requests the front answers itself, and which it passes on."""

from __future__ import annotations

import httpx
import pytest

from lasthop.runtime.front import App, Front, Message, Receive, Scope, Send
from lasthop.runtime.metrics import Metrics
from lasthop.store.commit import Commit, DeliveryRow
from lasthop.wire.hop.frames import CloseCode


async def rest(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


async def initiators(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 202, "headers": []})
    await send({"type": "http.response.body", "body": b"<pap/>"})


def front(*, ready: bool = True, devices: App = rest) -> Front:
    return Front(
        rest,
        websocket=("/hop", devices),
        requests=("/hop", rest),
        pap=("/pap", initiators),
        metrics=Metrics(),
        ready=lambda: ready,
    )


async def get(app: Front, path: str) -> httpx.Response:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.get(path)


async def test_health_is_there_as_long_as_the_gateway_is() -> None:
    assert (await get(front(ready=False), "/health")).status_code == 200


@pytest.mark.parametrize("ready,status", [(True, 200), (False, 503)])
async def test_ready_tells_whether_work_is_taken_in(ready: bool, status: int) -> None:
    assert (await get(front(ready=ready), "/ready")).status_code == status


async def test_initiators_have_a_path_of_their_own() -> None:
    assert (await get(front(), "/pap")).text == "<pap/>"
    assert (await get(front(), "/pap/x")).text == "/pap/x"


async def test_everything_else_is_for_the_rest_door() -> None:
    response = await get(front(), "/v1/messages/1")
    assert (response.status_code, response.text) == (418, "/v1/messages/1")


async def test_websockets_of_devices_come_in_at_their_path_only() -> None:
    reached: list[str] = []
    sent: list[Message] = []

    async def devices(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["path"])

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    app = front(devices=devices)
    await app({"type": "websocket", "path": "/hop"}, receive, send)
    await app({"type": "websocket", "path": "/other"}, receive, send)
    assert reached == ["/hop"]
    assert sent[-1]["body"] == b"/other"  # The listeners of topics are the REST door's.


async def test_metrics_tell_what_commits_held() -> None:
    metrics = Metrics()
    commit = Commit(n=1, first_event=0, event_count=3)
    for device, state in enumerate([10, 10, 12, 0]):
        commit.deliveries.append(DeliveryRow(1, device, state, state < 10, 0, 0, 0, 0, 0))
    metrics.committed(commit, 0.003)
    metrics.disconnected(CloseCode.UNAUTHORIZED)
    metrics.gauge("lasthop_open", "Open.", lambda: 5)
    metrics.counts("lasthop_errors", "Errors.", ["code"], lambda: {("bad",): 2})
    page = metrics.render().decode()
    for line in (
        "lasthop_commits_total 1.0",
        "lasthop_events_total 3.0",
        'lasthop_deliveries_total{state="delivered"} 2.0',
        'lasthop_deliveries_total{state="expired"} 1.0',
        'lasthop_deliveries_total{state="cancelled"} 0.0',
        'lasthop_commit_seconds_bucket{le="0.005"} 1.0',
        'lasthop_disconnects_total{reason="unauthorized"} 1.0',
        "lasthop_open 5.0",
        'lasthop_errors_total{code="bad"} 2.0',
    ):
        assert line in page
