"""A message of a topic in the JSON that clients of ntfy read: their fields, in their order."""

from __future__ import annotations

import re
from base64 import b64encode

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.message import DEFAULT_PRIORITY, Message, short_form

EVENT, TAGS, CLICK, ICON = "event", "tags", "click", "icon"
ACTIONS, ATTACHMENT, TEXT, PRIORITY, POLL_ID = (
    "actions",
    "attachment",
    "message",
    "priority",
    "poll-id",
)
"""The headers of a message that have what ntfy knows and other doors do not."""

MARKDOWN = "text/markdown"

SEQUENCE = re.compile(r"[-_A-Za-z0-9]{1,64}")
"""The form of a sequence id; a replace key of this form is one."""

PRIORITIES = {1: 1, 2: 2, 3: DEFAULT_PRIORITY, 4: 6, 5: 8}
"""Our priority for each of ntfy's."""

_OF_OURS = (1, 1, 2, 2, None, None, 4, 4, 5, 5)
"""For each of our priorities ntfy's; None for the usual one, which is not said."""


class NtfyAction(msgspec.Struct, omit_defaults=True):
    """A button that clients show below a notification."""

    id: str
    action: str
    label: str
    clear: bool
    url: str = ""
    method: str = ""
    headers: dict[str, str] | None = None
    body: str = ""
    intent: str = ""
    extras: dict[str, str] | None = None
    value: str = ""


class Attachment(msgspec.Struct, omit_defaults=True):
    """A file that belongs to a message: uploaded with it, or at a URL."""

    name: str
    type: str = ""
    size: int = 0
    expires: int = 0
    url: str | None = None


class NtfyEvent(msgspec.Struct, omit_defaults=True):
    """One line of what a subscriber is sent, in the order of ntfy; fields of ours come last."""

    id: str = ""
    sequence_id: str = ""
    time: int = 0
    expires: int = 0
    event: str = ""
    topic: str = ""
    title: str = ""
    message: str | None = None
    priority: int = 0
    tags: list[str] = []
    click: str = ""
    icon: str = ""
    actions: list[NtfyAction] = []
    attachment: Attachment | None = None
    poll_id: str = ""
    content_type: str = ""
    encoding: str = ""
    since: str = ""
    """The id after which to go on, in the last line of a listener that was too slow."""
    message_id: str = ""
    """The id of the message in every other door."""
    repeated: bool = False
    subscriptions: int | None = None
    kept: bool | None = None
    ignored: list[str] = []
    """Headers and parameters that look meant for the gateway, and that it does not know."""


_encode = msgspec.json.Encoder().encode
_decode_actions = msgspec.json.Decoder(list[NtfyAction]).decode
_decode_attachment = msgspec.json.Decoder(Attachment).decode
_ESCAPES = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))


def to_json(event: NtfyEvent) -> bytes:
    """Encode an event in ntfy's order of fields, without the newline."""
    text = _encode(event)
    for plain, escaped in _ESCAPES:
        if plain in text:
            text = text.replace(plain, escaped)
    return text


def priority_of(message: Message, headers: dict[str, str]) -> int:
    """Return the priority in ntfy's words; 0 if the message has the usual one."""
    said = headers.get(PRIORITY, "")
    if len(said) == 1 and said in "12345":
        return int(said)
    return _OF_OURS[message.priority] or 0


def event_of(message: Message, *, age: Micros = 0, sequence: bool = False) -> NtfyEvent:
    """Return a message as its subscribers see it; `age` is how long its topic remembers it, 0 if it
    does not. With `sequence` it has a sequence id in any case, as over WebSocket."""
    headers = dict(message.headers)
    at = max(message.accepted_at, message.deliver_after or 0)
    key = message.replace_key or ""
    event = NtfyEvent(
        id=short_form(message.key),
        time=at // SECOND,
        event=headers.get(EVENT, "message"),
        topic=message.target.name,
    )
    if SEQUENCE.fullmatch(key) and key != event.id:
        event.sequence_id = key
    elif sequence:
        event.sequence_id = event.id
    if age:
        until = at + age
        event.expires = min(until, message.deliver_before or until) // SECOND
    if event.event in ("message_delete", "message_clear"):
        return event
    event.title = message.title or ""
    event.priority = priority_of(message, headers)
    event.tags = [tag for tag in headers.get(TAGS, "").split(",") if tag]
    event.click = headers.get(CLICK, "")
    event.icon = headers.get(ICON, "")
    event.poll_id = headers.get(POLL_ID, "")
    try:
        event.actions = _decode_actions(headers[ACTIONS]) if ACTIONS in headers else []
        if ATTACHMENT in headers:
            event.attachment = _decode_attachment(headers[ATTACHMENT])
            _locate(event.attachment, message)
    except (msgspec.DecodeError, RecursionError):
        pass  # Another door has sent headers of these names, with something else in them.
    if message.content_type.partition(";")[0] == MARKDOWN:
        event.content_type = MARKDOWN
    _set_text(event, message, headers)
    return event


def _locate(attachment: Attachment, message: Message) -> None:
    """Complete the URL of an uploaded file, which is stored with the gateway's own only: the whole
    id of the message makes it one that cannot be guessed."""
    if attachment.size:
        dot, extension = attachment.name.rpartition(".")[1:]
        known = dot and extension.isascii() and extension.isalnum() and len(extension) <= 10
        attachment.url = f"{attachment.url}/file/{message.id}{f'.{extension}' if known else ''}"


def _set_text(event: NtfyEvent, message: Message, headers: dict[str, str]) -> None:
    if event.attachment is not None and event.attachment.size:
        event.message = headers.get(TEXT, "")  # The body is the file.
        return
    try:
        event.message = message.body.decode()
    except UnicodeDecodeError:
        event.message = b64encode(message.body).decode()
        event.encoding = "base64"


def text_of(event: NtfyEvent) -> bytes:
    """Return an event as one line of text: empty unless it is a message."""
    text = event.message or "" if event.event == "message" else ""
    return text.replace("\n", " ").encode()
