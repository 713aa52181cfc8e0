"""Automata as the thesis draws them, and run as it says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from lasthop_xml.relaxng.errors import SchemaTooLarge
from lasthop_xml.relaxng.schema import read_schema
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    DOCUMENT_END,
    DOCUMENT_START,
    ELEMENT_END,
    ELEMENT_START,
    TYPED_CONTENT,
    Event,
    attribute,
    end,
    prefix,
    start,
    typed,
)
from lasthop_xml.xas.names import XSD_NS, XSI_NS, XSI_TYPE, Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xebu.omission.automaton import Automaton
from lasthop_xml.xebu.omission.machine import Foreseen
from lasthop_xml.xebu.omission.sequences import omitted
from lasthop_xml.xebu.omission.tables import (
    END_OF_MESSAGE,
    Edge,
    decoder_table,
    encoder_table,
)
from tests.xebu.omission.schemas import SCHEMAS

STRING, INT = Name(XSD_NS, "string"), Name(XSD_NS, "int")


def automaton(name: str) -> Automaton:
    return Automaton(read_schema(SCHEMAS[name]))


def test_figure_5_1() -> None:
    person = automaton("figure 5.1")
    assert list(map(str, encoder_table(person))) == [
        "0:del ES(person)[][]:1",
        "1:del ES(name)[][]:2",
        "2:del A(type=xsd:string)[][]:3",
        "3:del EE(name)[][]:4",
        "4:del ES(age)[][]:5",
        "5:del A(type=xsd:int)[][]:6",
        "6:del EE(age)[][]:7",
        "7:del EE(person)[][]:0",
    ]
    assert list(map(str, decoder_table(person))) == [
        "0:peek TC[ES(person) ES(name) A(type=xsd:string)][]:1",
        "1:read TC[][EE(name)]:2",
        "2:peek TC[ES(age) A(type=xsd:int)][]:3",
        "3:read TC[][EE(age) EE(person)]:0",
    ]


def test_a_choice_has_to_be_sent() -> None:
    """Figure 5.2: the same element is foreseen in a group, but not in a choice."""
    edges = encoder_table(automaton("figure 5.2"))
    on_name = [(edge.action, edge.event) for edge in edges if edge.event == "ES(name)"]
    assert on_name == [("del", "ES(name)"), ("out", "ES(name)")]


def test_open_content_ends_with_a_sign() -> None:
    """Figure 5.3: only the end of a sequence tells where it ends."""
    edges = encoder_table(automaton("figure 5.3"))
    assert {edge.action for edge in edges if edge.event == "EE(seq)"} == {"out"}
    assert {edge.action for edge in edges if edge.event == "EE(item)"} == {"del"}


@pytest.mark.parametrize("name", ["recursion", "mixed", "two that call each other"])
def test_recursion_cannot_be_drawn(name: str) -> None:
    with pytest.raises(SchemaTooLarge, match="too large to be drawn"):
        encoder_table(automaton(name))


def element(name: str, *inside: Event) -> list[Event]:
    return [start(Name("", name)), *inside, end(Name("", name))]


def value(name: str, type_: Name, content: object) -> list[Event]:
    return element(name, attribute(XSI_TYPE, f"xsd:{type_.local}"), typed(type_, content))


NAME, AGE, ITEM = value("name", STRING, "Ann"), value("age", INT, 30), value("item", INT, 7)

RUNS = {
    "figure 5.1": [element("person", *NAME, *AGE)],
    "figure 5.2": [
        element("all", *element("person", *NAME, *AGE), *element("data", *chosen))
        for chosen in (NAME, AGE)
    ],
    "figure 5.3": [
        element("pair", *element("seq", *ITEM * first), *element("seq", *ITEM * second))
        for first in range(3)
        for second in range(3)
    ],
    "optional content": [
        element("a", *(value("c", INT, 1) if with_c else ()), *(element("d") if with_d else ()))
        for with_c in (False, True)
        for with_d in (False, True)
    ],
}


@pytest.mark.parametrize("name", RUNS)
def test_the_tables_do_what_the_codec_does(name: str) -> None:
    """The rules of section 5.4.3, applied to the tables, on documents that are valid."""
    machine = automaton(name)
    encoder, decoder = encoder_table(machine), decoder_table(machine)
    for events in RUNS[name]:
        sent = list(run_encoder(encoder, events))
        assert list(run_decoder(decoder, sent)) == events
        mappings = [prefix(XSD_NS, "xsd"), prefix(XSI_NS, "xsi")]
        document = EventList([DOCUMENT_START, *mappings, *events, DOCUMENT_END])
        ours = [item for item, _ in omitted(document, machine) if item not in mappings]
        assert [item for item in ours if not isinstance(item, Foreseen)] == sent


KINDS = {ELEMENT_START: "ES", ELEMENT_END: "EE", ATTRIBUTE: "A", TYPED_CONTENT: "TC", CONTENT: "C"}


def label(event: Event) -> str:
    kind, name, content = event
    if kind is ATTRIBUTE and name is not None:
        return f"A({name.local}={content})"
    return KINDS[kind] if name is None or kind is TYPED_CONTENT else f"{KINDS[kind]}({name.local})"


def event_of(text: str) -> Event:
    kind, _, inside = text.rstrip(")").partition("(")
    if kind == "A":
        return attribute(XSI_TYPE, inside.partition("=")[2])
    return start(Name("", inside)) if kind == "ES" else end(Name("", inside))


def run_encoder(edges: list[Edge], events: Iterable[Event]) -> Iterator[Event]:
    state = 0
    for event in events:
        taken = [edge for edge in edges if (edge.state, edge.event) == (state, label(event))]
        if not taken or taken[0].action == "out":
            yield event
        if taken:
            state = taken[0].then


def run_decoder(edges: list[Edge], events: list[Event]) -> Iterator[Event]:
    state = 0
    for event in events:
        while True:
            on = [edge for edge in edges if (edge.state, edge.event) == (state, label(event))]
            if not on:
                yield event
                break
            edge = on[0]
            yield from map(event_of, edge.push)
            if edge.action == "read":
                yield event
            yield from map(event_of, edge.queue)
            state = edge.then
            if edge.action == "read":
                break
    for edge in edges if state or not events else ():
        if edge.state == state and edge.event == END_OF_MESSAGE:
            yield from map(event_of, edge.push)
