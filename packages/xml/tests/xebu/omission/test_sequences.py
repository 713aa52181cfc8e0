"""Whatever goes into one end of an automaton comes out of the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given, settings, strategies as st

from lasthop_xml.relaxng.schema import Schema, read_schema
from lasthop_xml.xas.errors import MalformedEvents
from lasthop_xml.xas.events import (
    ATTRIBUTE,
    CONTENT,
    DOCUMENT_END,
    DOCUMENT_START,
    ELEMENT_END,
    ELEMENT_START,
    Event,
    attribute,
    comment,
    content,
    end,
    entity,
    instruction,
    prefix,
    start,
    typed,
)
from lasthop_xml.xas.names import XSD_NS, XSI_TYPE, Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xebu.omission.automaton import Automaton
from lasthop_xml.xebu.omission.decoder import SchemaDecoder
from lasthop_xml.xebu.omission.encoder import SchemaEncoder
from lasthop_xml.xebu.omission.knowledge import Knowledge
from lasthop_xml.xebu.omission.machine import Foreseen, Sent
from lasthop_xml.xebu.omission.sequences import omitted, restored
from tests.relaxng.generated import Schemas
from tests.relaxng.sampling import Sampler
from tests.xas.strategies import documents
from tests.xebu.omission.schemas import SCHEMAS

LOCALS = [*sorted("abcdefgips"), "name", "age", "person", "item", "seq", "node", "em", "version"]
INT, STRING = Name(XSD_NS, "int"), Name(XSD_NS, "string")


@cache
def knowledge(schema: str) -> Knowledge:
    return Knowledge(read_schema(schema))


def check(known: Knowledge, events: EventList) -> None:
    """Through both ends as events, and as bytes."""
    sent = list(omitted(events, known.automaton))
    assert EventList(restored(sent, known.automaton)) == events
    assert SchemaDecoder(known).decode(SchemaEncoder(known).encode(events)) == events


@st.composite
def plausible(draw: st.DrawFn) -> EventList:
    """Documents out of the names and values that the schemas have, in any order."""

    def element(depth: int) -> Iterator[Event]:
        name = Name("", draw(st.sampled_from(LOCALS)))
        if draw(st.integers(0, 9)) == 0:
            yield prefix("urn:n", "n")
        yield start(name)
        for key in draw(st.lists(st.sampled_from("bcdeg"), max_size=2, unique=True)):
            yield attribute(Name("", key), draw(st.sampled_from(["fixed", "x", "y", "7"])))
        what = draw(st.integers(0, 9))
        if what < 3:
            type_ = draw(st.sampled_from([INT, STRING]))
            declared = draw(st.sampled_from(["xsd:int", "xsd:string", None]))
            if declared:
                yield attribute(XSI_TYPE, declared)
            yield typed(type_, 5 if type_ == INT else "five")
        elif what < 5:
            yield content(draw(st.sampled_from(["1.0", "x", "\n  "])))
            if draw(st.booleans()):
                yield content("more", same_text=True)
        if depth < 4:
            for _ in range(draw(st.integers(0, 3))):
                yield from element(depth + 1)
        extra = draw(st.integers(0, 20))
        if extra < 3:
            yield (comment("c"), instruction("pi", "x"), entity("e"))[extra]
        yield end(name)

    mappings = [prefix(XSD_NS, "xsd")] * draw(st.integers(0, 1))
    return EventList([DOCUMENT_START, *mappings, *element(0), DOCUMENT_END])


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(sorted(SCHEMAS)), plausible())
def test_documents_that_nearly_fit_come_back(schema: str, events: EventList) -> None:
    check(knowledge(SCHEMAS[schema]), events)


ENTRY = Name("", "i")
ANNOUNCEMENT = attribute(XSI_TYPE, "xsd:int")
ITEMS: list[list[Event]] = [
    [],
    [ANNOUNCEMENT],
    [ANNOUNCEMENT, typed(INT, 5)],
    [ANNOUNCEMENT, content("007")],
    [ANNOUNCEMENT, typed(STRING, "five")],
    [typed(INT, 5)],
    [typed(STRING, "five")],
    [content("x")],
    [attribute(XSI_TYPE, "xsd:string"), typed(STRING, "five")],
]


@pytest.mark.parametrize("known_prefix", [True, False])
@settings(deadline=None, max_examples=300)
@given(items=st.lists(st.sampled_from(ITEMS), max_size=8))
def test_announced_values_and_others_are_told_apart(
    known_prefix: bool, items: list[list[Event]]
) -> None:
    inside = [event for item in items for event in (start(ENTRY), *item, end(ENTRY))]
    mappings = [prefix(XSD_NS, "xsd")] * known_prefix
    a = Name("", "a")
    events = [DOCUMENT_START, *mappings, start(a), *inside, end(a), DOCUMENT_END]
    for schema in ("values that may be missing", "an xsi:type that the schema has"):
        check(knowledge(SCHEMAS[schema]), EventList(events))


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(sorted(SCHEMAS)), documents())
def test_any_document_comes_back(schema: str, events: EventList) -> None:
    known = knowledge(SCHEMAS[schema])
    sent = list(omitted(events, known.automaton))
    # A NaN does not equal itself, so events are compared as they are written.
    assert repr(list(restored(sent, known.automaton))) == repr(list(events))
    back = SchemaDecoder(known).decode(SchemaEncoder(known).encode(events))
    assert repr(list(back)) == repr(list(events))


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_valid_documents_and_changed_ones_come_back(schema: str) -> None:
    known = knowledge(schema)
    sampler = Sampler(read_schema(schema), 1)
    for _ in range(40):
        document = sampler.valid()
        if document is None:
            continue
        check(known, document)
        check(known, sampler.changed(document))


@pytest.mark.parametrize("seed", range(12))
def test_random_schemas_lose_nothing(seed: int) -> None:
    schemas = Schemas(1000 + seed)
    done = 0
    while done < 25:
        schema = _schema(schemas)
        if schema is None:
            continue
        done += 1
        known = Knowledge(schema)
        sampler = Sampler(schema, done)
        for _ in range(4):
            document = sampler.valid()
            if document is not None:
                check(known, document)
                check(known, sampler.changed(document))


def _schema(schemas: Schemas) -> Schema | None:
    try:
        return read_schema(schemas.next())
    except Exception:
        return None


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_what_is_foreseen_always_comes_to_an_end(schema: str) -> None:
    automaton = Automaton(read_schema(schema))
    for state in automaton.states:
        assert not automaton._loops(state)


def test_a_fixed_document_is_two_bytes_and_the_schema() -> None:
    known = knowledge('element a { attribute b { "c" }, element d { "e" } }')
    a, d = Name("", "a"), Name("", "d")
    events = EventList(
        [
            DOCUMENT_START,
            start(a),
            attribute(Name("", "b"), "c"),
            start(d),
            content("e"),
            end(d),
            end(a),
            DOCUMENT_END,
        ]
    )
    encoder, decoder = SchemaEncoder(known), SchemaDecoder(known)
    first, second = encoder.encode(events), encoder.encode(events)
    assert first == b"\xd1\x09" + known.fingerprint
    assert second == b"\xd1"
    assert decoder.decode(first) == decoder.decode(second) == events


@pytest.mark.parametrize(
    "events, message",
    [
        ([], "the events do not start with a document start"),
        ([DOCUMENT_START], "the events have no document end"),
        ([DOCUMENT_START, start(Name("", "a")), DOCUMENT_END], "a document ends inside"),
        ([DOCUMENT_START, DOCUMENT_END, DOCUMENT_END], "events follow it"),
        ([DOCUMENT_START, end(Name("", "a")), DOCUMENT_END], "ends that is not open"),
        (
            [DOCUMENT_START, start(Name("", "a")), end(Name("", "b")), DOCUMENT_END],
            "an element ends that is not open",
        ),
        (
            [
                DOCUMENT_START,
                start(Name("", "a")),
                content("b", same_text=True),
                end(Name("", "a")),
                DOCUMENT_END,
            ],
            "a text is continued that has not begun",
        ),
        ([DOCUMENT_START, DOCUMENT_START, DOCUMENT_END], "this event is not allowed here"),
    ],
)
def test_what_is_no_document_is_refused(events: list[Event], message: str) -> None:
    with pytest.raises(MalformedEvents, match=message):
        SchemaEncoder(knowledge(SCHEMAS["figure 5.1"])).encode(events)


@pytest.mark.parametrize(
    "schema, document, sent",
    [
        # A text is not followed by another one, so the second belongs to the next element.
        ("element a { (text | b)* }, element c { text }", "<a>x</a><c>y</c>", "C C"),
        # What is repeated goes on, until something else comes.
        ("b*, element c { text }", "<b>x</b><b>y</b><c>z</c>", "C C ES(c) C"),
        ("element c { b* }, element d { text }", "<c><b>x</b></c><d>y</d>", "C EE C"),
        # What is optional is missing.
        ("element c { text }?", "", ""),
        ("element c { text }?", "<c>x</c>", "ES(c) C"),
        ("element c { text }", "<c/>", "EE"),
        ("element c { xsd:int? }", "<c/>", "EE"),
        # What has no content can be foreseen as well, unless it repeats.
        ("element c { empty }, element c { element d { empty } }", "<c/><c><d/></c>", ""),
        ("element c { empty }*", "<c/><c/>", "ES(c) ES(c)"),
        ("element c { text }?, b?", "<b>x</b>", "ES(b) C"),
        # Of alternatives, and of an interleave, none is foreseen.
        ("element c { text } | b", "<b>x</b>", "ES(b) C"),
        ("element c { text } & b", "<b>x</b><c>y</c>", "ES(b) C ES(c) C"),
        ("element c { text }* & b", "<b>x</b><c>y</c>", "ES(b) C ES(c) C"),
        ("(text | element c { empty })*", "x<c/>y", "C ES(c) C"),
        ("mixed { element c { empty }* }", "x<c/>y", "C ES(c) C"),
        # A fixed text is not sent; another one is, where it stands.
        ('element c { "x" }, b', "<c>x</c><b>y</b>", "C"),
        ('element c { "x" }, b', "<c>z</c><b>y</b>", "+2 C C"),
        # Attributes are foreseen in the order of the schema, those with one value altogether.
        ('element c { attribute k { "x" }, attribute l { text } }', "<c k='x' l='y'/>", "A(l)"),
        ('element c { attribute k { "x" }, attribute l { text } }', "<c l='y'/>", "+2 A(l) +0 EE"),
        ("element c { attribute k { text }?, b }", "<c><b>x</b></c>", "C"),
        ("element c { attribute k { text }?, b }", "<c k='y'><b>x</b></c>", "A(k) C"),
        # What the schema does not have passes, and what it does not expect there.
        ("b", "<d><b>x</b></d><b>y</b>", "+1 ES(d) ES(b) C EE EE C"),
        ("b", "<!-- --><b>x</b>", "+1 COMMENT C"),
        ("b", "<b>x</b><b>y</b>", "C +1 ES(b) C EE"),
        ("b, b", "<b>x</b>", "C +1 EE"),
        ("b, element c { empty }", "", "+1 EE"),
    ],
)
def test_what_is_sent_of_a_document(schema: str, document: str, sent: str) -> None:
    known = knowledge(f"start = element a {{ {schema} }}\nb = element b {{ text }}\n")
    events = parse_xml(f"<a>{document}</a>".encode())
    found = [_shown(item) for item, _ in omitted(events, known.automaton)]
    assert " ".join(found) == sent
    check(known, events)


def _shown(item: Sent) -> str:
    if isinstance(item, Foreseen):
        return f"+{item.events}"
    short = {ELEMENT_START: "ES", ELEMENT_END: "EE", ATTRIBUTE: "A", CONTENT: "C"}
    label = short.get(item.kind, item.kind.name)
    named = item.kind is ELEMENT_START or item.kind is ATTRIBUTE
    return f"{label}({item.name.local})" if named and item.name is not None else label
