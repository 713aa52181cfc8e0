"""Every status code and message state of PAP, in two tables.

The tables say what each is for and where it may be used; which one a refusal or an outcome gets is
decided elsewhere and must agree with them. 5xxx numbers and their reasons are kept here and nowhere
else, because the mapping is known from one implementation only.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import NamedTuple


class CodeClass(IntEnum):
    """The first digit of a status code, which says who has to act."""

    SUCCESS = 1
    INITIATOR_ERROR = 2
    SERVER_ERROR = 3
    SERVICE_FAILURE = 4
    """A temporary failure: the same request may succeed later."""
    CLIENT_ABORT = 5


class CodeUse(StrEnum):
    """The messages of PAP in which a status code may occur."""

    PUSH = "push"
    """The code may occur in a push-response."""
    CANCEL = "cancel"
    """The code may occur in a cancel-result."""
    STATUS = "status"
    """The code may occur in a statusquery-result."""
    OUTCOME = "outcome"
    """The code may occur in a resultnotification-message."""
    OUTCOME_ANSWER = "outcome answer"
    """The code may occur in a resultnotification-response, which the initiator writes."""
    CAPABILITIES = "capabilities"
    """The code may occur in a ccq-response."""
    BAD_MESSAGE = "bad message"
    """The code may occur in a badmessage-response."""


class PapCode(NamedTuple):
    number: int
    name: str
    meaning: str
    operations: frozenset[CodeUse]

    @property
    def code_class(self) -> CodeClass:
        return CodeClass(self.number // 1000)


_PUSH, _CANCEL, _STATUS = CodeUse.PUSH, CodeUse.CANCEL, CodeUse.STATUS
_OUTCOME, _ANSWER = CodeUse.OUTCOME, CodeUse.OUTCOME_ANSWER
_CCQ, _BAD = CodeUse.CAPABILITIES, CodeUse.BAD_MESSAGE
_REQUESTS = (_PUSH, _CANCEL, _STATUS, _CCQ)
_ENDS = (_STATUS, _OUTCOME)


def _code(number: int, name: str, meaning: str, *operations: CodeUse) -> tuple[int, PapCode]:
    return number, PapCode(number, name, meaning, frozenset(operations))


CODES: dict[int, PapCode] = dict(
    [
        # 1: done, or accepted.
        _code(1000, "OK", "the request was carried out", _CANCEL, _CCQ, _ANSWER, *_ENDS),
        _code(1001, "Accepted for Processing", "taken on; the outcome follows", _PUSH, _STATUS),
        # 2: the initiator has to change something.
        _code(2000, "Bad Request", "malformed or invalid", *CodeUse),
        _code(2001, "Forbidden", "understood and refused", _BAD, *_REQUESTS, _ANSWER),
        _code(2002, "Address Error", "not an address of ours", *_REQUESTS, _OUTCOME),
        _code(2003, "Address Not Found", "well-formed, nobody there", *_REQUESTS, _OUTCOME),
        _code(2004, "Push ID Not Found", "no such push", *_REQUESTS[:3], _ANSWER),
        _code(2005, "Capabilities Mismatch", "the client is not as assumed", _PUSH, *_ENDS),
        _code(2006, "Required Capabilities Not Supported", "the client lacks one", _PUSH, *_ENDS),
        _code(2007, "Duplicate Push ID", "this push-id was used before", _PUSH),
        _code(2008, "Cancellation Not Possible", "too late to take back", _CANCEL, _PUSH),
        # 3: this gateway cannot do it.
        _code(3000, "Internal Server Error", "a fault of the gateway", *CodeUse),
        _code(3001, "Not Implemented", "no such operation here", *_REQUESTS, _ANSWER),
        _code(3002, "Version Not Supported", "another version of PAP", _BAD, *_REQUESTS, _ANSWER),
        _code(3003, "Not Possible", "for example no longer available", *_REQUESTS, _OUTCOME),
        _code(3004, "Capability Matching Not Supported", "capabilities are not compared", _PUSH),
        _code(3005, "Multiple Addresses Not Supported", "one address a request", *_REQUESTS[:3]),
        _code(3006, "Transformation Failure", "the content could not be adapted", _PUSH, *_ENDS),
        _code(3007, "Specified Delivery Method Not Possible", "as it says", _PUSH, *_ENDS),
        _code(3008, "Capabilities Not Available", "none known for this client", _CCQ),
        _code(3009, "Required Network Not Available", "as it says", _PUSH, *_ENDS),
        _code(3010, "Required Bearer Not Available", "as it says", _PUSH, *_ENDS),
        _code(3011, "Replacement Not Supported", "pushes are not replaced here", _PUSH),
        # 4: try again later.
        _code(4000, "Service Failure", "temporary", _BAD, *_REQUESTS, _OUTCOME, _ANSWER),
        _code(4001, "Service Unavailable", "too busy", _BAD, *_REQUESTS, _OUTCOME, _ANSWER),
        # 5: the client refused the message, with the abort reason of the OTA protocol.
        _code(5000, "Mobile Client Aborted", "no reason given", *_ENDS),
        _code(5026, "Mobile Client Aborted: USERREQ", "the user wanted it so", *_ENDS),
        _code(5027, "Mobile Client Aborted: USERRFS", "refused, do not try again", *_ENDS),
        _code(5028, "Mobile Client Aborted: USERPND", "no way to the application", *_ENDS),
        _code(5029, "Mobile Client Aborted: USERDCR", "discarded, out of resources", *_ENDS),
        _code(5030, "Mobile Client Aborted: USERDCU", "discarded, unknown content", *_ENDS),
    ]
)

ABORT_CODES: dict[int, int] = {0xEA: 5026, 0xEB: 5027, 0xEC: 5028, 0xED: 5029, 0xEE: 5030}
"""Abort reasons of the OTA protocols and their status codes."""


def abort_code(reason: int) -> int:
    """Return the status code for an abort reason; 5000 for a reason without a code of its own."""
    return ABORT_CODES.get(reason, 5000)


def look_up(number: int) -> PapCode | None:
    """Return the entry of a status code. An unknown code gets the entry of the code x000 of its
    class; a number of no class gives None."""
    return CODES.get(number) or CODES.get(number // 1000 * 1000)


class MessageState(StrEnum):
    """What has become of a push for one address, in PAP's words (PPG service, 5.1.2.1.3)."""

    REJECTED = "rejected"
    PENDING = "pending"
    DELIVERED = "delivered"
    UNDELIVERABLE = "undeliverable"
    EXPIRED = "expired"
    ABORTED = "aborted"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class StateFacts(NamedTuple):
    meaning: str
    final: bool
    """Whether nothing follows this state, so that a result notification may be sent."""
    code: int
    """The status code when nothing more exact is known."""
    codes: frozenset[int]
    """The status codes that may occur with this state."""


_ABORTS = frozenset({5000, *ABORT_CODES.values()})

STATES: dict[MessageState, StateFacts] = {
    MessageState.PENDING: StateFacts(
        "accepted, not finished", final=False, code=1000, codes=frozenset({1000, 1001})
    ),
    MessageState.DELIVERED: StateFacts(
        "with the client, or sent if no confirmation was asked",
        final=True,
        code=1000,
        codes=frozenset({1000}),
    ),
    MessageState.UNDELIVERABLE: StateFacts(
        "could not be adapted, addressed or carried",
        final=True,
        code=3003,
        codes=frozenset({2002, 2003, 2005, 2006, 3000, 3003, 3006, 3007, 3009, 3010, 4000, 4001}),
    ),
    MessageState.EXPIRED: StateFacts(
        "its time passed first", final=True, code=4000, codes=frozenset({3003, 4000})
    ),
    MessageState.ABORTED: StateFacts("the client refused it", final=True, code=5000, codes=_ABORTS),
    MessageState.TIMEOUT: StateFacts(
        "no confirmation came in time", final=True, code=4000, codes=frozenset({4000})
    ),
    MessageState.CANCELLED: StateFacts(
        "taken back or replaced", final=True, code=1000, codes=frozenset({1000})
    ),
    MessageState.REJECTED: StateFacts(
        "never accepted",
        final=True,
        code=2000,
        codes=frozenset(n for n in CODES if 2000 <= n < 5000),
    ),
    MessageState.UNKNOWN: StateFacts(
        "no such push, not to this address, or not to be told",
        final=True,
        code=2004,
        codes=frozenset({2000, 2001, 2002, 2003, 2004, 3000, 3001, 3003, 4000, 4001}),
    ),
}
