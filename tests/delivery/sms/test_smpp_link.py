"""A session with an SMSC over real sockets: bind, submit, receipts, and coming back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from lasthop.clock import MILLISECOND, SECOND
from lasthop.delivery.sms import smpp_link
from lasthop.delivery.sms.smpp_link import SmppLink, SmppTerms, connections_of
from lasthop.delivery.sms.smpp_units import SmppForm
from lasthop.delivery.sms.sms_link import (
    OutgoingSms,
    SmsInDoubt,
    SmsOutcome,
    SmsReceipt,
    SmsRefused,
    SmsTaken,
)
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.smsc.center import LocalSmsc, SmscFaults, SmscTerms
from lasthop.runtime.smsc.phones import Shown
from lasthop.wire.smpp.commands import SmsState
from lasthop.wire.smpp.esme import EsmeTerms
from lasthop.wire.smpp.smpp_pdus import Bind, ShortMessage, phone_address

pytestmark = pytest.mark.anyio

DEADLINE = 20
HELLO = OutgoingSms(to="+15551999", text="hello")


class Standing:
    """An SMSC and a link to it."""

    def __init__(self, smsc: LocalSmsc, link: SmppLink, port: int, changed: asyncio.Event) -> None:
        self.smsc = smsc
        self.link = link
        self.port = port
        self.shown: list[Shown] = []
        self.receipts: list[SmsReceipt] = []
        self.confirmations: list[Callable[[bool], None]] = []
        self.changed = changed

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self.changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await self.changed.wait()

    async def send(self, sms: OutgoingSms = HELLO) -> SmsOutcome:
        """Send the first message of a push, and return what became of it."""
        clock = self.link.clock
        await self.until(lambda: self.link.room(clock.now()))
        outcome: asyncio.Future[SmsOutcome] = asyncio.get_running_loop().create_future()
        self.link.send(self.link.prepare(sms, clock.now())[0], outcome.set_result)
        async with asyncio.timeout(DEADLINE):
            return await outcome


@asynccontextmanager
async def standing(
    *,
    mode: str = "transceiver",
    password: str = "secret",
    terms: SmscTerms | None = None,
    **more: Any,
) -> AsyncIterator[Standing]:
    clock = SystemClock()
    account = SmscTerms(system_id="me", password="secret", receipt_after=0.01)
    smsc = LocalSmsc(terms or account, clock=clock)
    port = await smsc.start("127.0.0.1", 0)
    esme = EsmeTerms(bind=Bind("me", password), **more)
    smpp = SmppTerms(
        name="one",
        host="127.0.0.1",
        port=port,
        connections=connections_of(mode, esme),
        form=SmppForm(receipts=True, sender=phone_address("2948")),
    )
    changed = asyncio.Event()
    found: Standing

    def receipted(receipt: SmsReceipt, heard: Callable[[bool], None]) -> None:
        found.receipts.append(receipt)
        found.confirmations.append(heard)
        changed.set()

    link = SmppLink(smpp, clock=clock, changed=changed.set, receipted=receipted)
    found = Standing(smsc, link, port, changed)
    smsc._shown = found.shown.append
    task = asyncio.create_task(link.run())
    try:
        yield found
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await smsc.stop()


@pytest.mark.parametrize("mode", ["transceiver", "pair"])
async def test_a_message_is_taken_shown_and_receipted(mode: str) -> None:
    async with standing(mode=mode) as found:
        assert await found.send() == SmsTaken("0000000001")
        await found.until(lambda: bool(found.receipts))
        (receipt,) = found.receipts
        assert (receipt.link, receipt.state) == ("one", SmsState.DELIVERED)
        assert receipt.message_ids[0] == "0000000001"
        assert "1" in receipt.message_ids
        assert [(shown.to, shown.text) for shown in found.shown] == [("15551999", "hello")]
        assert found.link.problem == ""


async def test_a_receipt_without_an_answer_comes_again() -> None:
    async with standing() as found:
        await found.send()
        await found.until(lambda: len(found.receipts) == 1)
        # The gateway dies before it has noted the receipt.
        for connection in list(found.smsc._connections):
            connection.abort()
        await found.until(lambda: len(found.receipts) == 2)
        found.confirmations[-1](True)
        await asyncio.sleep(0.05)
        assert not any(c.unconfirmed() for c in found.smsc._connections)


async def test_a_transmitter_gets_no_receipts() -> None:
    async with standing(mode="transmitter") as found:
        await found.send()
        await asyncio.sleep(0.1)
        assert found.receipts == []


async def test_a_wrong_password_is_said() -> None:
    async with standing(password="wrong") as found:
        await found.until(lambda: "invalid password" in found.link.problem)
        assert not found.link.up


async def test_an_smsc_that_is_away_is_said_and_found_when_it_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(smpp_link, "FIRST_PAUSE", 0.05)
    async with standing() as found:
        await found.until(lambda: found.link.up)
        await found.smsc.stop()
        await found.until(lambda: not found.link.up)
        await found.until(lambda: "cannot connect" in found.link.problem)
        await found.smsc.start("127.0.0.1", found.port)
        assert isinstance(await found.send(), SmsTaken)


async def test_a_message_that_is_lost_is_in_doubt() -> None:
    terms = SmscTerms(faults=SmscFaults(drop=1))
    async with standing(terms=terms, patience=100 * MILLISECOND) as found:
        outcome = await found.send()
        assert outcome == SmsInDoubt("one: the SMSC did not answer in time")


async def test_a_connection_that_is_lost_leaves_doubt() -> None:
    terms = SmscTerms(faults=SmscFaults(drop=1))
    async with standing(terms=terms) as found:
        await found.until(lambda: found.link.up)
        sending = asyncio.create_task(found.send())
        await asyncio.sleep(0.05)
        for connection in list(found.smsc._connections):
            connection.abort()
        assert isinstance(await sending, SmsInDoubt)


async def test_a_busy_smsc_gets_a_pause() -> None:
    async with standing(terms=SmscTerms(faults=SmscFaults(busy=1))) as found:
        outcome = await found.send()
        assert isinstance(outcome, SmsRefused)
        assert outcome.busy
        now = found.link.clock.now()
        assert not found.link.room(now)
        assert found.link.free_at() > now + SECOND // 2


async def test_a_refusal_has_the_code_of_pap() -> None:
    async with standing() as found:
        outcome = await found.send(OutgoingSms(to="nobody", text="x"))
        assert outcome == SmsRefused("one refuses it: 0x0b invalid destination", 2002)


async def test_messages_of_phones_are_answered() -> None:
    async with standing() as found:
        await found.until(lambda: found.link.up)
        assert found.smsc.deliver(ShortMessage(destination=phone_address("2948"), message=b"hi"))
        await found.until(lambda: not any(c.unconfirmed() for c in found.smsc._connections))
