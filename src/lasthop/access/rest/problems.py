"""How the REST door says no: one JSON shape for every refusal.

    Rejected
    ├── NotFound
    │   └── NoReply                the message is known, and no device has answered it
    ├── Conflict
    │   └── TooLate                released or ended everywhere: it can no longer be taken back
    ├── Declined                   a device that offers the service will not, and says why
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
"""Characters: an error repeats what it was given, but not without end."""

_PLACE = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")


class NoReply(NotFound):
    code = "no_reply"


class Declined(Rejected):
    code = "declined"
    http_status = 422


class TooLate(Conflict):
    code = "too_late"


class MethodNotAllowed(Rejected):
    code = "method_not_allowed"
    http_status = 405


class Internal(LasthopError):
    """A fault of ours: it is in the log, and not for the caller to see."""

    code = "internal"


INTERNAL = Internal("the gateway failed at this; the reason is in its log")


class ProblemDetail(msgspec.Struct, omit_defaults=True):
    """Why a request was refused; nothing of it was done, unless the code is `outcome_open`."""

    code: str
    """Stable, for machines. With `outcome_open` the request may still be done."""
    detail: str
    """For people."""
    field: str | None = None
    """What is at fault: a field, a parameter or a header. In a batch, with the index of the
    message: `[3].priority`."""
    conflict: tuple[str, ...] | None = None
    """Of a contradiction, a smallest set of what cannot be met together."""
    ids: tuple[str, ...] | None = None
    """With `outcome_open`, the messages that there are if it is done: all of them or none. While
    that is open, `GET /v1/messages/ID` answers 503."""


class Problem(msgspec.Struct):
    """The one shape of every refusal."""

    error: ProblemDetail


def problem_of(error: LasthopError) -> Problem:
    """An error as the caller sees it."""
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
    # All or none of them: one says it for all.
    ask = f"GET /v1/messages/{error.ids[0]} says 404 if it was not accepted"
    if error.repeatable:
        return f": repeat it with the same Idempotency-Key, which cannot double it; {ask}"
    return f": ask before you repeat it; {ask}"


def headers_of(error: LasthopError) -> dict[str, str]:
    """What the status line's reader needs beside the body."""
    headers: dict[str, str] = {}
    # Who is told when to come again repeats the request: only where that cannot double it.
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
    """The router's own refusals."""
    if error.status_code == 405:
        return MethodNotAllowed("not with this method", allow=(error.headers or {}).get("Allow"))
    return NotFound("there is nothing at this path")


def malformed(error: Exception) -> InvalidRequest:
    """A body or parameter that could not be decoded, in terms of fields."""
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
