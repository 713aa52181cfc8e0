"""Ranked topics on the hop: one vector, both directions; everything comes back; nonsense is
named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import MalformedFrame, UnsupportedFrame
from lasthop.wire.hop.feeds import (
    MAX_KEYS,
    MAX_READS,
    FeedEnded,
    FeedTerms,
    Forget,
    HeldItem,
    Instruction,
    Look,
    NewRank,
    OfflineReading,
    Report,
    ShowKept,
    TopicWithdrawn,
    decode_instructions,
    decode_look,
    decode_report,
    encode_instructions,
    encode_look,
    encode_report,
)
from lasthop.wire.varint import MAX_VALUE, encode_varint

VECTORS = json.loads(Path("vectors/hop/feeds.json").read_text())

keys = st.lists(st.integers(0, MAX_VALUE), max_size=5).map(tuple)
ranks = st.floats(allow_nan=False, allow_infinity=False)
small = st.integers(0, MAX_VALUE - 1)
readings = st.builds(OfflineReading, at=small, wanted=st.none() | small, keys=keys)
items = st.builds(HeldItem, st.integers(0, MAX_VALUE), ranks, st.none() | small)
inventories = st.lists(
    st.tuples(st.text(max_size=9), st.lists(items, max_size=3).map(tuple)), max_size=3
).map(tuple)
reports = st.builds(
    Report,
    reads=st.lists(readings, max_size=3).map(tuple),
    had=keys,
    lapsed=keys,
    unread=keys,
    held=st.none() | inventories,
)
instructions: st.SearchStrategy[Instruction] = st.one_of(
    st.builds(ShowKept, keys),
    st.builds(Forget, st.integers(0, 2), keys),
    st.builds(NewRank, st.integers(0, MAX_VALUE), ranks),
    st.builds(FeedTerms, st.none() | small),
    st.just(TopicWithdrawn()),
    st.just(FeedEnded()),
)


@given(st.builds(Look, wanted=st.none() | small, queue_size=small, held=keys))
def test_a_look_comes_back(look: Look) -> None:
    assert decode_look(encode_look(look)) == look


@given(reports)
def test_a_report_comes_back(report: Report) -> None:
    assert decode_report(encode_report(report)) == report


@given(st.lists(instructions, max_size=6).map(tuple))
def test_instructions_come_back(said: tuple[Instruction, ...]) -> None:
    assert decode_instructions(encode_instructions(said)) == said


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(data: bytes) -> None:
    for decode in (decode_look, decode_report, decode_instructions):
        try:
            decode(data)
        except (MalformedFrame, UnsupportedFrame):
            continue


def value_of(case: dict[str, Any]) -> Any:
    said = case["value"]
    if case["kind"] == "look":
        return Look(said.get("wanted"), said.get("queue_size", 0), _keys(said.get("held", [])))
    if case["kind"] == "report":
        held = said.get("held")
        return Report(
            reads=tuple(
                OfflineReading(r["at"], r.get("wanted"), _keys(r["keys"]))
                for r in said.get("reads", [])
            ),
            had=_keys(said.get("had", [])),
            lapsed=_keys(said.get("lapsed", [])),
            unread=_keys(said.get("unread", [])),
            held=None
            if held is None
            else tuple(
                (topic, tuple(HeldItem(int(k), rank, at) for k, rank, at in rows))
                for topic, rows in held
            ),
        )
    return tuple(_instruction(*row) for row in said)


def _instruction(name: str, *content: Any) -> Instruction:
    match name:
        case "show":
            return ShowKept(_keys(content[0]))
        case "forget":
            return Forget(content[0], _keys(content[1]))
        case "rank":
            return NewRank(int(content[0]), content[1])
        case "terms":
            return FeedTerms(content[0])
        case "withdrawn":
            return TopicWithdrawn()
        case _:
            return FeedEnded()


def _keys(texts: list[str]) -> tuple[int, ...]:
    return tuple(map(int, texts))


CODECS: dict[str, tuple[Any, Any]] = {
    "look": (encode_look, decode_look),
    "report": (encode_report, decode_report),
    "instructions": (encode_instructions, decode_instructions),
}


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_every_implementation_agrees_on_these_bytes(case: dict[str, Any]) -> None:
    encode, decode = CODECS[case["kind"]]
    value = value_of(case)
    assert decode(bytes.fromhex(case["bytes"])) == value
    if not case.get("decode_only"):
        assert encode(value).hex() == case["bytes"]


@pytest.mark.parametrize("case", VECTORS["errors"], ids=lambda case: case["name"])
def test_what_is_wrong_is_named(case: dict[str, Any]) -> None:
    with pytest.raises(MalformedFrame) as raised:
        CODECS[case["kind"]][1](bytes.fromhex(case["bytes"]))
    assert case["detail"] in str(raised.value)


def test_lists_have_their_limits() -> None:
    long = b"\x03" + encode_varint(MAX_KEYS + 1) + bytes(MAX_KEYS + 1)
    with pytest.raises(MalformedFrame, match="more numbers than a list may have"):
        decode_look(long)
    reads = bytes(3 * (MAX_READS + 1))
    with pytest.raises(MalformedFrame, match="too many reads"):
        decode_report(b"\x01" + encode_varint(len(reads)) + reads)


def test_a_rank_is_finite_on_the_way_out_too() -> None:
    with pytest.raises(ValueError, match="finite"):
        encode_instructions((NewRank(1, float("inf")),))
