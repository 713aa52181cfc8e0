"""The gateway's side and the operator's side of SMPP, talking to each other without a network."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.clock import SECOND, Micros
from lasthop.wire.smpp.commands import SmppCommand, SmppStatus, Tag
from lasthop.wire.smpp.esme import (
    Answered,
    BindMode,
    Bound,
    Ended,
    Esme,
    EsmeTerms,
    SmsArrived,
    SubmitRefused,
    Submitted,
    SubmitUnanswered,
)
from lasthop.wire.smpp.smpp_pdus import (
    Bind,
    Cancel,
    DataMessage,
    MessageAnswer,
    Pdu,
    QueryAnswer,
    Replace,
    ShortMessage,
    SmppAddress,
    SmppQuery,
    decode_pdu,
    encode_pdu,
)
from lasthop.wire.smpp.smsc_session import (
    SmscBound,
    SmscGone,
    SmsConfirmed,
    SmscRequest,
    SmscSession,
)

HELLO = ShortMessage(destination=SmppAddress("15551999", 1, 1), message=b"hello")
ACCOUNT = Bind("me", "secret")


class Pair:
    """A gateway and an SMSC on one connection, with a clock."""

    def __init__(self, *, piece: int = 0, **terms: Any) -> None:
        self.now: Micros = 0
        self.piece = piece
        self.esme = Esme(EsmeTerms(bind=ACCOUNT, **terms), self.now)
        self.smsc = SmscSession(
            lambda b: SmppStatus.OK if b.password == "secret" else SmppStatus.INVALID_PASSWORD
        )
        self.here: list[Any] = []
        self.there: list[Any] = []

    def exchange(self) -> None:
        """Let octets pass until there are none."""
        while True:
            out, back = self.esme.octets(), self.smsc.octets()
            if not out and not back:
                return
            for data in self._pieces(out):
                self.there += self.smsc.receive(data)
            for data in self._pieces(back):
                self.here += self.esme.receive(data, self.now)

    def _pieces(self, data: bytes) -> list[bytes]:
        size = self.piece or len(data) or 1
        return [data[at : at + size] for at in range(0, len(data), size)]

    def wait(self, span: Micros) -> None:
        self.now += span
        self.here += self.esme.timeout(self.now)
        self.exchange()

    def take(self) -> tuple[list[Any], list[Any]]:
        """What has happened on both sides since the last time."""
        found = self.here, self.there
        self.here, self.there = [], []
        return found


def bound(**terms: Any) -> Pair:
    pair = Pair(**terms)
    pair.exchange()
    here, there = pair.take()
    assert here == [Bound("lasthop")]
    assert there == [SmscBound(ACCOUNT, terms.get("mode", BindMode.TRANSCEIVER))]
    return pair


def asked(pair: Pair) -> SmscRequest:
    (found,) = pair.take()[1]
    assert isinstance(found, SmscRequest)
    return found


@pytest.mark.parametrize("piece", [0, 1, 7])
def test_a_message_is_submitted_and_accepted(piece: int) -> None:
    pair = bound(piece=piece)
    sequence = pair.esme.submit(HELLO, pair.now)
    pair.exchange()
    request = asked(pair)
    assert request == SmscRequest(SmppCommand.SUBMIT_SM, sequence, HELLO)
    assert pair.esme.in_flight == 1
    pair.smsc.answer(request, MessageAnswer("id-1"))
    pair.exchange()
    assert pair.take()[0] == [Submitted(sequence, "id-1")]
    assert pair.esme.in_flight == 0


def test_a_wrong_password_is_refused_for_good() -> None:
    pair = Pair()
    pair.esme = Esme(EsmeTerms(bind=Bind("me", "wrong")), 0)
    pair.exchange()
    here, there = pair.take()
    assert here == [Ended("the SMSC refuses the account: 0x0e invalid password", refused=True)]
    assert there == [SmscGone("the account was refused")]
    assert pair.esme.next_timeout() is None


@pytest.mark.parametrize("mode", BindMode)
def test_only_a_transmitter_sends(mode: BindMode) -> None:
    pair = bound(mode=mode)
    assert pair.esme.bound == (mode is not BindMode.RECEIVER) == pair.esme.room(0)
    if mode is BindMode.RECEIVER:
        pair.there += pair.smsc.receive(encode_pdu(Pdu(SmppCommand.SUBMIT_SM, 9, HELLO)))
        assert decode_pdu(pair.smsc.octets()).status == SmppStatus.INVALID_STATE


def test_before_the_bind_nothing_is_taken() -> None:
    session = SmscSession(lambda bind: SmppStatus.OK)
    assert session.receive(encode_pdu(Pdu(SmppCommand.SUBMIT_SM, 9, HELLO))) == []
    assert decode_pdu(session.octets()) == Pdu(SmppCommand.SUBMIT_SM_RESP, 9, Pdu.EMPTY, 4)
    session.receive(encode_pdu(Pdu(SmppCommand.ENQUIRE_LINK, 10)))
    assert decode_pdu(session.octets()).command is SmppCommand.ENQUIRE_LINK_RESP
    assert session.receive(encode_pdu(Pdu(SmppCommand.OUTBIND, 1, Pdu.EMPTY)))[:0] == []


def test_a_window_is_kept() -> None:
    pair = bound(window=2)
    for _ in range(2):
        assert pair.esme.room(pair.now)
        pair.esme.submit(HELLO, pair.now)
    assert not pair.esme.room(pair.now)
    pair.exchange()
    first, _ = pair.take()[1]
    pair.smsc.answer(first, MessageAnswer("1"))
    pair.exchange()
    assert pair.esme.room(pair.now)


def test_a_rate_is_kept() -> None:
    pair = bound(rate=4, window=100)
    sent = 0
    while pair.now < 10 * SECOND:
        while pair.esme.room(pair.now):
            pair.esme.submit(HELLO, pair.now)
            sent += 1
        pair.exchange()
        for request in pair.take()[1]:
            pair.smsc.answer(request, MessageAnswer("1"))
        pair.exchange()
        pair.now = max(pair.now + 1, pair.esme.free_at())
    assert sent == 40


def test_a_busy_smsc_gets_pauses_that_grow() -> None:
    pair = bound()
    rests = []
    for _ in range(9):
        sequence = pair.esme.submit(HELLO, pair.now)
        pair.exchange()
        pair.smsc.answer(asked(pair), Pdu.EMPTY, SmppStatus.THROTTLED)
        pair.exchange()
        assert pair.take()[0] == [SubmitRefused(sequence, SmppStatus.THROTTLED)]
        rests.append((pair.esme.free_at() - pair.now) // SECOND)
        assert not pair.esme.room(pair.now)
        pair.now = pair.esme.free_at()
    assert rests == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    pair.esme.submit(HELLO, pair.now)
    pair.exchange()
    pair.smsc.answer(asked(pair), MessageAnswer("1"))
    pair.exchange()
    assert pair.esme.room(pair.now)


def test_a_message_without_an_answer_may_have_arrived() -> None:
    pair = bound(patience=5 * SECOND)
    sequence = pair.esme.submit(HELLO, pair.now)
    pair.exchange()
    request = asked(pair)
    pair.wait(5 * SECOND)
    assert pair.take()[0] == [SubmitUnanswered(sequence, "the SMSC did not answer in time")]
    pair.smsc.answer(request, MessageAnswer("late"))
    pair.exchange()
    assert pair.take() == ([], [])


def test_a_lost_connection_says_what_is_in_doubt() -> None:
    pair = bound()
    sequence = pair.esme.submit(HELLO, pair.now)
    assert pair.esme.lost() == [
        SubmitUnanswered(sequence, "the connection was lost"),
        Ended("the connection was lost"),
    ]
    assert pair.esme.lost() == []
    assert pair.esme.timeout(10**9) == []
    assert pair.esme.receive(b"x", 0) == []


def test_a_silent_smsc_is_asked_and_then_left() -> None:
    pair = bound(idle=10 * SECOND, patience=5 * SECOND)
    assert pair.esme.next_timeout() == 10 * SECOND
    pair.wait(10 * SECOND)
    assert pair.take() == ([], []), "the SMSC has answered"
    assert pair.esme.next_timeout() == 20 * SECOND
    pair.now = 20 * SECOND
    pair.esme.timeout(pair.now)
    assert decode_pdu(pair.esme.octets()).command is SmppCommand.ENQUIRE_LINK
    assert pair.esme.next_timeout() == 25 * SECOND
    assert pair.esme.timeout(25 * SECOND) == [Ended("the SMSC does not answer")]


def test_an_smsc_that_never_answers_the_bind_is_left() -> None:
    esme = Esme(EsmeTerms(bind=ACCOUNT, patience=SECOND), 0)
    assert not esme.room(0)
    assert esme.timeout(SECOND) == [Ended("the SMSC does not answer")]


def test_a_receipt_is_answered_when_it_is_safe() -> None:
    pair = bound()
    text = b"id:7 sub:001 dlvrd:001 stat:DELIVRD err:000 text:"
    sequence = pair.smsc.deliver(
        ShortMessage(destination=SmppAddress("1"), esm_class=4, message=text)
    )
    pair.exchange()
    here, there = pair.take()
    (arrived,) = here
    assert isinstance(arrived, SmsArrived)
    assert arrived.receipt is not None
    assert there == []
    pair.esme.confirm(arrived.sequence)
    pair.esme.confirm(arrived.sequence)
    pair.exchange()
    assert pair.take()[1] == [SmsConfirmed(sequence, 0)]


def test_a_message_of_a_phone_arrives_by_either_command() -> None:
    pair = bound()
    pair.smsc.deliver(HELLO)
    payload = DataMessage(destination=SmppAddress("1"), tlvs=((Tag.MESSAGE_PAYLOAD.value, b"hi"),))
    pair.smsc.deliver(payload)
    pair.exchange()
    first, second = pair.take()[0]
    assert (first.message.content, second.message.content) == (b"hello", b"hi")
    pair.esme.confirm(second.sequence, SmppStatus.TEMPORARY)
    pair.exchange()
    assert pair.take()[1] == [SmsConfirmed(second.sequence, SmppStatus.TEMPORARY)]


def test_questions_are_answered() -> None:
    pair = bound()
    for command, body, answer in (
        (SmppCommand.QUERY_SM, SmppQuery("7"), QueryAnswer("7", "", 2, 0)),
        (SmppCommand.CANCEL_SM, Cancel("7"), Pdu.EMPTY),
        (SmppCommand.REPLACE_SM, Replace(message_id="7", message=b"new"), Pdu.EMPTY),
    ):
        sequence = pair.esme.ask(command, body, pair.now)
        pair.exchange()
        pair.smsc.answer(asked(pair), answer)
        pair.exchange()
        assert pair.take()[0] == [Answered(sequence, 0, answer)]
    sequence = pair.esme.ask(SmppCommand.QUERY_SM, SmppQuery("8"), pair.now)
    pair.exchange()
    pair.take()
    pair.wait(30 * SECOND)
    assert Answered(sequence, SmppStatus.UNKNOWN, Pdu.EMPTY) in pair.take()[0]


def test_a_message_goes_by_data_sm_as_well() -> None:
    pair = bound()
    message = DataMessage(destination=SmppAddress("1"), tlvs=((Tag.MESSAGE_PAYLOAD.value, b"hi"),))
    sequence = pair.esme.submit(message, pair.now)
    pair.exchange()
    request = asked(pair)
    assert request.command is SmppCommand.DATA_SM
    pair.smsc.answer(request, MessageAnswer("id"))
    pair.exchange()
    assert pair.take()[0] == [Submitted(sequence, "id")]


def test_both_sides_can_say_good_bye() -> None:
    pair = bound()
    pair.esme.unbind(pair.now)
    assert not pair.esme.room(pair.now)
    pair.exchange()
    assert pair.take() == (
        [Ended("the session was ended")],
        [SmscGone("the gateway has ended the session")],
    )
    pair = bound()
    ended = pair.esme.receive(encode_pdu(Pdu(SmppCommand.UNBIND, 5)), 0)
    assert ended == [Ended("the SMSC has ended the session")]
    assert decode_pdu(pair.esme.octets()).command is SmppCommand.UNBIND_RESP


def test_what_is_no_pdu_ends_the_connection() -> None:
    pair = bound()
    (ended,) = pair.esme.receive(b"HTTP/1.1 400 Bad Request\r\n", 0)
    assert isinstance(ended, Ended)
    pair = bound()
    (gone,) = pair.smsc.receive(b"GET / HTTP/1.1\r\n")
    assert isinstance(gone, SmscGone)


def test_what_is_not_understood_is_answered_with_a_nack() -> None:
    pair = bound()
    for octets, status in (
        ("00000010000000990000000000000007", SmppStatus.INVALID_COMMAND),
        ("00000012000000050000000000000007ffff", SmppStatus.INVALID_LENGTH),
        ("00000010000000040000000000000007", SmppStatus.INVALID_LENGTH),
    ):
        assert pair.esme.receive(bytes.fromhex(octets), 0) == []
        assert decode_pdu(pair.esme.octets()) == Pdu(SmppCommand.GENERIC_NACK, 7, Pdu.EMPTY, status)
    pair.smsc.receive(bytes.fromhex("00000010000000990000000000000007"))
    assert decode_pdu(pair.smsc.octets()).status == SmppStatus.INVALID_COMMAND
    pair.smsc.receive(bytes.fromhex("00000012000000040000000000000007ffff"))
    assert decode_pdu(pair.smsc.octets()).status == SmppStatus.INVALID_LENGTH


def test_a_nack_refuses_what_it_is_for() -> None:
    pair = bound()
    sequence = pair.esme.submit(HELLO, 0)
    pair.esme.octets()
    nack = encode_pdu(
        Pdu(SmppCommand.GENERIC_NACK, sequence, Pdu.EMPTY, SmppStatus.INVALID_COMMAND)
    )
    assert pair.esme.receive(nack, 0) == [SubmitRefused(sequence, SmppStatus.INVALID_COMMAND)]


def test_an_answer_of_another_kind_ends_the_connection() -> None:
    pair = bound()
    sequence = pair.esme.submit(HELLO, 0)
    wrong = encode_pdu(Pdu(SmppCommand.UNBIND_RESP, sequence))
    assert isinstance(pair.esme.receive(wrong, 0)[-1], Ended)


def test_an_answer_that_cannot_be_read_leaves_doubt() -> None:
    pair = bound()
    sequence = pair.esme.submit(HELLO, 0)
    pair.esme.octets()
    broken = bytes.fromhex("00000012 80000004 00000000") + sequence.to_bytes(4, "big") + b"ab"
    (event,) = pair.esme.receive(broken, 0)
    assert isinstance(event, SubmitUnanswered)


def test_a_second_bind_is_refused() -> None:
    pair = bound()
    pair.smsc.receive(encode_pdu(Pdu(SmppCommand.BIND_TRANSCEIVER, 3, ACCOUNT)))
    assert decode_pdu(pair.smsc.octets()).status == SmppStatus.ALREADY_BOUND
