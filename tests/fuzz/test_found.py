"""What fuzzers have found, kept as small as it gets: each has to be understood, or refused.

About `wire/`.
"""

import pytest

from tests.fuzz.targets import TARGETS, check

PAP = (
    b"--asdlfkjiurwghasf\r\nContent-Type: application/xml\r\n\r\n"
    b'<?xml version="1.0"?><!DOCTYPE pap PUBLIC "-//WAPFORUM//DTD PAP 2.1//EN" "x">'
    b'<pap><push-message push-id="1"><address address-value="WAPPUSH=1/TYPE=PLMN@p"/>'
    b"</push-message></pap>\r\n--asdlfkjiurwghasf\r\nContent-Type: text/p\x94ain\r\n\r\n"
    b"x\r\n--asdlfkjiurwghasf--"
)

FOUND = {
    "how a frame was cut decided what was wrong with it": (
        "hop",
        bytes.fromhex("000a9afffffcffffff0600ff9d7f"),
    ),
    "a header was read that could not be written": ("pap", PAP),
}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("name", FOUND)
def test_it_is_no_trouble_any_more(name: str) -> None:
    target, data = FOUND[name]
    assert not check(TARGETS[target], data)
