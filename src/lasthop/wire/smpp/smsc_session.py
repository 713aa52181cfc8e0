"""The operator's side of an SMPP connection: the account, and the order of PDUs.

What becomes of the messages is the owner's matter: it answers each `Asked` and hands messages and
receipts over with `deliver`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.smpp.commands import ANSWER, SmppCommand, SmppStatus, Tag
from lasthop.wire.smpp.esme import BindMode
from lasthop.wire.smpp.smpp_pdus import (
    MAX_SEQUENCE,
    BadBody,
    Bind,
    BindAnswer,
    Body,
    DataMessage,
    Pdu,
    PduReader,
    ShortMessage,
    UnknownCommand,
    decode_pdu,
    encode_pdu,
)

Check: TypeAlias = Callable[[Bind], SmppStatus]

_REQUESTS = frozenset(
    {
        SmppCommand.SUBMIT_SM,
        SmppCommand.DATA_SM,
        SmppCommand.QUERY_SM,
        SmppCommand.CANCEL_SM,
        SmppCommand.REPLACE_SM,
    }
)


class SmscBound(msgspec.Struct, frozen=True):
    """A gateway has bound with an account."""

    bind: Bind
    mode: BindMode


class SmscRequest(msgspec.Struct, frozen=True):
    """The gateway wants something done; `SmscSession.answer` answers it."""

    command: SmppCommand
    sequence: int
    body: Body


class SmsConfirmed(msgspec.Struct, frozen=True):
    """The gateway has taken over a message, or refused it."""

    sequence: int
    status: int


class SmscGone(msgspec.Struct, frozen=True):
    """The connection is of no more use, and has to be closed when everything is sent."""

    reason: str


Event: TypeAlias = SmscBound | SmscRequest | SmsConfirmed | SmscGone


class SmscSession:
    """One connection of a gateway to an SMSC, seen from the SMSC."""

    def __init__(self, check: Check, *, name: str = "lasthop") -> None:
        """Create the session; `check` returns OK if an account may bind."""
        self._check = check
        self._name = name
        self._reader = PduReader()
        self._out: list[bytes] = []
        self._sequence = 0
        self.mode: BindMode | None = None
        """How the gateway has bound; None before that."""
        self._over = False

    @property
    def over(self) -> bool:
        """Whether the connection is of no more use."""
        return self._over

    def octets(self) -> bytes:
        """Return what is to be sent, once."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    def receive(self, data: bytes) -> list[Event]:
        """Handle octets from the gateway, in pieces of any size."""
        if self.over:
            return []
        try:
            units = self._reader.feed(data)
        except (Malformed, TooLarge) as error:
            self._send(Pdu(SmppCommand.GENERIC_NACK, 0, Pdu.EMPTY, SmppStatus.INVALID_LENGTH))
            return self._end(error.detail)
        events: list[Event] = []
        for octets in units:
            try:
                events += self._handle(decode_pdu(octets))
            except UnknownCommand as error:
                self._refuse(error.sequence, SmppStatus.INVALID_COMMAND)
            except BadBody as error:
                if not error.command & ANSWER:
                    self._refuse(error.sequence, SmppStatus.INVALID_LENGTH)
        return events

    def answer(self, asked: SmscRequest, body: Body, status: int = SmppStatus.OK) -> None:
        """Answer what the gateway asked; one that refuses has no body."""
        command = SmppCommand(asked.command | ANSWER)
        self._send(Pdu(command, asked.sequence, Pdu.EMPTY if status else body, status))

    def deliver(self, message: ShortMessage | DataMessage) -> int:
        """Hand a message over to the gateway; return its sequence number."""
        self._sequence = self._sequence % MAX_SEQUENCE + 1
        data = isinstance(message, DataMessage)
        command = SmppCommand.DATA_SM if data else SmppCommand.DELIVER_SM
        self._send(Pdu(command, self._sequence, message))
        return self._sequence

    def _handle(self, pdu: Pdu) -> list[Event]:
        if self.over:
            return []
        command = pdu.command
        if command & ANSWER:
            delivered = (
                SmppCommand.DELIVER_SM_RESP,
                SmppCommand.DATA_SM_RESP,
                SmppCommand.GENERIC_NACK,
            )
            return [SmsConfirmed(pdu.sequence, pdu.status)] if command in delivered else []
        if isinstance(pdu.body, Bind):
            return self._bind(pdu, pdu.body)
        if command is SmppCommand.ENQUIRE_LINK:
            self._send(Pdu(SmppCommand.ENQUIRE_LINK_RESP, pdu.sequence))
        elif self.mode is None:
            self._answer(pdu, SmppStatus.INVALID_STATE)
        elif command is SmppCommand.UNBIND:
            self._answer(pdu, SmppStatus.OK)
            return self._end("the gateway has ended the session")
        elif command not in _REQUESTS:
            self._refuse(pdu.sequence, SmppStatus.INVALID_COMMAND)
        elif not self.mode.sends:
            self._answer(pdu, SmppStatus.INVALID_STATE)
        else:
            return [SmscRequest(command, pdu.sequence, pdu.body)]
        return []

    def _bind(self, pdu: Pdu, bind: Bind) -> list[Event]:
        status = SmppStatus.ALREADY_BOUND if self.mode is not None else self._check(bind)
        if status is not SmppStatus.OK:
            self._answer(pdu, status)
            return [] if self.mode is not None else self._end("the account was refused")
        self.mode = BindMode(pdu.command)
        version = ((Tag.SC_INTERFACE_VERSION.value, b"\x34"),)
        answer = SmppCommand(pdu.command | ANSWER)
        self._send(Pdu(answer, pdu.sequence, BindAnswer(self._name, version)))
        return [SmscBound(bind, self.mode)]

    def _answer(self, pdu: Pdu, status: SmppStatus) -> None:
        self._send(Pdu(SmppCommand(pdu.command | ANSWER), pdu.sequence, Pdu.EMPTY, status))

    def _refuse(self, sequence: int, status: SmppStatus) -> None:
        self._send(Pdu(SmppCommand.GENERIC_NACK, sequence, Pdu.EMPTY, status))

    def _send(self, pdu: Pdu) -> None:
        self._out.append(encode_pdu(pdu))

    def _end(self, reason: str) -> list[Event]:
        self._over = True
        return [SmscGone(reason)]
