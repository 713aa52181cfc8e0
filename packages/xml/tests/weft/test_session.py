"""What goes in at one end of a session comes out at the other, and nothing else ever does."""

import os
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from lasthop_xml.weft.engine.chain import CHECKED
from lasthop_xml.weft.engines import Engine
from lasthop_xml.weft.errors import WeftFormatError, WeftLimitError, WeftStateError
from lasthop_xml.weft.runs import RunSequence
from lasthop_xml.weft.session import Level, WeftDecoder, WeftEncoder
from lasthop_xml.xas.errors import InvalidValue, MalformedEvents, UnknownType
from lasthop_xml.xas.events import (
    DOCUMENT_END,
    DOCUMENT_START,
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
from lasthop_xml.xas.limits import Limits
from lasthop_xml.xas.names import XSD_NS, XSI_TYPE, Name
from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from tests.weft.ends import ENGINES, SAMPLE, A, document, ends, messages, passed, sample
from tests.xas.documents import Documents, exact
from tests.xas.strategies import documents

B = Name("urn:b", "b")
INT = Name(XSD_NS, "int")
DOUBLE = Name(XSD_NS, "double")
GENERATED = int(os.environ.get("WEFT_DOCUMENTS", "300"))

each_engine = pytest.mark.parametrize("engine", ENGINES, ids=str)
each_level = pytest.mark.parametrize("level", Level)


@each_engine
@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(documents(), st.sampled_from(Level)), min_size=1, max_size=4), st.booleans()
)
def test_any_sequence_survives_any_mix_of_levels(
    engine: Engine, plan: list[tuple[EventList, Level]], again: bool
) -> None:
    encoder, decoder = ends(engine)
    for events, level in plan * 2 if again else plan:
        encoder.level = level
        assert exact(passed(encoder, decoder, events)) == exact(events)
        assert (encoder.epoch, encoder.messages) == (decoder.epoch, decoder.messages)
        assert encoder.chain == decoder.chain


@each_level
@each_engine
def test_generated_documents_come_back_to_the_byte(engine: Engine, level: Level) -> None:
    source = Documents(7)
    encoder, decoder = ends(engine, level)
    # The densest level is slow on documents that repeat nothing.
    for _ in range(GENERATED if level is not Level.MAX else GENERATED // 10):
        data = serialize_xml(source.next())
        events = list(typed_sequence(parse_xml(data)))
        again = passed(encoder, decoder, events)
        assert exact(again) == exact(events)
        assert serialize_xml(again) == data


@each_level
@each_engine
def test_the_sample_comes_back_to_the_byte(engine: Engine, level: Level) -> None:
    encoder, decoder = ends(engine, level)
    sizes = []
    for path in SAMPLE[: 200 if level is not Level.MAX else 60]:
        data = path.read_bytes()
        message = encoder.encode(typed_sequence(parse_xml(data)))
        assert serialize_xml(decoder.decode(message)) == data
        sizes.append(len(message) / len(data))
    # What was sent once is not sent again.
    assert max(sizes[-10:]) < 0.03
    assert sizes[0] > 0.15


@each_engine
def test_runs_go_in_and_come_out_without_events(engine: Engine) -> None:
    encoder, decoder = ends(engine)
    relay, far = ends(engine, Level.DEFLATE)
    for events in sample(5):
        received = decoder.decode_runs(encoder.encode(events))
        assert len(received.runs) == len(received.values) + 1
        passed_on = far.decode_runs(relay.encode_runs(received))
        assert all(one is two for one, two in zip(received.runs, passed_on.runs, strict=True))
        assert passed_on.values == received.values
        assert list(passed_on) == events


def test_runs_are_a_sequence_that_a_cursor_can_move_along() -> None:
    encoder, decoder = ends(ENGINES[0])
    received = decoder.decode_runs(encoder.encode(document(content("x"))))
    assert received.at(2) == content("x")
    assert received.at(9) is None
    received.release(3)
    assert received.at(0) is DOCUMENT_START


@pytest.mark.parametrize(
    "one, two",
    [
        (typed(DOUBLE, 0.0), typed(DOUBLE, -0.0)),
        (typed(DOUBLE, 1.0), typed(INT, 1)),
        (typed(INT, 1), typed(Name(XSD_NS, "boolean"), True)),
        (typed(Name(XSD_NS, "long"), 2**62), typed(Name(XSD_NS, "long"), -(2**63))),
        (content("1"), typed(Name(XSD_NS, "string"), "1")),
        (content("a"), content("")),
        (comment("x"), content("x")),
    ],
)
@each_level
@each_engine
def test_values_that_look_alike_are_told_apart(
    engine: Engine, level: Level, one: Event, two: Event
) -> None:
    encoder, decoder = ends(engine, level)
    for event in (one, two, one, one, two, two, one):
        events = document(event)
        assert exact(passed(encoder, decoder, events)) == exact(events)


@each_level
@each_engine
def test_every_kind_of_event_passes(engine: Engine, level: Level) -> None:
    events = document(
        instruction("go", "now"),
        comment("--"),
        entity("e"),
        prefix("urn:b", "p"),
        start(B),
        attribute(B, "v"),
        attribute(XSI_TYPE, "p:t"),
        attribute(A, ""),
        content("a"),
        content("b", same_text=True),
        content("c"),
        end(B),
        typed(INT, 5),
        typed(INT, 6),
    )
    encoder, decoder = ends(engine, level)
    for _ in range(3):
        assert passed(encoder, decoder, events) == events
    bare = EventList([DOCUMENT_START, comment("x"), DOCUMENT_END])
    assert passed(encoder, decoder, bare) == bare
    empty = EventList([DOCUMENT_START, DOCUMENT_END])
    assert passed(encoder, decoder, empty) == empty


BROKEN = [
    ([], MalformedEvents),
    ([start(A)], MalformedEvents),
    ([DOCUMENT_START, start(A), end(A)], MalformedEvents),
    ([*document(), comment("x")], MalformedEvents),
    ([DOCUMENT_START, end(A), DOCUMENT_END], MalformedEvents),
    ([DOCUMENT_START, start(A), end(B), DOCUMENT_END], MalformedEvents),
    ([DOCUMENT_START, start(A), DOCUMENT_END], MalformedEvents),
    (document(start(B), content("new"), end(B), content("\x00")), MalformedEvents),
    (document(content("\ud800")), MalformedEvents),
    (document(attribute(A, "\ufffe")), MalformedEvents),
    (document(attribute(XSI_TYPE, "\x01")), MalformedEvents),
    (document(attribute(Name("", "no name"), "")), MalformedEvents),
    (document(start(Name("", "no name")), end(Name("", "no name"))), MalformedEvents),
    (document(prefix("\x02", ""), start(A), end(A)), MalformedEvents),
    (document(content("x", same_text=True)), MalformedEvents),
    (document(content("x"), comment(""), content("x", same_text=True)), MalformedEvents),
    (document(typed(A, 5)), UnknownType),
    (document(typed(INT, "5")), InvalidValue),
    (document(typed(INT, True)), InvalidValue),
    (document(typed(INT, 2**31)), InvalidValue),
    (document(typed(Name(XSD_NS, "string"), 5)), InvalidValue),
    (document(typed(DOUBLE, 5)), InvalidValue),
    (document(entity("no name")), MalformedEvents),
    (document(instruction("no>name")), MalformedEvents),
    (document(Event(content("").kind, None, 5)), MalformedEvents),
    (document(DOCUMENT_START), MalformedEvents),
    (document(*[start(A)] * 300, *[end(A)] * 300), WeftLimitError),
    (document(start(Name("", "n" * 5000)), end(Name("", "n" * 5000))), WeftLimitError),
    (document(*[comment("")] * 100_000), WeftLimitError),
    (document(*[start(A), end(A)] * 513), MalformedEvents),
]


@pytest.mark.parametrize("events, error", BROKEN)
@each_engine
def test_a_document_that_cannot_be_sent_leaves_no_trace(
    engine: Engine, events: list[Event], error: type[Exception]
) -> None:
    encoder, decoder = ends(engine)
    good = document(start(B), content("x"), end(B))
    assert passed(encoder, decoder, good) == good
    with pytest.raises(error):
        encoder.encode(events)
    assert passed(encoder, decoder, good) == good
    assert (encoder.epoch, encoder.messages) == (decoder.epoch, decoder.messages) == (0, 2)


@each_level
def test_a_message_that_is_too_large_begins_a_new_epoch(level: Level) -> None:
    encoder, decoder = WeftEncoder(level, max_message=100), WeftDecoder(max_message=100)
    good = document(content("x"))
    assert passed(encoder, decoder, good) == good
    noise = "".join(chr(0x4E00 + at * 7919 % 20000) for at in range(500))
    with pytest.raises(WeftLimitError, match="too large"):
        encoder.encode(document(content(noise)))
    assert encoder.epoch == 1
    assert passed(encoder, decoder, good) == good
    assert (decoder.epoch, decoder.messages) == (1, 1)


@each_level
@each_engine
def test_what_is_lost_repeated_or_reordered_is_noticed(engine: Engine, level: Level) -> None:
    for damage in ("lost", "repeated", "reordered"):
        encoder, decoder = ends(engine, level)
        first, second, third, fourth = messages(encoder, sample(4))
        decoder.decode(first)
        if damage == "repeated":
            decoder.decode(second)
            bad = second
        else:
            bad = third
        with pytest.raises(WeftStateError, match="does not continue"):
            decoder.decode(bad)
        assert decoder.poisoned
        with pytest.raises(WeftStateError, match="reset"):
            decoder.decode(fourth)


@each_level
@each_engine
def test_a_reset_heals_a_poisoned_decoder(engine: Engine, level: Level) -> None:
    encoder, decoder = ends(engine, level)
    first, second, *_ = messages(encoder, sample(3))
    decoder.decode(first)
    with pytest.raises(WeftFormatError):
        decoder.decode(second[:-1])
    # The beginning of the epoch that has failed does not heal it: who sent it has learned more.
    with pytest.raises(WeftStateError, match="failed"):
        decoder.decode(first)
    encoder.reset()
    for events in sample(4):
        assert passed(encoder, decoder, events) == events
    assert encoder.epoch == decoder.epoch == 1


@each_engine
def test_epochs_go_round(engine: Engine) -> None:
    encoder, decoder = ends(engine, forgetful=True)
    events = document(content("x"))
    for _ in range(600):
        assert passed(encoder, decoder, events) == events
    assert encoder.epoch == decoder.epoch == 599 % 256


@each_level
def test_a_forgetful_encoder_needs_no_earlier_message(level: Level) -> None:
    encoder = WeftEncoder(level, forgetful=True)
    sent = list(zip(messages(encoder, sample(3)), sample(3), strict=True))
    decoder = WeftDecoder()
    for message, events in (*sent, *reversed(sent)):
        assert decoder.decode(message) == events
        assert WeftDecoder().decode(message) == events


def test_an_end_that_learns_otherwise_is_found_out() -> None:
    # As a decoder with a mistake would: one value of its memory is not what it should be.
    encoder, decoder = ends(ENGINES[0])
    events = document(attribute(A, "right"))
    for _ in range(CHECKED):
        decoder.decode(encoder.encode(events))
    (column,) = (each for each in decoder.learned.memory.column_list if len(each.entries) > 1)
    column.entries[1].value = "wrong"
    with pytest.raises(WeftStateError, match="does not continue"):
        decoder.decode(encoder.encode(events))


@each_engine
def test_a_memory_that_is_full_starts_again_at_both_ends(engine: Engine) -> None:
    encoder, decoder = ends(engine)
    grown = []
    for number in range(30):
        # Every message has 300 names that no other has.
        names = [Name("urn:x", f"n{number}-{each}") for each in range(300)]
        events = document(
            *(event for name in names for event in (start(name), end(name), comment("x")))
        )
        assert passed(encoder, decoder, events) == events
        grown.append(len(encoder.learned.memory.name_list))
        assert grown[-1] == len(decoder.learned.memory.name_list)
    assert max(grown) < 4400
    assert any(later < earlier for earlier, later in pairwise(grown))


@each_level
@each_engine
def test_a_column_that_is_full_starts_again_at_both_ends(engine: Engine, level: Level) -> None:
    encoder, decoder = ends(engine, level)
    # Each key is new, so each value is worth keeping: a thousand of them fill a column.
    for first in range(0, 1200, 100):
        parts: list[Event] = []
        for number in range(first, first + 100):
            parts += [start(B), attribute(A, f"k{number}"), content(f"v{number}"), end(B)]
        events = document(*parts)
        assert passed(encoder, decoder, events) == events


def test_what_is_known_is_hardly_sent() -> None:
    encoder = WeftEncoder()
    events = document(start(B), attribute(B, "value"), content("text"), end(B))
    first, second, third = messages(encoder, [events] * 3)
    assert len(first) > 25
    # Level, check, number of values, and a byte of bits that say that all guesses were right.
    assert len(second) == len(third) == 5
    assert second[0] == 0
    assert second[3:] == b"\x02\x00"


def test_limits_of_the_decoder_hold() -> None:
    cases = [
        ([start(A)] * 100 + [end(A)] * 100, Limits(depth=50)),
        ([comment("x")] * 500, Limits(events=400)),
        ([comment("x" * 200)] * 500, Limits(size=50_000)),
        ([start(Name("", "n" * 2000)), end(Name("", "n" * 2000))], Limits(name=1000)),
    ]
    for level in Level:
        for events, limits in cases:
            message = WeftEncoder(level).encode(document(*events))
            assert WeftDecoder().decode(message)[2:-2] == events
            decoder = WeftDecoder(limits=limits)
            with pytest.raises(WeftLimitError):
                decoder.decode(message)
            assert decoder.poisoned
    with pytest.raises(WeftLimitError, match="too large"):
        WeftDecoder(max_message=10).decode(b"\0" * 11)


def test_a_document_of_runs_is_taken_as_it_is() -> None:
    encoder, decoder = ends(ENGINES[0])
    events = document(content("x"))
    runs = decoder.decode_runs(encoder.encode(events))
    assert isinstance(runs, RunSequence)
    assert passed(encoder, decoder, runs) == events
