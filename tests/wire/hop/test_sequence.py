"""Every item once, in order, whatever the network does; nothing is believed that cannot be."""

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lasthop.errors import OutOfOrder
from lasthop.wire.hop.frames import Ack, Skip
from lasthop.wire.hop.sequence import Inbound, Outbound

WINDOW = 16


def pushed(count: int) -> Outbound[str]:
    outbound: Outbound[str] = Outbound()
    for seq in range(count):
        assert outbound.push(f"item {seq}") == seq
    return outbound


def test_an_acknowledgement_says_what_is_safe_and_what_is_done() -> None:
    outbound = pushed(5)
    assert outbound.acknowledge(Ack(3, 1)) == (["item 0", "item 1", "item 2"], ["item 0"])
    assert outbound.unacknowledged() == [(3, "item 3"), (4, "item 4")]
    assert outbound.undelivered() == [(seq, f"item {seq}") for seq in range(1, 5)]
    assert outbound.in_flight == 2
    assert outbound.acknowledge(Ack(5, 5))[1] == [f"item {seq}" for seq in range(1, 5)]


def test_a_stale_acknowledgement_changes_nothing() -> None:
    outbound = pushed(5)
    outbound.acknowledge(Ack(4, 4))
    assert outbound.acknowledge(Ack(2, 1, ((3, 4),))) == ([], [])
    assert (outbound.received, outbound.delivered) == (4, 4)


def test_an_individual_acknowledgement_frees_its_item_but_sends_nothing_again() -> None:
    outbound = pushed(6)
    assert outbound.acknowledge(Ack(1, 0, ((2, 3), (4, 5)))).received == [
        "item 0",
        "item 2",
        "item 4",
    ]
    assert outbound.missing() == [(1, "item 1"), (3, "item 3")]
    assert [seq for seq, _ in outbound.unacknowledged()] == [1, 3, 5]
    assert outbound.acknowledge(Ack(1, 0, ((2, 3), (4, 5)))).received == []
    assert outbound.acknowledge(Ack(4, 0)).received == ["item 1", "item 3"]
    assert outbound.received == 5
    assert outbound.missing() == []


@pytest.mark.parametrize(
    "ack, message",
    [
        (Ack(4, 0), "an acknowledgement is for a number that was never sent"),
        (Ack(1, 0, ((2, 4),)), "an acknowledgement is for a number that was never sent"),
        (Ack(1, 2), "an acknowledgement has more delivered than received"),
    ],
)
def test_an_impossible_acknowledgement_is_refused(ack: Ack, message: str) -> None:
    outbound = pushed(3)
    with pytest.raises(OutOfOrder, match=message):
        outbound.acknowledge(ack)
    assert outbound.acknowledge(Ack(0, 0)) == ([], [])
    assert outbound.in_flight == 3


def test_what_is_in_flight_can_be_replaced_by_a_skip() -> None:
    outbound: Outbound[str | Skip] = Outbound()
    outbound.push("expires")
    outbound.push("arrives")
    outbound.acknowledge(Ack(0, 0, ((1, 2),)))
    assert outbound.replace(0, Skip(0)) == "expires"
    assert outbound.replace(1, Skip(1)) is None
    assert outbound.unacknowledged() == [(0, Skip(0))]
    assert outbound.get(0) == Skip(0)
    assert outbound.get(1) == "arrives"
    assert outbound.get(2) is None


def test_an_outbound_takes_up_an_earlier_life() -> None:
    outbound: Outbound[str] = Outbound()
    items = [(3, "received"), (5, "sent"), (6, "sent too")]
    outbound.restore(assigned=7, received=5, delivered=3, items=items)
    assert outbound.unacknowledged() == items[1:]
    outbound.put(6, "another")
    assert outbound.acknowledge(Ack(7, 6)) == (["sent", "another"], ["received", "sent"])
    assert outbound.push("next") == 7


def test_repeated_wide_acknowledgements_are_cheap() -> None:
    outbound = pushed(10)
    for size in (3, 8, 5, 8):
        outbound.acknowledge(Ack(0, 0, ((1, 1 + size),)))
    assert [seq for seq, _ in outbound.unacknowledged()] == [0, 9]


def test_items_come_out_in_order() -> None:
    inbound: Inbound[str] = Inbound()
    assert inbound.receive(1, "b") == []
    assert inbound.receive(3, "d") == []
    assert inbound.missing() == ((0, 1), (2, 3))
    assert inbound.receive(0, "a") == ["a", "b"]
    assert inbound.receive(2, "c") == ["c", "d"]
    assert inbound.missing() == ()


def test_a_duplicate_gives_nothing() -> None:
    inbound: Inbound[str] = Inbound()
    inbound.receive(0, "a")
    inbound.receive(2, "c")
    assert inbound.receive(0, "a") == []
    assert inbound.receive(2, "c") == []
    assert inbound.duplicates == 2


def test_what_need_not_be_ordered_comes_out_at_once() -> None:
    inbound: Inbound[str] = Inbound()
    assert inbound.receive(1, "b", reorder=False) == ["b"]
    inbound.deliver(1)
    assert inbound.acknowledgement() == Ack(0, 0, ((1, 2),))
    assert inbound.receive(0, "a", reorder=False) == ["a"]
    inbound.deliver(0)
    assert inbound.acknowledgement() == Ack(2, 2)


def test_a_number_too_far_ahead_is_refused() -> None:
    inbound: Inbound[str] = Inbound(window=4)
    assert inbound.receive(3, "d") == []
    with pytest.raises(OutOfOrder, match=r"a number is too far ahead \(number=4, received=0\)"):
        inbound.receive(4, "e")
    with pytest.raises(OutOfOrder, match="a number is too far ahead"):
        inbound.skip(0, 5)
    assert inbound.receive(0, "a") == ["a"]


def test_a_skip_closes_numbers_and_lets_others_pass() -> None:
    inbound: Inbound[str] = Inbound()
    inbound.receive(3, "d")
    assert inbound.skip(0, 3) == ["d"]
    assert inbound.acknowledgement() == Ack(4, 3)
    inbound.deliver(3)
    assert inbound.acknowledgement() == Ack(4, 4)
    assert inbound.skip(0, 3) == []


def test_a_skip_drops_what_still_waits() -> None:
    inbound: Inbound[str] = Inbound()
    inbound.receive(1, "late")
    inbound.receive(2, "c")
    assert inbound.skip(1, 1) == []
    assert inbound.receive(0, "a") == ["a", "c"]
    inbound.deliver(0)
    assert inbound.acknowledgement() == Ack(3, 2)


def test_a_resume_closes_any_count_of_numbers() -> None:
    inbound: Inbound[str] = Inbound()
    inbound.receive(0, "a")
    inbound.receive(5, "f")
    assert inbound.close_below(2**50) == ["f"]
    assert inbound.received == 2**50
    assert inbound.delivered == 0
    inbound.deliver(0)
    assert inbound.delivered == 5
    inbound.deliver(5)
    assert inbound.acknowledgement() == Ack(2**50, 2**50)


def test_delivery_follows_reception() -> None:
    inbound: Inbound[str] = Inbound()
    inbound.receive(0, "a")
    with pytest.raises(ValueError, match="delivered before it was received"):
        inbound.deliver(0, 2)
    inbound.deliver(0)
    inbound.deliver(0)
    assert inbound.delivered == 1


def test_there_is_nothing_to_acknowledge_twice() -> None:
    inbound: Inbound[str] = Inbound()
    before = inbound.dirty
    inbound.receive(0, "a")
    received = inbound.dirty
    inbound.acknowledgement()
    acknowledged = inbound.dirty
    inbound.deliver(0)
    delivered = inbound.dirty
    assert [before, received, acknowledged, delivered] == [False, True, False, True]


def test_an_inbound_takes_up_an_earlier_life() -> None:
    inbound: Inbound[str] = Inbound()
    inbound.restore(received=7, delivered=5, waiting=[(9, "j")])
    assert not inbound.dirty
    assert inbound.acknowledgement() == Ack(7, 5, ((9, 10),))
    assert inbound.receive(7, "h") == ["h"]
    assert inbound.receive(8, "i") == ["i", "j"]


def test_an_earlier_life_may_have_left_something_to_acknowledge() -> None:
    inbound: Inbound[str] = Inbound()
    inbound.restore(received=7, delivered=5, acknowledged=False)
    assert inbound.dirty


def test_an_acknowledgement_lists_a_bounded_number_of_ranges() -> None:
    inbound: Inbound[int] = Inbound(window=2000)
    for seq in range(1, 2000, 2):
        inbound.receive(seq, seq)
    assert len(inbound.acknowledgement().individual) == 256


class Link(RuleBasedStateMachine):
    """A sender and a receiver over a link that loses, repeats and reorders, against plain lists."""

    @initialize()
    def start(self) -> None:
        self.outbound: Outbound[int | Skip] = Outbound()
        self.inbound: Inbound[int] = Inbound(window=WINDOW)
        self.under_way: list[tuple[int, int | Skip]] = []
        self.acks: list[Ack] = []
        self.skipped: set[int] = set()
        self.handed_over: list[int] = []
        self.safe: list[int | Skip] = []
        self.done: list[int | Skip] = []
        self.arrived: set[int] = set()

    @precondition(lambda self: self.outbound.assigned < self.inbound.received + WINDOW)
    @rule()
    def send(self) -> None:
        item = self.outbound.assigned
        self.under_way.append((self.outbound.push(item), item))

    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        if not self.under_way:
            return
        index = data.draw(st.integers(0, len(self.under_way) - 1))
        seq, item = self.under_way[index]
        if data.draw(st.booleans()):
            del self.under_way[index]
        if isinstance(item, Skip):
            ready = self.inbound.skip(item.first, item.count)
        else:
            ready = self.inbound.receive(seq, item)
        self.arrived.add(seq)
        self.handed_over += ready

    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        if self.under_way:
            del self.under_way[data.draw(st.integers(0, len(self.under_way) - 1))]

    @rule()
    def send_again(self) -> None:
        self.under_way += self.outbound.unacknowledged()

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        candidates = self.outbound.unacknowledged()
        if candidates:
            seq, item = data.draw(st.sampled_from(candidates))
            assert self.outbound.replace(seq, Skip(seq)) == item
            self.skipped.add(seq)

    @rule()
    def deliver(self) -> None:
        if self.handed_over and self.inbound.delivered <= self.handed_over[-1]:
            upcoming = [seq for seq in self.handed_over if seq >= self.inbound.delivered]
            self.inbound.deliver(upcoming[0])

    @rule()
    def acknowledge(self) -> None:
        self.acks.append(self.inbound.acknowledgement())

    @rule(data=st.data())
    def acknowledgement_arrives(self, data: st.DataObject) -> None:
        if self.acks:
            ack = self.acks.pop(data.draw(st.integers(0, len(self.acks) - 1)))
            progress = self.outbound.acknowledge(ack)
            self.safe += progress.received
            self.done += progress.delivered

    @invariant()
    def order_is_kept_and_nothing_comes_twice(self) -> None:
        assert self.handed_over == sorted(set(self.handed_over))

    @invariant()
    def only_what_was_skipped_is_left_out(self) -> None:
        below = set(range(self.inbound.received))
        assert below - set(self.handed_over) <= self.skipped
        assert below <= self.arrived | self.skipped

    @invariant()
    def counts_agree_with_the_model(self) -> None:
        expected = 0
        while expected in self.arrived:
            expected += 1
        assert self.inbound.received == expected
        ahead = {number for low, high in self.inbound.missing() for number in range(low, high)}
        assert ahead.isdisjoint(self.arrived)
        assert self.inbound.delivered <= self.inbound.received

    @invariant()
    def the_sender_forgets_only_what_arrived(self) -> None:
        kept = {seq for seq, _ in self.outbound.unacknowledged()}
        assert set(range(self.outbound.assigned)) - kept <= self.arrived
        assert len(self.safe) == self.outbound.assigned - len(kept)
        assert len(self.done) == self.outbound.delivered <= self.outbound.received
        assert [seq for seq, _ in self.outbound.missing()] == [
            seq for seq in sorted(kept) if seq < self._highest_known()
        ]

    def _highest_known(self) -> int:
        kept = {seq for seq, _ in self.outbound.unacknowledged()}
        known = set(range(self.outbound.assigned)) - kept
        return max(known, default=-1)


Link.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestLink = Link.TestCase


@given(st.permutations(range(12)))
def test_any_order_of_arrival_is_put_right(order: list[int]) -> None:
    inbound: Inbound[int] = Inbound()
    assert [item for seq in order for item in inbound.receive(seq, seq)] == list(range(12))
