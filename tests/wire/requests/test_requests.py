"""Both sides of a connection over requests, joined by a network that loses, doubles and delays.

About `wire/requests/asking.py` and `wire/requests/answering.py`.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.errors import Conflict, InvalidRequest, QuotaExceeded
from lasthop.wire.requests.answering import (
    BURST,
    MOST_HELD,
    MOST_KEPT,
    PER_SECOND,
    SHORTEST_IDLE,
    WINDOW,
    Answering,
)
from lasthop.wire.requests.asking import (
    ATTEMPTS,
    LANES,
    TOKENS,
    WAIT,
    HeldRequests,
    Polling,
    RequestClient,
    RequestToMake,
)
from lasthop.wire.requests.bodies import BODY, unpack

START: Micros = 1_800_000_000 * SECOND


class Network:
    """Carries requests and answers, badly: each may get lost, and takes as long as it likes."""

    def __init__(self, asking: RequestClient, seed: int, *, loss: float) -> None:
        self.asking = asking
        self.random = Random(seed)
        self.loss = loss
        self.now = START
        self.answering = Answering(self.now)
        self.up: list[bytes] = []
        self.down: list[bytes] = []
        self.flying: list[tuple[Micros, int, RequestToMake | tuple[int, bytes]]] = []
        self.waiting: set[int] = set()
        """Requests at the gateway of which somebody still hears the answer."""
        self.sent = 0

    def step(self) -> None:
        """Let a millisecond pass, or as long as nothing happens."""
        for ask in self.asking.requests(self.now):
            self._fly(ask)
        self.now += MILLISECOND
        due = sorted(item for item in self.flying if item[0] <= self.now)
        self.flying = [item for item in self.flying if item[0] > self.now]
        for _, _, what in due:
            if isinstance(what, RequestToMake):
                self._ask(what)
            else:
                number, body = what
                if self.asking.answered(number, self.now, brought=bool(body)):
                    self.down += unpack(body)
        for number, body in self.answering.answers(self.now):
            if number in self.waiting:
                self.waiting.discard(number)
                self._fly((number, body))

    def _ask(self, ask: RequestToMake) -> None:
        try:
            new = self.answering.ask(ask.number, seen=ask.seen, wait=ask.wait, now=self.now)
        except Conflict:
            return  # An old copy, which nobody waits for.
        self.waiting.add(ask.number)
        if new:
            self.up += unpack(ask.body)

    def _fly(self, what: RequestToMake | tuple[int, bytes]) -> None:
        self.sent += 1
        number = what.number if isinstance(what, RequestToMake) else what[0]
        if self.random.random() < self.loss:
            # Somebody notices: the device that its request failed.
            if not self.asking.failed(number, self.now):
                # This network is not that bad; a request that failed too often is tested elsewhere.
                self.asking._open[number].attempts = 1
                self.asking.failed(number, self.now)
            return
        for _ in range(2 if isinstance(what, RequestToMake) and self.random.random() < 0.1 else 1):
            due = self.now + self.random.randint(1, 40) * MILLISECOND
            self.flying.append((due, self.sent, what))
            self.sent += 1


def polling() -> RequestClient:
    return Polling(START, every=50 * MILLISECOND)


@pytest.mark.parametrize("make", [HeldRequests, polling])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), loss=st.sampled_from((0.0, 0.1, 0.3)))
def test_every_unit_arrives_exactly_once(make: type[HeldRequests], seed: int, loss: float) -> None:
    network = Network(make(), seed, loss=loss)
    random = Random(seed)
    said: tuple[list[bytes], list[bytes]] = ([], [])
    for n in range(60):
        if random.random() < 0.7:
            unit = b"%d" % n if random.random() < 0.9 else b"%d." % n + bytes(BODY)
            said[n % 2].append(unit)
            (network.asking if n % 2 else network.answering).write([unit])
        for _ in range(random.randint(0, 5)):
            network.step()
    for _ in range(60_000):
        network.step()
        if len(network.up) >= len(said[1]) and len(network.down) >= len(said[0]):
            break
    assert sorted(network.up) == sorted(said[1])
    assert sorted(network.down) == sorted(said[0])


def test_two_requests_wait_and_two_talk() -> None:
    asking = HeldRequests()
    asks = asking.requests(START)
    assert [ask.wait for ask in asks] == [WAIT] * TOKENS
    asking.write([bytes(BODY), bytes(BODY), bytes(BODY)])
    asks = asking.requests(START)
    assert [(ask.wait, len(ask.body) > BODY) for ask in asks] == [(0, True)] * LANES
    assert asking.requests(START) == []
    asking.answered(asks[0].number, START, brought=False)
    (third,) = asking.requests(START)
    assert len(third.body) > BODY
    assert third.seen == 1


def test_before_the_welcome_one_request_waits_alone() -> None:
    asking = HeldRequests()
    asking.greeted = False
    assert len(asking.requests(START)) == 1
    assert asking.requests(START) == []
    asking.greeted = True
    assert len(asking.requests(START)) == TOKENS - 1


def test_a_request_that_waits_long_does_not_stop_those_that_talk() -> None:
    asking, answering = HeldRequests(), Answering(START)
    waiting = {ask.number for ask in asking.requests(START)}
    for number in sorted(waiting):
        answering.ask(number, seen=1, wait=WAIT, now=START)
    for n in range(5 * WINDOW):
        asking.write([b"%d" % n])
        asks = asking.requests(START)
        assert any(ask.body for ask in asks), n
        for ask in asks:
            assert answering.ask(ask.number, seen=ask.seen, wait=ask.wait, now=START)
        for number, body in answering.answers(START):
            asking.answered(number, START, brought=bool(body))
    assert 1 <= answering.held <= TOKENS


def test_a_failed_request_comes_again_under_its_number_and_with_pauses() -> None:
    asking = HeldRequests()
    asking.requests(START)
    asking.write([b"x"])
    (ask,) = asking.requests(START)
    now, times = START, []
    while asking.failed(ask.number, now):
        due = asking.next_timeout()
        assert due is not None
        assert due == now or asking.requests(due - 1) == []
        times.append(due - now)
        now = due
        (again,) = asking.requests(now)
        assert again == ask
    assert times == [0, 250_000, 500_000, 1_000_000]
    assert len(times) == ATTEMPTS - 1


def test_a_gateway_that_asks_for_a_pause_gets_it() -> None:
    asking = HeldRequests()
    (first, _) = asking.requests(START)
    asking.failed(first.number, START, pause=7 * SECOND)
    assert asking.next_timeout() == START + 7 * SECOND


def test_a_poll_slows_down_while_nothing_happens_and_hurries_when_something_does() -> None:
    asking = Polling(START, every=SECOND)
    now, pauses = START, []
    for _ in range(5):
        due = asking.next_timeout()
        assert due is not None
        pauses.append(due - now)
        now = due
        (ask,) = asking.requests(now)
        assert ask.wait == 0
        assert asking.requests(now) == []
        asking.answered(ask.number, now, brought=False)
    assert pauses == [200_000, 400_000, 800_000, SECOND, SECOND]
    asking.write([b"x"])
    (ask,) = asking.requests(now)
    asking.answered(ask.number, now, brought=False)
    assert asking.next_timeout() == now + 200_000


def test_the_end_waits_for_what_is_said_and_for_nothing_else() -> None:
    asking = HeldRequests()
    asking.requests(START)
    asking.write([b"goodbye"])
    asking.finish()
    before = asking.over
    (ask,) = asking.requests(START)
    meanwhile = asking.over
    asking.answered(ask.number, START, brought=False)
    assert (before, meanwhile, asking.over) == (False, False, True)
    assert asking.requests(START + WAIT) == []


def test_a_held_request_is_answered_when_there_is_something_to_say_or_its_time_is_up() -> None:
    answering = Answering(START)
    assert answering.ask(1, seen=1, wait=10 * SECOND, now=START)
    assert answering.answers(START) == []
    answering.write([b"hello"])
    assert answering.answers(START) == [(1, b"\x05hello")]
    assert answering.ask(2, seen=2, wait=10 * SECOND, now=START)
    assert answering.next_timeout() == START + 10 * SECOND
    assert answering.answers(START + 10 * SECOND) == [(2, b"")]


def test_the_same_request_gets_the_same_answer_until_it_was_seen() -> None:
    answering = Answering(START)
    answering.write([b"hello"])
    assert answering.ask(1, seen=1, wait=0, now=START)
    assert answering.answers(START) == [(1, b"\x05hello")]
    assert not answering.ask(1, seen=1, wait=0, now=START)
    assert answering.answers(START) == [(1, b"\x05hello")]
    assert answering.ask(2, seen=2, wait=0, now=START)
    with pytest.raises(Conflict, match="was seen already"):
        answering.ask(1, seen=1, wait=0, now=START)


def test_a_request_whose_maker_hung_up_is_known_when_it_comes_again() -> None:
    answering = Answering(START)
    assert answering.ask(1, seen=1, wait=SECOND, now=START)
    answering.hung_up(1, START)
    answering.write([b"hello"])
    assert answering.answers(START) == [], "nobody is there to hear it"
    assert not answering.ask(1, seen=1, wait=SECOND, now=START)
    assert answering.answers(START) == [(1, b"\x05hello")]


def test_one_too_many_frees_the_first() -> None:
    answering = Answering(START)
    for number in range(1, MOST_HELD + 2):
        answering.ask(number, seen=1, wait=SECOND, now=START)
    assert answering.answers(START) == [(1, b"")]
    assert answering.held == MOST_HELD


def test_numbers_do_not_run_ahead() -> None:
    answering = Answering(START)
    with pytest.raises(InvalidRequest, match="too many requests are open"):
        answering.ask(1 + WINDOW, seen=1, wait=0, now=START)


def test_what_is_kept_for_a_device_that_never_says_what_it_saw_is_bounded() -> None:
    answering = Answering(START)
    answering.write([bytes(BODY)] * 100)
    kept = 0
    for number in range(1, 1 + WINDOW):
        answering.ask(number, seen=1, wait=0, now=START)
        kept += sum(len(body) for _, body in answering.answers(START))
    assert kept < MOST_KEPT + BODY + 10


def test_requests_come_no_faster_than_they_may() -> None:
    answering = Answering(START)
    for number in range(1, BURST + 1):
        answering.ask(number, seen=number, wait=0, now=START)
        answering.answers(START)
    with pytest.raises(QuotaExceeded) as refused:
        answering.ask(BURST + 1, seen=BURST + 1, wait=0, now=START)
    assert refused.value.retry_after == 1
    later = START + SECOND
    for number in range(BURST + 1, BURST + 1 + PER_SECOND):
        answering.ask(number, seen=number, wait=0, now=later)
    with pytest.raises(QuotaExceeded):
        answering.ask(BURST * 2, seen=BURST * 2, wait=0, now=later)


@pytest.mark.parametrize("every, idle", [(0, SHORTEST_IDLE), (60 * SECOND, 150 * SECOND)])
def test_a_device_that_asks_nothing_is_gone(every: Micros, idle: Micros) -> None:
    answering = Answering(START, every=every)
    assert answering.next_timeout() == START + idle
    assert not answering.gone(START + idle - 1)
    assert answering.gone(START + idle)
    answering.ask(1, seen=1, wait=WAIT, now=START)
    assert not answering.gone(START + idle), "it waits for an answer"


def test_at_the_end_nobody_is_left_waiting() -> None:
    answering = Answering(START)
    answering.ask(1, seen=1, wait=WAIT, now=START)
    answering.ask(2, seen=1, wait=WAIT, now=START)
    answering.write([b"bye"])
    answering.ending = True
    assert answering.answers(START) == [(1, b"\x03bye"), (2, b"")]
