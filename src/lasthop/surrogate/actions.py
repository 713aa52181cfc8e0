"""The decisions that a surrogate's hook may return: relay a message, answer it, or drop it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from lasthop.message import DEFAULT_CONTENT_TYPE
from lasthop.surrogate.mail import Content, Headers

HeaderValues: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """Let the message go on. The fields given here replace those of the message; `headers` replace
    all of its headers."""

    body: bytes | str | UnsetType = UNSET
    content_type: str | UnsetType = UNSET
    title: str | UnsetType | None = UNSET
    headers: HeaderValues | UnsetType = UNSET
    rank: float | UnsetType = UNSET

    def content(self, before: Content) -> Content:
        """Return the content that goes on, given the message's own content. Raises TypeError if a
        field is invalid."""
        return make_content(
            before.body if self.body is UNSET else self.body,
            content_type=before.content_type if self.content_type is UNSET else self.content_type,
            title=before.title if self.title is UNSET else self.title,
            headers=before.headers if self.headers is UNSET else self.headers,
            rank=before.rank if self.rank is UNSET else self.rank,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """Send this answer to the sender of the message; the message itself goes no further."""

    body: bytes | str = b""
    content_type: str = DEFAULT_CONTENT_TYPE
    title: str | None = None
    headers: HeaderValues = ()

    def content(self) -> Content:
        """Return the content of the answer. Raises TypeError if a field is invalid."""
        return make_content(
            self.body, content_type=self.content_type, title=self.title, headers=self.headers
        )


@dataclass(frozen=True, slots=True)
class Drop:
    """Let the message go no further; the reason is written to the event log."""

    reason: str


Decision: TypeAlias = Relay | Answer | Drop


def make_content(
    body: bytes | str,
    *,
    content_type: str,
    title: str | None,
    headers: HeaderValues,
    rank: float = 0.0,
) -> Content:
    """Return the content of a message with these fields. Raises TypeError if one is invalid."""
    given: Any = list(headers.items() if isinstance(headers, Mapping) else headers)
    pairs: Headers = tuple(given)
    data = body.encode() if isinstance(body, str) else body
    if not isinstance(data, bytes):
        raise TypeError(f"a body must be bytes or text, not {type(data).__name__}")
    try:
        return msgspec.convert((data, content_type, title, pairs, rank), Content)
    except msgspec.ValidationError as error:
        raise TypeError(f"this is not the content of a message: {error}") from None
