"""Pushes by short message: which link, in which order, and with which outcome."""

from __future__ import annotations

from lasthop.clock import MINUTE, SECOND
from lasthop.delivery.carrier import NeedsMore, NotReached, Sent, Spent, Unanswered, Unfit
from lasthop.delivery.sms.smpp_units import OneShot, SmppForm
from lasthop.delivery.sms.sms_carrier import EARLY, PATIENCE
from lasthop.delivery.sms.sms_link import SmsInDoubt, SmsReceipt, SmsRefused, SmsTaken
from lasthop.wire.smpp.commands import SmsState
from lasthop.wire.smpp.smpp_pdus import ShortMessage
from tests.delivery.sms.links import ScriptedLink, Sending

LONG = b"x" * 400
"""A text of three short messages."""
BUSY = SmsRefused("too many", busy=True)


def test_a_text_is_sent_when_it_was_accepted() -> None:
    sending = Sending(link := ScriptedLink())
    sending.carry()
    assert sending.outcomes == []
    unit = link.answer(SmsTaken("id-1"))
    assert isinstance(unit.message, ShortMessage)
    assert (unit.message.message, unit.message.destination.text) == (b"hello", "15551999073")
    assert sending.outcomes == [Sent(receipts=("one/id-1",))]


def test_parts_leave_one_after_another_and_all_must_be_accepted() -> None:
    sending = Sending(link := ScriptedLink())
    sending.carry(LONG)
    for n in range(3):
        assert len(link.sent) == 1
        assert sending.outcomes == []
        link.answer(SmsTaken(str(n)))
    assert sending.outcomes == [Sent(receipts=("one/0", "one/1", "one/2"))]


class TestChoosing:
    def test_the_cheapest_that_is_up_is_used(self) -> None:
        dear, cheap = ScriptedLink("dear", price=9), ScriptedLink("cheap", price=1)
        sending = Sending(dear, cheap)
        sending.carry()
        assert (len(dear.sent), len(cheap.sent)) == (0, 1)
        cheap.up = False
        sending.carry()
        assert (len(dear.sent), len(cheap.sent)) == (1, 1)

    def test_a_cheap_link_without_room_is_waited_for(self) -> None:
        dear, cheap = ScriptedLink("dear", price=9), ScriptedLink("cheap", price=1)
        cheap.window = 1
        sending = Sending(dear, cheap)
        sending.carry()
        sending.carry()
        assert (len(dear.sent), len(cheap.sent)) == (0, 1)
        cheap.answer(SmsTaken("1"))
        assert len(cheap.sent) == 1

    def test_links_of_one_price_share_the_work(self) -> None:
        one, two = ScriptedLink("one"), ScriptedLink("two")
        one.window = 2
        sending = Sending(one, two)
        for _ in range(5):
            sending.carry()
        assert (len(one.sent), len(two.sent)) == (2, 3)

    def test_a_link_that_rests_is_used_when_it_may_be(self) -> None:
        sending = Sending(link := ScriptedLink())
        link.rests_until = sending.time + 3 * SECOND
        sending.carry()
        assert link.sent == []
        assert sending.wakes[-1] == link.rests_until
        sending.wait(3 * SECOND)
        assert len(link.sent) == 1

    def test_a_link_that_comes_back_takes_what_waits(self) -> None:
        sending = Sending(link := ScriptedLink())
        link.up = False
        sending.carry()
        sending.carry()
        assert link.sent == []
        link.up = True
        sending.carrier.changed()
        assert len(link.sent) == 2

    def test_without_any_link_a_push_does_not_wait_for_ever(self) -> None:
        sending = Sending(link := ScriptedLink())
        link.up = False
        sending.carry()
        assert sending.wakes[-1] == sending.time + PATIENCE
        sending.wait(PATIENCE)
        assert sending.outcomes == [NotReached(reason="no SMSC can be reached")]
        sending.carry()
        assert len(sending.outcomes) == 2, "nor does any other, as long as it is away"
        link.up = True
        sending.carrier.changed()
        sending.carry()
        link.answer(SmsTaken("1"))
        assert isinstance(sending.outcomes[-1], Sent)


class TestRefusals:
    def test_one_that_will_never_be_accepted_ends(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry()
        link.answer(SmsRefused("no such phone", 2002))
        assert sending.outcomes == [Unfit(code=2002, reason="no such phone")]

    def test_one_that_may_be_accepted_is_tried_again_a_few_times(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry()
        for _ in range(3):
            assert sending.outcomes == []
            link.answer(SmsRefused("out of order"))
        assert sending.outcomes == [NotReached(reason="out of order")]

    def test_a_busy_smsc_is_tried_as_long_as_it_takes(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry()
        for _ in range(20):
            link.answer(BUSY)
        link.answer(SmsTaken("1"))
        assert sending.outcomes == [Sent(receipts=("one/1",))]

    def test_a_busy_smsc_leaves_it_to_another(self) -> None:
        one, two = ScriptedLink("one"), ScriptedLink("two")
        sending = Sending(one, two)
        sending.carry()
        one.rests_until = sending.time + MINUTE
        one.answer(BUSY)
        two.answer(SmsTaken("1"))
        assert sending.outcomes == [Sent(receipts=("two/1",))]

    def test_after_the_first_part_the_link_stays_the_same(self) -> None:
        one, two = ScriptedLink("one"), ScriptedLink("two")
        sending = Sending(one, two)
        sending.carry(LONG)
        one.answer(SmsTaken("1"))
        one.answer(BUSY)
        assert two.sent == []
        one.answer(SmsTaken("2"))
        one.answer(SmsTaken("3"))
        assert len(sending.outcomes) == 1

    def test_parts_that_are_refused_again_and_again_leave_doubt(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry(LONG)
        link.answer(SmsTaken("1"))
        for _ in range(3):
            link.answer(SmsRefused("out of order"))
        assert sending.outcomes == [Unanswered(reason="out of order")]


def test_a_part_in_doubt_makes_a_push_in_doubt() -> None:
    sending = Sending(link := ScriptedLink())
    sending.carry()
    link.answer(SmsInDoubt("no answer"))
    assert sending.outcomes == [Unanswered(reason="no answer")]


def test_a_link_that_is_lost_between_parts_leaves_doubt() -> None:
    sending = Sending(link := ScriptedLink())
    link.window = 1
    sending.carry(LONG)
    sending.carry(b"in its way")
    link.window = 0
    link.answer(SmsTaken("1"))
    link.up = False
    sending.carrier.changed()
    assert sending.outcomes == [Unanswered(reason="one was lost between two parts")]


class TestDeadlines:
    def test_nothing_leaves_after_it(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry(deliver_before=sending.time)
        assert sending.outcomes == [NotReached(reason="deliver_before has passed")]
        link.up = False
        sending.carry(deliver_before=sending.time + SECOND)
        assert sending.wakes[-1] == sending.time + SECOND
        sending.wait(SECOND)
        assert sending.outcomes[1:] == [NotReached(reason="deliver_before has passed")]
        link.up = True
        sending.carrier.changed()
        assert link.sent == []

    def test_one_that_passes_on_the_way_leaves_doubt(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry(deliver_before=sending.time + SECOND)
        sending.wait(SECOND)
        assert isinstance(sending.outcomes[0], Unanswered)
        link.answer(SmsTaken("late"))
        assert len(sending.outcomes) == 1

    def test_the_smsc_is_told(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry(deliver_before=sending.time + 90 * SECOND)
        message = link.answer(SmsTaken("1")).message
        assert isinstance(message, ShortMessage)
        assert message.validity == "000000000130000R"


class TestWithdrawal:
    def test_what_waits_can_be_taken_back(self) -> None:
        sending = Sending(link := ScriptedLink())
        link.up = False
        sending.carry(number=7)
        assert sending.carrier.withdraw(7)
        assert not sending.carrier.withdraw(7)
        link.up = True
        sending.carrier.changed()
        assert link.sent == []
        assert sending.outcomes == []

    def test_what_has_left_cannot(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry(LONG, number=7)
        assert not sending.carrier.withdraw(7)
        link.answer(SmsTaken("1"))
        assert not sending.carrier.withdraw(7)
        for _ in range(2):
            link.answer(SmsTaken("n"))
        assert not sending.carrier.withdraw(7)
        assert len(sending.outcomes) == 1

    def test_what_was_refused_can_again(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry(number=7)
        link.rests_until = sending.time + MINUTE
        link.answer(BUSY)
        assert sending.carrier.withdraw(7)


class TestMethods:
    def test_no_short_message_confirms(self) -> None:
        sending = Sending()
        sending.carry(strict=True, confirmed=True)
        sending.carry(response=True)
        assert [o.code for o in sending.outcomes if isinstance(o, Unfit)] == [3007, 3007]

    def test_once_needs_a_network_that_can(self) -> None:
        sending = Sending(ScriptedLink())
        sending.carry(once=True)
        (outcome,) = sending.outcomes
        assert isinstance(outcome, Unfit)
        assert outcome.code == 3007

    def test_once_waits_for_the_link_that_can_and_holds_up_nobody(self) -> None:
        plain, able = ScriptedLink("plain"), ScriptedLink("able", once=True)
        able.form = SmppForm(one_shot=OneShot.DATAGRAM)
        able.up = False
        sending = Sending(plain, able)
        sending.carry(b"once", once=True)
        sending.carry(b"often")
        assert [unit.message.content for unit, _ in plain.sent] == [b"often"]
        able.up = True
        sending.carrier.changed()
        message = able.answer(SmsTaken("1")).message
        assert (message.content, message.esm_class) == (b"once", 1)


def test_content_without_a_form_for_phones_is_refused() -> None:
    sending = Sending()
    sending.carry(b"<si", "text/vnd.wap.si")
    sending.carry(b"\xff", "text/plain")
    sending.carry(b"x", "text/plain; charset=klingon")
    sending.carry(b"x" * 10_000, "application/octet-stream")
    sending.carry(b"x", "nonsense")
    assert [type(outcome) for outcome in sending.outcomes] == [Unfit] * 5


class TestReceipts:
    def test_they_go_to_the_gateway(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry()
        link.answer(SmsTaken("a"))
        sending.known = {"one/a"}
        heard: list[bool] = []
        receipt = SmsReceipt("one", ("a", "10"), SmsState.DELIVERED)
        sending.carrier.receipt(receipt, heard.append)
        assert heard == [True]
        assert sending.noted == [receipt]

    def test_those_that_come_too_early_are_kept(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry(LONG)
        heard: list[bool] = []
        early = SmsReceipt("one", ("a",), SmsState.DELIVERED)
        # The first comes before the answer to its message, the second before the last part.
        sending.carrier.receipt(early, heard.append)
        link.answer(SmsTaken("a"))
        second = SmsReceipt("one", ("b",), SmsState.DELIVERED)
        link.answer(SmsTaken("b"))
        sending.carrier.receipt(second, heard.append)
        assert heard == [False, True]
        sending.known = {"one/a", "one/b", "one/c"}
        link.answer(SmsTaken("c"))
        assert sending.noted == [early, second]

    def test_those_of_nobody_are_forgotten(self) -> None:
        sending = Sending()
        for n in range(2 * EARLY):
            stray = SmsReceipt("one", (str(n),), SmsState.DELIVERED)
            sending.carrier.receipt(stray, lambda known: None)
        assert len(sending.carrier._early) == EARLY


class TestMoney:
    """Every short message is counted: what was reserved is never exceeded."""

    def test_all_parts_are_paid_for(self) -> None:
        sending = Sending(link := ScriptedLink(price=50))
        sending.carry(LONG)
        for n in range(3):
            link.answer(SmsTaken(str(n)))
        assert sending.spent == [Spent(400 + 3 * 6, 3, 150)]

    def test_a_part_in_doubt_may_have_to_be_paid_for(self) -> None:
        sending = Sending(link := ScriptedLink(price=50))
        sending.carry(LONG)
        link.answer(SmsTaken("1"))
        link.answer(SmsInDoubt("no answer"))
        sending.carry(deliver_before=sending.time + SECOND)
        sending.wait(SECOND)
        assert [each and each.money for each in sending.spent] == [100, 50]

    def test_what_was_refused_costs_nothing(self) -> None:
        sending = Sending(link := ScriptedLink(price=50))
        sending.carry()
        link.answer(SmsRefused("no such phone", 2002))
        assert sending.spent == [Spent(0, 0, 0)]

    def test_nothing_leaves_that_needs_more_than_was_reserved(self) -> None:
        sending = Sending(link := ScriptedLink())
        sending.carry(LONG, most=Spent(10_000, 2))
        sending.carry(most=Spent(4, 1))
        assert link.sent == []
        assert sending.outcomes == [
            NeedsMore(needed=Spent(418, 3)),
            NeedsMore(needed=Spent(5, 1)),
        ]
        sending.carry(LONG, most=Spent(418, 3))
        assert len(link.sent) == 1
