"""A schema is known beforehand, and documents outside of it pass all the same."""

import pytest

from lasthop_xml.relaxng.schema import read_schema
from lasthop_xml.relaxng.validate import Validator
from lasthop_xml.weft.schema import MOST_DOCUMENTS, Samples, schema_profile
from lasthop_xml.weft.session import Level, WeftDecoder, WeftEncoder
from lasthop_xml.xas.events import comment, content, end, start
from lasthop_xml.xas.names import Name
from tests.places import SAMPLES
from tests.weft.ends import A, document, passed, sample

EVENT = read_schema((SAMPLES / "event.rnc").read_bytes())
SCHEMAS = {
    "event": (SAMPLES / "event.rnc").read_text(),
    "one": "element a { empty }",
    "recursive": "start = a  a = element a { (a | element b { text })*, attribute x { text }? }",
    "only ends deep": "start = a  a = element a { a | b }  b = element b { xsd:int }",
    "mixed": "element a { mixed { element b { empty }* & attribute c { 'x' | 'y' } } }",
    "any": "element a { element * { text }?, attribute * { text }* }",
    "wide": "element a { (" + " | ".join(f"element e{n} {{ text }}" for n in range(100)) + ")* }",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_samples_of_any_schema_are_documents(name: str) -> None:
    schema = read_schema(SCHEMAS[name])
    documents = Samples(schema).documents()
    assert 0 < len(documents) <= MOST_DOCUMENTS
    profile = schema_profile(schema)
    for events in documents:
        assert passed(WeftEncoder(profile=profile), WeftDecoder(profile=profile), events) == events


def test_samples_are_valid_and_show_everything() -> None:
    documents = Samples(EVENT).documents()
    validator = Validator(EVENT)
    for events in documents:
        validator.check(events)
    shown = {event.name.local for events in documents for event in events if event.name}
    wanted = "origin oneway answers nested int boolean double string date replyid access"
    assert set(wanted.split()) <= shown


def test_everybody_makes_the_same_profile() -> None:
    again = read_schema((SAMPLES / "event.rnc").read_bytes())
    assert schema_profile(EVENT).data == schema_profile(again).data


@pytest.mark.parametrize("level", Level)
def test_a_schema_saves_most_of_the_first_message(level: Level) -> None:
    profile = schema_profile(EVENT)
    plain, known = WeftEncoder(level), WeftEncoder(level, profile=profile)
    decoder = WeftDecoder(profile=profile)
    first, *others = sample(8)
    with_schema = known.encode(first)
    assert len(with_schema) < 0.7 * len(plain.encode(first))
    assert decoder.decode(with_schema) == first
    for events in others:
        assert passed(known, decoder, events) == events
    other = document(start(Name("urn:else", "b")), content("x"), end(Name("urn:else", "b")))
    assert passed(known, decoder, other) == other
    assert passed(known, decoder, document(comment("x"))) == document(comment("x"))


def test_values_of_samples_are_forgotten() -> None:
    profile = schema_profile(EVENT)
    memory = WeftEncoder(profile=profile).learned.memory
    assert len(memory.run_list) > 20
    assert all(len(column.entries) == 1 and not column.words for column in memory.column_list)
    assert A not in memory.names
