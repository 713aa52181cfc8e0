"""The gateway's side of a connection to an SMSC: bind, window, rate, answers and time-outs.

The owner of the connection hands octets and the time in, sends what `octets` returns, and calls
`timeout` when `next_timeout` says so. A message that left without an answer may have arrived, and
is reported as such.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeAlias

import msgspec

from lasthop.clock import MINUTE, SECOND, Micros
from lasthop.errors import Malformed, TooLarge
from lasthop.wire.smpp.commands import ANSWER, BUSY, SmppCommand, SmppStatus, status_text
from lasthop.wire.smpp.delivery_receipts import DeliveryReceipt, read_receipt
from lasthop.wire.smpp.smpp_pdus import (
    MAX_SEQUENCE,
    BadBody,
    Bind,
    BindAnswer,
    Body,
    DataMessage,
    MessageAnswer,
    Pdu,
    PduReader,
    ShortMessage,
    UnknownCommand,
    decode_pdu,
    encode_pdu,
)

FIRST_REST: Micros = SECOND
LONGEST_REST: Micros = MINUTE
"""The first and the longest pause after an SMSC has said that it is busy; each is twice the one
before, until a message is accepted again."""


class BindMode(Enum):
    """What a connection is for: to send, to receive, or both."""

    TRANSCEIVER = SmppCommand.BIND_TRANSCEIVER
    TRANSMITTER = SmppCommand.BIND_TRANSMITTER
    RECEIVER = SmppCommand.BIND_RECEIVER

    @property
    def sends(self) -> bool:
        """Whether messages may be submitted over the connection."""
        return self is not BindMode.RECEIVER


class EsmeTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The terms of one connection: the account, and the limits that the operator sets."""

    bind: Bind
    mode: BindMode = BindMode.TRANSCEIVER
    window: int = 10
    """The most messages without an answer: what SMSCs usually allow."""
    rate: int = 0
    """The most messages a second; 0 for no limit."""
    patience: Micros = 30 * SECOND
    """How long an answer may take."""
    idle: Micros = 30 * SECOND
    """The silence after which the SMSC is asked whether it is there."""


class Bound(msgspec.Struct, frozen=True):
    """The SMSC has accepted the account: messages may be submitted."""

    system_id: str


class Submitted(msgspec.Struct, frozen=True):
    """The SMSC has accepted a message, under this id."""

    sequence: int
    message_id: str


class SubmitRefused(msgspec.Struct, frozen=True):
    """The SMSC has refused a message."""

    sequence: int
    status: int


class SubmitUnanswered(msgspec.Struct, frozen=True):
    """A message has left, and the SMSC has not said whether it accepted it."""

    sequence: int
    reason: str


class Answered(msgspec.Struct, frozen=True):
    """The SMSC has answered a query, a cancellation or a replacement."""

    sequence: int
    status: int
    body: Body


class SmsArrived(msgspec.Struct, frozen=True):
    """The SMSC hands over a message of a phone, or a receipt; `Esme.confirm` answers it."""

    sequence: int
    message: ShortMessage | DataMessage
    receipt: DeliveryReceipt | None


class Ended(msgspec.Struct, frozen=True):
    """The connection is of no more use, and has to be closed."""

    reason: str
    refused: bool = False
    """Whether the SMSC has refused the account, so that trying again soon is of no use."""


Event: TypeAlias = (
    Bound | Submitted | SubmitRefused | SubmitUnanswered | Answered | SmsArrived | Ended
)


class _Phase(Enum):
    BINDING = auto()
    BOUND = auto()
    LEAVING = auto()
    ENDED = auto()


class Esme:
    """One connection of the gateway (an external short message entity) to an SMSC."""

    def __init__(self, terms: EsmeTerms, now: Micros) -> None:
        self._terms = terms
        self._reader = PduReader()
        self._out: list[bytes] = []
        self._phase = _Phase.BINDING
        self._sequence = 0
        self._open: dict[int, tuple[SmppCommand, Micros]] = {}
        """The requests without an answer, oldest first: their command and deadline."""
        self._deliveries: dict[int, SmppCommand] = {}
        """The messages of the SMSC that have no answer yet, by sequence number."""
        self._heard = now
        self._rest: Micros = 0
        self._rests_until: Micros = 0
        self._next_at: Micros = 0
        self._request(terms.mode.value, terms.bind, now)

    @property
    def bound(self) -> bool:
        """Whether messages may be submitted at all."""
        return self._phase is _Phase.BOUND and self._terms.mode.sends

    @property
    def ended(self) -> bool:
        """Whether the connection is of no more use."""
        return self._phase is _Phase.ENDED

    @property
    def in_flight(self) -> int:
        """The number of requests without an answer."""
        return len(self._open)

    def octets(self) -> bytes:
        """Return what is to be sent, once."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def room(self, now: Micros) -> bool:
        """Return whether a message may be submitted now."""
        return self.bound and len(self._open) < self._terms.window and self.free_at() <= now

    def free_at(self) -> Micros:
        """Return from when on rate and pauses allow a message."""
        return max(self._rests_until, self._next_at)

    def submit(self, message: ShortMessage | DataMessage, now: Micros) -> int:
        """Submit a message, for which there must be room; return its sequence number. Raise
        TooLarge if the message does not fit into a PDU."""
        assert self.room(now)
        if self._terms.rate:
            self._next_at = max(now, self._next_at) + SECOND // self._terms.rate
        data = isinstance(message, DataMessage)
        command = SmppCommand.DATA_SM if data else SmppCommand.SUBMIT_SM
        return self._request(command, message, now)

    def ask(self, command: SmppCommand, body: Body, now: Micros) -> int:
        """Send a query, a cancellation or a replacement; return its sequence number."""
        return self._request(command, body, now)

    def confirm(self, sequence: int, status: int = SmppStatus.OK) -> None:
        """Answer a message that has arrived: what it means is safe now, or it is refused."""
        command = self._deliveries.pop(sequence, None)
        if command is not None and self._phase is not _Phase.ENDED:
            answer = SmppCommand(command | ANSWER)
            self._send(Pdu(answer, sequence, MessageAnswer(), status))

    def unbind(self, now: Micros) -> None:
        """Say good-bye; nothing can be submitted after it."""
        if self._phase is _Phase.BOUND:
            self._phase = _Phase.LEAVING
            self._request(SmppCommand.UNBIND, Pdu.EMPTY, now)

    def receive(self, data: bytes, now: Micros) -> list[Event]:
        """Handle octets from the SMSC, in pieces of any size."""
        if self.ended:
            return []
        self._heard = now
        events: list[Event] = []
        try:
            units = self._reader.feed(data)
        except (Malformed, TooLarge) as error:
            return self._end(f"the SMSC sends what is no PDU: {error.detail}")
        for octets in units:
            try:
                events += self._handle(decode_pdu(octets), now)
            except UnknownCommand as error:
                self._nack(error.sequence, SmppStatus.INVALID_COMMAND)
            except BadBody as error:
                events += self._bad(error)
        return events

    def timeout(self, now: Micros) -> list[Event]:
        """Do what is due: report what has no answer, and ask a silent SMSC whether it is there."""
        if self._phase is _Phase.ENDED:
            return []
        events: list[Event] = []
        for sequence, (command, deadline) in list(self._open.items()):
            if deadline > now:
                break
            del self._open[sequence]
            if command in (SmppCommand.SUBMIT_SM, SmppCommand.DATA_SM):
                events.append(SubmitUnanswered(sequence, "the SMSC did not answer in time"))
            elif command in (SmppCommand.ENQUIRE_LINK, SmppCommand.UNBIND, self._terms.mode.value):
                return events + self._end("the SMSC does not answer")
            else:
                events.append(Answered(sequence, SmppStatus.UNKNOWN, Pdu.EMPTY))
        asking = any(command is SmppCommand.ENQUIRE_LINK for command, _ in self._open.values())
        if self._phase is _Phase.BOUND and now >= self._heard + self._terms.idle and not asking:
            self._request(SmppCommand.ENQUIRE_LINK, Pdu.EMPTY, now)
        return events

    def next_timeout(self) -> Micros | None:
        """Return when `timeout` has something to do; None once the connection has ended."""
        if self._phase is _Phase.ENDED:
            return None
        dues = [deadline for _, deadline in list(self._open.values())[:1]]
        asking = any(command is SmppCommand.ENQUIRE_LINK for command, _ in self._open.values())
        if self._phase is _Phase.BOUND and not asking:
            dues.append(self._heard + self._terms.idle)
        return min(dues, default=None)

    def lost(self, reason: str = "the connection was lost") -> list[Event]:
        """Handle the end of the connection."""
        return [] if self._phase is _Phase.ENDED else self._end(reason)

    # From the SMSC.

    def _handle(self, pdu: Pdu, now: Micros) -> list[Event]:
        if self.ended:
            return []
        if pdu.command & ANSWER:
            return self._answered(pdu, now)
        match pdu.command:
            case SmppCommand.DELIVER_SM | SmppCommand.DATA_SM:
                assert isinstance(pdu.body, ShortMessage | DataMessage)
                self._deliveries[pdu.sequence] = pdu.command
                return [SmsArrived(pdu.sequence, pdu.body, read_receipt(pdu.body))]
            case SmppCommand.ENQUIRE_LINK:
                self._send(Pdu(SmppCommand.ENQUIRE_LINK_RESP, pdu.sequence))
            case SmppCommand.UNBIND:
                self._send(Pdu(SmppCommand.UNBIND_RESP, pdu.sequence))
                return self._end("the SMSC has ended the session")
            case _:
                self._nack(pdu.sequence, SmppStatus.INVALID_COMMAND)
        return []

    def _answered(self, pdu: Pdu, now: Micros) -> list[Event]:
        asked = self._open.pop(pdu.sequence, None)
        if asked is None:
            return []  # It comes too late, or for nothing that was asked.
        command, _ = asked
        if pdu.command is not SmppCommand.GENERIC_NACK and pdu.command != command | ANSWER:
            return self._end("the SMSC answers with another command")
        if command is self._terms.mode.value:
            return self._bind_answered(pdu)
        if command in (SmppCommand.SUBMIT_SM, SmppCommand.DATA_SM):
            return [self._submit_answered(pdu, now)]
        if command is SmppCommand.UNBIND:
            return self._end("the session was ended")
        if command is SmppCommand.ENQUIRE_LINK:
            return []
        return [Answered(pdu.sequence, pdu.status, pdu.body)]

    def _bind_answered(self, pdu: Pdu) -> list[Event]:
        if pdu.status:
            why = f"the SMSC refuses the account: {status_text(pdu.status)}"
            return self._end(why, refused=True)
        self._phase = _Phase.BOUND
        return [Bound(pdu.body.system_id if isinstance(pdu.body, BindAnswer) else "")]

    def _submit_answered(self, pdu: Pdu, now: Micros) -> Event:
        if pdu.status:
            if pdu.status in BUSY:
                self._rest = min(max(FIRST_REST, 2 * self._rest), LONGEST_REST)
                self._rests_until = now + self._rest
            return SubmitRefused(pdu.sequence, pdu.status)
        self._rest = 0
        named = pdu.body.message_id if isinstance(pdu.body, MessageAnswer) else ""
        return Submitted(pdu.sequence, named)

    def _bad(self, error: BadBody) -> list[Event]:
        """Handle a PDU whose body cannot be read."""
        if not error.command & ANSWER:
            self._nack(error.sequence, SmppStatus.INVALID_LENGTH)
            return []
        asked = self._open.pop(error.sequence, None)
        if asked is not None and asked[0] in (SmppCommand.SUBMIT_SM, SmppCommand.DATA_SM):
            return [SubmitUnanswered(error.sequence, "the SMSC's answer cannot be read")]
        return [] if asked is None else self._end("the SMSC's answer cannot be read")

    # To the SMSC.

    def _request(self, command: SmppCommand, body: Body, now: Micros) -> int:
        sequence = self._sequence % MAX_SEQUENCE + 1
        octets = encode_pdu(Pdu(command, sequence, body))
        self._sequence = sequence
        self._open[sequence] = command, now + self._terms.patience
        self._out.append(octets)
        return sequence

    def _send(self, pdu: Pdu) -> None:
        self._out.append(encode_pdu(pdu))

    def _nack(self, sequence: int, status: SmppStatus) -> None:
        self._send(Pdu(SmppCommand.GENERIC_NACK, sequence, Pdu.EMPTY, status))

    def _end(self, reason: str, *, refused: bool = False) -> list[Event]:
        self._phase = _Phase.ENDED
        submits = (SmppCommand.SUBMIT_SM, SmppCommand.DATA_SM)
        lost = [sequence for sequence, (command, _) in self._open.items() if command in submits]
        self._open.clear()
        return [*(SubmitUnanswered(sequence, reason) for sequence in lost), Ended(reason, refused)]
