"""The Xebu decoder for sessions with a schema, which restores the events that the encoder left
out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    ELEMENT_END,
    ELEMENT_START,
    PREFIX_MAPPING,
    SAME_TEXT,
    TYPED_CONTENT,
    Event,
    content,
    start,
    typed,
)
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.scope import Scope
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xebu import layout
from lasthop_xml.xebu.decoder import Decoder, Message
from lasthop_xml.xebu.errors import XebuLimitError, XebuStateError
from lasthop_xml.xebu.layout import MAX_MESSAGE, read_bytes, read_compressed
from lasthop_xml.xebu.omission.context import Context
from lasthop_xml.xebu.omission.fingerprint import SIZE
from lasthop_xml.xebu.omission.knowledge import Knowledge
from lasthop_xml.xebu.omission.machine import END_OF_DOCUMENT, Coming, DecodingAutomaton
from lasthop_xml.xebu.tokens import DecoderTables, Mode
from lasthop_xml.xebu.values import FORMS, Read

_ANNOUNCED: Final = Coming(TYPED_CONTENT)
_BY_SCHEMA: Final = Coming(TYPED_CONTENT, None, announced=False)
_CONTENT: Final = Coming(CONTENT)
_PIECE: Final = Coming(CONTENT, SAME_TEXT)
_ELEMENT_END: Final = Coming(ELEMENT_END)


class SchemaDecoder(Decoder):
    """A decoder for messages of a SchemaEncoder with the same schema, in order; it also decodes
    those of a plain Encoder."""

    def __init__(
        self,
        knowledge: Knowledge,
        *,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        max_message: int = MAX_MESSAGE,
    ) -> None:
        super().__init__(known=knowledge.strings, limits=limits, max_message=max_message)
        self.schema = knowledge.fingerprint
        self._knowledge = knowledge

    def _message(self, data: bytes) -> EventList:
        if not data or not data[0] & layout.OMISSION:
            return super()._message(data)
        message = _OmittedMessage(data, self.tables, self._scope, self._limits, self._knowledge)
        return message.decode()


class _OmittedMessage(Message):
    """The decoding of one message from which events were left out."""

    __slots__ = ("_context", "_decoding", "_expanded", "_foreseen", "_knowledge")

    def __init__(
        self,
        data: bytes,
        tables: DecoderTables,
        scope: Scope,
        limits: Limits,
        knowledge: Knowledge,
    ) -> None:
        super().__init__(data, tables, scope, limits)
        self._knowledge = knowledge
        self._decoding = DecodingAutomaton(knowledge.automaton)
        self._context = Context(scope)
        self._foreseen: int | None = None  # the number of events left out, if it was sent
        self._expanded = 0

    def _mode_of(self, flags: int) -> Mode:
        return super()._mode_of(flags & ~layout.OMISSION)

    def _events(self) -> None:
        data = self._data
        pos, size = 1, len(data)
        in_pieces = False
        while pos < size:
            self._pos = pos
            byte = data[pos]
            form = byte & 0xF
            if form == layout.TYPED:
                pos = self._values(byte, pos + 1)
            elif form == layout.START:
                name, pos = self._name(byte, pos + 1)
                self._take(start(name), Coming(ELEMENT_START, name))
            elif form == layout.CONTENT:
                text, pos = self._text(byte, pos + 1)
                self._take(content(text, same_text=in_pieces), _PIECE if in_pieces else _CONTENT)
                in_pieces = byte & layout.PIECE != 0 and self._goes_on(pos)
            elif byte == layout.END:
                pos += 1
                self._put_in(_ELEMENT_END)
                self._taken(self._decoding.end())
            elif form == layout.ATTRIBUTE:
                event, pos = self._any_attribute(byte, pos + 1)
                self._take(event, Coming(ATTRIBUTE, event.name))
            elif form == layout.PREFIX:
                name, pos = self._name(byte, pos + 1)
                event = Event(PREFIX_MAPPING, name, None)
                self._take(event, Coming(PREFIX_MAPPING))
            elif form == layout.FORESEEN:
                pos = self._mark(byte, pos + 1)
            elif form == layout.SPECIAL:
                event, pos = self._special(byte, pos + 1)
                self._take(event, Coming(event.kind))
            elif byte == layout.SCHEMA:
                pos = self._check_schema(pos + 1)
            elif byte == layout.BLOCK_END:
                pos += 1  # the end of a text in pieces
            else:
                self._fail("no event has this type")
        self._pos = pos
        self._put_in(END_OF_DOCUMENT)
        if self._context.depth or self._context.is_pending:
            self._fail("a message ends inside an element")

    def _check_schema(self, pos: int) -> int:
        found, pos = read_bytes(self._data, pos, SIZE)
        if found != self._knowledge.fingerprint:
            raise XebuStateError("the other end has another schema", offset=self._pos)
        return pos

    def _mark(self, byte: int, pos: int) -> int:
        if self._foreseen is not None:
            self._fail("the number of events left out is given twice")
        self._foreseen = byte >> 4
        if self._foreseen == 0xF:
            self._foreseen, pos = read_compressed(self._data, pos)
        return pos

    def _any_attribute(self, byte: int, pos: int) -> tuple[Event, int]:
        if byte & layout.VALUE_TOKEN != layout.VALUE_TOKEN:
            return self._attribute(byte, pos)
        event = self._tables.values[self._data[pos]]
        if event is None:
            self._unknown(pos)
        return event, pos + 1

    # Values

    def _values(self, byte: int, pos: int) -> int:
        if byte & layout.NAMED_TYPE:
            event, pos = self._typed(byte, pos)
            self._take(event, _BY_SCHEMA)
            return pos
        form = byte & ~layout.SEVERAL
        if form not in {layout.TYPED, layout.TYPED | layout.SCHEMA_TYPE}:
            self._fail("no event has this type")
        coming = _BY_SCHEMA if form & layout.SCHEMA_TYPE else _ANNOUNCED
        if not byte & layout.SEVERAL:
            return self._one_value(self._data, pos, coming)
        size, pos = read_compressed(self._data, pos)
        run, behind = read_bytes(self._data, pos, size)
        pos = 0
        while pos < size:
            pos = self._one_value(run, pos, coming)
        return behind

    def _one_value(self, data: bytes, pos: int, coming: Coming) -> int:
        self._put_in(coming)
        type_, read = self._type(coming)
        value, pos = read(data, pos)
        if pos > len(data):
            raise IndexError
        self._taken(typed(type_, value))
        return pos

    def _type(self, coming: Coming) -> tuple[Name, Read]:
        context = self._context
        if coming is _BY_SCHEMA:
            type_ = self._decoding.state.type
        else:
            declared = context.declared
            type_ = None if declared is None else context.scope.resolve(declared)
        form = None if type_ is None else FORMS.get(type_)
        if form is None or type_ is None:
            self._fail("a value has no known type")
        return type_, form.read

    # Events

    def _put_in(self, coming: Coming) -> None:
        """Add all foreseen events that come before the next one that was sent."""
        count, self._foreseen = self._foreseen, None
        decoding = self._decoding
        events: Iterable[Event] = (
            decoding.before(coming) if count is None else decoding.exactly(count, coming)
        )
        for event in events:
            self._add(event)

    def _take(self, event: Event, coming: Coming) -> None:
        self._put_in(coming)
        self._taken(event)

    def _taken(self, event: Event) -> None:
        self._decoding.take(event)
        self._add(event)

    def _add(self, event: Event) -> None:
        limits, context, out = self._limits, self._context, self._out
        out.append(event)
        context.take(event)
        if type(event.value) is str:
            self._expanded += len(event.value)
        # A few bytes can stand for many events, so these limits cannot wait for the end of the
        # message.
        if context.depth > limits.depth:
            raise XebuLimitError("elements are too deeply nested", most=limits.depth)
        if len(out) > limits.events:
            raise XebuLimitError("a message has too many events", most=limits.events)
        if self._expanded > limits.size:
            raise XebuLimitError("a message expands to too much text", most=limits.size)
