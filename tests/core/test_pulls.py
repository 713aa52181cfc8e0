"""Bodies that wait at the gateway until the device asks for them."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.clock import SECOND
from lasthop.core.acceptance import Submission
from lasthop.message import Target, TargetKind
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    Credit,
    Frame,
    Headers,
    MessageFrame,
    Operation,
    Piece,
    Taken,
)
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
