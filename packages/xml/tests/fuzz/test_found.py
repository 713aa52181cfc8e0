"""What fuzzers have found, kept as small as it gets: each has to be understood, or refused."""

from base64 import b64decode
from time import process_time

import pytest

from lasthop_xml.weft.errors import WeftFormatError
from tests.fuzz import targets
from tests.fuzz.targets import TARGETS, check

FOUND = {
    "a literal without an end took exponential time": ("relaxng", b'element a { """' + b'"b' * 40),
    "the same with single marks": ("relaxng", b"element a { '''" + b"'b" * 40),
}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("name", FOUND)
def test_it_is_no_trouble_any_more(name: str) -> None:
    target, data = FOUND[name]
    assert not check(TARGETS[target], data)


def test_a_short_weft_message_cannot_ask_for_a_long_text() -> None:
    """Its raw bytes were read one by one, far behind the end of the message."""
    session = b64decode(
        "0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR"
        "0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHRAnEC//8DAAAAAf7///9+L/6t8dXm"
    )
    started = process_time()
    with pytest.raises(WeftFormatError):
        targets.weft(session)
    assert process_time() - started < 0.5
