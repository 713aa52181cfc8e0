"""What a device says about streams, and when it may."""

from __future__ import annotations

import zlib

import pytest

from lasthop.device.change import Change, InboxContents, SessionNumbers
from lasthop.device.outgoing import Outgoing
from lasthop.device.pieces.device_transfers import DeviceTransfers
from lasthop.device.session import DeviceSession
from lasthop.device.terms import DeviceTerms
from lasthop.errors import Conflict
from lasthop.wire.hop.frames import (
    Ending,
    EndStatus,
    Frame,
    Headers,
    MessageFrame,
    Piece,
    Taken,
)

KEY = 7
BODY = b"and so on"


@pytest.fixture
def transfers() -> DeviceTransfers:
    """With one stream, of which everything is here but its end."""
    transfers = DeviceSession(
        DeviceTerms(app="shop", name="phone"), InboxContents()
    ).pieces.transfers
    transfers.incoming.open(KEY)
    transfers.piece(Piece(KEY, 0, BODY, stream=True), known=True)
    commit(transfers, 1)
    return transfers


def commit(transfers: DeviceTransfers, n: int) -> None:
    transfers.book.collect(Change(n=n, state=SessionNumbers()))
    transfers.book.committed(n)


def complete() -> Ending:
    return Ending(KEY, EndStatus.COMPLETE, len(BODY), zlib.crc32(BODY), stream=True)


def endings(transfers: DeviceTransfers) -> list[Frame]:
    return [frame for frame in transfers.frames() if isinstance(frame, Ending)]


def test_an_end_that_comes_twice_is_confirmed_when_it_is_durable(
    transfers: DeviceTransfers,
) -> None:
    transfers.ending(complete())
    transfers.ending(complete())
    assert endings(transfers) == []
    commit(transfers, 2)
    confirmed = Ending(KEY, EndStatus.CONFIRMED, stream=True)
    assert endings(transfers) == [confirmed]
    transfers.ending(complete())
    assert endings(transfers) == [confirmed]


def test_the_application_hears_of_an_end_that_is_durable(transfers: DeviceTransfers) -> None:
    transfers.ending(complete())
    assert transfers.incoming.advance(KEY, 0, 100) == BODY
    assert transfers.incoming.advance(KEY, len(BODY), 100) is None
    commit(transfers, 2)
    assert transfers.incoming.advance(KEY, len(BODY), 100) == b""


def test_the_application_hears_that_it_was_given_up_when_that_is_durable(
    transfers: DeviceTransfers,
) -> None:
    transfers.ending(Ending(KEY, EndStatus.ABORTED, reason="too hot", stream=True))
    assert transfers.incoming.advance(KEY, len(BODY), 100) is None
    commit(transfers, 2)
    with pytest.raises(Conflict, match="the stream has been given up"):
        transfers.incoming.advance(KEY, len(BODY), 100)


def test_that_there_is_no_more_of_a_body_is_confirmed(transfers: DeviceTransfers) -> None:
    """Also when nothing of it is here: the gateway says it until it knows that we have heard."""
    pulled, unknown = KEY + 1, KEY + 2
    assert transfers.bodies.pull(pulled) is None
    for key in (pulled, unknown):
        transfers.ending(Ending(key, EndStatus.ABORTED, reason="too late"))
    assert transfers.bodies.fetched == [(pulled, None, "too late")]
    assert endings(transfers) == [
        Ending(pulled, EndStatus.CONFIRMED),
        Ending(unknown, EndStatus.CONFIRMED),
    ]


def test_a_body_that_all_messages_wait_for_goes_alone(transfers: DeviceTransfers) -> None:
    urgent, blocking = (
        MessageFrame(None, key, None, Headers(priority=priority), BODY)
        for key, priority in ((KEY + 1, 9), (KEY + 2, 0))
    )
    transfers.outgoing_bodies.start(Outgoing(urgent, 0), durable=True)
    transfers.outgoing_bodies.start(Outgoing(blocking, 0, 0), durable=True)

    def asked() -> list[int]:
        return [f.transfer for f in transfers.frames() if isinstance(f, Piece)]

    assert asked() == [KEY + 2]
    transfers.taken(Taken(KEY + 2, len(BODY), 1 << 16))
    assert endings(transfers) == [
        Ending(KEY + 2, EndStatus.COMPLETE, len(BODY), zlib.crc32(BODY)),
    ]
    transfers.ending(Ending(KEY + 2, EndStatus.CONFIRMED))
    assert asked() == [KEY + 1]
