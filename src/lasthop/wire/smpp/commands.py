"""The numbers of SMPP: commands, statuses, optional parameters and states of a message."""

from __future__ import annotations

from enum import IntEnum

ANSWER = 0x8000_0000
"""The bit that makes the number of a request the number of its answer."""

VERSION = 0x34
"""The version of the interface, as a bind names it: SMPP 3.4."""


class SmppCommand(IntEnum):
    """The kinds of PDU (SMPP 3.4, 5.1.2.1)."""

    BIND_RECEIVER = 0x01
    BIND_TRANSMITTER = 0x02
    QUERY_SM = 0x03
    SUBMIT_SM = 0x04
    DELIVER_SM = 0x05
    UNBIND = 0x06
    REPLACE_SM = 0x07
    CANCEL_SM = 0x08
    BIND_TRANSCEIVER = 0x09
    OUTBIND = 0x0B
    ENQUIRE_LINK = 0x15
    DATA_SM = 0x103
    GENERIC_NACK = ANSWER
    BIND_RECEIVER_RESP = ANSWER | 0x01
    BIND_TRANSMITTER_RESP = ANSWER | 0x02
    QUERY_SM_RESP = ANSWER | 0x03
    SUBMIT_SM_RESP = ANSWER | 0x04
    DELIVER_SM_RESP = ANSWER | 0x05
    UNBIND_RESP = ANSWER | 0x06
    REPLACE_SM_RESP = ANSWER | 0x07
    CANCEL_SM_RESP = ANSWER | 0x08
    BIND_TRANSCEIVER_RESP = ANSWER | 0x09
    ENQUIRE_LINK_RESP = ANSWER | 0x15
    DATA_SM_RESP = ANSWER | 0x103


class SmppStatus(IntEnum):
    """The statuses of an answer that either side here sends or treats specially (SMPP 3.4, 5.1.3).
    A peer may send others."""

    OK = 0x00
    INVALID_LENGTH = 0x02
    INVALID_COMMAND = 0x03
    INVALID_STATE = 0x04
    ALREADY_BOUND = 0x05
    SYSTEM_ERROR = 0x08
    INVALID_SOURCE = 0x0A
    INVALID_DESTINATION = 0x0B
    INVALID_MESSAGE_ID = 0x0C
    BIND_FAILED = 0x0D
    INVALID_PASSWORD = 0x0E
    INVALID_SYSTEM_ID = 0x0F
    CANCEL_FAILED = 0x11
    REPLACE_FAILED = 0x13
    QUEUE_FULL = 0x14
    INVALID_ESM_CLASS = 0x43
    SUBMIT_FAILED = 0x45
    THROTTLED = 0x58
    INVALID_SCHEDULE = 0x61
    INVALID_VALIDITY = 0x62
    TEMPORARY = 0x64
    PERMANENT = 0x65
    REJECTED = 0x66
    QUERY_FAILED = 0x67
    DELIVERY_FAILED = 0xFE
    UNKNOWN = 0xFF


TRANSIENT = frozenset(
    {SmppStatus.SYSTEM_ERROR, SmppStatus.QUEUE_FULL, SmppStatus.THROTTLED, SmppStatus.TEMPORARY}
)
"""The statuses after which the same message may be accepted later."""

BUSY = frozenset({SmppStatus.QUEUE_FULL, SmppStatus.THROTTLED})
"""The statuses that ask for a pause."""


def status_text(status: int) -> str:
    """Return a status for people, such as `0x58 throttled`."""
    try:
        name = SmppStatus(status).name.lower().replace("_", " ")
    except ValueError:
        return f"{status:#04x}"
    return f"{status:#04x} {name}"


class Tag(IntEnum):
    """The optional parameters that either side here writes or reads (SMPP 3.4, 5.3.2)."""

    QOS_TIME_TO_LIVE = 0x0017
    PAYLOAD_TYPE = 0x0019
    RECEIPTED_MESSAGE_ID = 0x001E
    USER_MESSAGE_REFERENCE = 0x0204
    SOURCE_PORT = 0x020A
    DESTINATION_PORT = 0x020B
    SAR_REFERENCE = 0x020C
    SAR_TOTAL = 0x020E
    SAR_NUMBER = 0x020F
    SC_INTERFACE_VERSION = 0x0210
    DPF_RESULT = 0x0420
    SET_DPF = 0x0421
    NETWORK_ERROR_CODE = 0x0423
    MESSAGE_PAYLOAD = 0x0424
    MORE_MESSAGES = 0x0426
    MESSAGE_STATE = 0x0427


class SmsState(IntEnum):
    """What has become of a message that an SMSC accepted (SMPP 3.4, 5.2.28)."""

    ENROUTE = 1
    DELIVERED = 2
    EXPIRED = 3
    DELETED = 4
    UNDELIVERABLE = 5
    ACCEPTED = 6
    UNKNOWN = 7
    REJECTED = 8


FINAL = frozenset(SmsState) - {SmsState.ENROUTE, SmsState.ACCEPTED}
"""The states that do not change any more."""

# The parts of esm_class (SMPP 3.4, 5.2.12).
DATAGRAM = 0x01
TRANSACTION = 0x02
STORED = 0x03
RECEIPT = 0x04
INTERMEDIATE = 0x20
HEADED = 0x40
"""The message begins with a user data header."""
KIND_MASK = 0x3C
MODE_MASK = 0x03

# The parts of registered_delivery (SMPP 3.4, 5.2.17).
RECEIPT_ALWAYS = 0x01
RECEIPT_ON_FAILURE = 0x02
