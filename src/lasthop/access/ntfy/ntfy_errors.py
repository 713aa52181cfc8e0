"""Refusals in the form of ntfy: a code whose first three digits are the HTTP status."""

from __future__ import annotations

import msgspec

from lasthop.access.rest.problems import problem_of
from lasthop.errors import (
    Forbidden,
    InvalidRequest,
    LasthopError,
    NotFound,
    Rejected,
    TooLarge,
    Unauthorized,
)


class NtfyError(InvalidRequest):
    """A request in the form of ntfy that is refused; `number` is ntfy's code for it."""

    def __init__(self, number: int, detail: str, **fields: object) -> None:
        super().__init__(detail, **fields)
        self.number = number

    @property
    def http_status(self) -> int:  # type: ignore[override]
        """The HTTP status: the first digits of ntfy's code."""
        return self.number // 100


class NtfyRefusal(msgspec.Struct, omit_defaults=True):
    """The body of a refusal: ntfy's fields, and then ours."""

    code: int
    http: int
    error: str
    problem: str
    """The stable code of the error, as over REST."""
    field: str | None = None
    ids: tuple[str, ...] | None = None


_NUMBERS: tuple[tuple[type[LasthopError], int], ...] = (
    (Unauthorized, 40101),
    (Forbidden, 40301),
    (NotFound, 40401),
    (TooLarge, 41301),
)


def number_of(error: LasthopError) -> int:
    """Return ntfy's code for an error of the gateway."""
    if isinstance(error, NtfyError):
        return error.number
    for kind, number in _NUMBERS:
        if isinstance(error, kind):
            return number
    status = error.http_status
    if status == 429:
        return 42901
    if isinstance(error, Rejected) and status == 400 and error.fields.get("field") == "topic":
        return 40009
    return status * 100 + 1 if status >= 500 else status * 100


def refusal_of(error: LasthopError) -> bytes:
    """Return the body with which a request in the form of ntfy is refused."""
    problem = problem_of(error).error
    refusal = NtfyRefusal(
        number_of(error),
        error.http_status,
        problem.detail,
        problem.code,
        problem.field,
        problem.ids,
    )
    return msgspec.json.encode(refusal) + b"\n"
