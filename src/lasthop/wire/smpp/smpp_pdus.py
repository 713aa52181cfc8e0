"""The PDUs of SMPP 3.4, from octets and to octets.

A PDU is a header of four numbers and a body whose form depends on the command. An answer that
refuses has a status, and usually no body.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import msgspec

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.smpp.commands import ANSWER, HEADED, VERSION, SmppCommand, Tag
from lasthop.wire.smpp.tlvs import Cursor, Tlvs, tlv, write_text, write_tlvs

HEADER = 16
"""The octets of a PDU's header."""

MAX_PDU = 70_000
"""The largest PDU in octets: 64 KiB of payload and everything else that a submission can have."""

MAX_SHORT = 254
"""The most octets of `short_message`; more go into the optional parameter `message_payload`."""

MAX_SEQUENCE = 0x7FFF_FFFF
"""The largest sequence number; after it they begin with 1 again."""


class SmppAddress(msgspec.Struct, frozen=True):
    """The address of a phone or of an application, with its type of number and numbering plan."""

    text: str = ""
    ton: int = 0
    npi: int = 0


def phone_address(number: str) -> SmppAddress:
    """Return the address of a phone number: international if it begins with a plus."""
    if number.startswith("+"):
        return SmppAddress(number[1:], 1, 1)
    if number.isdigit():
        return SmppAddress(number, 0, 1)
    return SmppAddress(number, 5, 0)


class Empty(msgspec.Struct, frozen=True):
    """No body: unbind, enquire_link, generic_nack, and most answers that refuse."""

    def write(self) -> bytes:
        return b""

    @classmethod
    def read(cls, body: Cursor) -> Empty:
        return cls()


class Bind(msgspec.Struct, frozen=True):
    """The request to use an account of the SMSC, to send, to receive or both."""

    system_id: str
    password: str = ""
    system_type: str = ""
    version: int = VERSION
    range: SmppAddress = SmppAddress()
    """The addresses whose messages this end receives; usually empty."""

    def write(self) -> bytes:
        return b"".join(
            (
                write_text(self.system_id, 16),
                write_text(self.password, 9),
                write_text(self.system_type, 13),
                bytes((self.version, self.range.ton, self.range.npi)),
                write_text(self.range.text, 41),
            )
        )

    @classmethod
    def read(cls, body: Cursor) -> Bind:
        named = body.text(16), body.text(9), body.text(13)
        version, ton, npi = body.octets(3)
        return cls(*named, version, SmppAddress(body.text(41), ton, npi))


class BindAnswer(msgspec.Struct, frozen=True):
    """The SMSC's answer to a bind, with its own name."""

    system_id: str = ""
    tlvs: Tlvs = ()

    def write(self) -> bytes:
        return write_text(self.system_id, 16) + write_tlvs(self.tlvs)

    @classmethod
    def read(cls, body: Cursor) -> BindAnswer:
        return cls("" if body.over else body.text(16), body.tlvs())


class Outbind(msgspec.Struct, frozen=True):
    """The SMSC's request to bind as a receiver."""

    system_id: str
    password: str = ""

    def write(self) -> bytes:
        return write_text(self.system_id, 16) + write_text(self.password, 9)

    @classmethod
    def read(cls, body: Cursor) -> Outbind:
        return cls(body.text(16), body.text(9))


class ShortMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message, submitted to the SMSC (submit_sm) or handed over by it (deliver_sm)."""

    source: SmppAddress = SmppAddress()
    destination: SmppAddress
    service_type: str = ""
    esm_class: int = 0
    protocol_id: int = 0
    priority: int = 0
    schedule: str = ""
    validity: str = ""
    registered: int = 0
    replace: int = 0
    coding: int = 0
    default_id: int = 0
    message: bytes = b""
    tlvs: Tlvs = ()

    def write(self) -> bytes:
        if len(self.message) > MAX_SHORT:
            raise TooLarge("too long for short_message", size=len(self.message), limit=MAX_SHORT)
        return b"".join(
            (
                write_text(self.service_type, 6),
                _write_address(self.source, 21),
                _write_address(self.destination, 21),
                bytes((self.esm_class, self.protocol_id, self.priority)),
                write_text(self.schedule, 17),
                write_text(self.validity, 17),
                bytes((self.registered, self.replace, self.coding, self.default_id)),
                bytes((len(self.message),)),
                self.message,
                write_tlvs(self.tlvs),
            )
        )

    @classmethod
    def read(cls, body: Cursor) -> ShortMessage:
        service_type = body.text(6)
        source, destination = _read_address(body, 21), _read_address(body, 21)
        esm_class, protocol_id, priority = body.octets(3)
        schedule, validity = body.text(17), body.text(17)
        registered, replace, coding, default_id, size = body.octets(5)
        return cls(
            source=source,
            destination=destination,
            service_type=service_type,
            esm_class=esm_class,
            protocol_id=protocol_id,
            priority=priority,
            schedule=schedule,
            validity=validity,
            registered=registered,
            replace=replace,
            coding=coding,
            default_id=default_id,
            message=body.octets(size),
            tlvs=body.tlvs(),
        )

    @property
    def content(self) -> bytes:
        """The octets of the message, wherever they are, with the header if there is one."""
        return self.message or tlv(self.tlvs, Tag.MESSAGE_PAYLOAD) or b""

    @property
    def headed(self) -> bool:
        """Whether the message begins with a user data header."""
        return bool(self.esm_class & HEADED)


class DataMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message by data_sm, whose content is an optional parameter."""

    source: SmppAddress = SmppAddress()
    destination: SmppAddress
    service_type: str = ""
    esm_class: int = 0
    registered: int = 0
    coding: int = 0
    tlvs: Tlvs = ()

    def write(self) -> bytes:
        return b"".join(
            (
                write_text(self.service_type, 6),
                _write_address(self.source, 65),
                _write_address(self.destination, 65),
                bytes((self.esm_class, self.registered, self.coding)),
                write_tlvs(self.tlvs),
            )
        )

    @classmethod
    def read(cls, body: Cursor) -> DataMessage:
        service_type = body.text(6)
        source, destination = _read_address(body, 65), _read_address(body, 65)
        esm_class, registered, coding = body.octets(3)
        return cls(
            source=source,
            destination=destination,
            service_type=service_type,
            esm_class=esm_class,
            registered=registered,
            coding=coding,
            tlvs=body.tlvs(),
        )

    @property
    def content(self) -> bytes:
        """The octets of the message, with the header if there is one."""
        return tlv(self.tlvs, Tag.MESSAGE_PAYLOAD) or b""

    @property
    def headed(self) -> bool:
        """Whether the message begins with a user data header."""
        return bool(self.esm_class & HEADED)


class MessageAnswer(msgspec.Struct, frozen=True):
    """The answer to a message: the id under which the SMSC has it; empty towards an SMSC."""

    message_id: str = ""
    tlvs: Tlvs = ()

    def write(self) -> bytes:
        return write_text(self.message_id, 65) + write_tlvs(self.tlvs)

    @classmethod
    def read(cls, body: Cursor) -> MessageAnswer:
        return cls("" if body.over else body.text(65), body.tlvs())


class SmppQuery(msgspec.Struct, frozen=True):
    """The question what has become of a message."""

    message_id: str
    source: SmppAddress = SmppAddress()

    def write(self) -> bytes:
        return write_text(self.message_id, 65) + _write_address(self.source, 21)

    @classmethod
    def read(cls, body: Cursor) -> SmppQuery:
        return cls(body.text(65), _read_address(body, 21))


class QueryAnswer(msgspec.Struct, frozen=True):
    """The state of a message, and when it became final."""

    message_id: str
    final_at: str = ""
    state: int = 0
    error: int = 0

    def write(self) -> bytes:
        numbers = bytes((self.state, self.error))
        return write_text(self.message_id, 65) + write_text(self.final_at, 17) + numbers

    @classmethod
    def read(cls, body: Cursor) -> QueryAnswer:
        return cls(body.text(65), body.text(17), body.number(1), body.number(1))


class Cancel(msgspec.Struct, frozen=True):
    """The request to forget a message that has not been delivered."""

    message_id: str
    source: SmppAddress = SmppAddress()
    destination: SmppAddress = SmppAddress()
    service_type: str = ""

    def write(self) -> bytes:
        return b"".join(
            (
                write_text(self.service_type, 6),
                write_text(self.message_id, 65),
                _write_address(self.source, 21),
                _write_address(self.destination, 21),
            )
        )

    @classmethod
    def read(cls, body: Cursor) -> Cancel:
        service_type, message_id = body.text(6), body.text(65)
        return cls(message_id, _read_address(body, 21), _read_address(body, 21), service_type)


class Replace(msgspec.Struct, frozen=True, kw_only=True):
    """The request to put another text in the place of a message that has not been delivered."""

    message_id: str
    source: SmppAddress = SmppAddress()
    schedule: str = ""
    validity: str = ""
    registered: int = 0
    default_id: int = 0
    message: bytes = b""

    def write(self) -> bytes:
        if len(self.message) > MAX_SHORT:
            raise TooLarge("too long for short_message", size=len(self.message), limit=MAX_SHORT)
        return b"".join(
            (
                write_text(self.message_id, 65),
                _write_address(self.source, 21),
                write_text(self.schedule, 17),
                write_text(self.validity, 17),
                bytes((self.registered, self.default_id, len(self.message))),
                self.message,
            )
        )

    @classmethod
    def read(cls, body: Cursor) -> Replace:
        message_id, source = body.text(65), _read_address(body, 21)
        schedule, validity = body.text(17), body.text(17)
        registered, default_id, size = body.octets(3)
        return cls(
            message_id=message_id,
            source=source,
            schedule=schedule,
            validity=validity,
            registered=registered,
            default_id=default_id,
            message=body.octets(size),
        )


Body: TypeAlias = (
    Empty
    | Bind
    | BindAnswer
    | Outbind
    | ShortMessage
    | DataMessage
    | MessageAnswer
    | SmppQuery
    | QueryAnswer
    | Cancel
    | Replace
)

_BODIES: dict[SmppCommand, type[Body]] = {
    SmppCommand.BIND_RECEIVER: Bind,
    SmppCommand.BIND_TRANSMITTER: Bind,
    SmppCommand.BIND_TRANSCEIVER: Bind,
    SmppCommand.BIND_RECEIVER_RESP: BindAnswer,
    SmppCommand.BIND_TRANSMITTER_RESP: BindAnswer,
    SmppCommand.BIND_TRANSCEIVER_RESP: BindAnswer,
    SmppCommand.OUTBIND: Outbind,
    SmppCommand.SUBMIT_SM: ShortMessage,
    SmppCommand.DELIVER_SM: ShortMessage,
    SmppCommand.DATA_SM: DataMessage,
    SmppCommand.SUBMIT_SM_RESP: MessageAnswer,
    SmppCommand.DELIVER_SM_RESP: MessageAnswer,
    SmppCommand.DATA_SM_RESP: MessageAnswer,
    SmppCommand.QUERY_SM: SmppQuery,
    SmppCommand.QUERY_SM_RESP: QueryAnswer,
    SmppCommand.CANCEL_SM: Cancel,
    SmppCommand.REPLACE_SM: Replace,
}
"""The form of each command's body; the others have none."""


class Pdu(msgspec.Struct, frozen=True):
    """One PDU: its command, number, status and body."""

    command: SmppCommand
    sequence: int
    body: Body = Empty()
    status: int = 0

    EMPTY: ClassVar[Empty] = Empty()


def encode_pdu(pdu: Pdu) -> bytes:
    """Return a PDU as octets; raise TooLarge for a field that has no room."""
    body = pdu.body.write()
    if HEADER + len(body) > MAX_PDU:
        raise TooLarge("the PDU is too large", size=HEADER + len(body), limit=MAX_PDU)
    return b"".join(
        (
            (HEADER + len(body)).to_bytes(4, "big"),
            pdu.command.to_bytes(4, "big"),
            pdu.status.to_bytes(4, "big"),
            pdu.sequence.to_bytes(4, "big"),
            body,
        )
    )


class UnknownCommand(Malformed):
    """A PDU of a command that is not known here; it is answered with generic_nack."""

    code = "unknown_command"

    def __init__(self, command: int, sequence: int) -> None:
        super().__init__("the command is not known", offset=4, command=command)
        self.sequence = sequence


class BadBody(Malformed):
    """A PDU whose body breaks the rules; what follows it can still be read."""

    code = "bad_body"

    def __init__(self, error: Malformed | TooLarge, command: SmppCommand, sequence: int) -> None:
        super().__init__(error.detail, **error.fields)
        self.command = command
        self.sequence = sequence


def decode_pdu(octets: bytes) -> Pdu:
    """Return the PDU in exactly these octets; raise Malformed or TooLarge."""
    if len(octets) < HEADER or int.from_bytes(octets[:4], "big") != len(octets):
        raise Malformed("the PDU has another length than it says", offset=0, size=len(octets))
    if len(octets) > MAX_PDU:
        raise TooLarge("the PDU is too large", size=len(octets), limit=MAX_PDU)
    number = int.from_bytes(octets[4:8], "big")
    status = int.from_bytes(octets[8:12], "big")
    sequence = int.from_bytes(octets[12:16], "big")
    try:
        command = SmppCommand(number)
    except ValueError:
        raise UnknownCommand(number, sequence) from None
    form = _BODIES.get(command, Empty)
    cursor = Cursor(octets, HEADER)
    # SMPP 3.4, 4.4.2: an answer that refuses need not have a body.
    if form is Empty or (status and command & ANSWER and cursor.over):
        return Pdu(command, sequence, Pdu.EMPTY, status)
    try:
        body = form.read(cursor)
    except (Malformed, TooLarge) as error:
        raise BadBody(error, command, sequence) from None
    return Pdu(command, sequence, body, status)


class PduReader:
    """Cuts a stream of octets into PDUs, however they arrive."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the octets of the PDUs that are complete now; raise Malformed or TooLarge for a
        length that no PDU has, after which the stream cannot be read any further."""
        kept = self._kept
        kept += data
        found: list[bytes] = []
        at = 0
        while len(kept) - at >= HEADER:
            size = int.from_bytes(kept[at : at + 4], "big")
            if size < HEADER:
                raise Malformed("a PDU is at least as long as its header", offset=0, size=size)
            if size > MAX_PDU:
                raise TooLarge("the PDU is too large", size=size, limit=MAX_PDU)
            if len(kept) - at < size:
                break
            found.append(bytes(kept[at : at + size]))
            at += size
        del kept[:at]
        return found


def _write_address(address: SmppAddress, most: int) -> bytes:
    return bytes((address.ton, address.npi)) + write_text(address.text, most)


def _read_address(body: Cursor, most: int) -> SmppAddress:
    ton, npi = body.octets(2)
    return SmppAddress(body.text(most), ton, npi)
