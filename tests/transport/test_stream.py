"""A link over a byte stream, on a transport that a test plays: how much it takes in at a time."""

from __future__ import annotations

import asyncio

from lasthop.transport.link import Ends
from lasthop.transport.stream import SLICE, StreamLink
from lasthop.wire.hop.handshake import Waiting
from lasthop.wire.hop.mapping import Mapping
from tests.transport.hand import Diary, HandClock, ends


class PlayedTransport(asyncio.Transport):
    """Knows whether it is read from."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.closing = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def is_reading(self) -> bool:
        return self.reading

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class HeardLink(StreamLink):
    """Keeps what it is to deal with."""

    def __init__(self, ends: Ends, *, throttle: bool = False) -> None:
        machine = Waiting(mapping=Mapping.STREAM, now=ends.clock.now())
        super().__init__(ends, machine, throttle=throttle)
        self.heard: list[bytes] = []

    def arrived(self, data: bytes, number: int | None = None) -> None:
        self.heard.append(bytes(data))


def linked(*, throttle: bool = False) -> tuple[HeardLink, PlayedTransport]:
    link = HeardLink(ends(Diary(), HandClock()), throttle=throttle)
    transport = PlayedTransport()
    link.connection_made(transport)
    return link, transport


DATA = bytes(range(256)) * (3 * SLICE // 256) + b"end"


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_large_read_is_dealt_with_slice_by_slice_and_others_are_served_between() -> None:
    link, transport = linked()
    link.data_received(DATA)
    assert [len(piece) for piece in link.heard] == [SLICE]
    assert not transport.is_reading()
    await asyncio.sleep(0)
    assert len(link.heard) == 2
    await turns()
    assert b"".join(link.heard) == DATA
    assert transport.is_reading()
    link.data_received(b"small")
    assert link.heard[-1] == b"small"


async def test_what_had_been_read_already_waits_its_turn() -> None:
    link, _ = linked()
    link.data_received(DATA)
    link.data_received(b"small")
    assert link.heard[-1] != b"small"
    await turns()
    assert b"".join(link.heard) == DATA + b"small"


async def test_a_link_that_ends_deals_with_nothing_more() -> None:
    link, transport = linked()
    link.data_received(DATA)
    link.connection_lost(None)
    await turns()
    assert len(link.heard) == 1
    assert not transport.is_reading()


async def test_nothing_is_read_while_the_peer_does_not_read_either() -> None:
    link, transport = linked(throttle=True)
    link.data_received(DATA)
    link.pause_writing()
    await turns()
    assert not transport.is_reading()
    link.data_received(DATA)
    link.resume_writing()
    assert not transport.is_reading()
    await turns()
    assert transport.is_reading()
