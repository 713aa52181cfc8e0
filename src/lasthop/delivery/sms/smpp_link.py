"""A session with an SMSC by SMPP: connections that come back, submissions and receipts."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias, cast

import msgspec
import structlog

from lasthop.clock import SECOND, Clock, Micros
from lasthop.delivery.sms.smpp_units import SmppForm, SmppUnit, prepare
from lasthop.delivery.sms.sms_link import (
    OutgoingSms,
    SmsInDoubt,
    SmsOutcome,
    SmsReceipt,
    SmsRefused,
    SmsTaken,
    SmsUnit,
)
from lasthop.errors import Rejected, TooLarge
from lasthop.wire.smpp.commands import BUSY, TRANSIENT, SmppStatus, status_text
from lasthop.wire.smpp.delivery_receipts import id_spellings
from lasthop.wire.smpp.esme import (
    Answered,
    BindMode,
    Bound,
    Ended,
    Esme,
    EsmeTerms,
    Event,
    SmsArrived,
    SubmitRefused,
    Submitted,
    SubmitUnanswered,
)

DIAL = 10.0
"""Seconds to connect to an SMSC."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before the first and before later attempts to connect again; each pause is twice the one
before. An account that was refused is tried at the longest pause at once."""

GOODBYE = 2.0
"""Seconds that an SMSC has to answer an unbind."""

_CODES = {
    SmppStatus.INVALID_DESTINATION: 2002,
    SmppStatus.INVALID_SOURCE: 3000,
    SmppStatus.INVALID_ESM_CLASS: 3007,
}
"""PAP's status codes for refusals of an SMSC that say more than 3003."""

log = structlog.get_logger()

Receipted: TypeAlias = Callable[[SmsReceipt, Callable[[bool], None]], None]


class SmppTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The address, the account and the habits of one SMSC."""

    name: str
    host: str
    port: int = 2775
    connections: tuple[EsmeTerms, ...]
    """The terms of the connection, or of one that sends and one that receives."""
    form: SmppForm = SmppForm()
    price: int = 0


class SmppLink:
    """Submits short messages to one SMSC over one connection, or over a pair of them."""

    def __init__(
        self,
        terms: SmppTerms,
        *,
        clock: Clock,
        changed: Callable[[], None],
        receipted: Receipted,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Create the link. `changed` is called when it is up or down or has room; `receipted` is
        called with each receipt, and calls back when the receipt may be answered."""
        self.terms = terms
        self.clock = clock
        self.tls = tls
        self.changed = changed
        self.receipted = receipted
        self._connections = [_Dialled(self, each) for each in terms.connections]
        self._sending = next(c for c in self._connections if c.terms.mode.sends)
        self.problem = "not connected yet"
        """Why the link is not up; empty if it is."""

    @property
    def name(self) -> str:
        return self.terms.name

    @property
    def price(self) -> int:
        return self.terms.price

    @property
    def once(self) -> bool:
        return self.terms.form.one_shot != "refuse"

    @property
    def receipts(self) -> bool:
        return self.terms.form.receipts

    @property
    def up(self) -> bool:
        return self._sending.bound

    def prepare(self, sms: OutgoingSms, now: Micros) -> Sequence[SmsUnit]:
        return prepare(sms, self.terms.form, now)

    def room(self, now: Micros) -> bool:
        return self._sending.room(now)

    def free_at(self) -> Micros:
        return self._sending.free_at()

    def send(self, unit: SmsUnit, report: Callable[[SmsOutcome], None]) -> None:
        self._sending.submit(cast(SmppUnit, unit), report)

    async def run(self) -> None:
        """Keep the connections open until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for connection in self._connections:
                tasks.create_task(connection.run())

    def arrived(self, event: SmsArrived, confirm: Callable[[], None]) -> None:
        """Handle what the SMSC hands over."""
        receipt = event.receipt
        if receipt is None:
            log.info("a phone has sent a message, which nobody wants", smsc=self.name)
            confirm()
            return
        ids = (receipt.message_id, *id_spellings(receipt.message_id))
        told = SmsReceipt(self.name, ids, receipt.state, receipt.error)
        self.receipted(told, lambda known: confirm())


class _Dialled(asyncio.Protocol):
    """One connection of a link, which is opened again and again."""

    def __init__(self, link: SmppLink, terms: EsmeTerms) -> None:
        self.terms = terms
        self._link = link
        self._transport: asyncio.Transport | None = None
        self._esme: Esme | None = None
        self._reports: dict[int, Callable[[SmsOutcome], None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due: Micros | None = None
        self._flushing = False
        self._closed = asyncio.Event()
        self._pause = FIRST_PAUSE

    @property
    def bound(self) -> bool:
        return self._esme is not None and self._esme.bound

    def room(self, now: Micros) -> bool:
        return self._esme is not None and self._esme.room(now)

    def free_at(self) -> Micros:
        return 0 if self._esme is None else self._esme.free_at()

    def submit(self, unit: SmppUnit, report: Callable[[SmsOutcome], None]) -> None:
        assert self._esme is not None
        try:
            sequence = self._esme.submit(unit.message, self._link.clock.now())
        except TooLarge as error:
            report(SmsRefused(error.detail, 3006))
            return
        except Rejected as error:
            report(SmsRefused(error.detail, 3003))
            return
        self._reports[sequence] = report
        self._flush_soon()

    async def run(self) -> None:
        try:
            while True:
                await self._live()
                await asyncio.sleep(self._pause)
                self._pause = min(2 * self._pause, LONGEST_PAUSE)
        finally:
            await self._leave()

    async def _live(self) -> None:
        """Connect, and wait for the end of the connection."""
        terms = self._link.terms
        loop = asyncio.get_running_loop()
        self._closed.clear()
        try:
            async with asyncio.timeout(DIAL):
                await loop.create_connection(
                    lambda: self, terms.host, terms.port, ssl=self._link.tls
                )
        except (OSError, TimeoutError) as error:
            reason = str(error) or "no answer"
            self._down(f"cannot connect to {terms.host}:{terms.port}: {reason}")
            return
        await self._closed.wait()

    async def _leave(self) -> None:
        """Say good-bye to the SMSC, which has a moment to answer what is under way."""
        if self._esme is None or self._transport is None:
            return
        self._esme.unbind(self._link.clock.now())
        self._flush()
        with suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(GOODBYE):
                await self._closed.wait()
        if self._transport is not None:
            self._transport.abort()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._esme = Esme(self.terms, self._link.clock.now())
        self._flush()

    def data_received(self, data: bytes) -> None:
        if self._esme is not None:
            self._act(self._esme.receive(data, self._link.clock.now()))

    def connection_lost(self, exc: Exception | None) -> None:
        esme, self._esme, self._transport = self._esme, None, None
        if esme is not None:
            self._act(esme.lost(str(exc) if exc else "the SMSC has closed the connection"))
        self._stop_timer()
        self._closed.set()

    # From events to the carrier.

    def _act(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Bound():
                    self._pause = FIRST_PAUSE
                    self._link.problem = ""
                    log.info("bound", smsc=self._link.name, to=event.system_id)
                case Submitted():
                    self._report(event.sequence, SmsTaken(event.message_id))
                case SubmitRefused():
                    self._report(event.sequence, _refusal(self._link.name, event.status))
                case SubmitUnanswered():
                    self._report(event.sequence, SmsInDoubt(f"{self._link.name}: {event.reason}"))
                case SmsArrived():
                    self._link.arrived(event, self._confirmer(event.sequence))
                case Answered():
                    pass
                case Ended():
                    if event.refused:
                        self._pause = LONGEST_PAUSE
                    self._down(event.reason)
                    self._close()
        self._flush_soon()
        if events:
            self._link.changed()

    def _confirmer(self, sequence: int) -> Callable[[], None]:
        esme = self._esme

        def confirm() -> None:
            if esme is not None and esme is self._esme:
                esme.confirm(sequence)
                self._flush_soon()

        return confirm

    def _report(self, sequence: int, outcome: SmsOutcome) -> None:
        report = self._reports.pop(sequence, None)
        if report is not None:
            report(outcome)

    def _down(self, reason: str) -> None:
        if self._link.problem != reason:
            log.warning("no session", smsc=self._link.name, reason=reason)
        self._link.problem = reason
        self._link.changed()

    def _close(self) -> None:
        if self._transport is not None:
            self._flush()
            self._transport.close()

    # To the transport.

    def _flush_soon(self) -> None:
        """Write once for everything that happens in this turn of the event loop."""
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._esme is None or self._transport is None:
            return
        data = self._esme.octets()
        if data:
            self._transport.write(data)
        self._arm()

    def _arm(self) -> None:
        assert self._esme is not None
        due = self._esme.next_timeout()
        if due == self._timer_due:
            return
        self._stop_timer()
        if due is not None:
            self._timer_due = due
            delay = max(0, due - self._link.clock.now()) / SECOND
            self._timer = asyncio.get_running_loop().call_later(delay, self._time_out)

    def _time_out(self) -> None:
        self._timer_due = self._timer = None
        if self._esme is not None:
            self._act(self._esme.timeout(self._link.clock.now()))

    def _stop_timer(self) -> None:
        self._timer_due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _refusal(name: str, status: int) -> SmsRefused:
    reason = f"{name} refuses it: {status_text(status)}"
    if status in TRANSIENT:
        return SmsRefused(reason, busy=status in BUSY)
    known = SmppStatus(status) if status in set(SmppStatus) else None
    return SmsRefused(reason, _CODES.get(known, 3003) if known is not None else 3003)


def connections_of(mode: str, terms: EsmeTerms) -> tuple[EsmeTerms, ...]:
    """Return the terms of each connection: one, or for `pair` one that sends and one that
    receives."""
    modes = {
        "transceiver": (BindMode.TRANSCEIVER,),
        "transmitter": (BindMode.TRANSMITTER,),
        "pair": (BindMode.TRANSMITTER, BindMode.RECEIVER),
    }[mode]
    return tuple(msgspec.structs.replace(terms, mode=each) for each in modes)
