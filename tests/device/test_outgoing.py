"""What a device promises about messages that it sends, frame by frame."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lasthop.device.message import Refusal
from lasthop.device.outbox import PRUNE
from lasthop.device.outgoing import frame_size
from lasthop.device.session_events import MessageAccepted, MessageSent, Refused
from lasthop.errors import Overloaded, TooLarge
from lasthop.message import Reliability
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import Ack, Credit, Frame, Headers, MessageFrame, Skip
from lasthop.wire.hop.mapping import Mapping
from tests.device.peer import NOW, TERMS, Peer

TO = Headers(to="device:x")


def queue(peer: Peer, *bodies: str) -> list[int]:
    return [peer.session.queue(NOW, headers=TO, body=body.encode()) for body in bodies]


def sent(frames: list[Frame]) -> list[tuple[int | None, str]]:
    return [(f.seq, f.body.decode()) for f in frames if isinstance(f, MessageFrame)]


def welcomed() -> Peer:
    peer = Peer()
    assert peer.welcome()
    peer.said()
    return peer


def test_a_message_leaves_only_when_it_is_durable() -> None:
    peer = welcomed()
    queue(peer, "a")
    assert peer.session.frames() == []
    peer.commit()
    assert sent(peer.session.frames()) == [(0, "a")]
    assert [row.frame.body for row in peer.inbox.load().outbox] == [b"a"]


def test_messages_wait_for_a_channel() -> None:
    peer = Peer()
    queue(peer, "a", "b")
    assert peer.said() == []
    assert peer.session.waiting == 2
    assert peer.welcome()
    assert sent(peer.said()) == [(0, "a"), (1, "b")]


def test_what_was_not_acknowledged_is_sent_again() -> None:
    peer = welcomed()
    queue(peer, "a", "b", "c")
    peer.said()
    peer.session.lost()
    assert peer.welcome(received=1)
    assert sent(peer.said()) == [(1, "b"), (2, "c")]


def test_the_outbox_survives_a_crash() -> None:
    peer = welcomed()
    queue(peer, "a", "b")
    peer.said()
    peer.crash()
    assert peer.session.waiting == 2
    assert peer.welcome(received=1)
    assert sent(peer.said()) == [(1, "b")]
    queue(peer, "c")
    assert sent(peer.said()) == [(2, "c")]


def test_the_fate_of_a_message_is_told() -> None:
    peer = welcomed()
    (key,) = queue(peer, "a")
    peer.said()
    assert peer.session.session_events() == [MessageSent(key)]
    peer.arrive(Ack(1, 1))
    assert peer.session.session_events() == [MessageAccepted(key)]
    assert peer.session.waiting == 0


def test_acknowledged_messages_are_removed_with_the_next_change() -> None:
    peer = welcomed()
    queue(peer, "a")
    peer.said()
    peer.arrive(Ack(1, 1))
    assert not peer.commit()
    assert len(peer.inbox.load().outbox) == 1
    queue(peer, "b")
    peer.commit()
    assert [row.frame.body for row in peer.inbox.load().outbox] == [b"b"]


def test_many_acknowledged_messages_are_worth_a_change_of_their_own() -> None:
    peer = Peer()
    peer.welcome(window=Credit(1000, 10**6))
    peer.said()
    queue(peer, *map(str, range(PRUNE)))
    peer.said()
    peer.arrive(Ack(PRUNE, PRUNE))
    assert peer.commit()
    assert peer.inbox.load().outbox == []


def test_a_flush_removes_what_was_put_off() -> None:
    peer = welcomed()
    queue(peer, "a")
    peer.said()
    peer.arrive(Ack(1, 1))
    change = peer.session.change(flush=True)
    assert change is not None
    peer.inbox.apply(change)
    assert peer.inbox.load().outbox == []


def test_what_was_acknowledged_individually_is_not_sent_again() -> None:
    peer = welcomed()
    queue(peer, "a", "b", "c")
    peer.said()
    assert peer.welcome(received=0, individual=((1, 2),))
    assert sent(peer.said()) == [(0, "a"), (2, "c")]


def test_a_gateway_that_lost_what_we_no_longer_have_is_told_not_to_wait() -> None:
    peer = welcomed()
    queue(peer, "a", "b", "c", "d")
    peer.said()
    peer.arrive(Ack(3, 3))
    peer.session.lost()
    assert peer.welcome(received=1)
    frames = peer.said()
    assert frames[0] == Skip(1, 2)
    assert sent(frames) == [(3, "d")]
    peer.arrive(Ack(4, 4))
    assert peer.session.waiting == 0


def test_a_long_skip_comes_in_steps_that_a_gateway_believes() -> None:
    peer = Peer()
    peer.welcome(window=Credit(1024, 10**6))
    for start in range(0, 10_000, 1000):
        queue(peer, *map(str, range(start, start + 1000)))
        peer.said()
        peer.arrive(Ack(start + 1000, start + 1000))
    assert peer.welcome(received=500)
    assert peer.said() == [Skip(500, 4096), Skip(4596, 4096), Skip(8692, 1308)]


def test_a_new_epoch_numbers_the_outbox_anew_without_what_the_gateway_has() -> None:
    peer = welcomed()
    keys = queue(peer, "a", "b", "c")
    peer.said()
    peer.session.session_events()
    assert peer.welcome(epoch=2, superseded=2)
    assert peer.session.frames() == []
    assert sent(peer.said()) == [(0, "c")]
    assert peer.session.session_events() == [
        MessageSent(keys[2]),
        MessageAccepted(keys[0]),
        MessageAccepted(keys[1]),
    ]
    peer.crash()
    assert peer.welcome(epoch=2)
    assert sent(peer.said()) == [(0, "c")]


def test_a_new_epoch_keeps_everything_when_the_gateway_knows_nothing() -> None:
    peer = welcomed()
    queue(peer, "a", "b")
    peer.said()
    peer.arrive(Ack(1, 1))
    assert peer.welcome(epoch=2, superseded=None)
    assert sent(peer.said()) == [(0, "b")]


def test_a_superseded_count_of_another_life_drops_nothing() -> None:
    peer = welcomed()
    queue(peer, "a")
    peer.said()
    assert peer.welcome(epoch=2, superseded=9)
    assert sent(peer.said()) == [(0, "a")]


# Credit.


def test_no_more_messages_are_under_way_than_the_gateway_allows() -> None:
    peer = Peer()
    peer.welcome(window=Credit(2, 10**6))
    queue(peer, "a", "b", "c", "d")
    assert sent(peer.said()) == [(0, "a"), (1, "b")]
    peer.arrive(Ack(1, 1))
    assert sent(peer.said()) == [(2, "c")]
    peer.arrive(Credit(5, 10**6))
    assert sent(peer.said()) == [(3, "d")]


def test_no_more_bytes_are_under_way_than_the_gateway_allows() -> None:
    peer = Peer()
    peer.welcome(window=Credit(10, 100))
    queue(peer, "a" * 60, "b" * 60, "c" * 200)
    assert [seq for seq, _ in sent(peer.said())] == [0]
    peer.arrive(Ack(1, 1))
    assert [seq for seq, _ in sent(peer.said())] == [1]
    peer.arrive(Ack(2, 2))
    assert [seq for seq, _ in sent(peer.said())] == [2]


def test_a_pause_holds_everything_back() -> None:
    peer = welcomed()
    peer.arrive(Credit(0, 0))
    queue(peer, "a")
    assert peer.said() == []
    peer.arrive(Credit(1, 1))
    assert sent(peer.said()) == [(0, "a")]


def test_without_room_on_the_link_messages_wait() -> None:
    peer = welcomed()
    queue(peer, "a")
    peer.commit()
    assert peer.session.frames(room=False) == []
    assert sent(peer.session.frames()) == [(0, "a")]


def test_a_budget_cuts_frames_short() -> None:
    peer = welcomed()
    queue(peer, "a" * 500, "b" * 500, "c" * 500)
    peer.commit()
    assert [seq for seq, _ in sent(peer.session.frames(budget=1000))] == [0, 1]
    assert peer.session.more
    assert [seq for seq, _ in sent(peer.session.frames(budget=1000))] == [2]
    assert not peer.session.more


# Best effort.


def test_a_best_effort_message_is_neither_stored_nor_numbered() -> None:
    peer = welcomed()
    headers = replace(TO, reliability=Reliability.BEST_EFFORT)
    key = peer.session.queue(NOW, headers=headers, body=b"now")
    assert not peer.commit()
    assert sent(peer.session.frames()) == [(None, "now")]
    assert peer.session.session_events() == [MessageSent(key)]
    assert peer.session.frames() == []


# Limits.


def test_a_message_that_no_frame_holds_is_refused() -> None:
    peer = welcomed()
    with pytest.raises(TooLarge) as caught:
        queue(peer, "x" * (2**20 + 2**10))
    assert str(caught.value).startswith("the message is larger than a frame may be (size=")
    assert peer.said() == []


def test_a_full_outbox_refuses_by_count() -> None:
    peer = Peer(replace(TERMS, outbox_messages=2))
    queue(peer, "a", "b")
    with pytest.raises(Overloaded) as caught:
        queue(peer, "c")
    assert str(caught.value) == f"the outbox is full (messages=2, bytes={2 * (65 + 100 + 12)})"
    assert caught.value.retry_after == 60


def test_a_full_outbox_refuses_by_bytes() -> None:
    peer = Peer(replace(TERMS, outbox_bytes=1000))
    queue(peer, "a" * 500)
    with pytest.raises(Overloaded, match="the outbox is full"):
        queue(peer, "b" * 500)
    queue(peer, "c" * 100)


def test_a_message_above_what_this_gateway_takes_is_refused_and_skipped() -> None:
    peer = Peer()
    large, _ = queue(peer, "x" * 9000, "b")
    peer.welcome(max_frame=8192)
    frames = peer.said()
    assert frames[0] == Skip(0, 1)
    assert sent(frames) == [(1, "b")]
    detail = "the gateway takes frames of 8192 bytes"
    assert Refused(large, Refusal("too_large", detail)) in peer.session.session_events()
    peer.said()
    assert peer.welcome(max_frame=8192)
    assert peer.said()[0] == Skip(0, 1)
    peer.arrive(Ack(2, 2))
    assert peer.session.waiting == 0


@pytest.mark.parametrize(
    "headers",
    [
        None,
        TO,
        Headers(
            content_type="application/x-something-long; with=parameters",
            priority=9,
            deliver_within=10**12,
            in_reply_to=2**62,
            reply_within=10**12,
            operation=4,
            title="a title with an ä",
            rank=1.5,
            source="device:someone",
            to="user:someone-else",
            redelivered=True,
            extra=(("name", "value"), ("x" * 300, "y" * 300)),
            queue="queue",
            correlation=2**62,
        ),
    ],
)
def test_the_size_of_a_frame_is_not_underestimated(headers: Headers | None) -> None:
    frame = MessageFrame(2**62, 2**62, "topic.ü" * 20, headers, b"body")
    out = bytearray()
    Encoder(Mapping.UNORDERED).encode(frame, out)
    assert len(out) <= frame_size(frame) <= len(out) + 400


def test_a_skip_that_went_with_one_of_several_channels_is_sent_again() -> None:
    """The gateway is an older copy of itself, and waits for what this device no longer has."""
    peer = welcomed()
    queue(peer, "a", "b")
    peer.said()
    peer.session.received([Ack(2, 2)], NOW)
    peer.said()
    queue(peer, "c")
    peer.session.lost()
    assert peer.welcome(received=0)
    assert Skip(0, 2) in peer.said()
    peer.session.rerouted()
    again = peer.said()
    assert Skip(0, 2) in again
    assert sent(again) == [(2, "c")]
