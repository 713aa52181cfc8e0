"""The local SMSC: accounts, phones, receipts, and what a gateway may ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from lasthop.runtime.clock import SystemClock
from lasthop.runtime.smsc.center import LocalSmsc, SmscFaults, SmscTerms
from lasthop.runtime.smsc.phones import Shown
from lasthop.wire.smpp.commands import SmppCommand, SmppStatus, SmsState
from lasthop.wire.smpp.esme import (
    Answered,
    Bound,
    Ended,
    Esme,
    EsmeTerms,
    Event,
    SmsArrived,
    SubmitRefused,
    Submitted,
)
from lasthop.wire.smpp.smpp_pdus import (
    Bind,
    Body,
    Cancel,
    QueryAnswer,
    Replace,
    ShortMessage,
    SmppQuery,
    phone_address,
)

pytestmark = pytest.mark.anyio

SMS = ShortMessage(destination=phone_address("+15551999"), message=b"hello", registered=1)


class Client:
    """A gateway with a real socket."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bind: Bind
    ) -> None:
        self._reader, self._writer = reader, writer
        self.esme = Esme(EsmeTerms(bind=bind), 0)
        self.events: list[Event] = []

    async def until(self, wanted: Callable[[Event], bool]) -> Event:
        """Wait for an event, and return it."""
        async with asyncio.timeout(20):
            while True:
                for event in self.events:
                    if wanted(event):
                        self.events.remove(event)
                        return event
                self._writer.write(self.esme.octets())
                self.events += self.esme.receive(await self._reader.read(65_536), 0)

    async def ask(self, command: SmppCommand, body: Body) -> Answered:
        sequence = self.esme.ask(command, body, 0)
        found = await self.until(lambda e: isinstance(e, Answered) and e.sequence == sequence)
        assert isinstance(found, Answered)
        return found

    async def submit(self, message: ShortMessage = SMS) -> Event:
        sequence = self.esme.submit(message, 0)
        return await self.until(
            lambda e: isinstance(e, Submitted | SubmitRefused) and e.sequence == sequence
        )

    async def arrived(self) -> SmsArrived:
        found = await self.until(lambda e: isinstance(e, SmsArrived))
        assert isinstance(found, SmsArrived)
        return found


@asynccontextmanager
async def smsc(
    terms: SmscTerms, *, bind: Bind | None = None
) -> AsyncIterator[tuple[LocalSmsc, Client, list[Shown]]]:
    shown: list[Shown] = []
    found = LocalSmsc(terms, clock=SystemClock(), shown=shown.append)
    port = await found.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield found, Client(reader, writer, bind or Bind("me")), shown
    finally:
        writer.close()
        await found.stop()


async def test_a_message_reaches_its_phone() -> None:
    async with smsc(SmscTerms(receipt_after=0)) as (found, client, shown):
        await client.until(lambda e: isinstance(e, Bound))
        assert await client.submit() == Submitted(2, "0000000001")
        arrived = await client.arrived()
        assert arrived.receipt is not None
        assert arrived.receipt.state is SmsState.DELIVERED
        assert [(each.to, each.text) for each in shown] == [("15551999", "hello")]
        assert found.submitted == 1


async def test_some_phones_cannot_be_reached() -> None:
    terms = SmscTerms(receipt_after=0, unreachable=("+15551",))
    async with smsc(terms) as (_, client, shown):
        await client.until(lambda e: isinstance(e, Bound))
        await client.submit()
        arrived = await client.arrived()
        assert arrived.receipt is not None
        assert arrived.receipt.state is SmsState.UNDELIVERABLE
        assert shown == []


@pytest.mark.parametrize(
    "bind, says", [(Bind("you", "secret"), "system id"), (Bind("me", "guess"), "password")]
)
async def test_only_the_account_may_bind(bind: Bind, says: str) -> None:
    terms = SmscTerms(system_id="me", password="secret")
    async with smsc(terms, bind=bind) as (_, client, _):
        ended = await client.until(lambda e: isinstance(e, Ended))
        assert isinstance(ended, Ended)
        assert says in ended.reason


async def test_a_message_on_its_way_can_be_asked_about_and_changed() -> None:
    async with smsc(SmscTerms(receipt_after=0.3)) as (_, client, shown):
        await client.until(lambda e: isinstance(e, Bound))
        for _ in range(2):
            await client.submit()
        state = await client.ask(SmppCommand.QUERY_SM, SmppQuery("0000000001"))
        assert isinstance(state.body, QueryAnswer)
        assert state.body.state == SmsState.ENROUTE
        cancelled = await client.ask(SmppCommand.CANCEL_SM, Cancel("0000000001"))
        assert cancelled.status == 0
        new = Replace(message_id="0000000002", message=b"better")
        assert (await client.ask(SmppCommand.REPLACE_SM, new)).status == 0
        first, second = await client.arrived(), await client.arrived()
        states = [r.receipt.state for r in (first, second) if r.receipt is not None]
        assert states == [SmsState.DELETED, SmsState.DELIVERED]
        assert [each.text for each in shown] == ["better"]
        state = await client.ask(SmppCommand.QUERY_SM, SmppQuery("0000000002"))
        assert isinstance(state.body, QueryAnswer)
        assert state.body.final_at
        for command, body, status in (
            (SmppCommand.QUERY_SM, SmppQuery("9"), SmppStatus.QUERY_FAILED),
            (SmppCommand.CANCEL_SM, Cancel("0000000002"), SmppStatus.CANCEL_FAILED),
            (SmppCommand.REPLACE_SM, Replace(message_id="9"), SmppStatus.REPLACE_FAILED),
        ):
            assert (await client.ask(command, body)).status == status


async def test_a_message_may_come_too_late() -> None:
    late = ShortMessage(destination=SMS.destination, registered=1, validity="000000000001000R")
    async with smsc(SmscTerms(receipt_after=1.1)) as (_, client, shown):
        await client.until(lambda e: isinstance(e, Bound))
        await client.submit(late)
        arrived = await client.arrived()
        assert arrived.receipt is not None
        assert arrived.receipt.state is SmsState.EXPIRED
        assert shown == []


async def test_faults_are_as_many_as_was_said() -> None:
    terms = SmscTerms(receipt_after=0, faults=SmscFaults(seed=3, busy=0.5, double=1))
    async with smsc(terms) as (found, client, _):
        await client.until(lambda e: isinstance(e, Bound))
        for _ in range(8):
            sequence = client.esme.ask(SmppCommand.SUBMIT_SM, SMS, 0)
            await client.until(lambda e, s=sequence: getattr(e, "sequence", 0) == s)  # type: ignore[misc]
        assert 0 < found.submitted < 8
        for _ in range(2 * found.submitted):
            await client.arrived()


async def test_receipts_wait_for_the_gateway() -> None:
    async with smsc(SmscTerms(receipt_after=0.05)) as (found, client, _):
        await client.until(lambda e: isinstance(e, Bound))
        await client.submit()
        for connection in list(found._connections):
            connection.abort()
        await asyncio.sleep(0.2)
        assert found._server is not None
        port = found._server.sockets[0].getsockname()[1]
        again = Client(*await asyncio.open_connection("127.0.0.1", port), Bind("me"))
        arrived = await again.arrived()
        assert arrived.receipt is not None
        again._writer.close()
