"""The bytes that every implementation agrees on, in both directions."""

from typing import Any

import pytest

from lasthop_xml.xas.names import XSD_NS, Name
from lasthop_xml.xas.types.table import PRIMITIVES, lexical
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xebu.errors import XebuFormatError
from lasthop_xml.xebu.tokens import Mode
from lasthop_xml.xebu.values import FORMS
from tests.xebu.vectors import FOLDER, event_to_json, load, message, pre_tokens

Case = dict[str, Any]


def cases(name: str) -> list[Any]:
    return [
        pytest.param(case, id=f"{name}: {case['name']}") for case in load(FOLDER / name)["cases"]
    ]


@pytest.mark.parametrize("case", [*cases("events.json"), *cases("sessions.json")])
def test_events_become_the_bytes_and_bytes_the_events(case: Case) -> None:
    known = pre_tokens(case.get("known", {}))
    encoder = Encoder(Mode[case["mode"].upper()], known=known)
    decoder = Decoder(known=known)
    for step in case["messages"]:
        events = message(step["events"])
        data = bytes.fromhex(step["bytes"])
        assert encoder.encode(events).hex() == data.hex()
        assert decoder.decode(data) == events
        assert [event_to_json(event) for event in events] == step["events"]


@pytest.mark.parametrize("case", cases("values.json"))
def test_values_become_the_bytes_and_bytes_the_values(case: Case) -> None:
    type_ = Name(XSD_NS, case["type"])
    data = bytes.fromhex(case["bytes"])
    value = PRIMITIVES[type_].exactly(case["text"])
    assert FORMS[type_].write(value).hex() == data.hex()
    again, pos = FORMS[type_].read(data + b"more", 0)
    assert (lexical(type_, again), pos) == (case["text"], len(data))


@pytest.mark.parametrize("case", cases("errors.json"))
def test_what_is_wrong_is_said_clearly(case: Case) -> None:
    decoder = Decoder()
    with pytest.raises(XebuFormatError) as caught:
        decoder.decode(bytes.fromhex(case["bytes"]))
    assert caught.value.detail == case["detail"]
