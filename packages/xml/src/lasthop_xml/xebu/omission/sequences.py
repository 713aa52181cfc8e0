"""Whole documents through both ends of an automaton, as sequences of events.

`restored(omitted(events))` is `events`, whatever they are and whatever the schema says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    DOCUMENT_END,
    DOCUMENT_END_KIND,
    DOCUMENT_START,
    DOCUMENT_START_KIND,
    ELEMENT_END,
    TYPED_CONTENT,
    Event,
)
from lasthop_xml.xas.scope import Scope, outermost
from lasthop_xml.xas.sequence import EventSequence
from lasthop_xml.xebu.omission.automaton import Automaton
from lasthop_xml.xebu.omission.context import Context
from lasthop_xml.xebu.omission.machine import (
    END_OF_DOCUMENT,
    Coming,
    DecodingAutomaton,
    EncodingAutomaton,
    Foreseen,
    Sent,
)


class Manner(Enum):
    """How the other end learns the type of a value."""

    EVENT = 0
    """The event is not a value, so it has no type."""
    ANNOUNCED = 1
    """The xsi:type of the value's element gives the type."""
    BY_SCHEMA = 2
    """The schema has one type there, and the element has no xsi:type."""
    NAMED = 3
    """The type must be sent with the value."""


def omitted(
    events: EventSequence, automaton: Automaton, scope: Scope | None = None
) -> Iterator[tuple[Sent, Manner]]:
    """Yield what must be sent of a document, between its start and its end."""
    source = iter(events)
    first = next(source, None)
    if first is None or first.kind is not DOCUMENT_START_KIND:
        raise MalformedEvents("the events do not start with a document start")
    encoding = EncodingAutomaton(automaton)
    context = Context(outermost() if scope is None else scope)
    for event in source:
        kind = event.kind
        if kind is DOCUMENT_END_KIND:
            break
        if not encoding.leaves_out(event):
            manner = _manner(event, context, encoding) if kind is TYPED_CONTENT else Manner.EVENT
            for item in encoding.send(event, _coming(event, manner)):
                yield item, manner if item is event else Manner.EVENT
        context.take(event)
    else:
        raise MalformedEvents("the events have no document end")
    if encoding.depth or next(source, None) is not None:
        raise MalformedEvents("a document ends inside an element, or events follow its end")
    for item in encoding.finish():
        yield item, Manner.EVENT


def _manner(event: Event, context: Context, encoding: EncodingAutomaton) -> Manner:
    if context.declared is not None:
        announced = context.scope.resolve(context.declared) == event.name
        return Manner.ANNOUNCED if announced else Manner.NAMED
    return Manner.BY_SCHEMA if encoding.state.type == event.name else Manner.NAMED


def _coming(event: Event, manner: Manner) -> Coming:
    kind, name, _ = event
    if kind is TYPED_CONTENT:
        return Coming(kind, None, manner is Manner.ANNOUNCED)
    return Coming(kind, None if kind is ELEMENT_END else name)


def restored(sent: Iterable[tuple[Sent, Manner]], automaton: Automaton) -> Iterator[Event]:
    """Yield the events of a document, given the part of it that was sent."""
    decoding = DecodingAutomaton(automaton)
    count: int | None = None
    yield DOCUMENT_START
    for item, manner in sent:
        if isinstance(item, Foreseen):
            count = item.events
            continue
        yield from _before(decoding, count, _coming(item, manner))
        count = None
        yield item
        decoding.take(item)
    yield from _before(decoding, count, END_OF_DOCUMENT)
    yield DOCUMENT_END


def _before(decoding: DecodingAutomaton, count: int | None, coming: Coming) -> Iterator[Event]:
    return decoding.before(coming) if count is None else decoding.exactly(count, coming)
