"""From Xebu to events: one decoder for each direction of a session.

The peer may be hostile. Bytes that are not Xebu raise an error, and work and memory are limited by
the size of a message and by `Limits`. After any error the tables may differ from those of the peer:
the decoder then refuses every message until it is reset, which both ends have to agree on.
"""

from __future__ import annotations

import struct
from typing import Final, NoReturn

from lasthop_xml.errors import XmlError
from lasthop_xml.xas.errors import InvalidValue, MalformedEvents
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    DOCUMENT_END,
    DOCUMENT_START,
    ELEMENT_END,
    ELEMENT_START,
    PREFIX_MAPPING,
    PROCESSING_INSTRUCTION,
    TYPED_CONTENT,
    Event,
    attribute,
    comment,
    content,
    end,
    entity,
    start,
    typed,
)
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.names import XSI_TYPE, Name, check_name, check_text, is_ncname
from lasthop_xml.xas.scope import LastingScope, Scope
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xebu import layout
from lasthop_xml.xebu.encoder import NOTHING_KNOWN
from lasthop_xml.xebu.errors import XebuFormatError, XebuLimitError, XebuStateError
from lasthop_xml.xebu.layout import LONGEST_KEPT, MAX_MESSAGE, read_bytes, read_compressed
from lasthop_xml.xebu.tokens import DecoderTables, KnownStrings, Mode, interned
from lasthop_xml.xebu.values import FORMS, Read

_START_TOKEN: Final = layout.START | layout.NAME_TOKEN
_VALUE_TOKEN: Final = layout.ATTRIBUTE | layout.VALUE_TOKEN
_TEXT_TOKEN: Final = layout.CONTENT | layout.VALUE_TOKEN
_SEVERAL: Final = layout.TYPED | layout.SEVERAL
_END: Final = layout.END
_BLOCK_END: Final = layout.BLOCK_END
_TYPED: Final = layout.TYPED
_new = tuple.__new__


class Decoder:
    """A decoder for the messages of one direction of a session, which must come in order."""

    def __init__(
        self,
        *,
        known: KnownStrings = NOTHING_KNOWN,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        max_message: int = MAX_MESSAGE,
    ) -> None:
        self.known = known
        self.epoch = 0
        self.messages = 0
        self.poisoned = False
        self.schema = b""
        """The fingerprint of the session's schema; empty if it has none."""
        self._limits = limits
        self._max_message = max_message
        self._scope = LastingScope()
        self.tables = DecoderTables(known)

    def reset(self) -> None:
        """Begin a new epoch with empty tables; the encoder at the other end must do the same."""
        self.tables = DecoderTables(self.known)
        self.epoch += 1
        self.messages = 0
        self.poisoned = False

    def decode(self, data: bytes) -> EventList:
        """Decode the next message and return the events of its document; any error poisons the
        decoder until `reset`."""
        if self.poisoned:
            raise XebuStateError("an earlier message failed; reset both ends", epoch=self.epoch)
        self.poisoned = True
        if len(data) > self._max_message:
            raise XebuLimitError("a message is too large", size=len(data), most=self._max_message)
        events = self._message(data)
        _check_limits(events, len(data), self._limits)
        self.poisoned = False
        self.messages += 1
        return events

    def _message(self, data: bytes) -> EventList:
        return Message(data, self.tables, self._scope, self._limits).decode()


class Message:
    """The decoding of one message, from its bytes to its events."""

    __slots__ = ("_data", "_limits", "_mode", "_out", "_pos", "_scope", "_tables")

    def __init__(self, data: bytes, tables: DecoderTables, scope: Scope, limits: Limits) -> None:
        self._data = data
        self._tables = tables
        self._scope = scope
        self._limits = limits
        self._out = EventList()
        self._pos = 0

    def decode(self) -> EventList:
        try:
            self._begin()
            self._events()
        except (InvalidValue, MalformedEvents) as error:
            self._fail(error.detail)
        except XmlError:
            raise
        except IndexError:
            self._fail("a message ends early")
        except (ValueError, OverflowError, struct.error) as error:
            self._fail(str(error))
        self._out.append(DOCUMENT_END)
        return self._out

    def _fail(self, detail: str) -> NoReturn:
        raise XebuFormatError(detail, offset=self._pos) from None

    def _begin(self) -> None:
        flags = self._data[0]
        if flags & 0xF != layout.DOCUMENT:
            self._fail("a message does not start with a document")
        self._mode = self._mode_of(flags & 0xF0)
        self._out.append(DOCUMENT_START)
        self._pos = 1

    def _mode_of(self, flags: int) -> Mode:
        try:
            return Mode(flags)
        except ValueError:
            self._fail("a document has flags that are not supported")

    def _events(self) -> None:
        data, out = self._data, self._out
        tables = self._tables
        starts, ends, values, texts = tables.starts, tables.ends, tables.values, tables.texts
        add = out.append
        stack: list[Event] = []
        push, pop = stack.append, stack.pop
        depth = self._limits.depth
        scope = self._scope
        outer: list[tuple[Scope, int]] = []
        scoped = -1
        mappings: list[Name] = []
        in_pieces = False  # the next text continues the last one
        pos = 1
        size = len(data)
        while pos < size:
            byte = data[pos]
            if byte == _VALUE_TOKEN:
                event = values[data[pos + 1]]
                if event is None:
                    self._unknown(pos)
                add(event)
                pos += 2
                if data[pos] == _BLOCK_END:
                    pos += 1
            elif byte == _END:
                add(pop())
                pos += 1
                if len(stack) == scoped:
                    scope, scoped = outer.pop()
            elif byte == _START_TOKEN:
                token = data[pos + 1]
                event = starts[token]
                if event is None:
                    self._unknown(pos)
                pos += 2
                add(event)
                push(ends[token])  # type: ignore[arg-type]
                if len(stack) > depth:
                    raise XebuLimitError("elements are too deeply nested", most=depth)
                if mappings:
                    outer.append((scope, scoped))
                    scope, scoped = scope.declare(mappings), len(stack) - 1
                    mappings = []
            elif byte == _TYPED:
                self._pos = pos
                # Nearly always xsi:type is the last attribute, and its type was used before.
                _, name, declared = out[-1]
                found = scope.codecs.get(declared) if name is XSI_TYPE else None
                type_, read = found or self._declared(scope)
                value, pos = read(data, pos + 1)
                if pos > size:
                    raise IndexError
                add(_new(Event, (TYPED_CONTENT, type_, value)))
            elif byte == _TEXT_TOKEN:
                event = texts[data[pos + 1]]
                if event is None:
                    self._unknown(pos)
                add(event)
                pos += 2
            elif byte == _BLOCK_END:
                pos += 1
            else:
                self._pos = pos
                form = byte & 0xF
                if form == layout.CONTENT:
                    text, pos = self._text(byte, pos + 1)
                    add(content(text, same_text=in_pieces))
                    in_pieces = byte & layout.PIECE != 0 and self._goes_on(pos)
                elif form == layout.START:
                    name, pos = self._name(byte, pos + 1)
                    add(start(name))
                    push(end(name))
                    if len(stack) > depth:
                        raise XebuLimitError("elements are too deeply nested", most=depth)
                    if mappings:
                        outer.append((scope, scoped))
                        scope, scoped = scope.declare(mappings), len(stack) - 1
                        mappings = []
                elif form == layout.ATTRIBUTE:
                    event, pos = self._attribute(byte, pos + 1)
                    add(event)
                elif form == layout.PREFIX:
                    name, pos = self._name(byte, pos + 1)
                    mappings.append(name)
                    add(_new(Event, (PREFIX_MAPPING, name, None)))
                elif byte == _SEVERAL:
                    pos = self._several(scope, pos + 1)
                elif form == layout.TYPED and byte & layout.NAMED_TYPE:
                    event, pos = self._typed(byte, pos + 1)
                    add(event)
                elif form == layout.SPECIAL:
                    event, pos = self._special(byte, pos + 1)
                    add(event)
                else:
                    self._fail("no event has this type")
        self._pos = pos
        if stack or mappings:
            self._fail("a message ends inside an element")

    def _goes_on(self, pos: int) -> bool:
        """Return whether another piece of a text comes next; if not, the text must be closed
        here."""
        byte = self._data[pos]
        if byte != _BLOCK_END and byte & (0xF | layout.PIECE) != layout.CONTENT | layout.PIECE:
            self._fail("a text in pieces has no end")
        return byte != _BLOCK_END

    def _unknown(self, pos: int) -> NoReturn:
        self._pos = pos
        self._fail("a token was never defined")

    def _declared(self, scope: Scope) -> tuple[Name, Read]:
        """Return the type that the element's xsi:type gives to the next value, and the function
        that reads it."""
        for kind, name, value in reversed(self._out):
            if kind is ATTRIBUTE:
                if name == XSI_TYPE:
                    type_ = scope.resolve(value)
                    form = FORMS.get(type_) if type_ is not None else None
                    if form is not None and type_ is not None:
                        scope.remember(value, type_, form.read)
                        return type_, form.read
                    break
            elif kind is ELEMENT_START or kind is ELEMENT_END or kind is PREFIX_MAPPING:
                break
        raise XebuFormatError("a value has no known type", offset=self._pos)

    def _several(self, scope: Scope, pos: int) -> int:
        type_, read = self._declared(scope)
        size, pos = read_compressed(self._data, pos)
        run, behind = read_bytes(self._data, pos, size)
        pos = 0
        while pos < size:
            value, pos = read(run, pos)
            self._out.append(typed(type_, value))
        if pos != size:
            raise IndexError
        return behind

    def _typed(self, byte: int, pos: int) -> tuple[Event, int]:
        type_, pos = self._name(byte, pos)
        form = FORMS.get(type_)
        if form is None:
            self._fail("a value has no known type")
        value, pos = form.read(self._data, pos)
        if pos > len(self._data):
            raise IndexError
        return typed(type_, value), pos

    def _string(self, pos: int, *, short: bool) -> tuple[str, int, bool]:
        """Return a new string, the position after it, and whether it is kept under its token."""
        data = self._data
        if short and data[pos] < 0xFF:
            size, pos = data[pos], pos + 1
        else:
            size, pos = read_compressed(data, pos + short)
        raw, pos = read_bytes(data, pos, size)
        return check_text(raw.decode()), pos, size <= LONGEST_KEPT

    def _name(self, byte: int, pos: int) -> tuple[Name, int]:
        data, tables = self._data, self._tables
        if byte & layout.NAME_TOKEN:
            found = tables.names[data[pos]]
            if found is None:
                self._unknown(pos)
            return found, pos + 1
        with_tokens = self._mode is not Mode.NONE
        if byte & layout.NAMESPACE_TOKEN:
            ns = tables.namespaces[data[pos]]
            if ns is None:
                self._unknown(pos)
            pos += 1
        else:
            at, pos = pos, pos + with_tokens
            ns, pos, keep = self._string(pos, short=True)
            if len(ns) > self._limits.name:
                raise XebuLimitError("a namespace is too long", most=self._limits.name)
            if with_tokens and keep:
                tables.namespaces[data[at]] = ns
        at, pos = pos, pos + with_tokens
        local, pos, keep = self._string(pos, short=True)
        if len(local) > self._limits.name:
            raise XebuLimitError("a name is too long", most=self._limits.name)
        name = interned(Name(ns, local))
        if local or byte & 0xF != layout.PREFIX:
            check_name(name)
        if with_tokens and keep:
            tables.put_name(data[at], name)
        return name, pos

    def _attribute(self, byte: int, pos: int) -> tuple[Event, int]:
        name, pos = self._name(byte, pos)
        at = pos
        with_token = self._mode is Mode.DATA
        value, pos, keep = self._string(pos + with_token, short=True)
        event = attribute(name, value)
        if with_token and keep:
            self._tables.values[self._data[at]] = event
        return event, pos

    def _text(self, byte: int, pos: int) -> tuple[str, int]:
        data, texts = self._data, self._tables.texts
        if byte & layout.NAME_TOKEN:
            event = texts[data[pos]]
            if event is None:
                self._unknown(pos)
            return event.value, pos + 1
        at = pos
        with_token = self._mode is Mode.DATA
        text, pos, keep = self._string(pos + with_token, short=False)
        if with_token and keep:
            texts[data[at]] = content(text)
        return text, pos

    def _special(self, byte: int, pos: int) -> tuple[Event, int]:
        form = byte & ~layout.SPECIAL_TOKEN
        if form == layout.COMMENT:
            text, pos, _ = self._string(pos, short=False)
            return comment(text), pos
        text, pos = self._text(byte, pos)
        if form == layout.INSTRUCTION and is_ncname(text.partition(" ")[0]):
            return Event(PROCESSING_INSTRUCTION, None, text), pos
        if form != layout.ENTITY or not is_ncname(text):
            self._fail("an event of a special type is malformed")
        return entity(text), pos


def _check_limits(events: EventList, size: int, limits: Limits) -> None:
    """Check the limits that are cheaper to check afterwards: the message's size has limited the
    work so far."""
    if len(events) > limits.events:
        raise XebuLimitError("a message has too many events", most=limits.events)
    # A token and its event take two bytes, and stand for LONGEST_KEPT bytes at most.
    if size * LONGEST_KEPT > 2 * limits.size:
        expanded = sum(len(value) for _, _, value in events if type(value) is str)
        if expanded > limits.size:
            raise XebuLimitError("a message expands to too much text", most=limits.size)
