"""The Xebu encoder for sessions with a schema, which leaves out the events that the schema
foresees."""

from __future__ import annotations

from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    ELEMENT_END,
    ELEMENT_START,
    PREFIX_MAPPING,
    Event,
)
from lasthop_xml.xas.sequence import EventSequence
from lasthop_xml.xebu import layout
from lasthop_xml.xebu.encoder import Encoder, continue_text, writer_of
from lasthop_xml.xebu.layout import ONE_BYTE, compressed
from lasthop_xml.xebu.omission.knowledge import Knowledge
from lasthop_xml.xebu.omission.machine import Foreseen
from lasthop_xml.xebu.omission.sequences import Manner, omitted
from lasthop_xml.xebu.policies import Lru, PolicyFactory
from lasthop_xml.xebu.tokens import Mode

_END = ONE_BYTE[layout.END]
_MOST_IN_MARK = 15


class SchemaEncoder(Encoder):
    """An encoder for the messages of one direction to a decoder that has the same schema.

    Documents that the schema does not allow can be sent as well; their messages are longer.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        mode: Mode = Mode.DATA,
        *,
        policy: PolicyFactory = Lru,
        forgetful: bool = False,
        max_message: int = layout.MAX_MESSAGE,
    ) -> None:
        super().__init__(
            mode,
            policy=policy,
            known=knowledge.strings,
            forgetful=forgetful,
            max_message=max_message,
        )
        self.schema = knowledge.fingerprint
        self._knowledge = knowledge

    def _encode(self, events: EventSequence) -> bytes:
        out = _Output(ONE_BYTE[layout.DOCUMENT | self.mode.value | layout.OMISSION])
        if not self.messages:
            out.add(ONE_BYTE[layout.SCHEMA] + self._knowledge.fingerprint)
        for item, manner in omitted(events, self._knowledge.automaton, self._scope):
            if isinstance(item, Foreseen):
                out.add(_mark(item.events))
            elif manner is Manner.EVENT:
                self._event(out, item)
            else:
                self._value(out, item, manner)
        return out.taken()

    def _event(self, out: _Output, event: Event) -> None:
        kind, name, value = event
        if kind is ELEMENT_START:
            out.add(self._named(layout.START, name))
        elif kind is ATTRIBUTE:
            out.add(self._attribute(event))
        elif kind is ELEMENT_END:
            out.add(_END)
        elif kind is CONTENT:
            out.add_text(self._text(value), goes_on=name is not None)
        elif kind is PREFIX_MAPPING:
            out.add(self._named(layout.PREFIX, name))
        else:
            out.add(self._special(kind, value))

    def _attribute(self, event: Event) -> bytes:
        values = self.tables.values
        token = values.tokens.get(event)
        if token is None:
            return self._new_value(event)
        values.policy.used(token)
        return bytes((layout.ATTRIBUTE | layout.VALUE_TOKEN, token))

    def _text(self, text: str) -> bytes:
        texts = self.tables.texts
        token = texts.tokens.get(text)
        if token is None:
            return self._new_text(layout.CONTENT, text)
        texts.policy.used(token)
        return bytes((layout.CONTENT | layout.VALUE_TOKEN, token))

    def _value(self, out: _Output, event: Event, manner: Manner) -> None:
        _, type_, value = event
        data = writer_of(type_)(value)
        if manner is Manner.NAMED:
            out.add(self._named(layout.TYPED | layout.NAMED_TYPE, type_) + data)
        else:
            by_schema = manner is Manner.BY_SCHEMA
            out.add_value(layout.TYPED | (layout.SCHEMA_TYPE if by_schema else 0), data)


class _Output:
    """The bytes of a message; neighbouring values are put together where that is shorter."""

    def __init__(self, first: bytes) -> None:
        self._out = [first]
        self._text_end = -1
        self._values: list[bytes] = []
        self._form = 0

    def add(self, data: bytes) -> None:
        self._end_values()
        self._out.append(data)

    def add_text(self, data: bytes, *, goes_on: bool) -> None:
        """Add a text, or a continuation of the last text."""
        self._end_values()
        if goes_on:
            if self._text_end != len(self._out):
                raise MalformedEvents("a text is continued that has not begun")
            data = continue_text(self._out, data)
        self._out.append(data)
        self._text_end = len(self._out)

    def add_value(self, form: int, data: bytes) -> None:
        """Add a typed value; several in a row of one form can share a byte for it (thesis, section
        5.4.2)."""
        if form != self._form:
            self._end_values()
            self._form = form
        self._values.append(data)

    def _end_values(self) -> None:
        values = self._values
        if not values:
            return
        data = b"".join(values)
        form = ONE_BYTE[self._form]
        size = compressed(len(data))
        if len(values) > 1 + len(size):
            self._out.append(ONE_BYTE[self._form | layout.SEVERAL] + size + data)
        else:
            self._out += [form + value for value in values]
        self._values = []

    def taken(self) -> bytes:
        self._end_values()
        return b"".join(self._out)


def _mark(events: int) -> bytes:
    if events < _MOST_IN_MARK:
        return ONE_BYTE[layout.FORESEEN | events << 4]
    return ONE_BYTE[layout.FORESEEN | _MOST_IN_MARK << 4] + compressed(events)
