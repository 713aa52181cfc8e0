"""Fuzzes the gateway's end of a channel: handshake, checksums and open connection.

About `wire/hop/handshake.py`, `wire/hop/connection.py` and `wire/hop/checksums.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from lasthop.clock import SECOND
from lasthop.wire.hop.frames import (
    Ack,
    Feature,
    Frame,
    Hello,
    LaneFrame,
    Last,
    MessageFrame,
    Ping,
    Welcome,
)
from lasthop.wire.hop.handshake import WAIT_FOR_HELLO, Dialing, Waiting
from lasthop.wire.hop.mapping import Mapping

NOW: Final = 1_800_000_000 * SECOND
WELCOME: Final = Welcome(incarnation=b"12345678", epoch=1, features=Feature.LANES)


class ChannelOutcome(NamedTuple):
    """What the gateway understood, and how the channel ended."""

    hello: Hello | None
    frames: list[Frame]
    error: str | None


def channel(data: bytes) -> None:
    """What a device writes: how many bytes come before the WELCOME, how the rest is cut, and all
    bytes. However the rest is cut, the gateway understands the same. It raises nothing."""
    if len(data) < 3:
        return
    first, piece, data = data[0], 1 + data[1], data[2:]
    whole = _heard(data[:first], data[first:], max(1, len(data)))
    cut = _heard(data[:first], data[first:], piece)
    # Of a write with an error nothing is taken, of several writes those before it.
    frames = (whole.frames, cut.frames[: len(whole.frames)])
    assert frames[0] == frames[1], (whole, cut)
    assert (whole.error is None) == (cut.error is None), (whole, cut)
    if whole.error is None:
        assert whole == cut, (whole, cut)


def _heard(first: bytes, rest: bytes, piece: int) -> ChannelOutcome:
    waiting = Waiting(mapping=Mapping.STREAM, now=NOW)
    hello = waiting.receive(first, NOW)
    if hello is None:
        waiting.timeout(NOW + WAIT_FOR_HELLO)
        assert waiting.closed is not None
        error = None if waiting.error is None else type(waiting.error).__name__
        return ChannelOutcome(None, [], error)
    connection = waiting.welcome(WELCOME, NOW)
    frames: list[Frame] = []
    for at in range(0, len(rest), piece):
        frames += connection.receive(rest[at : at + piece], NOW)
        connection.data_to_send()
    error = None if connection.error is None else type(connection.error).__name__
    while (due := connection.next_timeout()) is not None:
        connection.timeout(due)
    assert connection.closed is not None
    return ChannelOutcome(hello, frames, error)


def channel_seeds() -> Iterator[bytes]:
    for checksums in (False, True):
        features = Feature.LANES if checksums else Feature.NONE
        hello = Hello(app="app", device="phone", token="secret", features=features)
        dialing = Dialing(hello, mapping=Mapping.STREAM, now=NOW, checksums=checksums)
        waiting = Waiting(mapping=Mapping.STREAM, now=NOW)
        said = b"".join(dialing.data_to_send())
        first = len(said)
        yield bytes((first, 7)) + said
        waiting.receive(said, NOW)
        answer = b"".join(waiting.welcome(WELCOME, NOW).data_to_send())
        opened = dialing.receive(answer, NOW)
        assert opened is not None
        device = opened.connection
        message = MessageFrame(0, None, "device:tablet", None, b"hello")
        frames: list[Frame] = [Ping(), message, Ack(0, 0)]
        if features:
            frames += [
                MessageFrame(0, 1, None, None, b"in a lane", lane=3),
                LaneFrame(2, Ack(1, 1)),
                LaneFrame(3, Ack(3, 2, ((5, 6),), ((4, 5),))),
                LaneFrame(3, Last(1)),
            ]
        for frame in frames:
            device.send((frame,), NOW)
            said += b"".join(device.data_to_send())
            yield bytes((first, len(said) % 50)) + said
