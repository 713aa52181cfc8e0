"""Every error by which lasthop refuses something, and how each edge answers with it.

    LasthopError
    ├── Rejected                 the request is at fault; nothing was done
    │   ├── InvalidRequest         a field is missing, malformed or contradictory
    │   │   ├── UnsupportedMedia     a body in a form that we do not read
    │   │   ├── Contradiction        what is asked for can never be met together
    │   │   │   └── LinkContradiction  no link can be what sender and device want of it
    │   │   └── PapError             what an initiator sent breaks the rules of PAP
    │   │       ├── PapMalformed       not XML, not MIME, or in no character set we read
    │   │       ├── PapInvalid         not valid by its document type, or contradictory
    │   │       ├── PapVersionUnknown  a version of PAP that we do not speak
    │   │       └── PapAddressError    a client address that its grammar does not allow
    │   ├── Malformed              a document or PDU breaks the rules of its format, and where
    │   ├── NotTransformable       content that cannot be adapted to a client
    │   ├── Unsupported            something that a client is known not to have
    │   ├── TooLarge               a size, depth or count is above its limit
    │   ├── Unauthorized           no credential, or one we do not know
    │   ├── Forbidden              a known credential without this right
    │   ├── NobodyThere            an immediate message, and no device can be reached
    │   ├── NotFound               no such message, device, topic
    │   ├── Conflict               an idempotency key was used for something else
    │   └── Expired                deliver_before has passed already
    ├── Limited                  correct, but too much just now; nothing was done, try again later
    │   ├── QuotaExceeded          the caller's share is used up
    │   └── Overloaded             the gateway's own limit is reached (memory, disk)
    ├── OutcomeOpen              accepted but not durable: it may still be done, or never
    ├── SurrogateFailed          the app's surrogate failed repeatedly; its messages are refused
    ├── HopError                 the other end of a hop broke the protocol; its channel closes
    │   ├── MalformedFrame
    │   ├── DamagedWrite           a link without TLS changed what was written to it
    │   ├── FrameTooLarge
    │   ├── UnsupportedFrame
    │   ├── CreditExceeded
    │   └── OutOfOrder
    └── StoreError               the store could not do its work
        ├── StoreFull              no room on the disk; what was accepted is safe
        └── StoreBroken            corrupt, or written by a newer version

An error holds fields, not sentences; `str()` puts them into one line for people. Every class knows
whose fault it is, a stable `code` for machines and metrics, and its answer on each edge. Errors of
a door are made at the door and never cross the core half-way through a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar


class Fault(StrEnum):
    """The party that has to act for the request to succeed."""

    CALLER = "caller"
    PEER = "peer"
    GATEWAY = "gateway"


class LasthopError(Exception):
    """Base of all errors that lasthop raises on purpose.

    `detail` is a sentence for people, `fields` its facts by name; `code` is stable, for machines
    and metrics. `http_status`, `pap_code` and `hop_code` are the answers over REST, PAP and the hop
    protocol.
    """

    code: ClassVar[str] = "error"
    fault: ClassVar[Fault] = Fault.GATEWAY
    http_status: ClassVar[int] = 500
    pap_code: ClassVar[int] = 3000
    hop_code: ClassVar[int] = 8

    def __init__(self, detail: str, **fields: object) -> None:
        super().__init__(detail, fields)
        self.detail = detail
        self.fields = fields

    def __str__(self) -> str:
        if not self.fields:
            return self.detail
        facts = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"{self.detail} ({facts})"


class Rejected(LasthopError):
    """The request itself is at fault; nothing was done."""

    code = "rejected"
    fault = Fault.CALLER
    http_status = 400
    pap_code = 2000


class NobodyThere(Rejected):
    """The message is only for those who can be reached at once, and nobody can."""

    code = "nobody_there"
    http_status = 409


class InvalidRequest(Rejected):
    """A field or argument is missing, malformed or contradictory."""

    code = "invalid_request"
    hop_code = 1


class UnsupportedMedia(InvalidRequest):
    """The request's body is in a form that the gateway does not read."""

    code = "unsupported_media"
    http_status = 415


class Contradiction(InvalidRequest):
    """The demands of a request can never be met together: they exclude one another, or the device's
    preferences exclude them. `conflict` names a smallest set of demands that cannot be met: without
    any one of them, the others could be."""

    code = "contradiction"
    http_status = 422
    pap_code = 3003

    def __init__(self, detail: str, *, conflict: tuple[str, ...], **fields: object) -> None:
        super().__init__(detail, conflict=conflict, **fields)
        self.conflict = conflict


class LinkContradiction(Contradiction):
    """No link satisfies both the sender's and the device's demands."""

    code = "link_contradiction"
    pap_code = 3010


class Malformed(Rejected):
    """A document or PDU breaks the rules of its format. `offset` counts octets from its start, or
    `line` and `column` give the place in a text."""

    code = "malformed"
    hop_code = 1


class PapError(InvalidRequest):
    """A document that an initiator sent breaks the rules of PAP; `pap_code` is the status code of
    the answer.

    `line` counts from 1 within the control entity. Facts that a broken document still contained are
    kept for the answer: the `push_id` of a push-message, its `version`, and the `supported`
    versions.
    """

    code = "pap_error"

    def __init__(
        self, detail: str, *, line: int | None = None, push_id: str | None = None, **fields: object
    ) -> None:
        super().__init__(detail, **({} if line is None else {"line": line}), **fields)
        self.line = line
        self.push_id = push_id
        self.version: str | None = None
        self.supported: tuple[str, ...] = ()


class PapMalformed(PapError):
    code = "pap_malformed"


class PapInvalid(PapError):
    code = "pap_invalid"


class PapVersionUnknown(PapError):
    code = "pap_version_unknown"
    pap_code = 3002


class PapAddressError(PapError):
    """A client address that the PAP grammar does not allow; `position` counts its characters from
    0."""

    code = "pap_address_error"
    pap_code = 2002

    def __init__(self, detail: str, *, position: int) -> None:
        super().__init__(detail, position=position)
        self.position = position


class NotTransformable(Rejected):
    code = "untransformable"
    http_status = 422
    pap_code = 3006


class Unsupported(Rejected):
    code = "unsupported"
    http_status = 422
    pap_code = 2006


class TooLarge(Rejected):
    """A size, depth or count is above its limit; the same request never succeeds."""

    code = "too_large"
    http_status = 413
    hop_code = 2


class Unauthorized(Rejected):
    """The request has no credential, or one that the gateway does not know."""

    code = "unauthorized"
    http_status = 401
    pap_code = 2001
    hop_code = 4


class Forbidden(Rejected):
    """The credential is known, but does not include this right."""

    code = "forbidden"
    http_status = 403
    pap_code = 2001
    hop_code = 4


class NotFound(Rejected):
    """The message, device, topic or other object that was named does not exist."""

    code = "not_found"
    http_status = 404
    pap_code = 2004
    hop_code = 5


class Conflict(Rejected):
    """The request does not fit the present state, such as that of a closed device."""

    code = "conflict"
    http_status = 409
    pap_code = 2007


class Expired(Rejected):
    """The deadline of the message or of its answer has passed already."""

    code = "expired"
    http_status = 422


class Limited(LasthopError):
    """The request is correct, but too much at the moment. `retry_after` is in seconds."""

    code = "limited"
    fault = Fault.CALLER
    http_status = 429
    pap_code = 4001

    def __init__(self, detail: str, *, retry_after: float, **fields: object) -> None:
        super().__init__(detail, **fields)
        self.retry_after = retry_after


class QuotaExceeded(Limited):
    """The caller's share of the gateway or of a link is used up for now."""

    code = "quota_exceeded"


class Overloaded(Limited):
    """A limit of the gateway or the device itself is reached, such as a full outbox."""

    code = "overloaded"
    fault = Fault.GATEWAY
    http_status = 503


class OutcomeOpen(LasthopError):
    """A request was accepted but could not be made durable: it may still be done, or never.

    `ids` are the ids that its messages have if it is done. If `repeatable`, sending the same
    request again does it only once; otherwise look the ids up before repeating it. `retry_after` is
    in seconds.
    """

    code = "outcome_open"
    http_status = 503
    pap_code = 4000

    def __init__(
        self,
        detail: str,
        *,
        retry_after: float,
        ids: Sequence[str] = (),
        repeatable: bool = False,
    ) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        self.ids = tuple(ids)
        self.repeatable = repeatable

    def of(self, ids: Sequence[str], *, repeatable: bool = False) -> OutcomeOpen:
        """Return the same error with the ids of the messages that it concerns."""
        return OutcomeOpen(
            self.detail, retry_after=self.retry_after, ids=ids, repeatable=repeatable
        )


class SurrogateFailed(LasthopError):
    """The app's surrogate failed repeatedly, so that its messages are refused."""

    code = "surrogate_failed"
    http_status = 502


class HopError(LasthopError):
    """The other end of a hop broke the protocol; its channel closes with `hop_code`."""

    code = "hop_error"
    fault = Fault.PEER
    http_status = 400
    hop_code = 1


class MalformedFrame(HopError):
    code = "malformed_frame"
    hop_code = 1


class DamagedWrite(HopError):
    """A link without TLS changed what was written to it."""

    code = "damaged_write"
    hop_code = 1


class FrameTooLarge(HopError):
    code = "frame_too_large"
    hop_code = 2


class UnsupportedFrame(HopError):
    code = "unsupported_frame"
    hop_code = 3


class CreditExceeded(HopError):
    code = "credit_exceeded"
    hop_code = 10


class OutOfOrder(HopError):
    code = "out_of_order"
    hop_code = 11


class StoreError(LasthopError):
    """The store could not read or write as asked."""

    code = "store_error"
    http_status = 503


class StoreFull(StoreError):
    """There is no room on the disk; everything that was accepted is safe."""

    code = "store_full"
    http_status = 507


class StoreBroken(StoreError):
    """The store or inbox is damaged, in use, closed, or written by a newer version."""

    code = "store_broken"
    http_status = 500
