"""The request to publish a message, and its conversion into a submission.

msgspec decodes and checks types and ranges; `Converter` checks what concerns several fields and
turns words and relative times into the core's terms. Nothing is validated anywhere else.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from base64 import b64decode
from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from lasthop.access.rest.problems import malformed
from lasthop.access.rest.times import duration, instant
from lasthop.clock import Micros
from lasthop.core.lifecycle import RELIABILITY_OF_METHOD
from lasthop.core.names import parse_target
from lasthop.core.publishing.submission import Submission
from lasthop.errors import InvalidRequest, Rejected, TooLarge, UnsupportedMedia
from lasthop.message import (
    DEFAULT_CONTENT_TYPE,
    DEFAULT_PRIORITY,
    Binding,
    DeliveryMethod,
    Handling,
    Message,
    Reliability,
    Target,
)
from lasthop.wire.tracecontext import Headers

MAX_HEADERS = 32
"""The largest number of headers of a message. The headers are sent to the device, in frames that
have room for 64 texts."""

Moment: TypeAlias = float | str
_Text = Annotated[str, Meta(max_length=250)]
_Key = Annotated[str, Meta(min_length=1, max_length=128)]
_Address = Annotated[str, Meta(min_length=1, max_length=250)]

RELIABILITY_WORDS = {r.name.lower().replace("_", "-"): r for r in Reliability}
HANDLING_WORDS = {h.name.lower(): h for h in Handling}

_CONTENT_TYPE = re.compile(r"[!#-'*+.^_`|~0-9A-Za-z-]+/[!#-'*+.^_`|~0-9A-Za-z-]+( *;[ -~]*)?")
_HEADER_NAME = re.compile(r"[!#-'*+.^_`|~0-9A-Za-z-]{1,64}")
_HEADER_VALUE = re.compile(r"[^\x00-\x1f\x7f]{0,1024}")


class Publication(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """A message to send. Exactly one of `to`, `device`, `user`, `topic` and `group` names the
    target."""

    to: Annotated[
        _Address | None,
        Meta(
            description="device:NAME, user:NAME, topic:NAME, service:NAME, group:NAME, queue:NAME"
            " or app: (everyone)"
        ),
    ] = None
    device: Annotated[_Address | None, Meta(description="Short for device:NAME")] = None
    user: Annotated[_Address | None, Meta(description="Short for user:NAME")] = None
    topic: Annotated[_Address | None, Meta(description="Short for topic:NAME")] = None
    group: Annotated[_Address | None, Meta(description="Short for group:NAME")] = None
    atomic: Annotated[
        bool,
        Meta(description="All members of the group are shown it, or none; needs deliver_before"),
    ] = False
    claim: Annotated[
        bool,
        Meta(description="Only the member of the group that claims it first may act on it"),
    ] = False
    body: Annotated[str | None, Meta(description="The content, as text")] = None
    body_base64: Annotated[str | None, Meta(description="The content, as bytes in base64")] = None
    json: Annotated[
        Raw | UnsetType, Meta(description="The content, as any JSON value (application/json)")
    ] = UNSET
    content_type: Annotated[
        _Text | None, Meta(description="Default: text in UTF-8, bytes or JSON, as the body is")
    ] = None
    title: _Text | None = None
    priority: Annotated[
        int, Meta(ge=0, le=9, description="Higher goes first to the same device")
    ] = DEFAULT_PRIORITY
    rank: Annotated[float, Meta(description="Its rank among the messages of its topic")] = 0.0
    deliver_after: Annotated[
        Moment | None, Meta(description="Not before: RFC 3339, or seconds since 1970")
    ] = None
    deliver_before: Annotated[
        Moment | None, Meta(description="Not after: RFC 3339, or seconds since 1970")
    ] = None
    delay: Annotated[
        Moment | None, Meta(description="deliver_after from now: seconds, or 90s, 2h, 3d")
    ] = None
    ttl: Annotated[
        Moment | None, Meta(description="deliver_before from now: seconds, or 90s, 2h, 3d")
    ] = None
    delay_tolerance: Annotated[
        Moment | None,
        Meta(
            description="How long it may be held for a better link or moment, if the device allows"
            " its queue more: seconds, or 90s, 2h; at most 31 days"
        ),
    ] = None
    reliability: Annotated[
        Literal["best-effort", "at-least-once-delivery", "at-least-once-processing", "exactly-once"]
        | None,
        Meta(description="Default: what the method asks for, or exactly-once"),
    ] = None
    method: Annotated[
        DeliveryMethod | None,
        Meta(description="What is confirmed to the publisher, in PAP's terms"),
    ] = None
    handling: Annotated[
        Literal["foreground", "notify", "background", "silent"] | None,
        Meta(description="How the device treats it; default: as the app's behaviour says"),
    ] = None
    pull: Annotated[
        bool | None,
        Meta(description="The device is only notified, and fetches the body when it wants"),
    ] = None
    immediate: Annotated[
        bool | None,
        Meta(description="Only for those who can be reached at once; refused if nobody can"),
    ] = None
    replace_key: Annotated[
        _Key | None, Meta(description="Replaces your pending message with this key")
    ] = None
    reply_within: Annotated[
        Moment | None, Meta(description="An answer is wanted within this time: seconds, or 90s, 2h")
    ] = None
    headers: Annotated[
        Annotated[dict[str, str], Meta(max_length=MAX_HEADERS)] | None,
        Meta(description="Passed on to the application"),
    ] = None
    queue: _Key | None = None


FOREGROUND = Handling.FOREGROUND
ALL_UNSAID = frozenset(("handling", "reliability", "pull"))


def _unsaid(p: Publication) -> frozenset[str]:
    """Return the names of the fields that the publisher left to the app's behaviour."""
    said = {"handling": p.handling, "reliability": p.reliability or p.method, "pull": p.pull}
    return frozenset(name for name, value in said.items() if value is None)


_one = msgspec.json.Decoder(Publication)
_many = msgspec.json.Decoder(list[Publication])
_encode = msgspec.json.Encoder().encode

_JSON_TYPES = {b"", b"application/json", b"text/json", b"text/plain"}
# `curl -d` sends this type by default:
_JSON_TYPES.add(b"application/x-www-form-urlencoded")
_LINES_TYPES = {b"application/x-ndjson", b"application/ndjson", b"application/jsonl"}


def decode(content_type: bytes, body: bytes) -> Publication | list[Publication]:
    """Decode a request to publish: an object, an array of objects, or an object on every line."""
    media = content_type.partition(b";")[0].strip().lower()
    try:
        if media in _LINES_TYPES:
            return _one.decode_lines(body)
        if media not in _JSON_TYPES and not media.endswith(b"+json"):
            raise UnsupportedMedia(
                "messages must be sent as application/json or application/x-ndjson",
                field="Content-Type",
            )
        if body.lstrip(b" \t\r\n")[:1] == b"[":
            return _many.decode(body)
        return _one.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise malformed(error) from None


def decode_one(body: bytes) -> Publication:
    """Decode one publication from a JSON object."""
    try:
        return _one.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise malformed(error) from None


def digest(publications: Sequence[Publication], *context: object) -> bytes:
    """Return a fingerprint of a request, which is the same for two requests with the same fields in
    whatever order and white space; times relative to now are compared as they were given."""
    return hashlib.sha256(_encode((publications, context))).digest()


class Converter:
    """Turns the publications of one request into submissions."""

    def __init__(self, now: Micros, *, max_message: int, context: Headers = ()) -> None:
        """`context` are the headers that every message gets unless it has headers of the same
        names."""
        self._now = now
        self._context = context
        self._max_message = max_message
        self._targets: dict[tuple[str | None, ...], Target] = {}

    def all(self, publications: Sequence[Publication]) -> list[Submission]:
        """Convert the publications of a batch; an error names the message at fault."""
        done: list[Submission] = []
        try:
            for publication in publications:
                done.append(self.one(publication))
        except Rejected as error:
            error.fields["item"] = len(done)
            raise
        return done

    def one(
        self,
        p: Publication,
        *,
        target: Target | None = None,
        answers: Message | None = None,
        content: bytes | None = None,
    ) -> Submission:
        """Convert one publication. With `target`, the publication need not name a target; `answers`
        is the message that the publication replies to; `content` is the body of a request that is
        not JSON."""
        address = (p.to, p.device, p.user, p.topic, p.group)
        found = self._targets.get(address)
        if found is None:
            found = self._targets[address] = _target(address, target)
        body, content_type = _body(p, content)
        plain = p.method is None and p.reliability is None
        result = Submission(
            target=found,
            body=body,
            content_type=content_type,
            title=p.title,
            priority=p.priority,
            rank=p.rank,
            reliability=Reliability.EXACTLY_ONCE if plain else _reliability(p),
            method=p.method or DeliveryMethod.NOT_SPECIFIED,
            handling=FOREGROUND if p.handling is None else HANDLING_WORDS[p.handling],
            queue=p.queue,
            replace_key=p.replace_key,
            headers=self._context if p.headers is None else _headers(p.headers, self._context),
            pull=bool(p.pull),
            immediate=bool(p.immediate),
            unsaid=ALL_UNSAID if plain and p.handling is None and p.pull is None else _unsaid(p),
        )
        if p.atomic or p.claim:
            result.binding = _binding(p)
        self._set_times(p, result)
        if answers is not None:
            _answer(result, answers)
        self.check_size(result)
        return result

    def _set_times(self, p: Publication, s: Submission) -> None:
        if p.deliver_after is not None or p.delay is not None:
            s.deliver_after = self._time("deliver_after", p.deliver_after, "delay", p.delay)
        if p.deliver_before is not None or p.ttl is not None:
            s.deliver_before = self._time("deliver_before", p.deliver_before, "ttl", p.ttl)
        if p.delay_tolerance is not None:
            s.delay_tolerance = duration(p.delay_tolerance, "delay_tolerance")
        if p.reply_within is not None:
            s.reply_before = self._now + duration(p.reply_within, "reply_within")

    def _time(
        self, absolute: str, at: Moment | None, relative: str, after: Moment | None
    ) -> Micros:
        if after is None:
            assert at is not None
            return instant(at, absolute)
        if at is not None:
            raise InvalidRequest(
                f"{absolute} and {relative} mean the same: give only one", field=relative
            )
        return self._now + duration(after, relative)

    def check_size(self, s: Submission) -> None:
        """Raise an error for a submission that is too large with its title and headers."""
        size, limit = len(s.body), self._max_message
        if size > limit:
            raise TooLarge("body too large", size=size, limit=limit)
        if s.title is not None or s.headers:
            size += len((s.title or "").encode())
            size += sum(len(name) + len(value.encode()) for name, value in s.headers)
            if size > limit:
                raise TooLarge(
                    "message too large with its title and headers", size=size, limit=limit
                )


def _answer(s: Submission, question: Message) -> None:
    """Make a submission the answer to a device's message, under the key that the device gave its
    request, and expire it when the device stops waiting."""
    s.answer = question.correlation is not None
    s.in_reply_to = question.key if question.correlation is None else question.correlation
    if question.reply_before is not None:
        s.deliver_before = min(s.deliver_before or question.reply_before, question.reply_before)


_TARGETS = ("to", "device", "user", "topic", "group")


def _binding(p: Publication) -> Binding:
    if p.atomic and p.claim:
        raise InvalidRequest("claim: a message cannot be both atomic and claimable", field="claim")
    return Binding.ATOMIC if p.atomic else Binding.CLAIM


def _target(address: tuple[str | None, ...], known: Target | None) -> Target:
    given = [
        (field, name if field == "to" else f"{field}:{name}")
        for field, name in zip(_TARGETS, address, strict=True)
        if name is not None
    ]
    if not given and known is not None:
        return known
    if len(given) != 1:
        raise InvalidRequest(
            "a message needs one target: to, device, user, topic or group",
            field=given[1][0] if given else "to",
        )
    field, text = given[0]
    try:
        target = parse_target(text)
    except Rejected as error:
        error.fields["field"] = field
        raise
    if known is not None and target != known:
        raise InvalidRequest(f"{field}: the target must be {known}, or be left out", field=field)
    return target


def _body(p: Publication, content: bytes | None) -> tuple[bytes, str]:
    """Return the body and its content type: the given one, or the default for how the body was
    given."""
    if p.body is not None and p.body_base64 is None and p.json is UNSET:
        body, content_type = p.body.encode(), DEFAULT_CONTENT_TYPE
    else:
        body, content_type = _other_body(p, content)
    if p.content_type is None:
        return body, content_type
    if not _CONTENT_TYPE.fullmatch(p.content_type):
        raise InvalidRequest(
            "content_type: must be type/subtype, with any parameters after a semicolon",
            field="content_type",
        )
    return body, p.content_type


def _other_body(p: Publication, content: bytes | None) -> tuple[bytes, str]:
    if p.json is not UNSET:
        if p.body is not None or p.body_base64 is not None:
            raise InvalidRequest("give one of body, body_base64 and json", field="json")
        return bytes(p.json), "application/json"
    if p.body_base64 is not None:
        if p.body is not None:
            raise InvalidRequest("give one of body, body_base64 and json", field="body_base64")
        try:
            return b64decode(p.body_base64, validate=True), "application/octet-stream"
        except (binascii.Error, ValueError):
            raise InvalidRequest("body_base64: this is not base64", field="body_base64") from None
    return content or b"", DEFAULT_CONTENT_TYPE


def _reliability(p: Publication) -> Reliability:
    asked = RELIABILITY_OF_METHOD[p.method or DeliveryMethod.NOT_SPECIFIED]
    if p.reliability is None:
        return Reliability.EXACTLY_ONCE if asked is None else asked
    given = RELIABILITY_WORDS[p.reliability]
    if asked is not None and asked is not given:
        word = asked.name.lower().replace("_", "-")
        raise InvalidRequest(
            f"method: {p.method} means {word}, which contradicts the reliability", field="method"
        )
    return given


def _headers(given: dict[str, str], context: Headers) -> Headers:
    for name, value in given.items():
        if not _HEADER_NAME.fullmatch(name):
            raise InvalidRequest(
                "headers: a name must have up to 64 letters, digits and dashes",
                field=f"headers.{name}",
            )
        if not _HEADER_VALUE.fullmatch(value):
            raise InvalidRequest(
                "headers: a value must have up to 1024 characters, and no control characters",
                field=f"headers.{name}",
            )
    if len(given) + len(context) > MAX_HEADERS:
        # The publisher's own headers take precedence over trace headers.
        return tuple(given.items())
    said = {name.lower() for name in given}
    return *given.items(), *(pair for pair in context if pair[0] not in said)
