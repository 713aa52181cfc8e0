"""OTA-HTTP: the client is an HTTP server, and the gateway posts to it.

Before the first push of a connection the gateway asks by OPTIONS what the client accepts; a tag
saves the answer when nothing has changed. A push is a POST whose body is a complete HTTP response,
as if the client had fetched it; the client's verdict is in X-Wap-Push-Status.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

import httptools
import msgspec

from lasthop.errors import Malformed, TooLarge
from lasthop.wire.ota.terminal import Terminal, media_types
from lasthop.wire.ota.transform import PushContent
from lasthop.wire.wsp.applications import Application, parse_application

PATH = "/wappush"
VERSION = "1.0"

MAX_HEAD = 16 * 1024
MAX_ANSWER = 1024 * 1024
"""The largest number of octets in an answer's headers and of its content: a client returns a form,
a receipt or a picture."""

_ACCEPTED = range(400, 500)
_STALE = 256
_FIRST_REASON, _LAST_REASON = 0xEA, 0xEE
_UNCHANGED, _REGISTERED = 500, 501
"""Values of X-Wap-Push-Status; rejections are WSP's reasons in decimal."""

_SAFE = re.compile(r"[\t\x20-\x7e\x80-\U0010ffff]*")


class Registration(msgspec.Struct, frozen=True):
    """What a client said of itself in its answer to OPTIONS."""

    tag: str | None = None
    """The tag of the client's capabilities: opaque, and only ever compared."""
    terminal: Terminal = Terminal()
    applications: frozenset[Application] | None = None
    terminal_id: str = ""
    user_agent: str = ""


class OtaAnswer(msgspec.Struct, frozen=True):
    """An HTTP response of a client, with header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    keeps: bool = True
    """Whether the connection can be used again."""

    @property
    def push_status(self) -> int | None:
        """The number at the start of X-Wap-Push-Status, which may have text behind it; None without
        one."""
        found = re.match(r"\s*([0-9]{1,4})\b", self.headers.get("x-wap-push-status", ""))
        return int(found[1]) if found else None


class PushAccepted(msgspec.Struct, frozen=True):
    """The client has the push, and perhaps returns content."""

    content: PushContent | None = None


class PushRejected(msgspec.Struct, frozen=True):
    """The client refuses the push, with one of WSP's reasons, or 0."""

    reason: int


class Stale(msgspec.Struct, frozen=True):
    """The client's capabilities have changed: ask by OPTIONS again, and then push again."""


class TooMuch(msgspec.Struct, frozen=True):
    """The client cannot accept such a push at all."""

    reason: str


class NotTaken(msgspec.Struct, frozen=True):
    """The client's HTTP server did not accept the request."""

    reason: str


class Unclear(msgspec.Struct, frozen=True):
    """The client's HTTP server accepted the request without saying what became of the push."""

    reason: str


Verdict: TypeAlias = PushAccepted | PushRejected | Stale | TooMuch | NotTaken | Unclear


def options_request(host: str, tag: str | None) -> bytes:
    """Return the OPTIONS request that asks a client to register."""
    lines = [f"OPTIONS {PATH} HTTP/1.1", f"Host: {host}", f"X-Wap-Push-OTA-Version: {VERSION}"]
    if tag is not None:
        lines.append(f"X-Wap-CPITag: {tag}")
    return ("\r\n".join(lines) + "\r\nContent-Length: 0\r\n\r\n").encode()


def post_request(host: str, push: PushContent, *, tag: str | None, response: bool) -> bytes:
    """Return the POST request of a push; `response` says whether the client may return content in
    its answer."""
    inner = ["HTTP/1.1 200 OK", f"Content-Type: {_checked(push.content_type)}"]
    inner += [f"{name}: {_checked(value)}" for name, value in push.headers]
    inner.append(f"Content-Length: {len(push.body)}")
    body = ("\r\n".join(inner) + "\r\n\r\n").encode() + push.body
    lines = [f"POST {PATH} HTTP/1.1", f"Host: {host}", f"X-Wap-Push-OTA-Version: {VERSION}"]
    if tag is not None:
        lines.append(f"X-Wap-CPITag: {tag}")
    if response:
        lines.append("X-Wap-Push-Info: response")
    lines += ["Content-Type: application/http", f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def _checked(value: str) -> str:
    """Return a header's value if it has no control characters, which could make it two headers."""
    if _SAFE.fullmatch(value) is None:
        raise Malformed("a header must not contain control characters", value=value[:40])
    return value


def verdict(answer: OtaAnswer) -> Verdict:
    """Return what a client's answer to a push means."""
    code = answer.push_status
    if code is not None and answer.status in range(200, 300):
        if code in _ACCEPTED:
            return PushAccepted(_content(answer))
        if code == _STALE and "x-wap-cpitag" in answer.headers:
            return Stale()
        if code == _STALE:
            return PushRejected(_FIRST_REASON)  # Some clients mean that the user declined.
        if _FIRST_REASON <= code <= _LAST_REASON:
            return PushRejected(code)
        if code in range(200, 300):
            return PushRejected(0)
    if answer.status in (413, 415):
        return TooMuch(f"the client answered {answer.status}")
    if answer.status >= 300:
        return NotTaken(f"the client answered {answer.status}")
    return Unclear("the client did not say what became of the push")


def _content(answer: OtaAnswer) -> PushContent | None:
    if answer.status == 204 or not answer.body:
        return None
    media = answer.headers.get("content-type", "application/octet-stream")
    kept = ("content-language", "content-location", "content-encoding")
    headers = tuple((n.title(), answer.headers[n]) for n in kept if n in answer.headers)
    return PushContent(media, headers, answer.body)


def registration(answer: OtaAnswer, known: Registration | None) -> Registration | None:
    """Return the registration in an answer to OPTIONS, or `known` if it is unchanged; None if the
    client did not register."""
    code = answer.push_status
    if answer.status not in range(200, 300) or code not in (_UNCHANGED, _REGISTERED):
        return None
    if code == _UNCHANGED and known is not None:
        return known
    headers = answer.headers
    size = headers.get("x-wap-push-msgsize") or headers.get("x-wap-push-maxmsgsize") or ""
    codings = headers.get("x-wap-push-accept-encoding", "").lower()
    return Registration(
        tag=headers.get("x-wap-cpitag"),
        terminal=Terminal(
            accept=media_types(headers.get("x-wap-push-accept", "")),
            codings=frozenset(w for part in codings.split(",") if (w := _word(part))),
            max_size=int(size) if size.isascii() and size.isdigit() and int(size) else None,
        ),
        applications=_applications(headers.get("x-wap-push-accept-appid", "")),
        terminal_id=headers.get("x-wap-terminal-id", ""),
        user_agent=headers.get("x-wap-push-user-agent", ""),
    )


def _word(text: str) -> str:
    return text.partition(";")[0].strip()


def _applications(text: str) -> frozenset[Application] | None:
    found: set[Application] = set()
    for part in text.split(","):
        name = part.strip()
        if name == "*":
            return None
        try:
            found |= {parse_application(name)} if name else set()
        except Malformed:
            continue  # An application without a valid name cannot be pushed to either.
    return frozenset(found) or None


class AnswerReader:
    """Reads the answers of one connection, one after another."""

    def __init__(self, *, limit: int = MAX_ANSWER) -> None:
        self._limit = limit
        self._found: list[OtaAnswer] = []
        self._begin()

    def _begin(self) -> None:
        self._headers: dict[str, str] = {}
        self._head = 0
        self._body = bytearray()
        self._parser = httptools.HttpResponseParser(self)

    def receive(self, data: bytes) -> list[OtaAnswer]:
        """Handle received octets and return the answers that are complete; raise Malformed or
        TooLarge, after which nothing more can be read."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            cause = error.__context__
            if isinstance(cause, TooLarge):
                raise cause from None
            raise Malformed(f"not an HTTP response: {error}") from None
        found, self._found = self._found, []
        return found

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head += len(name) + len(value)
        if self._head > MAX_HEAD:
            raise TooLarge("the headers of an answer are too long", limit=MAX_HEAD)
        self._headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > self._limit:
            raise TooLarge("an answer is too long", limit=self._limit)

    def on_message_complete(self) -> None:
        parser = self._parser
        status, keeps = parser.get_status_code(), parser.should_keep_alive()
        if status >= 200:  # A status below 200 only announces the answer.
            self._found.append(OtaAnswer(status, self._headers, bytes(self._body), keeps))
        self._headers, self._head, self._body = {}, 0, bytearray()
