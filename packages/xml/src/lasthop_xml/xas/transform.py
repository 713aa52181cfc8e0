"""Sequences made from sequences (section 4.3).

A transformation takes events and yields others, any number for any number; a generator says this
best. They chain, and nothing is done before somebody asks for events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from lasthop_xml.xas.events import (
    COMMENT,
    CONTENT,
    DOCUMENT_END,
    DOCUMENT_START,
    TYPED_CONTENT,
    Event,
    content,
)
from lasthop_xml.xas.sequence import EventSequence, EventStream
from lasthop_xml.xas.types.table import lexical

Transformation: TypeAlias = Callable[[EventSequence], Iterator[Event]]


def transformed(events: EventSequence, *steps: Transformation) -> EventStream:
    """`events` through all the steps, lazily."""
    for step in steps:
        events = step(events)
    return EventStream(events)


def coalesced(events: EventSequence) -> Iterator[Event]:
    """Every text as one event, and no empty ones: equal documents become equal sequences."""
    texts: list[str] = []
    for event in events:
        if event.kind is CONTENT:
            texts.append(event.value)
            continue
        if texts:
            if text := "".join(texts):
                yield content(text)
            texts = []
        yield event
    if text := "".join(texts):
        yield content(text)


def untyped(events: EventSequence) -> Iterator[Event]:
    """Typed values as the text that they have in XML."""
    for event in events:
        if event.kind is TYPED_CONTENT:
            if text := lexical(event.name, event.value):
                yield content(text)
        else:
            yield event


def without_comments(events: EventSequence) -> Iterator[Event]:
    return (event for event in events if event.kind is not COMMENT)


def as_document(events: EventSequence) -> Iterator[Event]:
    """A fragment between the start and the end of a document."""
    yield DOCUMENT_START
    yield from events
    yield DOCUMENT_END
