"""Bodies that wait at the gateway until the device asks for them."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from lasthop.clock import SECOND
from lasthop.core.pieces.pump import MOST_OVER
from lasthop.core.pieces.session_transfers import SessionTransfers
from lasthop.core.publishing.submission import Submission
from lasthop.message import Target, TargetKind
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    Credit,
    Ending,
    EndStatus,
    Frame,
    Headers,
    MessageFrame,
    Operation,
    Piece,
    Taken,
)
from lasthop.wire.hop.transfer import CORRUPT
from tests.core.rig import Rig

BODY = b"x" * 200
PHONE = Target(TargetKind.DEVICE, "phone")


@pytest.fixture
def key(rig: Rig) -> int:
    (key,) = rig.publish(Submission(target=PHONE, body=BODY, pull=True))
    return key


@pytest.fixture(autouse=True)
def phone(rig: Rig) -> int:
    return connect(rig)


def connect(rig: Rig, **claims: Any) -> int:
    return rig.connect(features=int(ALL_FEATURES), **claims)


def pull(rig: Rig, channel: int, key: int) -> list[Frame]:
    """Ask for a body, and say that we take it: what comes."""
    headers = Headers(operation=Operation.PULL, in_reply_to=key)
    rig.hear(channel, MessageFrame(0, 1, None, headers, b""))
    rig.hear(channel, Taken(key, 0, 1 << 16))
    return [f for f in rig.sent[channel] if isinstance(f, Piece) and f.body]


def test_a_poke_has_no_body_and_the_device_pulls_it(rig: Rig, phone: int, key: int) -> None:
    rig.run()
    (poke,) = rig.messages(phone)
    assert poke.body == b""
    assert poke.headers is not None
    assert poke.headers.pull == len(BODY)
    assert pull(rig, phone, key) == [Piece(key, 0, BODY)]


def test_it_can_be_pulled_also_when_its_message_is_to_come_once_more(
    rig: Rig, phone: int, key: int
) -> None:
    rig.run()
    rig.lose(phone)
    # The device does not remember the conversation, but it has the message.
    again = connect(rig, window=Credit(0, 0))
    assert rig.messages(again) == []
    assert pull(rig, again, key) == [Piece(key, 0, BODY)]


def test_what_has_never_left_cannot_be_pulled(rig: Rig, phone: int) -> None:
    later = Submission(target=PHONE, body=BODY, pull=True, deliver_after=rig.now + SECOND)
    (key,) = rig.publish(later)
    rig.run()
    assert pull(rig, phone, key) == []
    (refusal,) = rig.messages(phone)
    assert b"there is no such message to pull" in refusal.body


def test_a_gateway_that_has_gone_back_lets_a_device_pull_what_it_already_has(
    rig: Rig, phone: int
) -> None:
    rig.lose(phone)
    (key,) = rig.publish(Submission(target=PHONE, body=BODY, pull=True))
    rig.run()
    # The store was copied now; the device was told of the message, and then the copy came back.
    rig.crash()
    again = connect(rig, window=Credit(0, 0))
    assert rig.messages(again) == []
    assert pull(rig, again, key) == [Piece(key, 0, BODY)]


def endings(rig: Rig, channel: int) -> list[Ending]:
    return [frame for frame in rig.sent[channel] if isinstance(frame, Ending)]


@pytest.fixture
def too_late(rig: Rig, phone: int) -> Ending:
    """The last word about a body whose time was up while the device, with two lines, pulled it."""
    submission = Submission(target=PHONE, body=BODY, pull=True, deliver_before=rig.now + SECOND)
    (key,) = rig.publish(submission)
    rig.run()
    rig.join(received=1, delivered=0, features=int(ALL_FEATURES))
    headers = Headers(operation=Operation.PULL, in_reply_to=key)
    rig.hear(phone, MessageFrame(0, 1, None, headers, b""))
    rig.pass_time(2 * SECOND)
    return Ending(key, EndStatus.ABORTED, reason="deliver_before has passed")


def test_the_last_word_is_said_again_when_a_line_is_gone(
    rig: Rig, phone: int, too_late: Ending
) -> None:
    assert endings(rig, phone + 1) == [too_late]
    rig.lose(phone + 1)
    assert endings(rig, phone) == [too_late]


def test_a_last_word_that_was_heard_is_not_said_again(
    rig: Rig, phone: int, too_late: Ending
) -> None:
    rig.hear(phone, Ending(too_late.transfer, EndStatus.CONFIRMED))
    rig.lose(phone + 1)
    assert endings(rig, phone) == []
    (session,) = rig.gateway.deliveries.sessions()
    (under_way,) = session.parts
    assert isinstance(under_way, SessionTransfers)
    assert not under_way.over
    assert not under_way.told


def test_a_last_word_to_a_device_that_lost_its_line_waits_to_be_asked_for(
    rig: Rig, phone: int, too_late: Ending
) -> None:
    rig.lose(phone)
    rig.lose(phone + 1)
    again = rig.resume(received=1, delivered=0, features=int(ALL_FEATURES))
    assert endings(rig, again) == []
    rig.hear(again, Taken(too_late.transfer, 0, 1 << 16))
    assert endings(rig, again) == [too_late]


def test_on_a_channel_that_loses_frames_the_last_word_is_said_until_it_is_heard(
    rig: Rig, phone: int
) -> None:
    rig.lose(phone)
    lossy = connect(rig, reliable=False)
    rig.hear(lossy, Taken(77, 0, 1 << 16))
    over = Ending(77, EndStatus.ABORTED, reason="it is over here")
    assert endings(rig, lossy) == [over]
    rig.pass_time(3 * SECOND)
    assert endings(rig, lossy) == [over, over]
    rig.hear(lossy, Ending(77, EndStatus.CONFIRMED))
    rig.pass_time(10 * SECOND)
    assert endings(rig, lossy) == [over, over]


def test_a_device_that_confirms_nothing_is_answered_and_not_remembered(
    rig: Rig, phone: int
) -> None:
    asked = range(1, 2 * MOST_OVER)
    rig.hear(phone, *(Taken(key, 0, 1 << 16) for key in asked))
    assert {ending.transfer for ending in endings(rig, phone)} == set(asked)
    (session,) = rig.gateway.deliveries.sessions()
    (under_way,) = session.parts
    assert isinstance(under_way, SessionTransfers)
    assert len(under_way.over) == MOST_OVER


def test_a_device_with_more_than_there_is_has_another_body_and_lets_go_of_it(
    rig: Rig, phone: int, key: int
) -> None:
    """The gateway went back to an older copy of its store, and gave the same key once more."""
    rig.run()
    rig.hear(phone, Taken(key, len(BODY) + 1, 1 << 16))
    rig.hear(phone, Taken(key, len(BODY) + 1, 1 << 16))
    end = Ending(key, EndStatus.COMPLETE, len(BODY), zlib.crc32(BODY))
    assert endings(rig, phone) == [end]
    rig.hear(phone, Ending(key, EndStatus.STOPPED, reason=CORRUPT))
    assert not rig.disconnected
    assert pull(rig, phone, key) == [Piece(key, 0, BODY)]
