"""A link between its machine and its owner, over a carrier that a test plays."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lasthop.clock import SECOND
from lasthop.errors import OutOfOrder
from lasthop.transport.link import ChannelLink, Ends, Machine
from lasthop.wire.hop.frames import (
    Ack,
    Close,
    CloseCode,
    Hello,
    MessageFrame,
    Ping,
    Welcome,
)
from lasthop.wire.hop.handshake import Dialing, Waiting
from lasthop.wire.hop.mapping import Mapping
from tests.transport.hand import Diary, HandClock, ends

HELLO = Hello(app="shop", device="phone")
WELCOME = Welcome(incarnation=b"12345678", epoch=1, heartbeat=100)


class PlayedLink(ChannelLink):
    """A carrier that keeps what it is given."""

    def __init__(self, ends: Ends, machine: Machine) -> None:
        super().__init__(ends, machine, local=True)
        self.written: list[bytes] = []
        self.hung_up = False
        self.cuts = 0

    def write(self, units: list[bytes]) -> None:
        self.written += units

    def hang_up(self) -> None:
        self.hung_up = True

    def cut(self) -> None:
        self.cuts += 1
        self.ended("cut")

    def take(self) -> bytes:
        written, self.written = self.written, []
        return b"".join(written)


class Pair:
    """A device's link and a gateway's, joined by a test."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.at_device, self.at_gateway = Diary(), Diary()
        now = self.clock.now()
        self.device = PlayedLink(
            ends(self.at_device, self.clock), Dialing(HELLO, mapping=Mapping.STREAM, now=now)
        )
        self.gateway = PlayedLink(
            ends(self.at_gateway, self.clock), Waiting(mapping=Mapping.STREAM, now=now)
        )
        self.device.begin()
        self.gateway.begin()

    def carry(self) -> None:
        while (up := self.device.take()) or (down := self.gateway.take()):
            if up:
                self.gateway.arrived(up)
            elif down:
                self.device.arrived(down)

    def open(self) -> Pair:
        self.carry()
        self.gateway.send([WELCOME])
        self.carry()
        return self


def test_the_owner_of_each_side_hears_the_other() -> None:
    pair = Pair()
    pair.carry()
    (hello,) = pair.at_gateway.frames
    assert isinstance(hello, Hello)
    assert hello.device == "phone"
    pair.gateway.send([WELCOME, MessageFrame(0, 5, None, None, b"first")])
    pair.carry()
    (opened,) = pair.at_device.opened
    assert opened.welcome.epoch == 1
    assert [frame.body for frame in opened.frames if isinstance(frame, MessageFrame)] == [b"first"]
    pair.device.send([Ack(1, 1)])
    pair.carry()
    assert pair.at_gateway.frames[1:] == [Ack(1, 1)]


def test_frames_that_are_sent_together_are_written_together() -> None:
    pair = Pair().open()
    pair.gateway.send([MessageFrame(n, 5 + n, None, None, b"x") for n in range(10)])
    assert len(pair.gateway.written) == 1


def test_an_idle_device_pings_once_an_interval() -> None:
    """Not later after the first answer: an address translator would forget the connection."""
    pair = Pair().open()
    start = pair.clock.now()
    pings: list[int] = []
    while len(pings) < 4:
        pair.clock.advance(1)
        if pair.device.written:
            pings.append((pair.clock.now() - start) // SECOND)
        pair.carry()
    gaps = [later - earlier for earlier, later in pairwise([0, *pings])]
    assert all(100 <= gap <= 102 for gap in gaps), gaps


def test_a_goodbye_is_carried_and_ends_both() -> None:
    pair = Pair().open()
    pair.device.close(CloseCode.BYE, "done")
    assert pair.device.hung_up
    pair.carry()
    assert pair.gateway.hung_up
    assert pair.gateway.closed == Close(CloseCode.BYE, 0, "done")
    pair.gateway.ended("connection closed")
    pair.gateway.ended("connection closed")
    assert pair.at_gateway.ends == ["done"]


def test_after_the_end_frames_are_dropped() -> None:
    pair = Pair().open()
    pair.gateway.ended("reset")
    pair.gateway.send([Ping()])
    pair.gateway.close(CloseCode.BYE, "too late")
    assert pair.gateway.written == []
    assert pair.at_gateway.ends == ["reset"]
    assert pair.gateway.over


def test_nonsense_is_answered_with_a_close() -> None:
    pair = Pair().open()
    pair.gateway.arrived(b"\x01\x7f")
    pair.carry()
    assert pair.gateway.hung_up
    close = pair.device.closed
    assert close is not None
    assert close.code == CloseCode.UNSUPPORTED
    assert close.reason == "a frame that must be understood has an unknown type (type=127)"


def test_an_owner_can_find_fault_with_the_peer() -> None:
    pair = Pair().open()
    pair.device.fail(OutOfOrder("impossible", number=3))
    pair.carry()
    assert pair.gateway.closed == Close(CloseCode.OUT_OF_ORDER, 0, "impossible (number=3)")


def test_a_message_that_the_peer_does_not_take_closes_only_its_own_link() -> None:
    pair = Pair().open()
    pair.gateway.send([MessageFrame(0, 5, None, None, bytes(2 << 20))])
    pair.carry()
    close = pair.device.closed
    assert close is not None
    assert close.code == CloseCode.TOO_LARGE
    assert close.reason.startswith("the message is larger than the peer accepts")


def test_nothing_but_a_welcome_is_sent_first() -> None:
    pair = Pair()
    pair.carry()
    with pytest.raises(ValueError, match="before the WELCOME nothing can be sent"):
        pair.gateway.send([Ack(0, 0)])


def test_a_stranger_who_says_nothing_is_sent_away_after_ten_seconds() -> None:
    pair = Pair()
    pair.clock.advance(9)
    assert pair.gateway.closed is None
    pair.clock.advance(3)
    assert pair.gateway.closed == Close(CloseCode.TIMEOUT, 0, "the handshake took too long")


def test_who_does_not_take_the_last_word_is_cut_off() -> None:
    pair = Pair().open()
    pair.gateway.close(CloseCode.SHUTTING_DOWN, "bye", 1000)
    pair.clock.advance(4)
    assert pair.gateway.cuts == 0
    pair.clock.advance(3)
    assert pair.gateway.cuts == 1
    assert pair.at_gateway.ends == ["bye"]


def test_an_idle_device_pings_and_a_silent_one_is_given_up() -> None:
    pair = Pair().open()
    pair.clock.advance(102)
    assert pair.device.take() == b"\x01\x01"
    pair.clock.advance(160)
    assert pair.gateway.closed is not None
    assert pair.gateway.closed.code == CloseCode.TIMEOUT
    assert pair.device.closed is not None
    assert pair.device.closed.reason == "nothing was heard for too long"


def test_a_full_carrier_is_told_upward_while_the_link_lasts() -> None:
    pair = Pair().open()
    pair.gateway.full(True)
    pair.gateway.full(False)
    pair.gateway.ended("reset")
    pair.gateway.full(True)
    assert pair.at_gateway.pauses == [True, False]
