"""From values to bytes and back: what an exchange needs to know of a payload.

A binding is told the peer, so that it can choose what that peer likes best, and remember what went
before where a format learns from it.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, TypeVar, overload

import msgspec

from lasthop.errors import InvalidRequest, Rejected

T = TypeVar("T")


class Content(NamedTuple):
    """A payload as it travels."""

    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    """What the other side's binding has to know besides."""


class Binding(Protocol[T]):
    """One type of payload."""

    def encode(self, value: T, peer: str) -> Content:
        """Write a value for a peer: `device:NAME`, a topic, a service."""
        ...

    def decode(self, content: Content, peer: str) -> T:
        """Read what a peer wrote; raises a Rejected."""
        ...

    def takes(self, content_type: str) -> bool:
        """Whether it reads this type."""
        ...

    def refusal_of(self, error: Exception) -> Rejected | None:
        """What a handler raised as a refusal, which whoever waits for an answer hears of; None if
        the handler has failed."""
        ...

    def decline(self, error: Rejected, peer: str) -> Content | None:
        """An answer that says why there is none, if payloads of this type have a way to say so;
        `decode` raises it at the other end."""
        ...


def essence(content_type: str) -> str:
    """A content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


class Plain:
    """What has no way of its own to decline."""

    def refusal_of(self, error: Exception) -> Rejected | None:
        return error if isinstance(error, Rejected) else None

    def decline(self, error: Rejected, peer: str) -> Content | None:
        return None


class Bytes(Plain):
    """Bytes as they are."""

    def __init__(self, content_type: str = "application/octet-stream") -> None:
        self._content_type = content_type

    def encode(self, value: bytes, peer: str) -> Content:
        return Content(self._content_type, value)

    def decode(self, content: Content, peer: str) -> bytes:
        return content.body

    def takes(self, content_type: str) -> bool:
        return True


class Text(Plain):
    """Text in UTF-8."""

    def encode(self, value: str, peer: str) -> Content:
        return Content("text/plain; charset=utf-8", value.encode())

    def decode(self, content: Content, peer: str) -> str:
        try:
            return content.body.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"this is not text in UTF-8: {error.reason}") from None

    def takes(self, content_type: str) -> bool:
        return content_type.startswith("text/plain")


class Json(Plain, Generic[T]):
    """Anything that msgspec knows as JSON: structs, dataclasses, dictionaries. What comes in is
    checked against the type."""

    @overload
    def __init__(self: Json[Any]) -> None: ...

    @overload
    def __init__(self, kind: type[T]) -> None: ...

    def __init__(self, kind: Any = Any) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        self._encode = msgspec.json.Encoder().encode

    def encode(self, value: T, peer: str) -> Content:
        return Content("application/json", self._encode(value))

    def decode(self, content: Content, peer: str) -> T:
        try:
            value: T = self._decode(content.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequest(f"this is not what was expected: {error}") from None
        return value

    def takes(self, content_type: str) -> bool:
        kind = essence(content_type)
        return kind == "application/json" or kind.endswith("+json")
