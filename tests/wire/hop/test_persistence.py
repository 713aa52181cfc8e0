"""The numbering goes on whenever it can, and starts over without losing or doubling anything."""

import pytest
from hypothesis import given, settings, strategies as st

from lasthop.errors import OutOfOrder
from lasthop.wire.hop.frames import MAX_RANGES, Ack, Hello, Ranges, Welcome
from lasthop.wire.hop.persistence import (
    HISTORY,
    Continue,
    GatewaySession,
    NewEpoch,
    Numbering,
    Redial,
    ResumeNumbering,
    StartOver,
    StoredSession,
    accept,
    answer,
)
from lasthop.wire.hop.sequence import Inbound

OURS = b"ours ..."
OTHER = b"other..."
NEW = Hello(app="a", device="d")


def claim(
    epoch: int,
    received: int = 0,
    *,
    delivered: int = 0,
    individual: Ranges = (),
    incarnation: bytes = OURS,
) -> Hello:
    return StoredSession(
        incarnation=incarnation,
        epoch=epoch,
        received=received,
        delivered=delivered,
        individual=individual,
    ).claim(NEW)


SESSION = GatewaySession(current=Numbering(OURS, 3, 17), assigned=50, acknowledged=40)


def test_a_new_device_gets_an_epoch() -> None:
    unborn = GatewaySession(current=Numbering(OURS, 0))
    assert answer(unborn, NEW) == NewEpoch(Numbering(OURS, 1), (), None)


def test_a_device_that_comes_back_goes_on() -> None:
    hello = claim(3, 42, delivered=41, individual=((44, 46),))
    assert answer(SESSION, hello) == ResumeNumbering(Ack(42, 41, ((44, 46),)), 40)


def test_a_claim_below_what_was_acknowledged_goes_on() -> None:
    assert answer(SESSION, claim(3, 10)) == ResumeNumbering(Ack(10, 0), 40)


@pytest.mark.parametrize(
    "hello, superseded",
    [
        pytest.param(claim(3, 51), 17, id="beyond what was assigned"),
        pytest.param(claim(3, 42, individual=((44, 51),)), 17, id="individually beyond it"),
        pytest.param(claim(2, 5), None, id="an epoch that is forgotten"),
        pytest.param(claim(3, 5, incarnation=OTHER), None, id="another life of the store"),
        pytest.param(NEW, None, id="a device that lost its memory"),
    ],
)
def test_otherwise_a_new_epoch_starts(hello: Hello, superseded: int | None) -> None:
    found = answer(SESSION, hello)
    assert found == NewEpoch(Numbering(OURS, 4), (Numbering(OURS, 3, 17),), superseded)


def test_an_older_copy_of_the_gateway_uses_no_number_that_the_device_holds() -> None:
    held: Inbound[int] = Inbound()
    for seq in range(1, 1200, 2):
        held.receive(seq, seq)
    individual = held.acknowledgement().individual
    assert len(individual) == MAX_RANGES
    assert all(held.has(seq) for start, stop in individual for seq in range(start, stop))
    copy = GatewaySession(current=Numbering(OURS, 3, 17), assigned=700)
    assert isinstance(answer(copy, claim(3, individual=individual)), NewEpoch)
    knowing = GatewaySession(current=Numbering(OURS, 3, 17), assigned=1200)
    assert isinstance(answer(knowing, claim(3, individual=individual)), ResumeNumbering)


def test_a_lost_welcome_is_answered_the_same_way_again() -> None:
    first = answer(SESSION, claim(3, 51))
    assert isinstance(first, NewEpoch)
    after = GatewaySession(current=first.current, previous=first.previous, assigned=5)
    again = answer(after, claim(3, 51))
    assert again == NewEpoch(first.current, first.previous, 17, offered_before=True)


def test_an_epoch_that_was_used_is_not_offered_again() -> None:
    previous = (Numbering(OURS, 3, 17),)
    used = GatewaySession(current=Numbering(OURS, 4, 1), previous=previous)
    found = answer(used, claim(3))
    assert found == NewEpoch(Numbering(OURS, 5), (*previous, Numbering(OURS, 4, 1)), 17)


def test_the_gateway_remembers_a_few_epochs() -> None:
    previous = tuple(Numbering(OURS, epoch) for epoch in range(9, 9 - HISTORY, -1))
    session = GatewaySession(current=Numbering(OURS, 10, 2), previous=previous)
    found = answer(session, claim(8))
    assert isinstance(found, NewEpoch)
    assert [numbering.epoch for numbering in found.previous] == [8, 10, 9, 7]


def test_more_delivered_than_received_is_refused() -> None:
    with pytest.raises(OutOfOrder, match="a HELLO has more delivered than received"):
        answer(SESSION, claim(3, 5, delivered=6))


def welcome(epoch: int, *, resumed: bool = False, received: int = 0, closed: int = 0) -> Welcome:
    return Welcome(incarnation=OURS, epoch=epoch, resumed=resumed, received=received, closed=closed)


DEVICE = StoredSession(incarnation=OURS, epoch=3, assigned=20, received=42)


def test_the_device_goes_on() -> None:
    found = accept(DEVICE, DEVICE.claim(NEW), welcome(3, resumed=True, received=18, closed=40))
    assert found == Continue(Ack(18, 18), 40)


def test_a_device_without_a_session_starts_one() -> None:
    assert accept(StoredSession(), NEW, welcome(1)) == StartOver(OURS, 1, 0)


def test_the_device_drops_what_the_gateway_holds() -> None:
    told = Welcome(incarnation=OURS, epoch=4, superseded=17)
    assert accept(DEVICE, DEVICE.claim(NEW), told) == StartOver(OURS, 4, 17)


def test_a_count_of_another_life_drops_nothing() -> None:
    told = Welcome(incarnation=OURS, epoch=4, superseded=21)
    assert accept(DEVICE, DEVICE.claim(NEW), told) == StartOver(OURS, 4, 0)


def test_a_device_that_forgot_its_numbers_dials_without_claims() -> None:
    told = welcome(3, resumed=True, received=21)
    assert accept(DEVICE, DEVICE.claim(NEW), told) == Redial(forget=True)
    told = Welcome(incarnation=OURS, epoch=3, resumed=True, received=3, individual=((18, 21),))
    assert accept(DEVICE, DEVICE.claim(NEW), told) == Redial(forget=True)


def test_a_welcome_to_old_claims_is_of_no_use() -> None:
    moved_on = StoredSession(incarnation=OURS, epoch=4)
    assert accept(moved_on, DEVICE.claim(NEW), welcome(5)) == Redial(forget=False)
    old = welcome(3, resumed=True)
    assert accept(moved_on, DEVICE.claim(NEW), old) == Redial(forget=False)


@pytest.mark.parametrize("told", [welcome(4, resumed=True), welcome(3)])
def test_a_welcome_that_contradicts_itself_is_refused(told: Welcome) -> None:
    with pytest.raises(OutOfOrder, match="a WELCOME resumes an epoch that was not claimed"):
        accept(DEVICE, DEVICE.claim(NEW), told)


class Rehearsal:
    """A device that sends messages to a gateway through handshakes that get lost or go wrong."""

    def __init__(self) -> None:
        self.gateway = GatewaySession(current=Numbering(OURS, 0))
        self.device = StoredSession()
        self.outbox: list[tuple[int, str]] = []
        self.written = 0
        self.arrived: list[str] = []

    def write(self) -> None:
        self.outbox.append((self.device.assigned, f"message {self.written}"))
        self.written += 1
        self.device = StoredSession(
            incarnation=self.device.incarnation,
            epoch=self.device.epoch,
            assigned=self.device.assigned + 1,
            received=self.device.received,
        )

    def gateway_loses_memory_of_its_numbers(self) -> None:
        """The device claims more than the gateway assigned, which forces a new epoch."""
        if self.device.epoch is not None:
            self.device = StoredSession(
                incarnation=self.device.incarnation,
                epoch=self.device.epoch,
                assigned=self.device.assigned,
                received=self.gateway.assigned + 1,
            )

    def dial(self, *, welcome_lost: bool, sent: int) -> None:
        hello = self.device.claim(NEW)
        found = answer(self.gateway, hello)
        if isinstance(found, NewEpoch):
            self.gateway = GatewaySession(current=found.current, previous=found.previous)
        current = self.gateway.current
        told = Welcome(
            incarnation=current.incarnation,
            epoch=current.epoch,
            resumed=isinstance(found, ResumeNumbering),
            received=current.received,
            superseded=found.superseded if isinstance(found, NewEpoch) else None,
        )
        if welcome_lost:
            return
        step = accept(self.device, hello, told)
        assert not isinstance(step, Redial)
        if isinstance(step, Continue):
            self.outbox = [pair for pair in self.outbox if pair[0] >= step.ack.received]
        else:
            kept = [text for seq, text in self.outbox if seq >= step.drop_below]
            self.outbox = list(enumerate(kept))
            self.device = StoredSession(
                incarnation=step.incarnation, epoch=step.epoch, assigned=len(kept)
            )
        for seq, text in self.outbox[:sent]:
            if seq == self.gateway.current.received:
                self.arrived.append(text)
                counted = Numbering(current.incarnation, current.epoch, seq + 1)
                self.gateway = GatewaySession(current=counted, previous=self.gateway.previous)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["write", "dial", "lost", "forget"]), st.integers(0, 3))))
def test_nothing_is_lost_or_doubled_across_epochs(steps: list[tuple[str, int]]) -> None:
    rehearsal = Rehearsal()
    for step, count in steps:
        if step == "write":
            rehearsal.write()
        elif step == "forget":
            rehearsal.gateway_loses_memory_of_its_numbers()
        else:
            rehearsal.dial(welcome_lost=step == "lost", sent=count)
    rehearsal.dial(welcome_lost=False, sent=1000)
    assert rehearsal.arrived == [f"message {number}" for number in range(rehearsal.written)]
