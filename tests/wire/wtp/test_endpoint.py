"""Transactions over a bad network: once or not at all, and never without a word."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings, strategies as st

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.errors import TooLarge
from lasthop.wire.wtp.endpoint import MAX_PER_PEER, Endpoint
from lasthop.wire.wtp.pdus import (
    NUMBERS,
    Abort,
    Ack,
    Invoke,
    NegativeAck,
    Provider,
    Segment,
    Trailer,
    decode_datagram,
    encode_pdu,
)
from lasthop.wire.wtp.transaction import (
    Delivered,
    Event,
    Invoked,
    Peer,
    RequestConfirmed,
    Side,
    TransactionAnswered,
    TransactionEnded,
    WtpPatience,
)
from tests.wire.wtp.air import Air, Weather

WEATHERS = st.builds(
    Weather,
    loss=st.sampled_from([0.0, 0.1, 0.4, 0.7]),
    doubling=st.sampled_from([0.0, 0.2, 0.6]),
    delay=st.sampled_from([MILLISECOND, 400 * MILLISECOND]),
    spread=st.sampled_from([0, SECOND, 6 * SECOND]),
)


class User:
    """An endpoint and somebody who uses it: echoes, acknowledges, refuses."""

    def __init__(self, air: Air, name: str, *, first_tid: int = 7) -> None:
        self.air = air
        self.end = Endpoint(first_tid=first_tid)
        self.heard: Counter[bytes] = Counter()
        self.outcome: dict[Side, Event] = {}
        self.slow: list[Side] = []
        self.mute = False
        air.add(name, self.end, self._receive, self._timeout)

    def ask(self, peer: str, data: bytes, tcl: int) -> Side:
        return self.end.invoke(peer, data, tcl=tcl, now=self.air.now, user_ack=tcl == 1)

    def _receive(self, data: bytes, peer: Peer, now: Micros) -> None:
        self._act(self.end.receive(data, peer, now), now)

    def _timeout(self, now: Micros) -> None:
        self._act(self.end.timeout(now), now)

    def _act(self, events: list[Event], now: Micros) -> None:
        for event in events:
            if isinstance(event, Invoked):
                self.heard[event.data] += 1
                if self.mute:
                    self.slow.append(event.side)
                elif event.data.startswith(b"no"):
                    self.end.abort(event.side, 0xEB, now)
                elif event.tcl == 1:
                    self.end.acknowledge(event.side, now)
                elif event.tcl == 2:
                    self.end.answer(event.side, b"re:" + event.data, now)
            elif not isinstance(event, Delivered):
                assert event.side not in self.outcome, "a transaction ended twice"
                self.outcome[event.side] = event


def pair(seed: int = 1, weather: Weather | None = None) -> tuple[Air, User, User]:
    air = Air(seed, weather or Weather())
    return air, User(air, "a"), User(air, "b", first_tid=99)


@example(
    3799,
    Weather(loss=0.1, doubling=0.2, delay=400 * MILLISECOND, spread=6 * SECOND),
    [
        (0, False, 1),
        (0, False, 1),
        (2, False, 1400),
        (1, False, 1),
        (0, False, 1),
        (1, False, 5600),
        (1, False, 5600),
        (2, False, 1),
    ],
)
@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32),
    WEATHERS,
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.booleans(),
            st.sampled_from([1, 1, 20, 1400, 1401, 5600, 9000]),
        ),
        min_size=1,
        max_size=8,
    ),
)
def test_heard_once_and_the_outcome_is_true(
    seed: int, weather: Weather, wishes: list[tuple[int, bool, int]]
) -> None:
    air, one, other = pair(seed, weather)
    sides = {}
    for n, (tcl, refused, size) in enumerate(wishes):
        data = (b"no" if refused else b"ok") + b"%d." % n + bytes(size)
        sides[one.ask("b", data, tcl)] = tcl, data
        air.step(air.now + 100 * MILLISECOND)
    air.run()
    for side, (tcl, data) in sides.items():
        outcome = one.outcome.get(side)
        if tcl == 0:
            assert outcome is None
            continue
        assert outcome is not None, "a transaction never ended"
        assert other.heard[data] <= 1, "heard twice"
        if isinstance(outcome, RequestConfirmed):
            assert (tcl, other.heard[data]) == (1, 1)
        elif isinstance(outcome, TransactionAnswered):
            assert (tcl, other.heard[data]) == (2, 1)
            assert outcome.data == b"re:" + data
        else:
            assert isinstance(outcome, TransactionEnded)
            if outcome.by_user:
                assert (outcome.reason, other.heard[data]) == (0xEB, 1)
            if not weather.loss and weather.spread < SECOND:
                assert outcome.by_user
                assert data.startswith(b"no")
    assert one.end.open == other.end.open == 0, "something is remembered for ever"


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 2]), st.sampled_from([10, 6000, 100_000]))
def test_when_the_weather_clears_everything_arrives(seed: int, tcl: int, size: int) -> None:
    weather = Weather(loss=0.7, doubling=0.3, spread=SECOND, clears_at=15 * SECOND)
    air, one, other = pair(seed, weather)
    side = one.ask("b", b"ok" + bytes(size), tcl)
    air.run()
    assert isinstance(one.outcome[side], RequestConfirmed | TransactionAnswered)
    assert list(other.heard.values()) == [1]


class TestConversation:
    def test_the_first_request_is_verified_the_next_is_not(self) -> None:
        air, one, other = pair()
        one.ask("b", b"ok1", 1)
        air.run()
        first = [data for _, _, data in air.captured]
        assert [type(decode_datagram(data)[0]) for data in first] == [
            Invoke,
            Ack,
            Ack,
            Ack,
        ]
        assert [data.hex() for data in first[1:]] == ["1c8007", "1c0007", "188007"]
        air.captured.clear()
        one.ask("b", b"ok2", 1)
        air.run()
        assert [data.hex() for _, _, data in air.captured] == ["0a0008116f6b32", "188008"]
        assert other.heard == {b"ok1": 1, b"ok2": 1}

    def test_numbers_go_round_and_say_so(self) -> None:
        air = Air(1)
        one = User(air, "a", first_tid=NUMBERS - 1)
        User(air, "b")
        for n in range(3):
            one.ask("b", b"ok%d" % n, 1)
            air.run()
        invokes = [
            pdu
            for _, _, data in air.captured
            if isinstance(pdu := decode_datagram(data)[0], Invoke)
        ]
        assert [(pdu.tid, pdu.tid_new) for pdu in invokes] == [
            (NUMBERS - 1, True),
            (0, True),
            (1, False),
        ]
        assert len(one.outcome) == 3

    def test_nobody_there_is_said_after_the_last_repetition(self) -> None:
        air = Air(1)
        one = User(air, "a")
        side = one.ask("nobody", b"ok", 1)
        air.run(until=lambda: side in one.outcome)
        assert one.outcome[side] == TransactionEnded(side, Provider.NO_RESPONSE)
        assert air.now == 9 * 3 * SECOND
        repetitions = [data[0] for _, _, data in air.captured]
        assert repetitions == [0x0A] + [0x0B] * 8 + [0x20]

    def test_a_request_that_comes_again_much_later_is_not_heard_again(self) -> None:
        air, one, other = pair()
        one.ask("b", b"ok", 1)
        air.run()
        old = air.captured[0][2]
        air.now += 3600 * SECOND
        other._receive(old, "a", air.now)
        air.run()
        assert other.heard == {b"ok": 1}
        assert decode_datagram(air.captured[-1][2]) == [Abort(7, Provider.INVALID_NUMBER)]

    def test_a_slow_user_keeps_the_other_side_waiting(self) -> None:
        air, one, other = pair()
        other.mute = True
        side = one.ask("b", b"ok", 2)
        air.run(limit=10 * SECOND)
        assert other.heard == {b"ok": 1}
        other.end.answer(other.slow[0], b"at last", air.now)
        air.run()
        assert one.outcome[side] == TransactionAnswered(side, b"at last")

    def test_a_user_that_never_answers_is_given_up(self) -> None:
        air, one, other = pair()
        other.mute = True
        sides = [one.ask("b", b"ok%d" % tcl, tcl) for tcl in (1, 2)]
        air.run()
        for side in sides:
            assert isinstance(one.outcome[side], TransactionEnded)
        assert one.end.open == other.end.open == 0

    def test_either_user_can_give_up(self) -> None:
        air, one, other = pair()
        other.mute = True
        side = one.ask("b", b"ok", 2)
        air.run(limit=SECOND)
        one.end.abort(side, 0xEA, air.now)
        air.run()
        assert other.outcome == {other.slow[0]: TransactionEnded(other.slow[0], 0xEA, by_user=True)}
        assert side not in one.outcome


class TestSegments:
    def test_groups_are_acknowledged_one_by_one(self) -> None:
        air, one, other = pair()
        side = one.ask("b", b"x" * 1400 * 6, 1)
        air.run()
        assert one.outcome[side] == RequestConfirmed(side)
        assert list(other.heard) == [b"x" * 8400]
        pdus = [decode_datagram(data)[0] for source, _, data in air.captured if source == "a"]
        segments = [pdu for pdu in pdus if isinstance(pdu, Segment)]
        assert [pdu.trailer for pdu in segments] == [
            Trailer.MIDDLE,
            Trailer.MIDDLE,
            Trailer.GROUP,
            Trailer.MIDDLE,
            Trailer.LAST,
        ]
        acks = [decode_datagram(data)[0] for source, _, data in air.captured if source == "b"]
        assert [ack.psn for ack in acks if isinstance(ack, Ack) and not ack.tve] == [3, None]

    def test_only_what_is_missing_comes_again(self) -> None:
        air, one, other = pair()
        one.ask("b", b"ok", 1)
        air.run()
        air.captured.clear()
        one.ask("b", b"y" * 5000, 1)
        lost = one.end.datagrams().pop(1)
        packets = [data for data, _ in one.end.datagrams()]
        assert packets == []
        # The network lost everything but what is handed over by hand here.
        again = one.end.invoke("b", b"z" * 5000, tcl=1, now=air.now)
        sent = [data for data, _ in one.end.datagrams()]
        for n, data in enumerate(sent):
            if n != 1:
                other._receive(data, "a", air.now)
        (complaint,) = [data for data, _ in other.end.datagrams()]
        tid = again.tid | 0x8000
        assert decode_datagram(complaint) == [NegativeAck(tid, (1,))]
        one._receive(complaint, "b", air.now)
        (repeated,) = [data for data, _ in one.end.datagrams()]
        assert decode_datagram(repeated)[0].again  # type: ignore[union-attr]
        other._receive(repeated, "a", air.now)
        air.run(until=lambda: again in one.outcome)
        assert one.outcome[again] == RequestConfirmed(again)
        assert lost[1] == "b"

    def test_a_message_has_a_limit_on_both_sides(self) -> None:
        air = Air(1)
        one = User(air, "a")
        other = User(air, "b")
        with pytest.raises(TooLarge, match="the message is too large for a transaction"):
            one.ask("b", bytes(1400 * 256 + 1), 1)
        other.end._patience = WtpPatience(message=2000)
        side = one.ask("b", bytes(3000), 1)
        air.run()
        assert one.outcome[side] == TransactionEnded(side, Provider.TOO_LARGE)
        assert not other.heard


class TestStrangers:
    def test_what_is_no_pdu_is_dropped_and_counted(self) -> None:
        end = Endpoint(first_tid=1)
        for data in (b"", b"\xff", b"\x0a\x00"):
            assert end.receive(data, "x", 0) == []
        assert end.malformed == 3
        assert end.datagrams() == []

    @pytest.mark.parametrize(
        "invoke, reason",
        [
            (Invoke(1, 1, version=1), Provider.VERSION),
            (Invoke(1, 3), Provider.PROTOCOL_ERROR),
        ],
    )
    def test_what_we_do_not_speak_is_refused(self, invoke: Invoke, reason: Provider) -> None:
        end = Endpoint(first_tid=1)
        assert end.receive(encode_pdu(invoke), "x", 0) == []
        assert end.datagrams() == [(encode_pdu(Abort(0x8001, reason)), "x")]

    def test_one_peer_cannot_have_everything(self) -> None:
        end = Endpoint(first_tid=1)
        for tid in range(MAX_PER_PEER + 1):
            end.receive(encode_pdu(Invoke(tid, 1)), "x", 0)
        (answer, _) = end.datagrams()[-1]
        assert decode_datagram(answer) == [Abort(0x8000 | MAX_PER_PEER, Provider.CAPACITY)]
        end.receive(encode_pdu(Invoke(1, 1)), "y", 0)
        assert decode_datagram(end.datagrams()[-1][0]) == [Ack(0x8001, tve=True)]

    def test_a_word_about_an_unknown_transaction_gets_an_abort(self) -> None:
        end = Endpoint(first_tid=1)
        end.receive(encode_pdu(Ack(0x8005)), "x", 0)
        assert end.datagrams() == [(encode_pdu(Abort(5, Provider.INVALID_NUMBER)), "x")]
        end.receive(encode_pdu(Abort(0x8005, 1)), "x", 0)
        end.receive(encode_pdu(Ack(5)), "x", 0)
        end.receive(encode_pdu(Segment(5, 1, b"", Trailer.LAST)), "x", 0)
        assert end.datagrams() == []

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.binary(max_size=12), max_size=30))
    def test_no_octets_bring_an_endpoint_down(self, datagrams: list[bytes]) -> None:
        end = Endpoint(first_tid=1)
        side = end.invoke("x", b"hello", tcl=2, now=0)
        now = 0
        for data in datagrams:
            for event in end.receive(data, "x", now):
                if isinstance(event, Invoked) and event.tcl == 2:
                    end.answer(event.side, b"re", now)
            end.datagrams()
            now += SECOND
        while (due := end.next_timeout()) is not None:
            end.timeout(due)
        assert end.open == 0
        assert side is not None


def test_transactions_must_be_remembered_for_longer_than_they_are_retried() -> None:
    with pytest.raises(ValueError, match="remembered for longer"):
        WtpPatience(memory=10 * SECOND)
