"""A request in the form of ntfy becomes a submission, and the answer is the message in its JSON."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from lasthop.access.ntfy import ntfy_event as names
from lasthop.access.ntfy.ntfy_actions import actions_of, parse_actions
from lasthop.access.ntfy.ntfy_delay import deliver_after
from lasthop.access.ntfy.ntfy_errors import NtfyError
from lasthop.access.ntfy.ntfy_event import PRIORITIES, SEQUENCE, Attachment, NtfyAction
from lasthop.access.ntfy.ntfy_parameters import NtfyParameters
from lasthop.access.ntfy.ntfy_values import (
    file_type_of,
    is_place,
    parse_priority,
    priority_in,
    split_tags,
)
from lasthop.access.rest.problems import malformed
from lasthop.access.rest.requests import Converter, Publication
from lasthop.clock import HOUR, SECOND, Micros
from lasthop.core.publishing.submission import Submission
from lasthop.message import DEFAULT_CONTENT_TYPE, Handling

TEXT_LIMIT = 4096
"""Bytes of a body that is text; a body of this size or more is a file, as for ntfy."""

FILE_LIFE: Micros = 3 * HOUR
"""How long an uploaded file can be fetched."""

MAX_JSON = 2 * TEXT_LIMIT

TRIGGERED = b"triggered"

RELATIVE = 1_000_000_000
"""An `Expires` number below this one means seconds from now; any other number means seconds since
1970. As seconds since 1970, this number is a time in 2001."""

_FORM = b"application/x-www-form-urlencoded"
_HTTP = ("http://", "https://")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""What no header of a message may have: carriers write headers into protocols of lines."""

REFUSED: Mapping[str, tuple[int, str]] = {
    "email": (40001, "this gateway sends no e-mail"),
    "call": (40032, "this gateway makes no phone calls"),
    "template": (40044, "this gateway has no templates"),
    "percentage": (40054, "this gateway shows no progress"),
    "end": (40055, "this gateway shows no progress"),
}
"""What other servers do with a message and this gateway does not, with ntfy's code."""

OURS = (
    "rank",
    "ttl",
    "delay_tolerance",
    "replace_key",
    "reliability",
    "handling",
    "queue",
    "immediate",
)
"""The gateway's own options of a publication, under the names that REST has for them."""


class JsonPublication(msgspec.Struct):
    """A publication as JSON, by POST to the root. Unknown fields are named in the answer."""

    topic: str = ""
    sequence_id: str = ""
    title: str = ""
    message: str = ""
    priority: int = 0
    tags: list[str] = []
    click: str = ""
    icon: str = ""
    attach: str = ""
    actions: list[Any] = []
    markdown: bool = False
    filename: str = ""
    email: str = ""
    call: str = ""
    cache: str = ""
    firebase: str = ""
    delay: str = ""


_decode = msgspec.json.Decoder(JsonPublication).decode
_decode_names = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


@dataclass(slots=True)
class NtfyPublication:
    """What a request in the form of ntfy asks for."""

    topic: str
    title: str = ""
    text: bytes | None = None
    """The text that the request gives beside its body; None if it gives none."""
    priority: int = 0
    tags: list[str] = field(default_factory=list)
    click: str = ""
    icon: str = ""
    attach: str = ""
    filename: str = ""
    actions: list[NtfyAction] = field(default_factory=list)
    markdown: bool = False
    cache: bool = True
    delay: str = ""
    sequence: str = ""
    unifiedpush: bool = False
    poll_id: str = ""
    event: str = ""
    ours: dict[str, str] = field(default_factory=dict)
    content_type: str = ""
    ignored: list[str] = field(default_factory=list)


def maker_of_ids(text: str) -> Callable[[], str]:
    """Return a function that makes the ids of a request's actions: ten letters and digits, the same
    when the request is repeated."""
    numbers = count()
    return lambda: hashlib.sha256(f"{next(numbers)} {text}".encode()).hexdigest()[:10]


def asked_of(topic: str, parameters: NtfyParameters, *, sequence: str = "") -> NtfyPublication:
    """Return what headers and query ask for."""
    get = parameters.get
    refuse(parameters)
    asked = NtfyPublication(topic, sequence=sequence or get("sequence_id"))
    asked.priority = priority_in(parameters)
    asked.title = get("title")
    asked.click = get("click")
    asked.icon = get("icon")
    asked.attach = get("attach")
    asked.filename = get("filename")
    asked.tags = split_tags(get("tags"))
    asked.cache = parameters.true("cache", default=True)
    asked.delay = get("delay")
    asked.poll_id = get("poll_id")
    content_type = parameters.headers.get(b"content-type", _FORM)
    said = get("content_type")
    if said:
        asked.content_type = said
    elif not content_type.startswith(_FORM):  # curl sends this type by default: it says nothing.
        asked.content_type = content_type.decode("latin-1")
    asked.markdown = parameters.true("markdown") or content_type == b"text/markdown"
    asked.unifiedpush = (
        parameters.true("unifiedpush")
        or parameters.headers.get(b"content-encoding", b"").lower() == b"aes128gcm"
    )
    message = get("message")
    if message:
        asked.text = message.replace("\\n", "\n").encode()
    actions = get("actions")
    if actions:
        asked.actions = parse_actions(actions, maker_of_ids(actions))
    _add_ours(asked, parameters)
    asked.ignored = parameters.unknown()
    _check(asked)
    return asked


def refuse(parameters: NtfyParameters) -> None:
    """Raise an error for what other servers do with a message and this gateway does not."""
    for name, (number, why) in REFUSED.items():
        if parameters.get(name):
            raise NtfyError(number, why, field=name)
    if parameters.true("firebase"):
        raise NtfyError(40000, "this gateway does not use Firebase", field="firebase")


def _add_ours(asked: NtfyPublication, parameters: NtfyParameters) -> None:
    for name in OURS:
        value = parameters.get(name)
        if value:
            asked.ours[name] = value
    expires = parameters.get("expires")
    if expires:
        asked.ours[_kind_of_expiry(expires)] = expires


def _kind_of_expiry(text: str) -> str:
    """Return the field that an `Expires` value stands for, judged by its form: a duration (`ttl`)
    or a time (`deliver_before`)."""
    try:
        return "ttl" if float(text) < RELATIVE else "deliver_before"
    except ValueError:
        return "deliver_before" if text[4:5] == "-" else "ttl"


def _check(asked: NtfyPublication) -> None:
    if asked.sequence and not SEQUENCE.fullmatch(asked.sequence):
        raise NtfyError(
            40049,
            "a sequence id has up to 64 letters, digits, dashes and underscores",
            field="sequence_id",
        )
    if asked.icon and not asked.icon.startswith(_HTTP):
        raise NtfyError(40021, "an icon has an http or https URL", field="icon")
    if asked.attach and not is_place(asked.attach):
        raise NtfyError(40013, "an attachment has an http or https URL", field="attach")
    if asked.delay and not asked.cache:
        raise NtfyError(40002, "a message that is not kept cannot be sent later", field="cache")
    for name in ("click", "icon", "attach", "filename"):
        if len(getattr(asked, name)) > 2048:
            raise NtfyError(40000, f"{name}: at most 2048 characters", field=name)
    if len(",".join(asked.tags)) > 1024:
        raise NtfyError(40000, "tags: at most 1024 characters", field="tags")


def asked_in_json(body: bytes, parameters: NtfyParameters) -> NtfyPublication:
    """Return what a JSON publication asks for; what it lacks is taken from headers and query."""
    if len(body) >= MAX_JSON:
        raise NtfyError(41303, "the JSON is too large", limit=MAX_JSON)
    try:
        given = _decode(body)
        fields = _decode_names(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NtfyError(40024, f"the JSON cannot be read: {malformed(error).detail}") from None
    if not given.topic:
        raise NtfyError(40009, "a topic is needed", field="topic")
    query = parameters.query
    for name in ("email", "call", "cache", "firebase", "delay", "sequence_id", "title"):
        value = getattr(given, name)
        if value:
            query[f"x-{name.replace('_', '-')}"] = value
    stronger = NtfyParameters(
        {k: v for k, v in parameters.headers.items() if f"x-{_bare(k)}" not in query}, b""
    )
    stronger.query = query
    asked = asked_of(given.topic, stronger)
    asked.text = given.message.encode()
    asked.click = given.click or asked.click
    asked.icon = given.icon or asked.icon
    asked.attach = given.attach or asked.attach
    asked.filename = given.filename or asked.filename
    asked.tags = given.tags or asked.tags
    asked.markdown = given.markdown or asked.markdown
    if given.priority:
        asked.priority = parse_priority(str(given.priority))
    if given.actions:
        asked.actions = actions_of(given.actions, maker_of_ids(repr(given.actions)))
    known = set(JsonPublication.__struct_fields__)
    asked.ignored += sorted(set(fields) - known)
    asked.content_type = ""
    _check(asked)
    return asked


def _bare(header: bytes) -> str:
    return header.decode("latin-1").removeprefix("x-")


def submission_of(
    asked: NtfyPublication, body: bytes, converter: Converter, now: Micros, *, base: str
) -> Submission:
    """Return the submission that a request stands for."""
    fields: dict[str, object] = {"topic": asked.topic, **asked.ours}
    if asked.title:
        fields["title"] = asked.title
    if asked.sequence:
        fields["replace_key"] = asked.sequence
    fields["priority"] = PRIORITIES[asked.priority] if asked.priority else PRIORITIES[3]
    if asked.markdown:
        fields["content_type"] = names.MARKDOWN
    elif asked.content_type:
        fields["content_type"] = asked.content_type
    try:
        publication = msgspec.convert(fields, Publication, strict=False)
    except msgspec.ValidationError as error:
        raise malformed(error) from None
    content, attachment, text = _content(asked, body, now, base=base)
    submission = converter.one(publication, content=content)
    if asked.delay:
        submission.deliver_after = deliver_after(asked.delay, now)
    if (
        attachment is not None
        and not asked.attach
        and submission.content_type
        in (
            DEFAULT_CONTENT_TYPE,
            names.MARKDOWN,
        )
    ):
        submission.content_type = attachment.type
    headers = {name: _CONTROL.sub(" ", value) for name, value in _headers(asked, attachment, text)}
    submission.headers = (
        *headers.items(),
        *(pair for pair in submission.headers if pair[0] not in headers),
    )
    if asked.event in ("message_delete", "message_clear"):
        submission.handling = Handling.SILENT
    converter.check_size(submission)
    return submission


def _content(
    asked: NtfyPublication, body: bytes, now: Micros, *, base: str
) -> tuple[bytes, Attachment | None, bytes]:
    """Return the body of the message, its attachment, and the text beside a file that the body
    is."""
    if asked.event:
        return b"", None, b""
    if asked.poll_id:
        return b"New message", None, b""
    if asked.unifiedpush:
        return body[:TEXT_LIMIT], None, b""
    if asked.attach:
        return _with_url(asked, body[:TEXT_LIMIT])
    as_text = _as_text(body)
    if asked.filename or as_text is None:
        return _with_file(asked, body, base=base, now=now)
    return as_text or asked.text or TRIGGERED, None, b""


def _as_text(body: bytes) -> bytes | None:
    """Return a body that is text, without the space around it; None for a file."""
    if len(body) >= TEXT_LIMIT:
        return None
    try:
        return body.decode().strip().encode()
    except UnicodeDecodeError:
        return None


def _with_url(asked: NtfyPublication, body: bytes) -> tuple[bytes, Attachment, bytes]:
    try:
        given = body.decode().strip().encode()
    except UnicodeDecodeError:
        raise NtfyError(40011, "the message is not UTF-8", field="message") from None
    last = unquote(urlsplit(asked.attach).path.rpartition("/")[2])
    name = asked.filename or last or "attachment"
    received = f"You received a file: {name}".encode()
    return given or asked.text or received, Attachment(name, url=asked.attach), b""


def _with_file(
    asked: NtfyPublication, body: bytes, *, base: str, now: Micros
) -> tuple[bytes, Attachment, bytes]:
    if asked.filename and not body and asked.text:
        body = asked.text  # A publication as JSON with a name for its text.
    if not base:
        raise NtfyError(40014, "this gateway takes no files", field="filename")
    kind = file_type_of(body)
    guessed = mimetypes.guess_extension(kind.partition(";")[0]) or ""
    name = asked.filename or f"attachment{guessed}"
    text = asked.text or f"You received a file: {name}".encode()
    file = Attachment(name, kind, len(body), (now + FILE_LIFE) // SECOND, base)
    return body, file, text[:TEXT_LIMIT]


def _headers(
    asked: NtfyPublication, attachment: Attachment | None, text: bytes
) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if asked.event:
        found.append((names.EVENT, asked.event))
    if asked.poll_id:
        found += [(names.EVENT, "poll_request"), (names.POLL_ID, asked.poll_id)]
    if asked.priority:
        found.append((names.PRIORITY, str(asked.priority)))
    if asked.tags:
        found.append((names.TAGS, ",".join(asked.tags)))
    if asked.click:
        found.append((names.CLICK, asked.click))
    if asked.icon:
        found.append((names.ICON, asked.icon))
    if asked.actions:
        found.append((names.ACTIONS, msgspec.json.encode(asked.actions).decode()))
    if attachment is not None:
        found.append((names.ATTACHMENT, msgspec.json.encode(attachment).decode()))
    if text:
        found.append((names.TEXT, text.decode(errors="replace")))
    if not asked.cache or asked.poll_id:
        found.append(("cache", "no"))
    return found


EXTENSION = re.compile(r"[0-9a-f]{32}(\.[A-Za-z0-9]{1,10})?")
"""The form of the name under which an uploaded file is fetched."""
