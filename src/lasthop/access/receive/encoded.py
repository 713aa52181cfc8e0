"""One message as all listeners of its topic get it: encoded once for each form."""

from __future__ import annotations

from enum import Enum, auto

from lasthop.access.ntfy.ntfy_event import NtfyEvent, text_of, to_json


class ReceiveForm(Enum):
    """The form in which a listener gets messages."""

    JSON = auto()
    SSE = auto()
    RAW = auto()
    WS = auto()


MEDIA: dict[ReceiveForm, bytes] = {
    ReceiveForm.JSON: b"application/x-ndjson; charset=utf-8",
    ReceiveForm.SSE: b"text/event-stream; charset=utf-8",
    ReceiveForm.RAW: b"text/plain; charset=utf-8",
}

QUIET = ("message", "message_delete", "message_clear", "poll_request")
"""Events that server-sent events have without a name."""


class EncodedEvent:
    """An event, and the bytes of it that were needed so far."""

    __slots__ = ("_parts", "_wires", "event", "key")

    def __init__(self, event: NtfyEvent, key: int = 0) -> None:
        self.event = event
        self.key = key
        """The key of the message; 0 for what is none."""
        self._parts: dict[ReceiveForm, bytes] = {}
        self._wires: dict[tuple[ReceiveForm, bool], bytes] = {}

    def part(self, form: ReceiveForm) -> bytes:
        """Return the event in one form, without the framing of a connection."""
        part = self._parts.get(form)
        if part is None:
            part = self._parts[form] = _part(self.event, form)
        return part

    def wire(self, form: ReceiveForm, *, chunked: bool) -> bytes:
        """Return the bytes that go to the socket: a chunk of HTTP, or a frame of WebSocket."""
        wire = self._wires.get((form, chunked))
        if wire is None:
            part = self.part(form)
            if form is ReceiveForm.WS:
                wire = frame(part)
            else:
                wire = b"%x\r\n%b\r\n" % (len(part), part) if chunked else part
            self._wires[form, chunked] = wire
        return wire


def _part(event: NtfyEvent, form: ReceiveForm) -> bytes:
    if form is ReceiveForm.RAW:
        return text_of(event) + b"\n"
    if form is ReceiveForm.WS:
        if not event.sequence_id and event.event in QUIET:
            event.sequence_id = event.id
            try:
                return to_json(event)
            finally:
                event.sequence_id = ""
        return to_json(event)
    text = to_json(event)
    if form is ReceiveForm.JSON:
        return text + b"\n"
    name = b"" if event.event in QUIET else b"event: %b\n" % event.event.encode()
    return b"%bdata: %b\n\n" % (name, text)


TEXT, PING, CLOSE = 0x81, 0x89, 0x88


def frame(payload: bytes, opcode: int = TEXT) -> bytes:
    """Return a frame of WebSocket from a server: whole, and not masked (RFC 6455, section 5.2)."""
    size = len(payload)
    if size < 126:
        head = bytes((opcode, size))
    elif size < 1 << 16:
        head = bytes((opcode, 126)) + size.to_bytes(2)
    else:
        head = bytes((opcode, 127)) + size.to_bytes(8)
    return head + payload
