"""What a device promises about messages that come, frame by frame."""

from __future__ import annotations

import zlib

import pytest
from msgspec.structs import replace

from lasthop.clock import SECOND
from lasthop.device.message import Refusal
from lasthop.device.requests.expectation import Expectation
from lasthop.device.session import DeviceSession
from lasthop.device.session_events import Lapsed, Refused, RequestAnswered
from lasthop.device.terms import DeviceTerms
from lasthop.errors import HopError, MalformedFrame, OutOfOrder
from lasthop.message import Reliability
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    ERROR_TYPE,
    Ack,
    Credit,
    Dropped,
    Ending,
    EndStatus,
    Headers,
    MessageFrame,
    Operation,
    Piece,
    Skip,
    Taken,
    Welcome,
)
from tests.device.peer import INCARNATION, KEY, NOW, TERMS, Peer, frame

SOON = Headers(deliver_within=1000)
LATER = NOW + SECOND


def welcomed(terms: DeviceTerms = TERMS) -> Peer:
    peer = Peer(terms)
    assert peer.welcome()
    assert peer.said() == []
    return peer


def test_a_new_device_claims_nothing() -> None:
    hello = Peer().session.hello(link="wifi", network="home")
    assert (hello.incarnation, hello.epoch, hello.received) == (None, None, 0)
    assert (hello.app, hello.device, hello.link, hello.network) == ("shop", "phone", "wifi", "home")


def test_received_is_acknowledged_only_after_the_commit_that_stores_it() -> None:
    peer = welcomed()
    peer.arrive(frame(0))
    assert peer.session.frames() == []
    peer.commit()
    assert peer.session.frames() == [Ack(1, 0)]


def test_delivered_is_acknowledged_only_after_the_commit_that_finishes_it() -> None:
    peer = welcomed()
    peer.arrive(frame(0))
    peer.said()
    assert peer.take() == ["m0"]
    assert peer.session.frames() == []
    peer.commit()
    assert peer.session.frames() == [Ack(1, 1)]


def test_one_acknowledgement_covers_all_that_came_together() -> None:
    peer = welcomed()
    peer.arrive(*(frame(seq) for seq in range(20)))
    assert peer.said() == [Ack(20, 0)]
    assert peer.said() == []


def test_a_message_is_not_handed_over_before_it_is_stored() -> None:
    peer = welcomed()
    peer.arrive(frame(0))
    assert peer.ready() == []
    peer.commit()
    assert [message.text for message in peer.ready()] == ["m0"]


def test_what_arrived_beyond_a_gap_waits_and_is_acknowledged_individually() -> None:
    peer = welcomed()
    peer.arrive(frame(1), frame(2))
    assert peer.said() == [Ack(0, 0, ((1, 3),))]
    assert peer.take() == []
    peer.arrive(frame(0))
    assert peer.said() == [Ack(3, 0)]
    assert peer.take() == ["m0", "m1", "m2"]


def test_a_gap_survives_a_crash() -> None:
    peer = welcomed()
    peer.arrive(frame(0), frame(2))
    peer.said()
    peer.crash()
    assert peer.welcome()
    assert peer.hello is not None
    assert (peer.hello.received, peer.hello.individual) == (1, ((2, 3),))
    assert peer.take() == ["m0"]
    peer.arrive(frame(1))
    assert peer.said() == [Ack(3, 1)]
    assert peer.take() == ["m1", "m2"]


def test_a_duplicate_is_acknowledged_again_and_not_handed_over_again() -> None:
    peer = welcomed()
    peer.arrive(frame(0))
    peer.said()
    peer.take()
    assert peer.said() == [Ack(1, 1)]
    peer.arrive(frame(0))
    assert peer.said() == [Ack(1, 1)]
    assert peer.take() == []


def test_a_skip_closes_a_gap() -> None:
    peer = welcomed()
    peer.arrive(frame(0), frame(2), Skip(1))
    peer.said()
    assert peer.take() == ["m0", "m2"]
    assert peer.said() == [Ack(3, 3)]


def test_a_skip_takes_back_what_waits_beyond_a_gap() -> None:
    peer = welcomed()
    peer.arrive(frame(1), frame(2))
    peer.said()
    peer.arrive(Skip(1), frame(0))
    peer.said()
    assert peer.take() == ["m0", "m2"]
    peer.said()
    assert peer.inbox.load().inbox == []
    assert peer.session.held == 0


def test_numbers_below_closed_are_not_waited_for() -> None:
    peer = welcomed()
    peer.arrive(frame(2))
    peer.said()
    assert peer.welcome(closed=2)
    peer.said()
    assert peer.take() == ["m2"]


def test_an_impossible_number_is_the_gateways_fault() -> None:
    peer = welcomed()
    with pytest.raises(OutOfOrder, match="a number is too far ahead"):
        peer.arrive(frame(5000))


def test_an_acknowledgement_of_what_was_never_sent_is_the_gateways_fault() -> None:
    peer = welcomed()
    with pytest.raises(OutOfOrder, match="never sent"):
        peer.arrive(Ack(1, 1))


def test_a_welcome_that_resumes_something_else_is_the_gateways_fault() -> None:
    session = DeviceSession(TERMS, Peer().inbox.load())
    welcome = Welcome(incarnation=INCARNATION, epoch=1, resumed=True)
    with pytest.raises(HopError, match="resumes an epoch that was not claimed"):
        session.welcomed(session.hello(), welcome, NOW)


# Deadlines.


def test_a_message_that_comes_late_is_dropped_before_it_is_acknowledged() -> None:
    peer = welcomed()
    peer.arrive(frame(0), frame(1, headers=SOON), frame(2), now=LATER)
    assert peer.said() == [Dropped(((1, 2),)), Ack(3, 0)]
    assert peer.take() == ["m0", "m2"]
    (lapsed,) = peer.session.session_events()
    assert isinstance(lapsed, Lapsed)
    assert lapsed.message.text == "m1"


def test_a_message_whose_turn_comes_late_is_dropped() -> None:
    peer = welcomed()
    peer.arrive(frame(0, headers=SOON))
    assert peer.said() == [Ack(1, 0)]
    assert peer.take(LATER) == []
    assert peer.said() == [Dropped(((0, 1),)), Ack(1, 1)]


def test_a_message_that_the_application_left_lying_is_dropped() -> None:
    peer = welcomed()
    peer.arrive(frame(0, headers=SOON))
    peer.said()
    (message,) = peer.ready()
    peer.session.lapsed(message)
    assert peer.said() == [Dropped(((0, 1),)), Ack(1, 1)]
    peer.session.finished(message)
    peer.session.lapsed(message)
    assert peer.said() == []


def test_what_comes_again_under_another_number_is_finished_under_that_one() -> None:
    peer = welcomed()
    first = frame(0, headers=SOON)
    peer.arrive(first)
    assert peer.said() == [Ack(1, 0)]
    # The gateway has taken it back, and gives it once more.
    peer.arrive(replace(first, seq=1))
    assert peer.said() == [Ack(2, 1)]
    assert peer.take(LATER) == []
    assert peer.said() == [Dropped(((1, 2),)), Ack(2, 2)]


def test_the_later_number_survives_a_crash() -> None:
    peer = welcomed()
    first = frame(0, headers=SOON)
    peer.arrive(first)
    peer.said()
    peer.arrive(replace(first, seq=1))
    peer.said()
    peer.crash()
    assert peer.take(LATER) == []
    assert peer.commit()
    assert peer.session.hello().dropped == ((1, 2),)


def test_what_was_dropped_is_said_in_hello_until_a_welcome_shows_that_it_was_heard() -> None:
    peer = welcomed()
    peer.arrive(frame(0, headers=SOON), now=LATER)
    peer.said()
    peer.session.lost()
    assert peer.session.hello().dropped == ((0, 1),)
    peer.crash()
    assert peer.session.hello().dropped == ((0, 1),)
    assert peer.welcome()
    peer.said()
    peer.session.lost()
    assert peer.session.hello().dropped == ()


def test_what_is_dropped_while_nobody_listens_is_said_in_hello() -> None:
    peer = welcomed()
    peer.arrive(frame(0, headers=SOON), frame(1, headers=SOON))
    peer.said()
    peer.session.lost()
    peer.take(LATER)
    peer.commit()
    assert peer.welcome()
    assert peer.hello is not None
    assert (peer.hello.dropped, peer.hello.delivered) == (((0, 2),), 2)
    assert peer.said() == []


def test_a_dropped_message_is_dropped_again_in_a_new_epoch() -> None:
    peer = welcomed()
    peer.arrive(frame(0, headers=SOON), now=LATER)
    peer.said()
    assert peer.welcome(epoch=2)
    peer.said()
    peer.arrive(frame(0, headers=SOON), now=LATER)
    assert peer.said() == [Dropped(((0, 1),)), Ack(1, 1)]


def test_no_more_ranges_are_remembered_as_dropped_than_a_hello_takes() -> None:
    peer = welcomed()
    for start in range(0, 1200, 100):
        frames = (
            frame(seq, headers=SOON if seq % 2 else None) for seq in range(start, start + 100)
        )
        peer.arrive(*frames, now=LATER)
        peer.said()
        peer.take(LATER)
        peer.said()
    peer.session.lost()
    dropped = peer.session.hello().dropped
    assert len(dropped) == 256
    assert dropped[-1] == (1199, 1200)


# New epochs.


def test_a_message_is_recognised_by_its_key_in_a_new_epoch() -> None:
    peer = welcomed()
    peer.arrive(frame(0), frame(1))
    peer.said()
    peer.take()
    peer.said()
    assert peer.welcome(epoch=2)
    peer.arrive(frame(0, key=KEY + 1), frame(1, key=KEY + 9))
    assert peer.said() == [Ack(2, 1)]
    assert peer.take() == ["m1"]


def test_nothing_is_said_in_a_new_epoch_before_it_is_durable() -> None:
    peer = Peer()
    assert peer.welcome()
    peer.arrive(frame(0))
    assert peer.session.frames() == []
    peer.commit()
    assert peer.session.frames() == [Ack(1, 0)]
    assert peer.inbox.load().state.epoch == 1


def test_a_message_that_still_waits_takes_over_its_new_number() -> None:
    peer = welcomed()
    peer.arrive(frame(0), frame(1))
    peer.said()
    assert peer.welcome(epoch=2)
    peer.arrive(frame(0, key=KEY), frame(1, key=KEY + 1), frame(2, "new", key=KEY + 7))
    assert peer.said() == [Ack(3, 0)]
    assert peer.take() == ["m0", "m1", "new"]
    assert peer.said() == [Ack(3, 3)]


def test_the_new_number_of_a_waiting_message_survives_a_crash() -> None:
    peer = welcomed()
    peer.arrive(frame(0))
    peer.said()
    assert peer.welcome(epoch=2)
    peer.arrive(frame(0, key=KEY))
    peer.said()
    peer.crash()
    assert peer.welcome(epoch=2)
    assert peer.hello is not None
    assert (peer.hello.received, peer.hello.delivered) == (1, 0)
    assert peer.take() == ["m0"]
    assert peer.said() == [Ack(1, 1)]


def test_what_waits_beyond_a_gap_comes_again_in_its_place_when_the_epoch_ends() -> None:
    peer = welcomed()
    peer.arrive(frame(1))
    peer.said()
    assert peer.welcome(epoch=2)
    peer.arrive(frame(0, key=KEY), frame(1, key=KEY + 1))
    peer.said()
    assert peer.take() == ["m0", "m1"]
    assert peer.said() == [Ack(2, 2)]


def test_what_waits_beyond_a_gap_is_handed_over_when_another_gateway_answers() -> None:
    peer = welcomed()
    peer.arrive(frame(1))
    peer.said()
    assert peer.welcome(epoch=1, incarnation=b"stranger")
    peer.said()
    assert peer.take() == ["m1"]


def test_a_skip_beyond_a_gap_is_acknowledged_only_as_it_survives_a_crash() -> None:
    peer = welcomed()
    peer.arrive(Skip(2))
    assert peer.said() == [Ack(0, 0, ((2, 3),))]
    peer.crash()
    assert peer.session.hello().individual == ((2, 3),)
    assert peer.welcome()
    peer.arrive(frame(0), frame(1))
    assert peer.said() == [Ack(3, 0)]


def test_what_was_finished_before_a_gap_stays_so_across_a_crash() -> None:
    peer = welcomed()
    peer.arrive(frame(0), frame(2))
    peer.said()
    assert peer.take() == ["m0"]
    peer.said()
    peer.crash()
    assert peer.welcome()
    assert peer.session.hello().delivered == 1
    peer.arrive(frame(1))
    peer.said()
    assert peer.take() == ["m1", "m2"]
    assert peer.said() == [Ack(3, 3)]


def test_a_drop_while_the_hello_is_on_its_way_is_told_after_the_welcome() -> None:
    peer = welcomed()
    peer.arrive(frame(0, headers=SOON))
    peer.said()
    hello = peer.session.hello()
    assert peer.ready(LATER) == []
    peer.said()
    answer = Welcome(incarnation=INCARNATION, epoch=1, resumed=True, closed=1)
    assert peer.session.welcomed(hello, answer, LATER)
    assert peer.said() == [Dropped(((0, 1),)), Ack(1, 1)]
    assert peer.session.hello().dropped == ((0, 1),)


def test_on_a_channel_that_loses_frames_a_drop_goes_with_every_acknowledgement() -> None:
    peer = Peer()
    hello = peer.session.hello()
    answer = Welcome(incarnation=INCARNATION, epoch=1)
    assert peer.session.welcomed(hello, answer, NOW, reliable=False)
    peer.arrive(frame(0, headers=SOON), now=LATER)
    assert peer.said() == [Dropped(((0, 1),)), Ack(1, 1)]
    peer.arrive(frame(1), now=LATER)
    assert peer.said() == [Dropped(((0, 1),)), Ack(2, 1)]


def test_how_far_a_whole_body_is_said_again_when_a_channel_takes_the_answer_along() -> None:
    peer = Peer()
    answer = Welcome(incarnation=INCARNATION, epoch=1, features=ALL_FEATURES)
    assert peer.session.welcomed(peer.session.hello(), answer, NOW)
    body = b"x" * 300
    peer.arrive(Piece(7, 0, body), Ending(7, EndStatus.COMPLETE, len(body), zlib.crc32(body)))
    assert Ending(7, EndStatus.CONFIRMED) in peer.said()
    peer.arrive(Piece(7, 0, b""))  # The gateway asks, over one channel, after another has ended.
    assert [frame.offset for frame in peer.said() if isinstance(frame, Taken)] == [300]
    peer.session.rerouted()
    said = peer.said()
    assert [frame.offset for frame in said if isinstance(frame, Taken)] == [300]
    assert Ending(7, EndStatus.CONFIRMED) in said


def test_over_several_channels_a_drop_goes_with_every_acknowledgement() -> None:
    peer = welcomed()
    peer.arrive(frame(0, headers=SOON), now=LATER)
    assert peer.said() == [Dropped(((0, 1),)), Ack(1, 1)]
    hello = peer.session.joining()
    assert hello is not None
    granted = Welcome(incarnation=INCARNATION, epoch=1, resumed=True, joined=True)
    assert peer.session.joined(hello, granted)
    peer.arrive(frame(1), now=LATER)
    # Over the new channel it may overtake what was said before over the old one.
    assert peer.said() == [Dropped(((0, 1),)), Ack(2, 1)]


def test_a_message_without_a_key_is_finished_under_its_old_number_only() -> None:
    peer = welcomed()
    peer.arrive(replace(frame(0), key=None))
    peer.said()
    (message,) = peer.ready()
    assert message.id == "0000000000000000"
    assert peer.welcome(epoch=2)
    peer.session.finished(message)
    assert peer.said() == []
    assert peer.session.held == 0


def test_a_gateway_with_numbers_that_we_never_used_is_dialled_again_without_claims() -> None:
    peer = welcomed()
    peer.arrive(frame(0))
    peer.said()
    assert not peer.welcome(received=5)
    peer.commit()
    hello = peer.session.hello()
    assert (hello.incarnation, hello.epoch) == (None, None)
    assert peer.welcome(epoch=2)
    peer.said()
    assert peer.take() == ["m0"]


def test_the_device_does_not_dial_before_what_arrived_is_durable() -> None:
    peer = welcomed()
    peer.arrive(frame(0))
    with pytest.raises(ValueError, match="cannot dial again while a change is not durable"):
        peer.session.hello()


# Redelivery.


def test_only_what_may_have_been_seen_is_called_redelivered() -> None:
    peer = welcomed(replace(TERMS, prefetch=2))
    peer.arrive(*(frame(seq) for seq in range(4)))
    peer.said()
    assert [message.redelivered for message in peer.ready()] == [False, False]
    peer.crash()
    messages = peer.ready()
    assert [message.redelivered for message in messages] == [True, True]
    peer.session.finished(*messages)
    peer.commit()
    assert [message.redelivered for message in peer.ready()] == [False, False]


def test_the_gateways_word_that_a_message_is_redelivered_is_passed_on() -> None:
    peer = welcomed()
    peer.arrive(frame(0, headers=Headers(redelivered=True)))
    peer.said()
    assert peer.ready()[0].redelivered


def test_messages_may_be_finished_in_any_order() -> None:
    peer = welcomed()
    peer.arrive(*(frame(seq) for seq in range(4)))
    peer.said()
    _, second, third, _ = peer.ready()
    peer.session.finished(second, third)
    assert peer.said() == []
    peer.crash()
    assert [message.text for message in peer.ready()] == ["m0", "m3"]
    assert peer.welcome()
    assert peer.hello is not None
    assert peer.hello.delivered == 0


def test_what_was_finished_out_of_order_is_delivered_when_the_first_is() -> None:
    peer = welcomed()
    peer.arrive(*(frame(seq) for seq in range(3)))
    peer.said()
    _, second, third = peer.ready()
    peer.session.finished(second, third)
    peer.said()
    peer.crash()
    assert peer.welcome()
    assert peer.take() == ["m0"]
    assert peer.said() == [Ack(3, 3)]


# Best effort.


def test_a_best_effort_message_is_handed_over_and_not_acknowledged() -> None:
    peer = welcomed()
    peer.arrive(frame(None, "now", headers=Headers(reliability=Reliability.BEST_EFFORT)))
    assert peer.take() == ["now"]
    assert peer.said() == []


def test_a_late_best_effort_message_is_dropped() -> None:
    peer = welcomed()
    peer.arrive(frame(None, "late", headers=SOON))
    assert peer.take(LATER) == []
    assert peer.said() == []


def test_best_effort_messages_beyond_the_window_are_let_go() -> None:
    peer = welcomed(replace(TERMS, window=Credit(2, 1000)))
    peer.arrive(*(frame(None, str(number)) for number in range(5)))
    assert peer.take() == ["0", "1"]


# Answers.


def test_an_error_reply_is_told_and_not_handed_over() -> None:
    peer = welcomed()
    headers = Headers(content_type=ERROR_TYPE, in_reply_to=77)
    peer.arrive(frame(0, '{"code":"not_found","detail":"no such device"}', headers=headers))
    assert peer.said() == [Ack(1, 1)]
    assert peer.take() == []
    assert peer.session.session_events() == [Refused(77, Refusal("not_found", "no such device"))]


def test_an_error_reply_that_makes_no_sense_is_told_as_it_is() -> None:
    peer = welcomed()
    peer.arrive(frame(0, "oops", headers=Headers(content_type=ERROR_TYPE, in_reply_to=77)))
    assert peer.session.session_events() == [Refused(77, Refusal("unknown", "oops"))]


def test_an_expected_answer_does_not_wait_for_its_turn() -> None:
    peer = welcomed(replace(TERMS, prefetch=1))
    asks = Headers(to="device:x", reply_within=1000)
    key = peer.session.requests.ask(NOW, Expectation(), headers=asks, body=b"?")
    peer.said()
    peer.session.session_events()
    peer.arrive(frame(0), frame(1), frame(2, "!", headers=Headers(in_reply_to=key)))
    (answered,) = peer.session.session_events()
    assert isinstance(answered, RequestAnswered)
    assert (answered.key, answered.message.text) == (key, "!")
    peer.said()
    assert peer.take() == ["m0"]
    peer.said()
    assert peer.take() == ["m1"]
    assert peer.said() == [Ack(3, 3)]


def test_an_answer_to_what_was_no_request_is_a_message_like_others() -> None:
    peer = welcomed()
    peer.arrive(frame(0, "!", headers=Headers(in_reply_to=77)))
    peer.said()
    (message,) = peer.ready()
    assert message.in_reply_to == 77


# Credit.


def test_a_full_inbox_pauses_the_gateway_until_half_of_it_is_free() -> None:
    peer = welcomed(DeviceTerms(app="shop", name="phone", window=Credit(2, 1000), inbox_messages=6))
    peer.arrive(frame(0), frame(1))
    assert peer.said() == [Ack(2, 0)]
    peer.arrive(frame(2), frame(3))
    peer.said()
    peer.arrive(frame(4))
    assert peer.said() == [Ack(5, 0), Credit(0, 0)]
    messages = peer.ready()
    peer.session.finished(*messages[:2])
    assert peer.said() == [Ack(5, 2)]
    peer.session.finished(messages[2])
    assert peer.said() == [Ack(5, 3), Credit(2, 1000)]


def test_a_hello_gives_room_to_what_was_under_way_and_the_pause_follows() -> None:
    peer = welcomed(DeviceTerms(app="shop", name="phone", window=Credit(2, 1000), inbox_messages=6))
    peer.arrive(*(frame(seq) for seq in range(5)))
    peer.said()
    peer.session.lost()
    assert peer.welcome()
    assert peer.hello is not None
    assert peer.hello.window == Credit(1, 1000)
    peer.arrive(frame(5))
    assert peer.said() == [Ack(6, 0), Credit(0, 0)]
    peer.session.lost()
    assert peer.session.hello().window == Credit(0, 0)


def test_a_hello_counts_numbers_so_that_a_gap_can_be_filled() -> None:
    peer = welcomed(DeviceTerms(app="shop", name="phone", window=Credit(6, 1000), inbox_messages=6))
    peer.arrive(*(frame(seq) for seq in (2, 3, 4)))
    peer.said()
    peer.session.lost()
    # Numbers 0, 1 and 5 were promised a place, and that is below 6.
    assert peer.session.hello().window == Credit(6, 1000)


def test_an_inbox_full_of_bytes_pauses_the_gateway() -> None:
    terms = DeviceTerms(app="shop", name="phone", window=Credit(9, 100), inbox_bytes=150)
    peer = welcomed(terms)
    peer.arrive(frame(0, "x" * 51))
    assert peer.said() == [Ack(1, 0), Credit(0, 0)]


@pytest.mark.parametrize("window", [Credit(0, 1000), Credit(4097, 1000)])
def test_a_window_is_within_what_can_be_told_from_nonsense(window: Credit) -> None:
    with pytest.raises(ValueError, match="a window must have 1 to 4096 messages"):
        Peer(replace(TERMS, window=window))


def test_an_inbox_holds_a_window() -> None:
    with pytest.raises(ValueError, match="the inbox must hold a window"):
        Peer(replace(TERMS, window=Credit(64, 1000), inbox_messages=63))


def test_only_so_many_keys_are_remembered() -> None:
    peer = welcomed(replace(TERMS, keys=10))
    for seq in range(40):
        peer.arrive(frame(seq))
        peer.said()
        peer.take()
    peer.said()
    held = peer.inbox.load()
    assert 10 <= len(held.old_keys) + len(held.young_keys) <= 20


def test_a_skip_that_is_impossible_changes_nothing() -> None:
    peer = Peer()
    peer.welcome()
    peer.arrive(frame(0), frame(2))
    with pytest.raises(OutOfOrder, match="a number is too far ahead"):
        peer.arrive(Skip(1, 1_000_000))
    peer.welcome()
    peer.arrive(frame(1))
    peer.said()
    assert [message.text for message in peer.ready()] == ["m0", "m1", "m2"]


@pytest.mark.parametrize("operation", [Operation.FEED, Operation.DECISION])
def test_a_word_of_the_gateway_that_cannot_be_read_is_not_taken_for_received(
    operation: Operation,
) -> None:
    peer = Peer()
    peer.welcome()
    word = Headers(operation=operation)
    with pytest.raises(MalformedFrame):
        peer.arrive(MessageFrame(0, KEY, None, word, b"\xff\xff\xff"))
    peer.welcome()
    assert peer.hello is not None
    assert peer.hello.received == 0, "so that it comes again"
