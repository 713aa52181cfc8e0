"""The bytes that every implementation agrees on, in both directions."""

import json
from typing import Any

import pytest

from lasthop_xml.weft.engines import Engine
from lasthop_xml.weft.session import Level, WeftDecoder, WeftEncoder
from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from tests.places import VECTORS
from tests.weft.ends import ENGINES

SESSIONS = json.loads((VECTORS / "weft/sessions.json").read_text("utf-8"))


@pytest.mark.parametrize(
    "session", [pytest.param(each, id=f"{each['about']}, {each['level']}") for each in SESSIONS]
)
@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_documents_become_the_bytes_and_bytes_the_documents(
    engine: Engine, session: dict[str, Any]
) -> None:
    level = Level[session["level"].upper()]
    encoder, decoder = WeftEncoder(level, engine=engine), WeftDecoder(engine=engine)
    for message in session["messages"]:
        events = list(typed_sequence(parse_xml(message["xml"].encode())))
        sent = encoder.encode(events)
        # Builds of zlib differ in what they find; what they say is the same.
        if level is not Level.DEFLATE:
            assert sent.hex() == message["hex"]
        assert decoder.decode(bytes.fromhex(message["hex"])) == events
