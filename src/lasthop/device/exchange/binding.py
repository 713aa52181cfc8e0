"""From values to bytes and back: how an exchange encodes and decodes payloads.

A binding is told the peer, so that it can choose the encoding that the peer prefers, and remember
what a format learned from earlier messages.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, TypeVar, overload

import msgspec

from lasthop.errors import InvalidRequest, Rejected

T = TypeVar("T")


class Content(NamedTuple):
    """An encoded payload, with the headers that belong to it."""

    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    """Headers that the binding at the other end needs in order to decode the body."""


class Binding(Protocol[T]):
    """Encodes and decodes payloads of one type for an exchange."""

    def encode(self, value: T, peer: str) -> Content:
        """Encode a value for a peer: `device:NAME`, a topic, a service."""
        ...

    def decode(self, content: Content, peer: str) -> T:
        """Decode a payload that a peer sent. Raises Rejected (or a subclass) if the payload cannot
        be decoded."""
        ...

    def takes(self, content_type: str) -> bool:
        """Whether the binding can decode bodies of this content type."""
        ...

    def refusal_of(self, error: Exception) -> Rejected | None:
        """Return an exception of a handler as a refusal, which is sent to the peer that waits for
        an answer; None if the exception means that the handler has failed."""
        ...

    def decline(self, error: Rejected, peer: str) -> Content | None:
        """Return an answer that carries an error, which `decode` raises at the other end; None if
        payloads of this type have no form for errors."""
        ...


def essence(content_type: str) -> str:
    """Return a content type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


class Plain:
    """Base of bindings whose payloads have no special form for errors."""

    def refusal_of(self, error: Exception) -> Rejected | None:
        return error if isinstance(error, Rejected) else None

    def decline(self, error: Rejected, peer: str) -> Content | None:
        return None


class Bytes(Plain):
    """The binding for bytes, which are sent unchanged; it accepts every content type."""

    def __init__(self, content_type: str = "application/octet-stream") -> None:
        self._content_type = content_type

    def encode(self, value: bytes, peer: str) -> Content:
        return Content(self._content_type, value)

    def decode(self, content: Content, peer: str) -> bytes:
        return content.body

    def takes(self, content_type: str) -> bool:
        return True


class Text(Plain):
    """The binding for text, which is sent in UTF-8."""

    def encode(self, value: str, peer: str) -> Content:
        return Content("text/plain; charset=utf-8", value.encode())

    def decode(self, content: Content, peer: str) -> str:
        try:
            return content.body.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"the body is not text in UTF-8: {error.reason}") from None

    def takes(self, content_type: str) -> bool:
        return content_type.startswith("text/plain")


class Json(Plain, Generic[T]):
    """The binding for JSON of every type that msgspec supports: structs, dataclasses, dictionaries.
    Incoming bodies are checked against the type."""

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
            raise InvalidRequest(f"the body is not the expected JSON: {error}") from None
        return value

    def takes(self, content_type: str) -> bool:
        kind = essence(content_type)
        return kind == "application/json" or kind.endswith("+json")
