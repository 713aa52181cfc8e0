"""The local SMSC: it takes messages over SMPP, gives them to its phones, and sends receipts.

It keeps everything in memory and forgets it when it ends. Faults are drawn from a seed, so that a
gateway can be tried against an SMSC that is as bad as real ones.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import cast

import msgspec

from lasthop.clock import SECOND, Clock, Micros
from lasthop.errors import LasthopError
from lasthop.runtime.smsc.phones import Phones, Shown
from lasthop.wire.smpp.commands import RECEIPT, SmppStatus, SmsState, Tag
from lasthop.wire.smpp.delivery_receipts import DeliveryReceipt, receipt_text
from lasthop.wire.smpp.esme import BindMode
from lasthop.wire.smpp.smpp_pdus import (
    Bind,
    Cancel,
    DataMessage,
    MessageAnswer,
    Pdu,
    QueryAnswer,
    Replace,
    ShortMessage,
    SmppQuery,
)
from lasthop.wire.smpp.smpp_times import absolute, parse_time
from lasthop.wire.smpp.smsc_session import SmscGone, SmsConfirmed, SmscRequest, SmscSession

KEPT = 100_000
"""The most messages whose state is remembered, some 300 bytes each."""

RETRY = 5.0
"""Seconds after which a receipt that the gateway has refused is handed over again."""


class SmscFaults(msgspec.Struct, frozen=True, kw_only=True):
    """How bad the SMSC is: probabilities, and the seed from which faults are drawn."""

    seed: int = 1
    drop: float = 0.0
    """The share of submissions that are lost without an answer."""
    mute: float = 0.0
    """The share of submissions that are accepted without an answer."""
    busy: float = 0.0
    """The share of submissions that are refused as too many."""
    double: float = 0.0
    """The share of receipts that are sent twice."""


class SmscTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Who may use the SMSC, and how it behaves."""

    system_id: str = ""
    password: str = ""
    """The account; any account may bind if there is no system_id."""
    receipt_after: float = 0.2
    """Seconds until a message has arrived at its phone."""
    unreachable: tuple[str, ...] = ()
    """Numbers, or beginnings of numbers, whose phones cannot be reached."""
    faults: SmscFaults = SmscFaults()


@dataclass(slots=True)
class _KeptSms:
    """A message that the SMSC has accepted."""

    message_id: str
    account: str
    message: ShortMessage | DataMessage
    at: Micros
    state: SmsState = SmsState.ENROUTE
    final_at: Micros = 0


class LocalSmsc:
    """An SMSC on one address, with phones that have every number."""

    def __init__(
        self, terms: SmscTerms, *, clock: Clock, shown: Callable[[Shown], None] = lambda s: None
    ) -> None:
        """Create the SMSC; `shown` is called with everything that a phone gets."""
        self.terms = terms
        self._clock = clock
        self._shown = shown
        self._phones = Phones()
        self._random = Random(terms.faults.seed)
        self._kept: OrderedDict[str, _KeptSms] = OrderedDict()
        self._last_id = 0
        self._connections: set[_GatewayConnection] = set()
        self._receipts: dict[str, deque[ShortMessage]] = {}
        """Receipts for which no gateway is there, by account."""
        self._server: asyncio.Server | None = None
        self.submitted = 0
        """The number of messages that were accepted."""

    async def start(self, host: str, port: int) -> int:
        """Listen at an address, and return the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _GatewayConnection(self), host, port)
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def stop(self) -> None:
        """Close all connections, and forget everything."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.abort()
        if self._server is not None:
            with suppress(OSError):
                await self._server.wait_closed()

    # For connections.

    def check(self, bind: Bind) -> SmppStatus:
        """Return whether an account may bind."""
        terms = self.terms
        if terms.system_id and bind.system_id != terms.system_id:
            return SmppStatus.INVALID_SYSTEM_ID
        if terms.password and bind.password != terms.password:
            return SmppStatus.INVALID_PASSWORD
        return SmppStatus.OK

    def opened(self, connection: _GatewayConnection) -> None:
        self._connections.add(connection)

    def closed(self, connection: _GatewayConnection) -> None:
        self._connections.discard(connection)
        for receipt in connection.unconfirmed():
            self._hand_over(connection.account, receipt)

    def bound(self, connection: _GatewayConnection) -> None:
        waiting = self._receipts.pop(connection.account, deque())
        for receipt in waiting:
            self._hand_over(connection.account, receipt)

    def asked(self, connection: _GatewayConnection, asked: SmscRequest) -> None:
        """Do what a gateway asks for, and answer it."""
        body = asked.body
        if isinstance(body, ShortMessage | DataMessage):
            self._submit(connection, asked, body)
        elif isinstance(body, SmppQuery):
            self._query(connection, asked, body)
        elif isinstance(body, Cancel):
            self._cancel(connection, asked, body)
        elif isinstance(body, Replace):
            self._replace(connection, asked, body)

    def deliver(self, message: ShortMessage) -> bool:
        """Hand a message of a phone over to a gateway; return False if none is there."""
        for connection in self._connections:
            if connection.receives:
                connection.deliver(message)
                return True
        return False

    def _submit(
        self,
        connection: _GatewayConnection,
        asked: SmscRequest,
        message: ShortMessage | DataMessage,
    ) -> None:
        faults, draw = self.terms.faults, self._random.random
        if draw() < faults.drop:
            return
        if draw() < faults.busy:
            connection.answer(asked, Pdu.EMPTY, SmppStatus.THROTTLED)
            return
        if not message.destination.text.strip("+").isdigit():
            connection.answer(asked, Pdu.EMPTY, SmppStatus.INVALID_DESTINATION)
            return
        self._last_id += 1
        self.submitted += 1
        kept = _KeptSms(f"{self._last_id:010}", connection.account, message, self._clock.now())
        self._kept[kept.message_id] = kept
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        if draw() >= faults.mute:
            connection.answer(asked, MessageAnswer(kept.message_id))
        # A receipt may overtake the answer to its message: some SMSCs do that.
        asyncio.get_running_loop().call_later(self.terms.receipt_after, self._arrive, kept)

    def _arrive(self, kept: _KeptSms) -> None:
        if kept.state is not SmsState.ENROUTE:
            return
        now = kept.final_at = self._clock.now()
        message = kept.message
        number = message.destination.text
        if any(number.startswith(each.lstrip("+")) for each in self.terms.unreachable):
            kept.state = SmsState.UNDELIVERABLE
        elif isinstance(message, ShortMessage) and _late(message, kept.at, now):
            kept.state = SmsState.EXPIRED
        else:
            kept.state = SmsState.DELIVERED
            shown = self._phones.take(message, now)
            if shown is not None:
                self._shown(shown)
        self._send_receipt(kept)

    def _send_receipt(self, kept: _KeptSms) -> None:
        wanted = kept.message.registered & 0x03
        if not wanted or (wanted == 2 and kept.state is SmsState.DELIVERED):
            return
        receipt = _receipt(kept)
        for _ in range(2 if self._random.random() < self.terms.faults.double else 1):
            self._hand_over(kept.account, receipt)

    def _hand_over(self, account: str, receipt: ShortMessage) -> None:
        for connection in self._connections:
            if connection.account == account and connection.receives:
                connection.deliver(receipt)
                return
        self._receipts.setdefault(account, deque(maxlen=KEPT)).append(receipt)

    def refused(self, account: str, receipt: ShortMessage) -> None:
        """Hand over later what a gateway does not want now."""
        asyncio.get_running_loop().call_later(RETRY, self._hand_over, account, receipt)

    def _query(self, connection: _GatewayConnection, asked: SmscRequest, query: SmppQuery) -> None:
        kept = self._kept.get(query.message_id)
        if kept is None:
            connection.answer(asked, Pdu.EMPTY, SmppStatus.QUERY_FAILED)
            return
        final = absolute(kept.final_at) if kept.final_at else ""
        connection.answer(asked, QueryAnswer(kept.message_id, final, kept.state))

    def _cancel(self, connection: _GatewayConnection, asked: SmscRequest, cancel: Cancel) -> None:
        kept = self._kept.get(cancel.message_id)
        if kept is None or kept.state is not SmsState.ENROUTE:
            connection.answer(asked, Pdu.EMPTY, SmppStatus.CANCEL_FAILED)
            return
        kept.state, kept.final_at = SmsState.DELETED, self._clock.now()
        connection.answer(asked, Pdu.EMPTY)
        self._send_receipt(kept)

    def _replace(
        self, connection: _GatewayConnection, asked: SmscRequest, replace: Replace
    ) -> None:
        kept = self._kept.get(replace.message_id)
        if (
            kept is None
            or kept.state is not SmsState.ENROUTE
            or not isinstance(kept.message, ShortMessage)
        ):
            connection.answer(asked, Pdu.EMPTY, SmppStatus.REPLACE_FAILED)
            return
        kept.message = msgspec.structs.replace(kept.message, message=replace.message)
        connection.answer(asked, Pdu.EMPTY)


class _GatewayConnection(asyncio.Protocol):
    """One connection of a gateway."""

    def __init__(self, smsc: LocalSmsc) -> None:
        self._smsc = smsc
        self._session = SmscSession(smsc.check)
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, ShortMessage] = {}
        self.account = ""
        self._flushing = False

    @property
    def receives(self) -> bool:
        """Whether messages may be handed over on this connection."""
        mode = self._session.mode
        return self._transport is not None and mode not in (None, BindMode.TRANSMITTER)

    def unconfirmed(self) -> list[ShortMessage]:
        return list(self._waiting.values())

    def deliver(self, message: ShortMessage) -> None:
        self._waiting[self._session.deliver(message)] = message
        self._flush_soon()

    def answer(self, asked: SmscRequest, body: object, status: int = SmppStatus.OK) -> None:
        self._session.answer(asked, cast(MessageAnswer, body), status)
        self._flush_soon()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._smsc.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._smsc.closed(self)

    def data_received(self, data: bytes) -> None:
        for event in self._session.receive(data):
            if isinstance(event, SmscRequest):
                self._smsc.asked(self, event)
            elif isinstance(event, SmsConfirmed):
                message = self._waiting.pop(event.sequence, None)
                if message is not None and event.status:
                    self._smsc.refused(self.account, message)
            elif isinstance(event, SmscGone):
                self._flush()
                if self._transport is not None:
                    self._transport.close()
            else:
                self.account = event.bind.system_id
                if self.receives:
                    self._smsc.bound(self)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        data = self._session.octets()
        if data and self._transport is not None:
            self._transport.write(data)


def _late(message: ShortMessage, submitted: Micros, now: Micros) -> bool:
    if not message.validity:
        return False
    try:
        return now >= parse_time(message.validity, submitted)
    except LasthopError:
        return False


def _receipt(kept: _KeptSms) -> ShortMessage:
    said = DeliveryReceipt(kept.message_id, kept.state)
    text = receipt_text(said, submitted=_minute(kept.at), done=_minute(kept.final_at))
    return ShortMessage(
        source=kept.message.destination,
        destination=kept.message.source,
        esm_class=RECEIPT,
        message=text,
        tlvs=(
            (Tag.RECEIPTED_MESSAGE_ID.value, kept.message_id.encode() + b"\0"),
            (Tag.MESSAGE_STATE.value, bytes((kept.state,))),
        ),
    )


def _minute(at: Micros) -> str:
    return f"{datetime.fromtimestamp(at // SECOND, UTC):%y%m%d%H%M}"
