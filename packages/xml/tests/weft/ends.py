"""Two ends of a Weft session, with every engine that is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lasthop_xml.weft.engines import COMPILED, PURE, Engine
from lasthop_xml.weft.session import WeftDecoder, WeftEncoder
from lasthop_xml.xas.events import DOCUMENT_END, DOCUMENT_START, Event, end, start
from lasthop_xml.xas.names import Name
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from tests.places import SAMPLES

ENGINES: list[Engine] = [PURE] + ([] if COMPILED is None else [COMPILED])
A = Name("", "a")
SAMPLE = sorted((SAMPLES / "messages").glob("*.xml"))


def document(*events: Event) -> EventList:
    return EventList([DOCUMENT_START, start(A), *events, end(A), DOCUMENT_END])


def sample(count: int) -> list[EventList]:
    """The first notifications of the shared sample, as typed events."""
    return [EventList(typed_sequence(parse_xml(path.read_bytes()))) for path in SAMPLE[:count]]


def passed(encoder: WeftEncoder, decoder: WeftDecoder, events: EventSequence) -> EventList:
    """The events at the other end."""
    return decoder.decode(encoder.encode(events))


def messages(encoder: WeftEncoder, documents: Iterable[EventSequence]) -> list[bytes]:
    return [encoder.encode(each) for each in documents]


def ends(engine: Engine, *args: Any, **options: Any) -> tuple[WeftEncoder, WeftDecoder]:
    profile = options.get("profile")
    return WeftEncoder(*args, engine=engine, **options), WeftDecoder(engine=engine, profile=profile)
