"""What one device may send, and what it cannot do to the mailboxes of others.

About `core/rights/`.
"""

from __future__ import annotations

import json

import pytest

from lasthop.clock import SECOND
from lasthop.core.limits import Limits
from lasthop.core.quota import Rate
from lasthop.errors import QuotaExceeded
from lasthop.wire.hop.frames import ERROR_TYPE, Headers, MessageFrame, Operation
from tests.core.rig import APP, Rig, publication, to


def waiting(rig: Rig, name: str) -> int:
    return len(rig.gateway.deliveries.named(APP, name).mailbox)


def codes(rig: Rig, channel: int) -> list[str]:
    return [
        json.loads(frame.body)["code"]
        for frame in rig.messages(channel)
        if frame.headers is not None and frame.headers.content_type == ERROR_TYPE
    ]


def flood(rig: Rig, channel: int, count: int, target: str, first: int = 0) -> None:
    """Send so many messages at once, in bundles that the window allows, and take what comes."""
    for start in range(first, first + count, 500):
        frames = [publication(seq, target=target) for seq in range(start, start + 500)]
        rig.hear(channel, *frames[: first + count - start])
    taken = -1
    while taken != len(rig.messages(channel)):
        taken = len(rig.messages(channel))
        rig.ack(channel, taken)


def test_a_phone_that_broadcasts_does_not_keep_publishers_from_others() -> None:
    """It subscribes to everything and broadcasts 3,000 messages in a second."""
    rig = Rig(Limits(open_per_device=1000))
    rig.lose(rig.connect("tablet"))
    phone = rig.connect()
    rig.hear(phone, MessageFrame(0, 77, "#", Headers(operation=Operation.SUBSCRIBE), b""))
    flood(rig, phone, 3000, "app:", first=1)
    assert waiting(rig, "tablet") == 900
    flood(rig, phone, 1, "device:tablet", first=3001)
    assert codes(rig, phone)[-1:] == ["quota_exceeded"]
    for _ in range(100):
        rig.publish(to("tablet"))
    assert waiting(rig, "tablet") == 1000
    with pytest.raises(QuotaExceeded, match="limit=1000"):
        rig.publish(to("tablet"))


def test_a_device_is_refused_what_is_above_its_quota() -> None:
    rig = Rig(device_messages=Rate(per_second=100, burst=1000))
    rig.lose(rig.connect("tablet"))
    phone = rig.connect()
    flood(rig, phone, 3000, "app:")
    assert waiting(rig, "tablet") == 1000
    assert set(codes(rig, phone)) == {"quota_exceeded"}
    rig.now += SECOND
    flood(rig, phone, 200, "app:", first=3000)
    assert waiting(rig, "tablet") == 1100


def test_one_device_does_not_use_the_quota_of_another() -> None:
    rig = Rig(device_messages=Rate(per_second=1, burst=1))
    tablet = rig.connect("tablet")
    for name in ("one", "two"):
        flood(rig, rig.connect(name), 2, "device:tablet")
    assert len(rig.bodies(tablet)) == 2


def test_subscriptions_and_acknowledgements_are_not_counted() -> None:
    rig = Rig(device_messages=Rate(per_second=1, burst=1))
    phone = rig.connect()
    for seq in range(5):
        subscribe = Headers(operation=Operation.SUBSCRIBE)
        rig.hear(phone, MessageFrame(seq, None, f"topic-{seq}", subscribe, b""))
    assert codes(rig, phone) == []
