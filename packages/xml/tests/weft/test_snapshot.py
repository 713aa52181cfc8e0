"""What was learned outlives a restart, and a state that does not fit is found out."""

from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from lasthop_xml.weft.engines import Engine
from lasthop_xml.weft.errors import WeftFormatError, WeftStateError
from lasthop_xml.weft.frozen import MAX_SNAPSHOT
from lasthop_xml.weft.profile import MAGIC, Profile
from lasthop_xml.weft.session import Level, WeftDecoder, WeftEncoder
from lasthop_xml.weft.snapshot import (
    restore_decoder,
    restore_encoder,
    save_decoder,
    save_encoder,
    train,
)
from lasthop_xml.xas.events import attribute, content
from lasthop_xml.xas.sequence import EventList
from tests.weft.ends import ENGINES, A, document, ends, messages, passed, sample
from tests.xas.documents import Documents, exact
from tests.xas.strategies import documents

each_engine = pytest.mark.parametrize("engine", ENGINES, ids=str)
each_level = pytest.mark.parametrize("level", Level)


@each_level
@each_engine
def test_ends_that_are_restored_at_any_time_go_on_alike(engine: Engine, level: Level) -> None:
    whole, _ = ends(engine, level)
    encoder, decoder = ends(engine, level)
    for number, events in enumerate(sample(12)):
        expected = whole.encode(events)
        # Deflate starts from its window and may choose otherwise; what it says is the same.
        message = encoder.encode(events)
        if level is not Level.DEFLATE:
            assert message == expected
        assert decoder.decode(message) == events
        if number % 2:
            encoder = restore_encoder(save_encoder(encoder), engine=engine)
        if number % 3 == 0:
            decoder = restore_decoder(save_decoder(decoder), engine=engine)
    assert encoder.messages == decoder.messages == 12


@settings(deadline=None, max_examples=25)
@given(st.lists(documents(), min_size=2, max_size=3), st.sampled_from(Level))
def test_any_session_can_be_saved_after_any_message(plan: list[EventList], level: Level) -> None:
    encoder, decoder = ends(ENGINES[-1], level)
    for events in plan:
        assert exact(passed(encoder, decoder, events)) == exact(events)
        saved = save_encoder(encoder), save_decoder(decoder)
        encoder, decoder = restore_encoder(saved[0]), restore_decoder(saved[1])
        assert (save_encoder(encoder), save_decoder(decoder)) == saved


@each_level
def test_both_ends_and_engines_save_the_same_memory(level: Level) -> None:
    saved = []
    for engine in ENGINES:
        encoder, decoder = ends(engine, level)
        source = Documents(3)
        for _ in range(15):
            events = source.next()
            decoder.decode(encoder.encode(events))
        for state in (save_encoder(encoder), save_decoder(decoder)):
            saved.append(msgspec.msgpack.decode(state)[-1])
    assert all(each == saved[0] for each in saved)


@each_level
def test_a_state_of_another_time_is_found_out(level: Level) -> None:
    encoder, decoder = ends(ENGINES[0], level)
    early = save_decoder(decoder)
    first, second, third = messages(encoder, sample(3))
    decoder.decode(first)
    late = save_decoder(decoder)
    decoder.decode(second)
    for state, wrong in ((early, second), (late, third)):
        restored = restore_decoder(state)
        with pytest.raises(WeftStateError, match="does not continue"):
            restored.decode(wrong)
    assert restore_decoder(late).decode(second) == sample(2)[1]


def test_the_beginning_of_an_epoch_is_kept_too() -> None:
    encoder, decoder = ends(ENGINES[0])
    events = document(content("x"))
    encoder.encode(events)
    encoder.reset()
    again = restore_encoder(save_encoder(encoder))
    assert decoder.decode(again.encode(events)) == events
    assert decoder.epoch == 1


def test_a_poisoned_state_is_not_kept() -> None:
    decoder = WeftDecoder()
    with pytest.raises(WeftFormatError):
        decoder.decode(b"x")
    with pytest.raises(WeftStateError, match="has failed cannot be saved"):
        save_decoder(decoder)


@each_level
@each_engine
def test_a_profile_is_known_from_the_first_message(engine: Engine, level: Level) -> None:
    profile = Profile(train(sample(20)).data)
    plain, trained = (
        WeftEncoder(level, engine=engine),
        WeftEncoder(level, engine=engine, profile=profile),
    )
    decoder = WeftDecoder(engine=engine, profile=profile)
    other = sample(25)[20:]
    assert len(trained.encode(other[0])) < 0.4 * len(plain.encode(other[0]))
    trained.reset()
    for events in other:
        assert passed(trained, decoder, events) == events
    # Forgetful sessions start from it each time.
    forgetful = WeftEncoder(level, engine=engine, profile=profile, forgetful=True)
    for message in reversed(messages(forgetful, other)):
        assert decoder.decode(message) in other
    with pytest.raises(WeftStateError, match="does not continue"):
        WeftDecoder(engine=engine).decode(trained.encode(other[0]))


def test_a_profile_does_not_learn_from_sessions() -> None:
    profile = train(sample(5))
    events = document(attribute(A, "never seen"))
    first = WeftEncoder(profile=profile).encode(events)
    assert WeftEncoder(profile=profile).encode(events) == first


def test_a_snapshot_belongs_to_an_end_and_a_profile() -> None:
    profile = train(sample(2))
    encoder, decoder = ends(ENGINES[0], profile=profile)
    passed(encoder, decoder, document(content("x")))
    with pytest.raises(WeftStateError, match="needs the snapshot of an encoder"):
        restore_decoder(save_encoder(encoder), profile=profile)
    with pytest.raises(WeftStateError, match="another profile"):
        restore_encoder(save_encoder(encoder))
    again = restore_encoder(save_encoder(encoder), profile=profile)
    assert passed(again, decoder, document(content("y"))) == document(content("y"))


@cache
def saved() -> bytes:
    """A snapshot of an end that has learned something."""
    encoder = WeftEncoder(Level.MAX)
    messages(encoder, sample(1))
    return save_encoder(encoder)


def state(*path: int, value: Any) -> bytes:
    """A snapshot with something else at one place."""
    fields = msgspec.msgpack.decode(saved())
    inner = fields
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return msgspec.msgpack.encode(fields)


LEARNED = 8
COLUMNS = 9


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc0",
        b"x" * 100,
        b"x" * (MAX_SNAPSHOT + 1),
        state(1, value=7),
        state(3, value=256),
        state(4, value=-1),
        state(5, value=2**32),
        state(7, value=b"x" * 40_000),
        state(LEARNED, 0, value=2),
        state(LEARNED, 1, value=-1),
        state(LEARNED, 4, 0, value="\x00"),
        state(LEARNED, 5, 0, value=["", "no name"]),
        state(LEARNED, 5, 0, value=["urn:x", "twice"]) and state(LEARNED, 5, value=[["", "a"]] * 2),
        state(LEARNED, 6, 0, value="\ufffe"),
        state(LEARNED, 7, 0, value=[999, "", "a"]),
        state(LEARNED, 7, 0, value=[-1, "", "a"]),
        state(LEARNED, 8, 0, value=[[[3, "", "a", ""]] * 2000, -1, "", ""]),
        state(LEARNED, 8, 0, value=[[[6, "", "a", ""]], -1, "", ""]),
        state(LEARNED, 8, 0, value=[[[4, "", "a", ""]], 77, "", ""]),
        state(LEARNED, 8, 0, value=[[[5, "", "a", "x"]], 7, "urn:x", "a"]),
        state(LEARNED, COLUMNS, value=[]),
        state(LEARNED, COLUMNS, 1, 0, value=0),
        state(LEARNED, COLUMNS, 1, 1, value=999),
        state(LEARNED, COLUMNS, 1, 4, value=999),
        state(LEARNED, COLUMNS, 1, 13, value=99),
        state(LEARNED, COLUMNS, 1, 14, value=[1, 1]),
        state(LEARNED, COLUMNS, 1, 14, value=[0, -1]),
        state(LEARNED, COLUMNS, 2, 17, 0, 0, value="not a number"),
        state(LEARNED, COLUMNS, 1, 18, value=[[0, 99]]),
        state(LEARNED, COLUMNS, 1, 19, value=["\x00"]),
        state(LEARNED, COLUMNS, 1, 19, value=["w"] * 600),
        state(LEARNED, COLUMNS, 1, 20, 0, value=[[1, 0, 0]]),
        state(LEARNED, COLUMNS, 1, 20, 4, value=[[99], [1]]),
        state(LEARNED, COLUMNS, 1, 20, 4, value=[[1, 1], [1, 1]]),
        state(LEARNED, COLUMNS, 1, 20, 4, value=[[1], [0]]),
        state(LEARNED, 10, value=[[1, 70000, 1]]),
        state(LEARNED, 13, 0, value=[[1, 2**22]]),
        state(4, value=2**63),
    ],
)
@each_engine
def test_a_damaged_snapshot_is_refused(engine: Engine, data: bytes) -> None:
    with pytest.raises(WeftStateError):
        restore_encoder(data, engine=engine)


@pytest.mark.parametrize("data", [b"", b"weft", MAGIC, MAGIC + b"\xc0", MAGIC + b"x" * 40])
def test_what_is_no_profile_is_refused(data: bytes) -> None:
    with pytest.raises(WeftStateError):
        Profile(data)
