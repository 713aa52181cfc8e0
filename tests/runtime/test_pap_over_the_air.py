"""An initiator, a gateway and clients that never connect: pushes by PAP, and what is reported.

About `runtime/air.py` and `access/pap/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lasthop.delivery.ota.datagrams import Datagrams, bound
from lasthop.message import DeliveryMethod
from lasthop.runtime.serve import running
from lasthop.wire.pap.documents import (
    Document,
    PushMessage,
    QualityOfService,
    ResultNotificationMessage,
)
from lasthop.wire.pap.multipart import Entity
from lasthop.wire.pap.submission import PapSubmission, write_submission
from lasthop.wire.pap.versions import Version
from lasthop.wire.wsp.pdus import Push, decode_unit
from tests.delivery.ota.http_phone import Phone, Request, accepted, registered
from tests.runtime.test_air import SessionPhone
from tests.runtime.test_pap import EventListener
from tests.runtime.test_serve import DEADLINE, never, settings

SI = b'<si><indication href="http://www.xyz.com/a">hello</indication></si>'
CONFIRMED, RESPONSE = DeliveryMethod.CONFIRMED, DeliveryMethod.CONFIRMED_WITH_RESPONSE
Heard = tuple[ResultNotificationMessage, PapSubmission]


class Initiator:
    """Submits pushes, and waits for their results."""

    def __init__(self, http: httpx.AsyncClient, listener: EventListener) -> None:
        self._http = http
        self._ear = listener
        self._count = 0

    async def client(self, name: str, variant: str, address: str) -> str:
        """A client with this route; its address in PAP."""
        device = {
            "name": name,
            "addresses": [f"USER:{name}"],
            "routes": [{"variant": variant, "address": address}],
        }
        (await self._http.post("/v1/devices", json=device)).raise_for_status()
        return f"WAPPUSH={name}/TYPE=USER@ppg.example.com"

    async def push(
        self, address: str, body: bytes = b"hello", media: str = "text/plain", **quality: Any
    ) -> Heard:
        """Push, and hear what became of it."""
        self._count += 1
        message = PushMessage(
            f"{self._count}@pi.example.org",
            (address,),
            quality=QualityOfService(**quality),
            notify_to=self._ear.url,
        )
        content = Entity((("Content-Type", media),), body)
        kind, written = write_submission(PapSubmission(Document(message, Version.V2_1), content))
        answer = await self._http.post("/pap", content=written, headers={"Content-Type": kind})
        assert 'code="1001"' in answer.text
        heard = await asyncio.to_thread(self._ear.results.get, True, DEADLINE)
        assert heard[0].push_id == message.push_id
        assert heard[0].address == address
        return heard


@pytest.fixture
def listener() -> Iterator[EventListener]:
    listener = EventListener()
    yield listener
    listener.leave()


@pytest.fixture
async def initiator(tmp_path: Path, listener: EventListener) -> AsyncIterator[Initiator]:
    ota = {"ota.sessions": "127.0.0.1:0"}
    async with (
        running(settings(tmp_path, **ota), never) as places,
        httpx.AsyncClient(base_url=places.http, timeout=DEADLINE) as http,
    ):
        yield Initiator(http, listener)


def said(heard: Heard) -> tuple[str, int, DeliveryMethod | None]:
    """State, code and the delivery method that was really used."""
    message = heard[0]
    method = message.quality.method if message.quality is not None else None
    return str(message.state), message.code, method


@pytest.mark.conformance("PPG-GEN-S-013", "PPG-GEN-S-024", "PPG-GEN-S-026")
async def test_a_client_of_ota_http_confirms_answers_and_refuses(initiator: Initiator) -> None:
    phone = Phone()
    await phone.listen("127.0.0.4")
    to = await initiator.client("web", "http", f"127.0.0.4:{phone.port}")
    assert said(await initiator.push(to, method=CONFIRMED)) == ("delivered", 1000, CONFIRMED)

    def yes(request: Request) -> bytes:
        if request.method == "OPTIONS":
            return registered()
        assert request.headers["x-wap-push-info"] == "response"
        head = b"HTTP/1.1 200 OK\r\nX-Wap-Push-Status: 400\r\nContent-Type: text/x-answer\r\n"
        return head + b"Content-Length: 3\r\n\r\nyes"

    phone.answer = yes
    message, submission = await initiator.push(to, method=RESPONSE)
    assert (str(message.state), message.code) == ("delivered", 1000)
    assert submission.content is not None
    assert submission.content.content_type == "text/x-answer"
    assert submission.content.body == b"yes"

    refusal = b"HTTP/1.1 204 No Content\r\nX-Wap-Push-Status: 237\r\n\r\n"
    phone.answer = lambda request: accepted(request) if request.method == "OPTIONS" else refusal
    heard = await initiator.push(to, method=CONFIRMED)
    assert said(heard)[:2] == ("aborted", 5029)
    phone.close()


@pytest.mark.conformance("PPG-GEN-S-013")
async def test_a_client_with_a_session_confirms_and_aborts(initiator: Initiator) -> None:
    phone = SessionPhone("127.0.0.5")
    to = await initiator.client("handset", "wsp-session", await phone.start())
    assert said(await initiator.push(to, method=CONFIRMED)) == ("delivered", 1000, CONFIRMED)
    assert await phone.had.get() == b"hello"
    phone.refuses = 0xEB
    assert said(await initiator.push(to, method=CONFIRMED))[:2] == ("aborted", 5027)
    phone.close()


@pytest.mark.conformance(
    "PPG-GEN-S-007", "PPG-GEN-S-008", "PPG-GEN-S-012", "PPG-GEN-S-025", "PPG-GEN-S-027"
)
async def test_a_client_that_only_listens_is_sent_to_and_nothing_else(
    initiator: Initiator,
) -> None:
    arrived: asyncio.Queue[bytes] = asyncio.Queue()
    sock = bound("127.0.0.6", 0)
    port = sock.getsockname()[1]
    sink = await Datagrams.open(sock, lambda data, _: arrived.put_nowait(data))
    to = await initiator.client("pager", "wsp", f"127.0.0.6:{port}")
    for method in (DeliveryMethod.UNCONFIRMED, DeliveryMethod.ONESHOT):
        heard = await initiator.push(to, SI, "text/vnd.wap.si", method=method)
        assert said(heard) == ("delivered", 1000, method)
        _, pdu = decode_unit(await arrived.get())
        assert isinstance(pdu, Push)
        assert pdu.content_type == "application/vnd.wap.sic"
    for code, quality, body in (
        (3006, {}, b"<si>"),
        (3007, {"method": CONFIRMED}, SI),
        (3007, {"method": RESPONSE}, SI),
        (3010, {"bearer": "SMS", "bearer_required": True}, SI),
        (3009, {"network": "GSM", "network_required": True}, SI),
    ):
        heard = await initiator.push(to, body, "text/vnd.wap.si", **quality)
        assert said(heard)[:2] == ("undeliverable", code), quality
    assert arrived.empty()
    sink.close()
