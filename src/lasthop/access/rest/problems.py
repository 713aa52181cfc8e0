"""The errors of the REST door, and the one JSON form of every refusal.

    Rejected
    ├── NotFound
    │   └── NoReply                the message is known, and no device has answered it
    ├── Conflict
    │   └── TooLate                sent or ended everywhere: it can no longer be cancelled
    ├── ServiceDeclined            a device that offers the service refuses, and says why
    └── MethodNotAllowed

Codes, statuses and facts come from the errors themselves.
"""

from __future__ import annotations

import math
import re

import msgspec
from starlette.exceptions import HTTPException

from lasthop.errors import (
    Conflict,
    Contradiction,
    InvalidRequest,
    LasthopError,
    Limited,
    NotFound,
    OutcomeOpen,
    Rejected,
    Unauthorized,
)

MAX_DETAIL = 500
"""The longest text of an error, in characters: an error may quote parts of the request, which may
be long."""

_PLACE = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")


class NoReply(NotFound):
    code = "no_reply"


class ServiceDeclined(Rejected):
    code = "declined"
    http_status = 422


class TooLate(Conflict):
    code = "too_late"


class MethodNotAllowed(Rejected):
    code = "method_not_allowed"
    http_status = 405


class Internal(LasthopError):
    """A fault of the gateway: the reason is in its log and not shown to the caller."""

    code = "internal"


INTERNAL = Internal("the gateway failed to handle the request; the reason is in its log")


class ProblemDetail(msgspec.Struct, omit_defaults=True):
    """Why a request was refused; the request has changed nothing, unless the code is
    `outcome_open`."""

    code: str
    """The stable code of the error, for programs. With `outcome_open` the request may still take
    effect."""
    detail: str
    """The explanation of the error, for people."""
    field: str | None = None
    """The field, parameter or header that is wrong. In a batch, with the index of the message:
    `[3].priority`."""
    conflict: tuple[str, ...] | None = None
    """For a contradiction: a smallest set of requirements that cannot be met together."""
    ids: tuple[str, ...] | None = None
    """With `outcome_open`: the ids of the messages that will exist if the request takes effect;
    either all of them will exist or none. Until that is known, `GET /v1/messages/ID` answers
    503."""


class Problem(msgspec.Struct):
    """The one form of every refusal."""

    error: ProblemDetail


def problem_of(error: LasthopError) -> Problem:
    """Return an error in the form in which the caller sees it."""
    fields = dict(error.fields)
    field = fields.pop("field", None)
    item = fields.pop("item", None)
    conflict = error.conflict if isinstance(error, Contradiction) else None
    if item is not None:
        field = f"[{item}].{field}" if field else f"[{item}]"
    facts = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    detail = f"{error.detail} ({facts})" if facts else error.detail
    if item is not None:
        detail = f"message {item}: {detail}"
    if len(detail) > MAX_DETAIL:
        detail = detail[:MAX_DETAIL] + "…"
    where = None if field is None else str(field)
    problem = ProblemDetail(error.code, detail, where, conflict)
    if isinstance(error, OutcomeOpen):
        problem.detail += _how_to_ask(error)
        problem.ids = error.ids or None
    return Problem(problem)


def _how_to_ask(error: OutcomeOpen) -> str:
    if not error.ids:
        return ": it may still be done; look for it when GET /ready answers 200"
    # The messages are accepted together, so that asking about one is enough.
    ask = f"GET /v1/messages/{error.ids[0]} says 404 if it was not accepted"
    if error.repeatable:
        return f": repeat it with the same Idempotency-Key, which cannot double it; {ask}"
    return f": ask before you repeat it; {ask}"


def headers_of(error: LasthopError) -> dict[str, str]:
    """Return the HTTP headers that belong to an error."""
    headers: dict[str, str] = {}
    # A client that gets Retry-After repeats the request, so send it only where a repetition cannot
    # publish twice.
    if isinstance(error, Limited) or (isinstance(error, OutcomeOpen) and error.repeatable):
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after)))
    elif isinstance(error, Unauthorized):
        headers["www-authenticate"] = 'Bearer realm="lasthop", Basic realm="lasthop"'
    elif isinstance(error, MethodNotAllowed):
        headers["allow"] = str(error.fields.get("allow", ""))
    if error.http_status == 413:
        headers["connection"] = "close"  # The rest of the request is not going to be read.
    return headers


def of_routing(error: HTTPException) -> LasthopError:
    """Return the error for a refusal by Starlette's router."""
    if error.status_code == 405:
        return MethodNotAllowed(
            "the path does not support this method", allow=(error.headers or {}).get("Allow")
        )
    return NotFound("there is nothing at this path")


def malformed(error: Exception) -> InvalidRequest:
    """Return the error for a body or parameters that could not be decoded, naming the field at
    fault."""
    if isinstance(error, RecursionError):
        return InvalidRequest("the JSON is nested too deeply")
    if not isinstance(error, msgspec.ValidationError):
        return InvalidRequest(f"the JSON cannot be read: {error}")
    found = _PLACE.fullmatch(str(error))
    assert found is not None
    said, path = found.group(1), found.group(2) or ""
    named = _UNKNOWN.fullmatch(said) or _MISSING.fullmatch(said)
    if named is not None:
        said = "unknown field" if said.startswith("Object contains") else "this field is required"
        path += f".{named.group(1)}"
    item = re.match(r"\[(\d+)\]", path)
    field = path.removeprefix(item.group() if item else "").removeprefix(".")
    facts: dict[str, object] = {"field": field} if field else {}
    if item is not None:
        facts["item"] = int(item.group(1))
    return InvalidRequest(f"{field}: {said}" if field else said, **facts)
