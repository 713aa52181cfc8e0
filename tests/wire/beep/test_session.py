"""Two BEEP peers in memory, and one that a test plays by hand with the RFC in the other."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from lasthop.wire.beep import hop
from lasthop.wire.beep.channel import FIRST_WINDOW, BeepChannel, BeepMessage
from lasthop.wire.beep.errors import BeepError
from lasthop.wire.beep.frames import WRAP, BeepData, BeepKind, Seq, encode
from lasthop.wire.beep.session import (
    MOST_CHANNELS,
    WINDOW,
    BeepSession,
    ChannelClosed,
    ChannelRefused,
    Event,
    Greeted,
    Over,
    Started,
    entity,
)

ECHO = "urn:echo"
MOST = 1 << 21
HEAD = b"Content-Type: application/beep+xml\r\n\r\n"


class Pair:
    """A device and a gateway, joined by a wire that a test cuts as it likes."""

    def __init__(self, seed: int | None = None, *, profiles: tuple[str, ...] = (ECHO,)) -> None:
        self.random = Random(seed) if seed is not None else None
        self.device = BeepSession(initiator=True, max_message=MOST)
        self.gateway = BeepSession(
            initiator=False, profiles=profiles, max_message=MOST, throttle=True
        )
        self.at_device: list[Event] = []
        self.at_gateway: list[Event] = []

    def carry(self) -> None:
        """Until nobody has anything to say."""
        while True:
            up, down = self.device.data_to_send(), self.gateway.data_to_send()
            if not up and not down:
                return
            self._into(self.gateway, up, self.at_gateway)
            self._into(self.device, down, self.at_device)

    def _into(self, session: BeepSession, data: bytes, events: list[Event]) -> None:
        while data:
            size = self.random.randint(1, len(data)) if self.random else len(data)
            events += session.receive(data[:size])
            data = data[size:]

    def started(self) -> int:
        self.carry()
        channel = self.device.start(ECHO)
        self.carry()
        return channel


def test_a_session_begins_with_two_greetings_and_a_start() -> None:
    pair = Pair()
    assert pair.started() == 1
    assert pair.at_device == [Greeted((ECHO,)), Started(1, ECHO, ours=True)]
    assert pair.at_gateway == [Greeted(()), Started(1, ECHO, ours=False)]


def test_either_side_asks_and_the_other_answers_in_order() -> None:
    pair = Pair()
    channel = pair.started()
    pair.at_device.clear()
    pair.at_gateway.clear()
    asked = [pair.device.message(channel, b"\r\n%d" % n) for n in range(3)]
    pair.gateway.message(channel, b"\r\nand you?")
    pair.carry()
    for event in list(pair.at_gateway):
        assert isinstance(event, BeepMessage)
        pair.gateway.reply(channel, event.number, event.payload)
    pair.device.reply(channel, 0, b"\r\nno", kind=BeepKind.ERR)
    pair.carry()
    replies = [e for e in pair.at_device if isinstance(e, BeepMessage) and e.kind is BeepKind.RPY]
    assert [reply.number for reply in replies] == asked
    assert [entity(reply.payload)[1] for reply in replies] == [b"0", b"1", b"2"]
    assert pair.at_gateway[-1] == BeepMessage(1, BeepKind.ERR, 0, b"\r\nno")


def test_one_message_may_have_many_answers() -> None:
    pair = Pair()
    channel = pair.started()
    pair.device.message(channel, b"\r\n?")
    pair.carry()
    for answer in (4, 5):
        pair.gateway.reply(channel, 0, b"\r\n!", kind=BeepKind.ANS, answer=answer)
    pair.gateway.reply(channel, 0, kind=BeepKind.NUL)
    pair.carry()
    got = [(e.kind, e.answer) for e in pair.at_device if isinstance(e, BeepMessage)]
    assert got == [(BeepKind.ANS, 4), (BeepKind.ANS, 5), (BeepKind.NUL, None)]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(0, 200_000), max_size=6))
def test_messages_of_any_size_pass_whatever_the_windows_and_however_they_are_cut(
    seed: int, sizes: list[int]
) -> None:
    pair = Pair(seed)
    channel = pair.started()
    up = [bytes((n,)) * size for n, size in enumerate(sizes)]
    for body in up:
        hop.send(pair.device, channel, body)
        hop.send(pair.gateway, channel, body)
    got: tuple[list[bytes], list[bytes]] = ([], [])
    for _ in range(100):
        pair.carry()
        heard = False
        for session, events, into in (
            (pair.device, pair.at_device, got[0]),
            (pair.gateway, pair.at_gateway, got[1]),
        ):
            for event in events:
                if isinstance(event, BeepMessage):
                    unit = hop.hear(session, event)
                    into.extend([unit] if unit is not None else [])
                    heard = True
            events.clear()
        if not heard:
            break
    assert got[0] == got[1] == up
    assert pair.device.unsent == pair.gateway.unsent == 0


def test_nobody_sends_beyond_the_window_of_the_other() -> None:
    pair = Pair()
    channel = pair.started()
    pair.device.message(channel, bytes(10 * WINDOW))
    sent = len(pair.device.data_to_send())
    assert WINDOW < sent < WINDOW + 500
    assert pair.device.waiting(channel) == 9 * WINDOW


def test_a_new_channel_has_the_first_window() -> None:
    channel = BeepChannel(1, ECHO, window=WINDOW, max_message=MOST)
    channel.message(bytes(10_000))
    frame = channel.next_frame()
    assert frame is not None
    assert (len(frame.payload), frame.more) == (FIRST_WINDOW, True)
    assert channel.next_frame() is None
    channel.allow(Seq(1, 2000, 5000))
    frame = channel.next_frame()
    assert frame is not None
    assert (frame.seq, len(frame.payload)) == (FIRST_WINDOW, 2000 + 5000 - FIRST_WINDOW)
    channel.allow(Seq(1, 3000, 0))
    assert channel.next_frame() is None, "what was granted is not taken back, nothing is added"


def test_octets_are_counted_around_the_end_of_their_numbers() -> None:
    channel = BeepChannel(1, ECHO, window=WINDOW, max_message=MOST)
    channel._sent = channel._sent_limit = WRAP - 10
    channel.message(bytes(100))
    channel.allow(Seq(1, WRAP - 10, 50))
    frame = channel.next_frame()
    assert frame is not None
    assert (frame.seq, len(frame.payload)) == (WRAP - 10, 50)
    channel.allow(Seq(1, 40, 100))
    frame = channel.next_frame()
    assert frame is not None
    assert (frame.seq, len(frame.payload), frame.more) == (40, 50, False)


def test_channels_take_turns() -> None:
    pair = Pair()
    bulk, urgent = pair.started(), pair.device.start(ECHO)
    pair.carry()
    pair.device.message(bulk, bytes(WINDOW))
    pair.device.data_to_send()
    pair.carry()
    pair.device.message(bulk, bytes(WINDOW))
    pair.device.message(urgent, b"\r\nnow")
    assert b"MSG %d 0 . 0 5" % urgent in pair.device.data_to_send()


def test_a_peer_that_takes_no_replies_may_ask_no_more() -> None:
    pair = Pair()
    channel = pair.started()
    pair.gateway._channels[channel]._sent_limit = 0

    def flood() -> None:
        for n in range(WINDOW):
            frame = BeepData(BeepKind.MSG, channel, n, False, n * 2, b"\r\n")
            for event in pair.gateway.receive(encode(frame)):
                assert isinstance(event, BeepMessage)
                hop.hear(pair.gateway, event)

    with pytest.raises(BeepError, match="beyond the window"):
        flood()
    assert pair.gateway._channels[channel].backlog < 40 * WINDOW


def test_a_channel_closes_and_the_session_goes_on() -> None:
    pair = Pair()
    channel = pair.started()
    pair.device.close(channel, text="thanks")
    pair.carry()
    over = pair.device.over
    pair.gateway.close()
    pair.carry()
    assert not over
    assert pair.at_gateway[-2:] == [
        ChannelClosed(channel, 200, "thanks"),
        Over("the session was closed"),
    ]
    assert pair.at_device[-2:] == [ChannelClosed(channel, 200, ""), Over("the session was closed")]
    assert pair.device.receive(b"anything") == []


def test_what_cannot_be_started_is_refused_with_a_reason() -> None:
    pair = Pair()
    pair.carry()
    number = pair.device.start("urn:other")
    pair.carry()
    assert pair.at_device[-1] == ChannelRefused(number, 550, "none of these profiles is known")
    for _ in range(MOST_CHANNELS):
        pair.device.start(ECHO)
    number = pair.device.start(ECHO)
    pair.carry()
    assert pair.at_device[-1] == ChannelRefused(
        number, 501, f"a session has {MOST_CHANNELS} channels"
    )
    pair.device._next_channel = 2
    pair.device.start(ECHO)
    pair.carry()
    assert pair.at_device[-1] == ChannelRefused(
        2, 501, "an initiator starts odd channels, a listener even ones"
    )
    pair.device._next_channel = 3
    pair.device.start(ECHO)
    pair.carry()
    assert pair.at_device[-1] == ChannelRefused(3, 501, "the number of the channel is taken")


def test_what_does_not_exist_cannot_be_closed() -> None:
    pair = Pair()
    pair.carry()
    pair.device.close(5)
    pair.carry()
    assert not any(isinstance(event, ChannelClosed | Over) for event in pair.at_device)


def greeted() -> BeepSession:
    session = BeepSession(initiator=False, profiles=(ECHO,), max_message=1000)
    document = HEAD + b"<greeting/>"
    session.receive(encode(BeepData(BeepKind.RPY, 0, 0, False, 0, document)))
    return session


def say(
    session: BeepSession, document: bytes, *, kind: BeepKind = BeepKind.MSG, number: int = 1
) -> None:
    received = session._zero._received
    session.receive(encode(BeepData(kind, 0, number, False, received, document)))


def test_the_examples_of_the_rfc_are_understood() -> None:
    session = BeepSession(
        initiator=False, profiles=("http://iana.org/beep/SASL/OTP",), max_message=9
    )
    greeting = (
        b"RPY 0 0 . 0 52\r\nContent-Type: application/beep+xml\r\n\r\n<greeting />\r\nEND\r\n"
    )
    start = (
        b"MSG 0 1 . 52 120\r\nContent-Type: application/beep+xml\r\n\r\n<start number='1'>\r\n"
        b"   <profile uri='http://iana.org/beep/SASL/OTP' />\r\n</start>\r\nEND\r\n"
    )
    close = (
        b"MSG 0 2 . 172 71\r\nContent-Type: application/beep+xml\r\n\r\n"
        b"<close number='1' code='200' />\r\nEND\r\n"
    )
    assert session.receive(greeting) == [Greeted(())]
    assert session.receive(start) == [Started(1, "http://iana.org/beep/SASL/OTP", ours=False)]
    assert session.receive(close) == [ChannelClosed(1, 200, "")]
    said = session.data_to_send()
    assert b"RPY 0 1 . " in said
    assert said.count(b"<ok/>") == 1


@pytest.mark.parametrize(
    "frame, message",
    [
        (BeepData(BeepKind.MSG, 5, 0, False, 0, b""), "there is no such channel"),
        (Seq(5, 0, 10), "there is no such channel"),
        (BeepData(BeepKind.MSG, 0, 1, False, 1, b""), "octets are missing"),
        (BeepData(BeepKind.RPY, 0, 9, False, 49, b""), "a reply belongs to no message"),
        (BeepData(BeepKind.MSG, 0, 1, False, 49, bytes(4096)), "a frame is beyond the window"),
        (Seq(0, 4_000_000_000, 10), "octets are acknowledged that were never sent"),
        (BeepData(BeepKind.MSG, 0, 1, False, 49, b"<ok/>"), "headers of a message do not end"),
        (
            BeepData(BeepKind.MSG, 0, 1, False, 49, b"\r\n<ok/>"),
            "messages on channel 0 must be application/beep",
        ),
        (BeepData(BeepKind.MSG, 0, 1, False, 49, b"so\r\n\r\n<ok/>"), "a header has no name"),
    ],
)
def test_a_poorly_formed_frame_ends_the_session(frame: BeepData | Seq, message: str) -> None:
    session = greeted()
    session.data_to_send()
    with pytest.raises(BeepError, match=message):
        session.receive(encode(frame))
    assert session.over
    assert session.data_to_send() == b"", "without a word"


def test_a_message_is_not_interrupted_by_another() -> None:
    channel = BeepChannel(1, ECHO, window=WINDOW, max_message=10)
    channel.take(BeepData(BeepKind.MSG, 1, 0, True, 0, b"ab"))
    with pytest.raises(BeepError, match="interrupted"):
        channel.take(BeepData(BeepKind.MSG, 1, 1, False, 2, b"cd"))


def test_a_message_has_a_limit_and_so_have_unanswered_ones() -> None:
    channel = BeepChannel(1, ECHO, window=WINDOW, max_message=10)
    channel.take(BeepData(BeepKind.MSG, 1, 0, True, 0, bytes(10)))
    with pytest.raises(BeepError, match="too large"):
        channel.take(BeepData(BeepKind.MSG, 1, 0, True, 10, b"x"))
    channel = BeepChannel(1, ECHO, window=WINDOW, max_message=10)
    for number in range(4096):
        channel.take(BeepData(BeepKind.MSG, 1, number, False, 0, b""))
    with pytest.raises(BeepError, match="too many messages are unanswered"):
        channel.take(BeepData(BeepKind.MSG, 1, 4096, False, 0, b""))


def test_a_number_is_not_used_twice_before_it_is_answered() -> None:
    channel = BeepChannel(1, ECHO, window=WINDOW, max_message=10)
    channel.take(BeepData(BeepKind.MSG, 1, 7, False, 0, b""))
    with pytest.raises(BeepError, match="used twice"):
        channel.take(BeepData(BeepKind.MSG, 1, 7, False, 0, b""))
    channel.reply(BeepKind.RPY, 7, b"")
    assert channel.take(BeepData(BeepKind.MSG, 1, 7, False, 0, b"")) is not None


def test_channel_0_has_its_own_manners() -> None:
    session = BeepSession(initiator=False, max_message=1000)
    with pytest.raises(BeepError, match="did not begin with a greeting"):
        say(session, HEAD + b"<ok/>", kind=BeepKind.RPY, number=0)
    session = BeepSession(initiator=False, max_message=1000)
    with pytest.raises(BeepError, match="did not begin with a greeting"):
        say(session, HEAD + b"<start number='1'><profile uri='a'/></start>")
    session = greeted()
    session.start(ECHO)
    with pytest.raises(BeepError, match="a start must be answered with a profile"):
        say(session, HEAD + b"<ok/>", kind=BeepKind.RPY)
    session = greeted()
    session.start(ECHO)
    with pytest.raises(BeepError, match="an error must be in an ERR, and only there"):
        say(session, HEAD + b"<error code='550'/>", kind=BeepKind.RPY)
    session = greeted()
    session.start(ECHO)
    with pytest.raises(BeepError, match="answered with RPY or ERR"):
        session.receive(encode(BeepData(BeepKind.ANS, 0, 1, False, 49, HEAD + b"<ok/>", 1)))
    session = greeted()
    session.data_to_send()
    say(session, HEAD + b"<ok/>")
    assert b"<error code='550'>" in session.data_to_send()
