"""Transformations of sequences into other sequences (thesis, section 4.3).

A transformation takes events and yields other events, which may be more or fewer, so it is best
written as a generator. Transformations can be chained, and do nothing until their events are asked
for.
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
    """Return a stream of `events` passed through all transformations in turn."""
    for step in steps:
        events = step(events)
    return EventStream(events)


def coalesced(events: EventSequence) -> Iterator[Event]:
    """Yield each text as one event and leave out empty ones, so that equal documents become equal
    sequences."""
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
    """Yield typed values as the text that they have in XML."""
    for event in events:
        if event.kind is TYPED_CONTENT:
            if text := lexical(event.name, event.value):
                yield content(text)
        else:
            yield event


def without_comments(events: EventSequence) -> Iterator[Event]:
    return (event for event in events if event.kind is not COMMENT)


def as_document(events: EventSequence) -> Iterator[Event]:
    """Yield a fragment between the start and the end of a document."""
    yield DOCUMENT_START
    yield from events
    yield DOCUMENT_END
