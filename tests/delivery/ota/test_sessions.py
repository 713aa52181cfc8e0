"""Pushes in sessions, from a parcel to its one outcome, over a network that does its worst."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from lasthop.clock import SECOND, Micros
from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import (
    Aborted,
    Confirmed,
    NeedsMore,
    NotReached,
    Outcome,
    Parcel,
    Sent,
    Spent,
    Unanswered,
    Unfit,
)
from lasthop.delivery.ota.sessions import ASK_EVERY, ASK_TIMES, SessionCarrier
from lasthop.wire.ota.wsp_server import SessionServer
from lasthop.wire.ota.wsp_session import USERRFS
from lasthop.wire.wsp.addresses import Address
from lasthop.wire.wsp.capabilities import Capabilities, WspOptions
from lasthop.wire.wsp.headers import Header
from lasthop.wire.wsp.sir import Sir
from tests.wire.ota.phone import SERVER, Phone
from tests.wire.wtp.air import Air, Weather

ROUTE = Route(Variant.WSP_SESSION, "10.0.0.2")
NO_CONFIRMED = Unfit(3007, "the client's session accepts no confirmed pushes")
NO_UNCONFIRMED = Unfit(3007, "the client's session accepts no unconfirmed pushes")
INVITATION = Sir(wsp_contacts=(Address(bytes((10, 0, 0, 1)), 9201),))


class Gateway:
    """A carrier on a rehearsed network."""

    def __init__(self, air: Air) -> None:
        self.air = air
        self.outcomes: dict[bytes, list[Outcome]] = {}
        self.spent: list[Spent] = []
        self._due: Micros | None = None
        self._out: list[tuple[bytes, Any]] = []
        self.server = SessionServer(first_tid=100, first_session=1)
        self.carrier = SessionCarrier(
            self.server,
            network=self,
            push_network=self,
            invitation=INVITATION,
            clock=self,
            wake_at=self._wake_at,
        )
        air.add(SERVER, self, self._receive, self._wake)

    def _receive(self, data: bytes, peer: Any, now: Micros) -> None:
        self.carrier.received(data, peer)

    def now(self) -> Micros:
        return self.air.now

    def send(self, data: bytes, to: tuple[str, int]) -> None:
        self._out.append((data, to))

    def datagrams(self) -> list[tuple[bytes, Any]]:
        out, self._out = self._out, []
        return out

    def next_timeout(self) -> Micros | None:
        return self._due

    def _wake_at(self, due: Micros) -> None:
        self._due = due

    def _wake(self, now: Micros) -> None:
        self._due = None
        self.carrier.wake()

    def carry(self, body: bytes, **fields: Any) -> None:
        fields = {"confirmed": True, **fields}
        parcel = Parcel(route=ROUTE, content_type="text/plain", headers=(), body=body, **fields)
        outcomes = self.outcomes.setdefault(body, [])

        def report(outcome: Outcome) -> None:
            """Most tests are about the meaning of an outcome, and not about what it cost."""
            assert outcome.spent is not None or isinstance(outcome, Unfit | NeedsMore)
            self.spent.append(outcome.spent or Spent())
            outcomes.append(msgspec.structs.replace(outcome, spent=None))

        self.carrier.carry(parcel, report)

    def outcome(self, body: bytes) -> Outcome:
        (outcome,) = self.outcomes[body]
        return outcome


def asked(air: Air) -> int:
    """How often the client was asked for a session."""
    return sum(to == ("10.0.0.2", 2948) for _, to, _ in air.captured)


def test_a_client_without_a_session_is_asked_for_one() -> None:
    air = Air(1)
    gateway, phone = Gateway(air), Phone(air)
    gateway.carry(b"one")
    gateway.carry(b"two", confirmed=False)
    air.run(until=lambda: b"one" in phone.had and b"two" in phone.had)
    air.run(limit=SECOND)
    assert gateway.outcome(b"one") == Confirmed()
    assert gateway.outcome(b"two") == Sent()
    assert asked(air) == 1
    gateway.carry(b"three")
    air.run(until=lambda: b"three" in phone.had)
    assert asked(air) == 1


@pytest.mark.conformance("PPG-GEN-S-009")
def test_a_client_that_never_answers_is_absent() -> None:
    air = Air(1)
    gateway, phone = Gateway(air), Phone(air)
    phone.obeys = False
    gateway.carry(b"one")
    air.run()
    assert gateway.outcome(b"one") == NotReached("the client opened no session")
    assert asked(air) == ASK_TIMES
    phone.obeys = True
    gateway.carry(b"two")
    air.run(limit=3 * ASK_EVERY)
    assert gateway.outcome(b"two") == Confirmed()


def test_a_suspended_client_is_asked_and_resumes() -> None:
    air = Air(1)
    gateway, phone = Gateway(air), Phone(air)
    phone.client.connect(SERVER, 0)
    air.run(limit=SECOND)
    phone.client.suspend(air.now)
    air.run(limit=SECOND)
    phone.obeys = False
    gateway.carry(b"one")
    air.run(limit=SECOND)
    phone.client.resume(air.now)
    air.run(limit=SECOND)
    assert gateway.outcome(b"one") == Confirmed()


@pytest.mark.parametrize(
    "fields, options, outcome",
    [
        ({"strict": True}, WspOptions.PUSH, NO_CONFIRMED),
        ({}, WspOptions.PUSH, Sent()),
        ({"confirmed": False}, WspOptions.CONFIRMED_PUSH, NO_UNCONFIRMED),
        ({}, WspOptions(0), NO_UNCONFIRMED),
    ],
)
def test_what_a_session_does_not_take(
    fields: dict[str, Any], options: WspOptions, outcome: Outcome
) -> None:
    air = Air(1)
    gateway, phone = Gateway(air), Phone(air, capabilities=Capabilities(options=options))
    phone.client.connect(SERVER, 0)
    air.run(limit=SECOND)
    gateway.carry(b"one", **fields)
    assert gateway.outcome(b"one") == outcome


def test_limits_of_the_client_hold() -> None:
    air = Air(1)
    gateway = Gateway(air)
    phone = Phone(air, headers=(Header("Accept-Application", "x-wap-application:mms.ua"),))
    phone.client.connect(SERVER, 0)
    air.run(limit=SECOND)
    gateway.carry(b"x")
    outcome = gateway.outcome(b"x")
    assert isinstance(outcome, Unfit)
    assert outcome.code == 2006
    gateway.carry(b"y" * 1500, capabilities={"ota.application": "wml.ua"})
    outcome = gateway.outcome(b"y" * 1500)
    assert isinstance(outcome, Unfit)
    assert "the push is larger than the client accepts" in outcome.reason


def test_what_no_transaction_carries_is_refused_at_once_and_not_when_its_turn_comes() -> None:
    air = Air(1)
    wanted = Capabilities(client_sdu_size=0, options=WspOptions.CONFIRMED_PUSH, push_outstanding=1)
    gateway, phone = Gateway(air), Phone(air, capabilities=wanted)
    phone.client.connect(SERVER, 0)
    air.run(limit=SECOND)
    gateway.carry(b"first")
    gateway.carry(bytes(400_000))
    outcome = gateway.outcome(bytes(400_000))
    assert isinstance(outcome, Unfit)
    assert "the message is too large for a transaction" in outcome.reason
    air.run(limit=5 * SECOND)
    assert gateway.outcome(b"first") == Confirmed()


def test_a_push_that_waits_for_a_session_is_withdrawn() -> None:
    air = Air(1)
    gateway, phone = Gateway(air), Phone(air)
    phone.obeys = False
    gateway.carry(b"one", number=1)
    gateway.carry(b"two", number=2)
    assert gateway.carrier.withdraw(1)
    assert not gateway.carrier.withdraw(1), "it has gone"
    assert not gateway.carrier.withdraw(7), "there never was one"
    phone.obeys = True
    air.run(limit=2 * ASK_EVERY)
    assert gateway.outcome(b"two") == Confirmed()
    assert (gateway.outcomes[b"one"], phone.had[b"one"]) == ([], 0)
    assert not gateway.carrier.withdraw(2), "it is confirmed"


def test_a_client_that_is_wanted_for_nothing_is_asked_no_more() -> None:
    air = Air(1)
    gateway, phone = Gateway(air), Phone(air)
    phone.obeys = False
    gateway.carry(b"one", number=1)
    assert gateway.carrier.withdraw(1)
    air.run()
    assert asked(air) == 1
    gateway.carry(b"two", number=2)
    air.run()
    assert gateway.outcome(b"two") == NotReached("the client opened no session")
    assert not gateway.carrier.withdraw(2), "it was reported"


def test_a_push_that_waits_for_its_turn_is_withdrawn() -> None:
    air = Air(1)
    wanted = Capabilities(options=WspOptions.CONFIRMED_PUSH, push_outstanding=1)
    gateway, phone = Gateway(air), Phone(air, capabilities=wanted)
    phone.client.connect(SERVER, 0)
    air.run(limit=SECOND)
    gateway.carry(b"one", number=1)
    gateway.carry(b"two", number=2)
    gateway.carry(b"three", number=3)
    assert not gateway.carrier.withdraw(1), "it is on its way"
    assert gateway.carrier.withdraw(2)
    air.run(limit=20 * SECOND)
    assert [gateway.outcome(body) for body in (b"one", b"three")] == [Confirmed(), Confirmed()]
    assert (gateway.outcomes[b"two"], phone.had[b"two"]) == ([], 0)


def test_everything_that_was_sent_is_in_some_outcome() -> None:
    air = Air(1, Weather(loss=0.3, spread=SECOND))
    gateway = Gateway(air)
    Phone(air)
    for n in range(20):
        gateway.carry(b"%d" % n)
        air.run(limit=7 * SECOND)
    air.run()
    gateway.carry(b"last", deliver_before=air.now)
    octets = sum(len(data) for _, to, data in air.captured if to != SERVER)
    # Repetitions, requests for a session and acknowledgements are among it.
    assert sum(spent.octets for spent in gateway.spent) == octets
    assert sum(spent.units for spent in gateway.spent) == 20


def test_nothing_leaves_that_needs_more_than_was_reserved() -> None:
    air = Air(1)
    gateway, phone = Gateway(air), Phone(air)
    phone.client.connect(SERVER, 0)
    air.run(limit=SECOND)
    gateway.carry(b"x" * 100, most=Spent(90, 1))
    outcome = gateway.outcome(b"x" * 100)
    assert isinstance(outcome, NeedsMore)
    gateway.carry(b"y" * 100, most=outcome.needed)
    air.run(limit=SECOND)
    assert (gateway.outcome(b"y" * 100), phone.had[b"x" * 100]) == (Confirmed(), 0)


def test_a_refusal_is_reported_as_such() -> None:
    air = Air(1)
    gateway, phone = Gateway(air), Phone(air)
    phone.refuses = {b"one": USERRFS}
    gateway.carry(b"one")
    air.run(limit=5 * SECOND)
    assert gateway.outcome(b"one") == Aborted(USERRFS)


def test_nothing_leaves_after_its_time() -> None:
    air = Air(1)
    gateway, phone = Gateway(air), Phone(air)
    phone.client.connect(SERVER, 0)
    air.run(limit=SECOND)
    air.weather = Weather(loss=1.0)
    before = air.now + 4 * SECOND
    for body in (b"1", b"2", b"3"):
        gateway.carry(body, deliver_before=before)
    gateway.carry(b"4", deliver_before=air.now)
    air.run(until=lambda: air.now >= before)
    air.run(limit=SECOND)
    air.captured.clear()
    air.run()
    late = [data for _, _, data in air.captured if data[:1] in (b"\x0a", b"\x0b")]
    assert late == []
    assert gateway.outcome(b"1") == Unanswered("no answer before deliver_before")
    assert gateway.outcome(b"3") == NotReached("deliver_before has passed")
    assert gateway.outcome(b"4") == NotReached("deliver_before has passed")


@pytest.mark.conformance("PPG-GEN-S-013", "PPG-CO-S-001")
@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32),
    st.builds(
        Weather,
        loss=st.sampled_from([0.0, 0.2, 0.5]),
        doubling=st.sampled_from([0.0, 0.3]),
        spread=st.sampled_from([0, SECOND, 4 * SECOND]),
    ),
    st.lists(
        st.tuples(
            st.sampled_from(
                ["carry", "carry", "carry", "refuse", "suspend", "leave", "deadline", "withdraw"]
            ),
            st.integers(0, 8),
            st.sampled_from([3, 3, 900]),
        ),
        min_size=1,
        max_size=12,
    ),
)
def test_every_parcel_has_one_outcome_and_it_is_true(
    seed: int, weather: Weather, script: list[tuple[str, int, int]]
) -> None:
    air = Air(seed, weather)
    gateway, phone = Gateway(air), Phone(air)
    withdrawn: set[bytes] = set()
    for n, (verb, pause, size) in enumerate(script, 1):
        body = b"%d." % n + bytes(size)
        if verb == "suspend":
            phone.client.suspend(air.now)
        elif verb == "leave":
            phone.client.disconnect(air.now)
        elif verb == "withdraw":
            # The newest that was carried and has no outcome: it may wait, or be on its way.
            for number, one in reversed(list(enumerate(gateway.outcomes, 1))):
                if not gateway.outcomes[one] and one not in withdrawn:
                    withdrawn |= {one} if gateway.carrier.withdraw(number) else set()
                    break
        else:
            if verb == "refuse":
                phone.refuses[body] = USERRFS
            late = air.now + 5 * SECOND if verb == "deadline" else None
            number = len(gateway.outcomes) + 1
            gateway.carry(body, strict=True, deliver_before=late, number=number)
        air.run(limit=pause * SECOND)
    air.run(limit=900 * SECOND)
    for body, outcomes in gateway.outcomes.items():
        if body in withdrawn:
            assert (outcomes, phone.had[body]) == ([], 0)
            continue
        (outcome,) = outcomes
        match outcome:
            case Confirmed():
                assert phone.had[body] == 1
            case Aborted():
                assert body in phone.refuses
            case NotReached():
                assert phone.had[body] == 0
            case Unanswered():
                assert phone.had[body] <= 1
            case _:
                raise AssertionError(outcome)
