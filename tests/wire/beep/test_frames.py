"""BEEP's frames: one vector, both directions, three feedings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lasthop.wire.beep.errors import BeepError
from lasthop.wire.beep.frames import (
    MAX_31,
    MAX_32,
    BeepData,
    BeepKind,
    Frame,
    FrameReader,
    Seq,
    encode,
)

VECTORS = json.loads((Path(__file__).parents[3] / "vectors/beep/frames.json").read_text())
CASES = [pytest.param(case, id=case["name"]) for case in VECTORS["cases"]]
ERRORS = [pytest.param(case, id=case["name"]) for case in VECTORS["errors"]]
MOST = 65536


def value(case: dict[str, Any]) -> Frame:
    said = case["frame"]
    if said["kind"] == "SEQ":
        return Seq(said["channel"], said["ack"], said["window"])
    _, _, rest = case["text"].partition("\r\n")
    payload = rest.encode()[: said["size"]]
    fields = (said["channel"], said["number"], said["more"], said["seq"])
    return BeepData(BeepKind(said["kind"]), *fields, payload, said.get("answer"))


@pytest.mark.parametrize("case", CASES)
def test_a_frame_is_written_and_read(case: dict[str, Any]) -> None:
    text = case["text"].encode()
    assert encode(value(case)) == text
    assert FrameReader(MOST).feed(text) == [value(case)]
    reader = FrameReader(MOST)
    assert [frame for byte in text for frame in reader.feed(bytes((byte,)))] == [value(case)]
    assert reader.buffered == 0
    reader = FrameReader(MOST)
    assert reader.feed(text + b"MSG 1 ") == [value(case)]
    assert reader.buffered == 6


@pytest.mark.parametrize("case", ERRORS)
def test_what_is_no_frame_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(BeepError, match=case["error"]):
        FrameReader(MOST).feed(case["text"].encode())


numbers = st.integers(0, MAX_31)
data = st.builds(
    BeepData,
    st.sampled_from((BeepKind.MSG, BeepKind.RPY, BeepKind.ERR)),
    numbers,
    numbers,
    st.booleans(),
    st.integers(0, MAX_32),
    st.binary(max_size=100),
    st.none(),
)
frames = st.one_of(data, st.builds(Seq, numbers, st.integers(0, MAX_32), numbers))


@given(st.lists(frames, max_size=5), st.data())
def test_frames_survive_any_cut(sent: list[Frame], data: st.DataObject) -> None:
    text = b"".join(map(encode, sent))
    reader = FrameReader(MOST)
    got: list[Frame] = []
    while text:
        size = data.draw(st.integers(1, len(text)))
        got += reader.feed(text[:size])
        text = text[size:]
    assert got == sent
