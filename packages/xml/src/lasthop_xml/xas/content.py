"""Values of application classes as elements, by chained encoders and decoders (thesis, section
4.4).

A primitive value is one TYPED_CONTENT event, which every format knows. A complex value is a
sequence of elements, so its encoder and its decoder work with every format. An encoder or a decoder
knows some types and leaves the others to the next one in the chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from lasthop_xml.xas.errors import InvalidValue, MalformedEvents, UnknownType
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    ELEMENT_END,
    ELEMENT_START,
    PREFIX_MAPPING,
    TYPED_CONTENT,
    Event,
    typed,
)
from lasthop_xml.xas.names import XSI_TYPE, Name
from lasthop_xml.xas.reader import Reader
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.types.numbers import Integer
from lasthop_xml.xas.types.table import PRIMITIVES
from lasthop_xml.xas.writer import Writer


class _Missing:
    """The class of the only value MISSING."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""What a decoder returns for a type that it does not know, and `accept` for an absent element."""


class ContentEncoder(Protocol):
    """An encoder that writes values of some complex types as elements."""

    def encode(self, type_: Name, value: Any, writer: Writer, /) -> bool:
        """Write attributes and elements of `value` into the open element; return False, and write
        nothing, if this encoder does not know the type."""
        ...


class ContentDecoder(Protocol):
    """A decoder that reads values of some complex types from elements."""

    def decode(self, type_: Name, source: Source, /) -> Any:
        """Return the value of the open element, and leave the cursor before the element's end;
        return MISSING if this decoder does not know the type.

        The cursor starts after the start tag, whose attributes are in `source.attributes`.
        """
        ...


class EncoderChain:
    """An encoder that tries several encoders in turn: the first that knows a type writes the
    value."""

    __slots__ = ("_encoders",)

    def __init__(self, *encoders: ContentEncoder) -> None:
        self._encoders = encoders

    def encode(self, type_: Name, value: Any, writer: Writer) -> bool:
        return any(encoder.encode(type_, value, writer) for encoder in self._encoders)


class DecoderChain:
    """A decoder that tries several decoders in turn: the first that knows a type reads the
    value."""

    __slots__ = ("_decoders",)

    def __init__(self, *decoders: ContentDecoder) -> None:
        self._decoders = decoders

    def decode(self, type_: Name, source: Source) -> Any:
        for decoder in self._decoders:
            value = decoder.decode(type_, source)
            if value is not MISSING:
                return value
        return MISSING


class Source:
    """The typed elements at a cursor, from which decoders read the components of a value."""

    __slots__ = ("_decoder", "attributes", "reader")

    def __init__(self, reader: Reader, decoder: ContentDecoder) -> None:
        self.reader = reader
        self.attributes: dict[Name, str] = {}
        self._decoder = decoder

    def expect(self, name: Name) -> Any:
        """Return the value of the element `name`, which must come next."""
        value = self.accept(name)
        if value is MISSING:
            raise MalformedEvents(
                "another element was expected", name=str(name), found=repr(self.reader.peek())[:80]
            )
        return value

    def accept(self, name: Name) -> Any:
        """Return the value of the element `name` if it comes next; otherwise read nothing and
        return MISSING."""
        self.reader.skip_ignorable()
        return self._element(name, None) if self.reader.at_start(name) else MISSING

    def any_of(self, types: Mapping[Name, Name]) -> tuple[Name, Any] | None:
        """Return the name and value of the next element named in `types`, or None where the
        enclosing element ends.

        `types` maps element names to the types that the elements must have, whether xsi:type
        declares them or not. Elements of other names are skipped, so that a program understands
        messages of later versions.
        """
        reader = self.reader
        while True:
            reader.skip_ignorable()
            name = reader.start_name()
            if name is None:
                event = reader.peek()
                if event is None or event.kind is not ELEMENT_END:
                    raise MalformedEvents("an element was expected", found=repr(event)[:80])
                return None
            if name in types:
                return name, self._element(name, types[name])
            reader.skip()

    def _element(self, name: Name, expected: Name | None) -> Any:
        reader = self.reader
        outer = self.attributes
        attributes = self.attributes = reader.start(name)
        declared = attributes.pop(XSI_TYPE, None)
        type_ = reader.scope.resolve(declared) if declared is not None else expected
        if type_ is None:
            raise UnknownType("an element declares no type", name=str(name))
        value = self._value(type_)
        # A declared type that differs from the expected one is accepted only if its value fits.
        if expected is not None and type_ != expected:
            _check_fits(name, value, type_, expected)
        reader.skip_ignorable()
        reader.end(name)
        self.attributes = outer
        return value

    def _value(self, type_: Name) -> Any:
        event = self.reader.peek()
        if event is not None and event.kind is TYPED_CONTENT and event.name == type_:
            self.reader.advance()
            return event.value
        primitive = PRIMITIVES.get(type_)
        if primitive is not None:
            return primitive.parse(self.reader.text())
        value = self._decoder.decode(type_, self)
        if value is MISSING:
            raise UnknownType("no decoder knows this type", type=str(type_))
        return value


def _check_fits(name: Name, value: Any, type_: Name, expected: Name) -> None:
    """Refuse a value whose declared type differs from the expected one, unless both are integer
    types and the value is within the expected range."""
    primitive = PRIMITIVES.get(expected)
    if not isinstance(primitive, Integer) or not isinstance(PRIMITIVES.get(type_), Integer):
        raise InvalidValue(
            "an element has another type", name=str(name), type=str(type_), expected=str(expected)
        )
    primitive.check(value)


def expanded(events: EventSequence, encoder: ContentEncoder) -> Iterator[Event]:
    """Yield a sequence with its complex values as elements, which is the form that serializers
    take."""
    sink = EventList()
    writer = Writer(sink, encoder=encoder)
    # The writer only keeps track of scopes here; the events that it repeats are thrown away.
    mappings: dict[str, str] = {}
    for event in events:
        kind, name, value = event
        if kind is TYPED_CONTENT and name is not None and name not in PRIMITIVES:
            if not encoder.encode(name, value, writer):
                raise UnknownType("no encoder knows this type", type=str(name))
            yield from sink
            sink.clear()
            continue
        if kind is PREFIX_MAPPING and name is not None:
            mappings[name.local] = name.ns
        elif kind is ELEMENT_START and name is not None:
            writer.start(name, prefixes=mappings)
            mappings = {}
        elif kind is ELEMENT_END:
            writer.end()
        sink.clear()
        yield event


def with_values(events: EventSequence, decoder: ContentDecoder) -> Iterator[Event]:
    """Yield a sequence in which the content of each element of a type that `decoder` knows is one
    typed value."""
    reader = Reader(events)
    while (event := reader.peek()) is not None:
        if event.kind is ELEMENT_START:
            yield from _with_value(reader, decoder)
        else:
            reader.advance()
            reader.release()
            yield event


def _with_value(reader: Reader, decoder: ContentDecoder) -> Iterator[Event]:
    name = reader.expect(ELEMENT_START)
    yield name
    attributes: dict[Name, str] = {}
    block = EventList()
    while (event := reader.peek()) is not None and event.kind is ATTRIBUTE:
        reader.advance()
        block.append(event)
        if event.name is not None:
            attributes[event.name] = event.value
    declared = attributes.get(XSI_TYPE)
    type_ = reader.scope.resolve(declared) if declared is not None else None
    value: Any = MISSING
    if type_ is not None and type_ not in PRIMITIVES:
        source = Source(reader, decoder)
        source.attributes = {key: text for key, text in attributes.items() if key != XSI_TYPE}
        value = decoder.decode(type_, source)
    if value is MISSING or type_ is None:
        yield from block
    else:
        # The other attributes are part of the value, and its encoder writes them again.
        yield from (event for event in block if event.name == XSI_TYPE)
        reader.skip_ignorable()
        yield typed(type_, value)
