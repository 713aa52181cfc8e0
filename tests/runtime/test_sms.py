"""Messages to phones through a running gateway and an SMSC, on real sockets.

About `src/lasthop/runtime/sms_sending.py`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from lasthop.runtime.clock import SystemClock
from lasthop.runtime.serve import running
from lasthop.runtime.settings import Settings, load
from lasthop.runtime.smsc.center import LocalSmsc, SmscTerms
from lasthop.runtime.smsc.phones import Shown
from tests.runtime.test_serve import DEADLINE, never, settings
from tests.wire.pap.vectors import example

SI = '<si><indication href="http://www.xyz.com/a">hello</indication></si>'
NUMBER = "+15551999073"


class Operator:
    """An SMSC, and what its phones have got."""

    def __init__(self, **terms: Any) -> None:
        self.shown: asyncio.Queue[Shown] = asyncio.Queue()
        self.smsc = LocalSmsc(SmscTerms(**terms), clock=SystemClock(), shown=self.shown.put_nowait)
        self.port = 0

    async def __aenter__(self) -> Operator:
        self.port = await self.smsc.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.smsc.stop()

    async def next(self) -> Shown:
        async with asyncio.timeout(DEADLINE):
            return await self.shown.get()


def with_smscs(tmp_path: Path, sections: str) -> Settings:
    """Settings with these sections, and everything else as other tests have it."""
    file = tmp_path / "lasthop.toml"
    file.write_text(sections)
    found = settings(tmp_path)
    read = load(file)
    found.smsc = read.smsc
    found.default_routes = read.default_routes
    return found


@asynccontextmanager
async def gateway(
    tmp_path: Path, *operators: Operator, more: str = ""
) -> AsyncIterator[httpx.AsyncClient]:
    sections = "".join(
        f'[smsc.n{n}]\nurl = "smpp://127.0.0.1:{each.port}"\nsender = "2948"\nprice = {n}\n'
        for n, each in enumerate(operators)
    )
    async with (
        running(with_smscs(tmp_path, sections + more), never) as places,
        httpx.AsyncClient(base_url=places.http, timeout=DEADLINE) as client,
    ):
        yield client


async def register(client: httpx.AsyncClient, **more: Any) -> None:
    route = {"variant": "sms", "address": NUMBER}
    made = await client.post("/v1/devices", json={"name": "phone", "routes": [route], **more})
    assert made.status_code == 201, made.text
    assert made.json()["routes"] == [route]


async def send(client: httpx.AsyncClient, **message: Any) -> dict[str, Any]:
    """Send a message to the phone, and return how its delivery ended."""
    answer = await client.post("/v1/messages", json={"device": "phone", **message})
    assert answer.status_code in (200, 201, 202), answer.text
    key = answer.json()["id"]
    done = await client.get(f"/v1/messages/{key}?wait=final&timeout={DEADLINE}")
    found: dict[str, Any] = done.json()["deliveries"][0]
    return found


async def test_texts_and_pushes_reach_a_phone(tmp_path: Path) -> None:
    async with Operator() as operator, gateway(tmp_path, operator) as client:
        await register(client)
        delivery = await send(client, body="Dinner at 8 €")
        assert delivery["state"] == "sent"
        shown = await operator.next()
        assert (shown.to, shown.source, shown.text) == (NUMBER[1:], "2948", "Dinner at 8 €")
        await send(client, body=SI, content_type="text/vnd.wap.si")
        shown = await operator.next()
        assert (shown.port, shown.content_type) == (2948, "application/vnd.wap.sic")
        await send(client, body="x" * 1500, content_type="application/x-test")
        assert len((await operator.next()).content) == 1500
        metrics = (await client.get("/metrics")).text
        assert 'lasthop_carried_total{outcome="sent",variant="sms"} 3.0' in metrics


async def test_a_topic_reaches_a_phone(tmp_path: Path) -> None:
    async with Operator() as operator, gateway(tmp_path, operator) as client:
        await register(client, subscriptions=["news"])
        await client.post("/v1/messages", json={"topic": "news", "body": "It rains"})
        assert (await operator.next()).text == "It rains"


async def test_what_a_phone_cannot_do_is_said(tmp_path: Path) -> None:
    async with Operator() as operator, gateway(tmp_path, operator) as client:
        await register(client)
        for method in ("confirmed", "oneshot"):
            delivery = await send(client, body="x", method=method)
            assert delivery["state"] == "undeliverable"
        assert operator.shown.empty()


async def test_another_smsc_takes_over(tmp_path: Path) -> None:
    async with (
        Operator() as first,
        Operator() as second,
        gateway(tmp_path, first, second) as client,
    ):
        await register(client)
        await send(client, body="by the cheap one")
        assert (await first.next()).text == "by the cheap one"
        await first.smsc.stop()
        delivery = await send(client, body="by the other one", method="unconfirmed")
        assert delivery["state"] in ("sent", "timed_out")
        if delivery["state"] == "sent":
            assert (await second.next()).text == "by the other one"


@pytest.mark.parametrize("address", ["", "mother", "+", "+1555-1999", "1" * 21])
async def test_an_address_that_is_no_number_is_refused(tmp_path: Path, address: str) -> None:
    async with Operator() as operator, gateway(tmp_path, operator) as client:
        route = {"variant": "sms", "address": address}
        made = await client.post("/v1/devices", json={"name": "phone", "routes": [route]})
        assert made.status_code == 400
        assert "phone number" in made.text


def submission(**changes: str) -> tuple[str, bytes]:
    """The example submission, for its phone number alone and without its times: type and body."""
    whole = example("submit.http")
    head, _, body = whole.partition(b"\r\n\r\n")
    kind = next(
        line.partition(b": ")[2] for line in head.split(b"\r\n") if line.startswith(b"Content-Type")
    )
    text = body.decode()
    for pattern in (r'\s+deliver-[a-z]+-timestamp="[^"]*"', r"\s+<address [^>]*TYPE=USER[^>]*>"):
        text = re.sub(pattern, "", text)
    changes.setdefault('delivery-method="confirmed"', 'delivery-method="unconfirmed"')
    changes.setdefault('ppg-notify-requested-to="http://pi.example.org/notify"', "")
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    return kind.decode(), text.encode()


DEFAULT_ROUTE = """
[default_routes.phones]
addresses = ["PLMN:+1555*"]
who = ["anonymous"]
"""


@pytest.mark.conformance("PPG-ADD-S-003", "PPG-GEN-S-008")
async def test_the_example_submission_reaches_a_phone_that_nobody_registered(
    tmp_path: Path,
) -> None:
    async with (
        Operator() as operator,
        gateway(tmp_path, operator, more=DEFAULT_ROUTE) as client,
    ):
        kind, body = submission()
        answer = await client.post("/pap", content=body, headers={"Content-Type": kind})
        assert 'code="1001"' in answer.text
        shown = await operator.next()
        assert (shown.to, shown.content_type) == (NUMBER[1:], "application/vnd.wap.sic")
        assert "You have 4 new emails" in shown.content
        other = {"+15551999073": "+4915551999", "20240229-0001@": "20240229-0002@"}
        kind, body = submission(**other)
        answer = await client.post("/pap", content=body, headers={"Content-Type": kind})
        assert 'code="2003"' in answer.text
        method = 'delivery-method="confirmed"'
        kind, body = submission(**{method: method, "20240229-0001@": "20240229-0003@"})
        answer = await client.post("/pap", content=body, headers={"Content-Type": kind})
        assert 'code="1001"' in answer.text
        assert operator.shown.empty()


async def receipted(client: httpx.AsyncClient, key: str) -> dict[str, Any]:
    """The delivery of a message, once the network has said something."""
    async with asyncio.timeout(DEADLINE):
        while True:
            status = (await client.get(f"/v1/messages/{key}")).json()
            delivery: dict[str, Any] = status["deliveries"][0]
            if "receipt" in delivery:
                return delivery
            await asyncio.sleep(0.02)


async def test_the_network_says_what_the_handset_has(tmp_path: Path) -> None:
    terms = {"receipt_after": 0.05, "unreachable": ("+1555000",)}
    async with Operator(**terms) as operator, gateway(tmp_path, operator) as client:
        await register(client)
        lost = {"name": "lost", "routes": [{"variant": "sms", "address": "+15550001"}]}
        await client.post("/v1/devices", json=lost)
        for device, says in (("phone", "delivered"), ("lost", "undeliverable")):
            message = {"device": device, "body": "x" * 300}
            key = (await client.post("/v1/messages", json=message)).json()["id"]
            delivery = await receipted(client, key)
            assert (delivery["state"], delivery["receipt"]) == ("sent", says)
            told = await client.get(f"/v1/messages/{key}/explain", params={"device": device})
            assert "the network says" in told.text


async def test_a_receipt_finds_its_message_after_a_restart(tmp_path: Path) -> None:
    async with Operator(receipt_after=0.6) as operator:
        async with gateway(tmp_path, operator) as client:
            await register(client)
            key = (await client.post("/v1/messages", json={"device": "phone", "body": "x"})).json()
            await client.get(f"/v1/messages/{key['id']}?wait=final&timeout={DEADLINE}")
        async with gateway(tmp_path, operator) as client:
            delivery = await receipted(client, key["id"])
            assert delivery["receipt"] == "delivered"


async def test_a_limit_of_short_messages_holds_over_two_smscs_and_a_restart(
    tmp_path: Path,
) -> None:
    async with Operator() as first, Operator() as second:
        for life in range(2):
            async with gateway(tmp_path, first, second) as client:
                if not life:
                    await register(client)
                    wanted = {
                        "links": [{"label": "sms", "tariff": {"per_unit": 1_500, "unit": 140}}],
                        "limits": [{"amount": 7, "measure": "units", "period": "day"}],
                    }
                    changed = await client.put("/v1/devices/phone/preferences", json=wanted)
                    assert changed.status_code in (200, 204), changed.text
                for _ in range(2):
                    text = {"device": "phone", "body": "y" * 200}
                    (await client.post("/v1/messages", json=text)).raise_for_status()
                    await asyncio.sleep(0.7)
                if not life:
                    assert first.smsc.submitted == 4
                    await first.smsc.stop()
        # Three messages of two parts each; a fourth would make it eight.
        assert (first.smsc.submitted, second.smsc.submitted) == (4, 2)
