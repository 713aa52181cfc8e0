"""Large bodies from devices: who waits for room, and that a body is there for its message."""

from __future__ import annotations

import zlib

import pytest

from lasthop.core.limits import Limits
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    Ending,
    EndStatus,
    Frame,
    Headers,
    MessageFrame,
    Piece,
    Taken,
)
from tests.core.rig import Rig

BODY = b"x" * 2000


@pytest.fixture
def rig() -> Rig:
    return Rig(Limits(uploads=1, segment=1000))


def connect(rig: Rig, name: str) -> int:
    return rig.connect(name, features=int(ALL_FEATURES))


def said(rig: Rig, channel: int, key: int) -> list[Frame]:
    """What a device heard of a body that it wants to send, or sends."""
    return [
        frame
        for frame in rig.sent[channel]
        if isinstance(frame, Taken | Ending) and frame.transfer == key
    ]


def ask(rig: Rig, channel: int, key: int) -> bool:
    """Whether there is room for a body, once it has been asked for."""
    rig.hear(channel, Piece(key, 0, b""))
    return bool(said(rig, channel, key))


def upload(rig: Rig, channel: int, key: int) -> None:
    rig.hear(channel, Piece(key, 0, BODY))
    rig.hear(channel, Ending(key, EndStatus.COMPLETE, len(BODY), zlib.crc32(BODY)))
    last = said(rig, channel, key)[-1]
    assert isinstance(last, Ending)
    assert last.status == EndStatus.CONFIRMED


def send(rig: Rig, channel: int, key: int) -> None:
    """The message that a body came ahead of, to the device itself."""
    headers = Headers(to=f"device:{rig.names[channel]}", ahead=len(BODY))
    rig.hear(channel, MessageFrame(0, key, None, headers, b""))


def test_a_body_that_asked_twice_for_room_is_kept_once(rig: Rig) -> None:
    phone, tablet = connect(rig, "phone"), connect(rig, "tablet")
    assert ask(rig, tablet, 1)
    assert not ask(rig, phone, 7), "there is room for one"
    upload(rig, tablet, 1)
    assert ask(rig, phone, 7), "what is complete takes no room"
    upload(rig, phone, 7)
    send(rig, tablet, 1)  # It is claimed now, so that those who wait are looked at.
    send(rig, phone, 7)
    bodies = [
        message.body for message in rig.store.messages(sorted(rig.store._kept.messages)).values()
    ]
    assert bodies == [BODY, BODY]


def test_who_waits_for_room_hears_when_there_is_some(rig: Rig) -> None:
    phone, tablet = connect(rig, "phone"), connect(rig, "tablet")
    assert ask(rig, tablet, 1)
    assert not ask(rig, phone, 7)
    rig.hear(tablet, Ending(1, EndStatus.ABORTED))
    assert said(rig, phone, 7)


def test_a_message_whose_body_never_came_is_refused(rig: Rig) -> None:
    phone = connect(rig, "phone")
    send(rig, phone, 7)
    (answer,) = rig.messages(phone)
    assert b"has not come ahead of it" in answer.body


def test_the_last_word_about_a_stream_is_said_again_when_its_line_was_lost(rig: Rig) -> None:
    tablet, phone = connect(rig, "tablet"), connect(rig, "phone")
    opening = Headers(to="device:tablet", stream=True)
    rig.hear(phone, MessageFrame(0, 7, None, opening, b""))
    rig.hear(phone, Piece(7, 0, BODY, stream=True))
    joined = [rig.join("phone", features=int(ALL_FEATURES)) for _ in range(2)]
    end = Ending(7, EndStatus.COMPLETE, len(BODY), zlib.crc32(BODY), stream=True)
    rig.hear(phone, end)
    (opened,) = rig.messages(tablet)
    rig.ack(tablet, 1)
    rig.hear(tablet, Taken(opened.key or 0, 0, 1 << 20))
    rig.hear(tablet, Taken(opened.key or 0, len(BODY), 1 << 20))
    rig.hear(tablet, Ending(opened.key or 0, EndStatus.CONFIRMED, stream=True))
    for line in reversed(joined):
        (word,) = [f for f in said(rig, line, 7) if isinstance(f, Ending)]
        assert word.status == EndStatus.CONFIRMED
        rig.lose(line)
    (word,) = [f for f in said(rig, phone, 7) if isinstance(f, Ending)]
    assert word.status == EndStatus.CONFIRMED
