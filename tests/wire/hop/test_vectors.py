"""The bytes that every implementation agrees on, in both directions and three feedings.

About `wire/hop/encoder.py`, `wire/hop/decoder.py` and `vectors/`.
"""

import json
from typing import Any

import pytest

from lasthop.errors import HopError
from lasthop.message import DEFAULT_CONTENT_TYPE
from lasthop.wire.hop.bundling import units
from lasthop.wire.hop.decoder import Decoder
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Frame
from lasthop.wire.hop.mapping import Mapping
from tests.wire.hop.vectors import FOLDER, frame_from_json, frame_to_json, load

Case = dict[str, Any]

OTHERS = {"varint.json", "feeds.json", "decisions.json", "checksums.json"}
FILES = sorted(path.name for path in FOLDER.glob("*.json") if path.name not in OTHERS)


def cases(*, error: bool = False, but: str = "", streamed: bool = False) -> list[Any]:
    """The cases of all files, but those with a certain mark."""
    found = []
    for name in FILES:
        content = load(name)
        for case in content["cases"]:
            mapping = Mapping(case.get("mapping", content["mapping"]))
            case["lanes"] = content.get("lanes", False)
            if (
                ("error" in case) == error
                and but not in case
                and (mapping.streamed or not streamed)
            ):
                case["mapping"] = mapping
                found.append(pytest.param(case, id=f"{name}: {case['name']}"))
    return found


def counts(case: Case) -> dict[str, int]:
    context = case.get("context", {})
    return {name: context.get(name, 0) for name in ("next_seq", "received", "delivered")}


def decoder_for(case: Case) -> Decoder:
    decoder = Decoder(case["mapping"])
    if case["lanes"]:
        decoder.allow_lanes()
    decoder.begin(**counts(case))
    return decoder


def encoder_for(case: Case) -> Encoder:
    preferred = case.get("context", {}).get("preferred", DEFAULT_CONTENT_TYPE)
    encoder = Encoder(case["mapping"], preferred=preferred)
    encoder.begin(**counts(case))
    return encoder


def values(case: Case) -> list[Frame]:
    return [frame_from_json(value) for value in case["frames"]]


@pytest.mark.parametrize("case", cases(but="encode_only"))
def test_bytes_become_the_values(case: Case) -> None:
    data = bytes.fromhex(case["bytes"])
    assert decoder_for(case).decode(data) == values(case)


@pytest.mark.parametrize("case", cases(but="decode_only"))
def test_values_become_the_bytes(case: Case) -> None:
    packed = units(encoder_for(case), case["mapping"], bundled=True)
    for frame in values(case):
        packed.add(frame)
    assert b"".join(packed.take()).hex() == case["bytes"]


@pytest.mark.parametrize("case", cases())
def test_the_description_of_a_value_is_exact(case: Case) -> None:
    described = json.loads(json.dumps([frame_to_json(frame) for frame in values(case)]))
    assert described == case["frames"]


@pytest.mark.parametrize("case", cases(but="encode_only", streamed=True))
def test_a_stream_may_be_cut_anywhere(case: Case) -> None:
    data = bytes.fromhex(case["bytes"])
    decoder = decoder_for(case)
    pieces = [data[index : index + 1] for index in range(len(data))]
    assert [frame for piece in pieces for frame in decoder.feed(piece)] == values(case)
    assert decoder.buffered == 0
    decoder = decoder_for(case)
    trailing = b"\x05\x80ab"
    assert decoder.feed(data + trailing) == values(case)
    if "close" not in {frame["type"] for frame in case["frames"]}:
        assert decoder.buffered == len(trailing)


@pytest.mark.parametrize("case", cases(error=True))
def test_what_is_wrong_is_said_clearly(case: Case) -> None:
    decoder = decoder_for(case)
    with pytest.raises(HopError) as caught:
        decoder.decode(bytes.fromhex(case["bytes"]))
    assert caught.value.code == case["error"]
    assert caught.value.detail == case["detail"]
    assert "\n" not in str(caught.value)
    with pytest.raises(HopError, match="failed already"):
        decoder.decode(b"\x01\x01")
