"""What a device with wishes promises about each message that it sends, frame by frame."""

from __future__ import annotations

import pytest

from lasthop.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Micros
from lasthop.decision.budgets import Limit, Measure
from lasthop.decision.choice import QueueTerms
from lasthop.decision.cost import Weights
from lasthop.decision.link_calendar import CalendarEntry, LinkCalendar
from lasthop.decision.links import Link, Tariff
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Preferences
from lasthop.decision.reasons import Code
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.requests.expectation import Expectation
from lasthop.device.session import DeviceSession
from lasthop.device.session_events import LinkSpent, LinksWanted, Refused, TimedOut
from lasthop.device.terms import DeviceTerms
from lasthop.errors import StoreBroken
from lasthop.message import Reliability
from lasthop.wire.hop.frames import (
    Ack,
    Credit,
    Ending,
    EndStatus,
    Feature,
    Frame,
    Headers,
    MessageFrame,
    Operation,
    Piece,
    Skip,
    Taken,
)
from tests.device.peer import NOW, TERMS, Peer

WIFI = Link("wifi", Tariff(), latency=20 * MILLISECOND)
MNO = Link("mno", Tariff(per_unit=1000), latency=200 * MILLISECOND)
SAT = Link("sat", Tariff(per_unit=50_000), latency=2 * SECOND)
CHEAP = Weights(1, 0, 0, 0)

ON_WIFI, ON_MNO, ON_SAT = 1, 2, 3
LABELS = {ON_WIFI: "wifi", ON_MNO: "mno", ON_SAT: "sat"}


def per_day(amount: int, measure: Measure = Measure.MESSAGES, **about: object) -> Limit:
    return Limit(amount, measure, Period.DAY, **about)  # type: ignore[arg-type]


def prefer(**preferences: object) -> Preferences:
    preferences.setdefault("links", (WIFI, MNO, SAT))
    return Preferences(**preferences)  # type: ignore[arg-type]


class Preferring(Peer):
    """A peer whose device has wishes; what leaves is told by channel."""

    def __init__(
        self, preferences: Preferences, terms: DeviceTerms = TERMS, inbox: MemoryInbox | None = None
    ) -> None:
        super().__init__(terms, inbox)
        self.now = NOW
        self.session.preferences.prefer(preferences)

    def meet(self, *channels: int, received: int = 0, window: Credit | None = None) -> None:
        """Be welcomed, over these channels."""
        features = Feature.STREAMS
        assert self.welcome(received=received, now=self.now, window=window, features=features)
        for channel in channels:
            self.session.link_up(channel, LABELS[channel])

    def turn(self, after: Micros = 0) -> tuple[list[Frame], dict[int, list[Frame]]]:
        """Time passes, everything is decided and made durable: what leaves."""
        self.now += after
        self.session.decide(self.now)
        while self.commit():
            pass
        return self.session.frames(), self.session.routed()

    def left(self, after: Micros = 0) -> dict[int, list[str]]:
        """The bodies of messages that leave now, by channel."""
        _, routed = self.turn(after)
        bodies = {
            channel: [frame.body.decode() for frame in frames if isinstance(frame, MessageFrame)]
            for channel, frames in routed.items()
        }
        return {channel: texts for channel, texts in bodies.items() if texts}

    def send(self, *bodies: str, **headers: object) -> list[int]:
        headers.setdefault("to", "device:x")
        said = Headers(**headers)  # type: ignore[arg-type]
        queue = self.session.queue
        return [queue(self.now, headers=said, body=body.encode()) for body in bodies]

    def taken(self, count: int) -> None:
        """The gateway has so many numbers."""
        self.arrive(Ack(count, count), now=self.now)

    def why(self, key: int) -> list[Code]:
        explanation = self.session.preferences.explain(key)
        assert explanation is not None
        return [reason.code for reason in explanation.reasons]

    def used(self) -> list[int]:
        return [meter.used + meter.held for meter in self.session.preferences.spending(self.now)]

    def refusals(self) -> dict[int, str]:
        happened = self.session.session_events()
        return {h.key: h.refusal.code for h in happened if isinstance(h, Refused)}

    def restart(self) -> None:
        """Lose what was not committed, and come back."""
        self.inbox = self.inbox.crash()
        self.session = DeviceSession(self.terms, self.inbox.load())


def preferring(*channels: int, **preferences: object) -> Preferring:
    peer = Preferring(prefer(**preferences))
    peer.meet(*channels)
    return peer


class TestChoice:
    def test_a_message_goes_over_the_link_that_costs_least(self) -> None:
        peer = preferring(ON_WIFI, ON_MNO)
        (key,) = peer.send("a")
        assert peer.left() == {ON_WIFI: ["a"]}
        assert peer.why(key) == [Code.DEARER, Code.CHOSEN]
        explanation = peer.session.preferences.explain(key)
        assert explanation is not None
        assert (explanation.outlook, explanation.link) == ("sent", "wifi")
        assert "wifi has the lowest cost" in str(explanation)

    def test_each_queue_has_its_own_link(self) -> None:
        queues = (QueueTerms("dear", links=("sat",)), QueueTerms("home", links=("wifi",)))
        peer = preferring(ON_WIFI, ON_SAT, queues=queues)
        peer.send("a", queue="dear")
        peer.send("b", queue="home")
        peer.send("c", queue="dear")
        assert peer.left() == {ON_SAT: ["a", "c"], ON_WIFI: ["b"]}

    def test_nothing_leaves_before_its_number_and_price_are_durable(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(5),))
        peer.turn()
        peer.send("a")
        peer.session.decide(NOW)
        assert peer.session.routed() == {}
        peer.commit()
        (frame,) = peer.session.routed()[ON_MNO]
        assert isinstance(frame, MessageFrame)
        assert frame.seq == 0
        restarted = Peer(TERMS, peer.inbox)
        (meter,) = restarted.session.preferences.spending(NOW)
        assert meter.used == 1

    def test_a_message_that_would_break_a_limit_goes_over_another_link(self) -> None:
        peer = preferring(ON_MNO, ON_SAT, limits=(per_day(2, link="mno"),))
        keys = peer.send("a", "b", "c")
        assert peer.left() == {ON_MNO: ["a", "b"], ON_SAT: ["c"]}
        assert Code.OVER_LIMIT in peer.why(keys[2])
        assert peer.used() == [2]

    def test_without_a_link_that_may_carry_it_a_message_waits_for_the_next_day(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(2),))
        keys = peer.send("a", "b", "c")
        assert peer.left() == {ON_MNO: ["a", "b"]}
        (waiting,) = peer.session.preferences.held_back()
        assert waiting.id == f"{keys[2]:016x}"
        assert waiting.outlook == "waiting"
        assert "2 messages per day used" in str(waiting)
        due = peer.session.next_expiry()
        assert due is not None
        assert waiting.until == due
        assert peer.left(due - NOW - 1) == {}
        assert peer.left(1) == {ON_MNO: ["c"]}

    def test_money_and_bytes_are_counted_as_they_travel(self) -> None:
        tariff = Tariff(per_unit=10, unit=140, per_volume=1000, volume=1000)
        limits = (per_day(10_000, Measure.BYTES), per_day(10_000, Measure.MONEY))
        peer = preferring(ON_MNO, links=(Link("mno", tariff),), limits=limits)
        (key,) = peer.send("x" * 300)
        assert peer.left() == {ON_MNO: ["x" * 300]}
        size, money = peer.used()
        assert 300 < size < 340
        assert money == tariff.charge(size).money
        assert peer.session.preferences.explain(key) is not None

    def test_what_is_measured_counts_and_not_what_was_declared(self) -> None:
        """Each acknowledgement says how long its message took, and nothing else is sent for it."""
        queues = (QueueTerms("", weights=Weights(0, 0, 1, 0)),)
        peer = preferring(ON_WIFI, ON_MNO, queues=queues)
        peer.send("a")
        assert peer.left() == {ON_WIFI: ["a"]}
        peer.now += 900 * MILLISECOND
        peer.taken(1)
        peer.send("b")
        assert peer.left() == {ON_MNO: ["b"]}

    def test_a_message_that_is_more_than_a_whole_limit_waits_for_another_link(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(200, Measure.BYTES, link="mno"),))
        (key,) = peer.send("x" * 300)
        assert peer.left() == {}
        assert peer.why(key) == [Code.NEVER_FITS]
        peer.session.link_up(ON_WIFI, "wifi")
        assert peer.left() == {ON_WIFI: ["x" * 300]}


class TestLanes:
    def test_what_waits_holds_up_its_own_lane_only(self) -> None:
        queues = (QueueTerms("home", links=("wifi",)),)
        peer = preferring(ON_MNO, queues=queues)
        keys = peer.send("a", "b", queue="home")
        peer.send("c")
        assert peer.left() == {ON_MNO: ["c"]}
        assert peer.why(keys[0]) == [Code.NOT_ALLOWED]
        assert peer.why(keys[1]) == [Code.BEHIND]
        assert f"{keys[0]:016x}" in str(peer.session.preferences.explain(keys[1]))
        assert peer.session.waiting == 3
        peer.session.link_up(ON_WIFI, "wifi")
        assert peer.left() == {ON_WIFI: ["a", "b"]}

    def test_what_is_scarce_goes_to_the_highest_priority(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(2),))
        peer.send("low", priority=1)
        peer.send("high", priority=9)
        peer.send("middle", priority=5)
        assert peer.left() == {ON_MNO: ["high", "middle"]}

    def test_best_effort_is_chosen_for_and_counted_as_well(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(1),))
        first, second = peer.send("a", "b", reliability=Reliability.BEST_EFFORT)
        _, routed = peer.turn()
        (frame,) = routed[ON_MNO]
        assert isinstance(frame, MessageFrame)
        assert (frame.seq, frame.key) == (None, first)
        assert peer.session.waiting == 1
        assert peer.why(second) == [Code.OVER_LIMIT]

    def test_without_credit_a_message_waits_for_the_gateway(self) -> None:
        peer = Preferring(prefer())
        peer.meet(ON_WIFI, window=Credit(2, 1 << 20))
        peer.send("a", "b", "c")
        assert peer.left() == {ON_WIFI: ["a", "b"]}
        peer.taken(1)
        assert peer.left() == {ON_WIFI: ["c"]}

    def test_more_credit_lets_more_leave(self) -> None:
        peer = Preferring(prefer())
        peer.meet(ON_WIFI, window=Credit(1, 1 << 20))
        peer.send("a", "b")
        assert peer.left() == {ON_WIFI: ["a"]}
        peer.arrive(Credit(2, 1 << 20))
        assert peer.left() == {ON_WIFI: ["b"]}

    def test_no_more_leaves_in_a_turn_than_the_unsent_buffer_should_hold(self) -> None:
        peer = preferring(ON_WIFI)
        peer.send("x" * 1000, "y" * 1000, "z" * 1000)
        peer.session.decide(NOW, budget=1500)
        peer.commit()
        assert len(peer.session.routed()[ON_WIFI]) == 2
        assert peer.session.more
        peer.session.decide(NOW, budget=1500)
        peer.commit()
        assert len(peer.session.routed()[ON_WIFI]) == 1
        assert not peer.session.more

    def test_a_link_whose_buffer_is_full_gets_nothing(self) -> None:
        peer = preferring(ON_WIFI, ON_MNO)
        peer.session.link_paused(ON_WIFI, True)
        peer.send("a")
        assert peer.left() == {ON_MNO: ["a"]}
        peer.session.link_paused(ON_MNO, True)
        peer.send("b")
        assert peer.left() == {}
        peer.session.link_paused(ON_WIFI, False)
        assert peer.left() == {ON_WIFI: ["b"]}


class TestWaiting:
    CALENDAR = LinkCalendar.of(
        [CalendarEntry("wifi", tuple(range(7)), 0, 24, 0.9)], zone_name="UTC"
    )

    def patient(self) -> Preferring:
        queues = (QueueTerms("", max_delay=10 * MINUTE),)
        return preferring(ON_MNO, queues=queues, calendar=self.CALENDAR)

    def test_a_better_link_is_waited_for_as_long_as_it_is_likely(self) -> None:
        peer = self.patient()
        (key,) = peer.send("a")
        assert peer.left() == {}
        assert peer.why(key) == [Code.WAITS_FOR_LINK]
        assert LinksWanted(("wifi",)) in peer.session.session_events()
        assert peer.session.next_expiry() == NOW + 9 * MINUTE
        assert peer.left(9 * MINUTE - 1) == {}
        assert peer.left(1) == {ON_MNO: ["a"]}

    def test_when_it_comes_the_wait_is_over(self) -> None:
        peer = self.patient()
        peer.send("a")
        assert peer.left() == {}
        peer.session.link_up(ON_WIFI, "wifi")
        assert peer.left(MINUTE) == {ON_WIFI: ["a"]}

    def test_a_deadline_ends_the_wait_in_time(self) -> None:
        peer = self.patient()
        peer.send("a", deliver_within=60_000)
        assert peer.left() == {}
        due = peer.session.next_expiry()
        assert due is not None
        assert NOW + 50 * SECOND < due < NOW + MINUTE
        assert peer.left(due - NOW) == {ON_MNO: ["a"]}

    def test_no_longer_than_the_message_itself_tolerates(self) -> None:
        peer = self.patient()
        peer.send("a", tolerance=60_000)
        assert peer.left() == {}
        assert peer.session.next_expiry() == NOW + 54 * SECOND
        assert peer.left(54 * SECOND) == {ON_MNO: ["a"]}

    def test_the_wait_goes_on_after_a_restart(self) -> None:
        peer = self.patient()
        peer.send("a")
        assert peer.left(MINUTE) == {}
        peer.restart()
        peer.meet(ON_MNO)
        assert peer.left() == {}
        assert peer.left(8 * MINUTE) == {ON_MNO: ["a"]}

    def test_the_owner_is_told_once_which_links_would_help(self) -> None:
        peer = self.patient()
        peer.send("a")
        peer.turn()
        assert LinksWanted(("wifi",)) in peer.session.session_events()
        peer.send("b", priority=9)
        peer.turn()
        assert LinksWanted(("wifi",)) not in peer.session.session_events()


class TestDeadlines:
    def test_what_is_too_late_never_leaves_and_its_sender_is_told(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(0),))
        (key,) = peer.send("a", deliver_within=5000)
        assert peer.left() == {}
        assert peer.session.next_expiry() == NOW + 5 * SECOND
        assert peer.left(5 * SECOND) == {}
        assert peer.refusals() == {key: "expired"}
        assert peer.session.waiting == 0
        change = peer.session.change(flush=True)
        assert change is not None
        assert change.taken == [key]

    def test_also_without_any_contact(self) -> None:
        peer = Preferring(prefer())
        (key,) = peer.send("a", deliver_within=5000)
        peer.turn()
        assert peer.why(key) == [Code.NO_LINK]
        peer.turn(5 * SECOND)
        assert peer.refusals() == {key: "expired"}

    def test_a_deadline_is_met_over_a_dearer_link(self) -> None:
        queues = (QueueTerms("", weights=CHEAP),)
        peer = preferring(ON_MNO, ON_SAT, links=(MNO, replaced(SAT, per_unit=1)), queues=queues)
        peer.send("soon", deliver_within=1000)
        peer.send("later", priority=5)
        assert peer.left() == {ON_MNO: ["soon"], ON_SAT: ["later"]}

    def test_if_all_would_be_late_the_fastest_is_tried(self) -> None:
        peer = preferring(ON_MNO, ON_SAT)
        (key,) = peer.send("a", deliver_within=100)
        assert peer.left() == {ON_MNO: ["a"]}
        assert peer.why(key) == [Code.LATE_ANYWAY]


def replaced(link: Link, **tariff: int) -> Link:
    return Link(link.label, Tariff(**tariff), latency=link.latency)


class TestRestart:
    def test_what_was_spent_stays_spent(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(3),))
        peer.send("a", "b")
        assert peer.left() == {ON_MNO: ["a", "b"]}
        peer.taken(2)
        peer.turn()
        peer.restart()
        assert peer.session.preferences.preferences.limits == (per_day(3),)
        peer.meet(ON_MNO, received=2)
        peer.send("c", "d")
        assert peer.left() == {ON_MNO: ["c"]}
        assert peer.used() == [3]

    def test_what_may_have_left_counts_as_spent_and_is_paid_for_again(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(3),))
        peer.send("a", "b")
        peer.turn()
        peer.restart()
        peer.meet(ON_MNO)
        assert peer.left() == {ON_MNO: ["a"]}
        assert peer.used() == [3]
        assert [e.outlook for e in peer.session.preferences.held_back()] == ["waiting"]

    def test_what_waited_waits_on_in_its_order(self) -> None:
        peer = preferring(ON_MNO, queues=(QueueTerms("home", links=("wifi",)),))
        peer.send("a", "b", queue="home")
        assert peer.left() == {}
        peer.restart()
        assert peer.session.waiting == 2
        peer.meet(ON_WIFI)
        assert peer.left() == {ON_WIFI: ["a", "b"]}

    def test_wishes_that_cannot_be_read_are_an_error(self) -> None:
        inbox = MemoryInbox()
        with inbox.transaction() as transaction:
            transaction.put("lasthop.wishes", b"\xc1")
        with pytest.raises(StoreBroken, match="the preferences in the inbox cannot be read"):
            DeviceSession(TERMS, inbox.load())


class TestLoss:
    def test_a_lost_link_is_replaced_by_another_under_the_same_number(self) -> None:
        peer = preferring(ON_WIFI, ON_MNO)
        (key,) = peer.send("a")
        assert peer.left() == {ON_WIFI: ["a"]}
        peer.session.rerouted(ON_WIFI)
        _, routed = peer.turn()
        (frame,) = routed[ON_MNO]
        assert isinstance(frame, MessageFrame)
        assert frame.seq == 0
        assert peer.why(key) == [Code.NO_RECEIPT, Code.CHOSEN]

    def test_what_left_over_another_link_does_not_leave_again(self) -> None:
        queues = (QueueTerms("dear", links=("mno",)),)
        peer = preferring(ON_WIFI, ON_MNO, queues=queues)
        peer.send("a")
        peer.send("b", queue="dear")
        assert peer.left() == {ON_WIFI: ["a"], ON_MNO: ["b"]}
        peer.session.rerouted(ON_WIFI)
        assert peer.left() == {ON_MNO: ["a"]}

    def test_what_was_released_for_a_link_that_is_gone_is_not_paid_for(self) -> None:
        peer = preferring(ON_WIFI, ON_MNO, limits=(per_day(5, link="wifi"),))
        peer.send("a")
        peer.session.decide(NOW)
        assert peer.used() == [1]
        peer.session.rerouted(ON_WIFI)
        assert peer.used() == [0]
        assert peer.left() == {ON_MNO: ["a"]}

    def test_what_no_other_link_may_carry_is_taken_back_in_a_new_contact(self) -> None:
        peer = preferring(ON_WIFI, ON_MNO, queues=(QueueTerms("home", links=("wifi",)),))
        peer.send("a", queue="home")
        assert peer.left() == {ON_WIFI: ["a"]}
        peer.session.rerouted(ON_WIFI)
        peer.send("b")
        assert peer.left() == {ON_MNO: ["b"]}
        assert stuck(peer)
        peer.session.lost()
        peer.meet(ON_MNO)
        assert not stuck(peer)
        assert peer.session.frames() == []  # Not before it is durable that they have no numbers.
        frames, routed = peer.turn()
        assert frames == [Skip(0, 2)]
        (frame,) = routed[ON_MNO]
        assert isinstance(frame, MessageFrame)
        assert (frame.seq, frame.body) == (2, b"b")
        peer.session.link_up(ON_WIFI, "wifi")
        assert peer.left() == {ON_WIFI: ["a"]}

    def test_after_a_crash_a_number_that_was_taken_back_is_skipped(self) -> None:
        peer = preferring(ON_WIFI, queues=(QueueTerms("home", links=("wifi",)),))
        peer.send("a", queue="home")
        peer.turn()
        peer.session.lost()
        peer.meet(ON_MNO)
        peer.turn()
        peer.restart()
        peer.meet(ON_MNO)
        frames, routed = peer.turn()
        assert (frames, routed) == ([Skip(0, 1)], {})
        peer.taken(1)
        peer.session.link_up(ON_WIFI, "wifi")
        assert peer.left() == {ON_WIFI: ["a"]}

    def test_what_the_gateway_has_is_not_decided_again(self) -> None:
        peer = preferring(ON_WIFI, limits=(per_day(2),))
        peer.send("a", "b")
        assert peer.left() == {ON_WIFI: ["a", "b"]}
        peer.session.lost()
        peer.meet(ON_WIFI, received=2)
        frames, routed = peer.turn()
        assert (frames, routed) == ([], {})
        assert peer.session.waiting == 0

    def test_in_a_new_epoch_everything_is_decided_again(self) -> None:
        peer = preferring(ON_WIFI)
        peer.send("a", "b")
        peer.turn()
        peer.session.lost()
        assert peer.welcome(epoch=2, superseded=1)
        peer.session.link_up(ON_WIFI, "wifi")
        _, routed = peer.turn()
        (frame,) = routed[ON_WIFI]
        assert isinstance(frame, MessageFrame)
        assert frame.body == b"b"

    def test_a_missing_receipt_brings_another_link_in(self) -> None:
        peer = preferring(ON_WIFI, ON_MNO, limits=(per_day(2),))
        (key,) = peer.send("a")
        assert peer.left() == {ON_WIFI: ["a"]}
        due = peer.session.next_expiry()
        assert due == NOW + SECOND
        assert peer.left(SECOND) == {ON_MNO: ["a"]}
        assert peer.why(key) == [Code.NO_RECEIPT, Code.DEARER, Code.CHOSEN]
        assert peer.used() == [2]
        assert peer.left(HOUR) == {}  # A third time is more than there is money for.
        peer.taken(1)
        peer.turn()
        assert peer.session.waiting == 0

    def test_with_one_link_nobody_waits_for_receipts(self) -> None:
        peer = preferring(ON_WIFI)
        peer.send("a")
        assert peer.left() == {ON_WIFI: ["a"]}
        assert peer.session.next_expiry() is None
        assert peer.left(HOUR) == {}


class TestSpentLinks:
    def test_a_link_that_has_reached_its_limit_is_called_so_once_nothing_is_on_it(self) -> None:
        peer = preferring(ON_MNO, ON_SAT, limits=(per_day(1, link="mno"),))
        peer.send("a")
        assert peer.left() == {ON_MNO: ["a"]}
        assert not spent(peer)
        peer.taken(1)
        peer.turn()
        (told,) = spent(peer)
        assert (told.channel, told.link) == (ON_MNO, "mno")
        assert NOW < told.until <= NOW + DAY
        peer.turn()
        assert not spent(peer)

    def test_also_after_a_restart(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(1, link="mno"),))
        peer.send("a")
        peer.turn()
        peer.taken(1)
        peer.turn()
        peer.restart()
        peer.meet(ON_SAT, ON_MNO, received=1)
        peer.turn()
        assert [told.link for told in spent(peer)] == ["mno"]


def stuck(peer: Preferring) -> bool:
    return peer.session.stuck


def spent(peer: Preferring) -> list[LinkSpent]:
    return [h for h in peer.session.session_events() if isinstance(h, LinkSpent)]


class TestWordsForTheGateway:
    def test_they_are_not_held_and_not_counted(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(0),))
        peer.session.queue(NOW, topic="news", headers=Headers(operation=Operation.SUBSCRIBE))
        frames, routed = peer.turn()
        assert routed == {}
        (frame,) = (frame for frame in frames if isinstance(frame, MessageFrame))
        assert (frame.seq, frame.topic) == (0, "news")
        assert peer.used() == [0]

    def test_they_go_again_when_a_link_is_lost_and_in_a_new_contact(self) -> None:
        peer = preferring(ON_MNO, ON_WIFI)
        peer.send("a")
        peer.session.queue(NOW, topic="news", headers=Headers(operation=Operation.SUBSCRIBE))

        def said(frames: list[Frame]) -> list[int | None]:
            return [frame.seq for frame in frames if isinstance(frame, MessageFrame)]

        (number,) = said(peer.turn()[0])
        assert said(peer.turn()[0]) == []
        peer.session.rerouted(ON_MNO)
        assert said(peer.turn()[0]) == [number]
        peer.session.lost()
        peer.meet(ON_MNO)
        assert said(peer.turn()[0]) == [number]


class TestBeginningAndEnd:
    def test_what_was_queued_before_is_decided_about_too(self) -> None:
        peer = Preferring(Preferences())
        peer.send("a", "b")
        peer.said()
        peer.session.preferences.prefer(prefer(limits=(per_day(1),)))
        peer.meet(ON_WIFI)
        assert peer.left() == {ON_WIFI: ["a"]}

    def test_what_has_a_number_in_mid_contact_waits_for_a_new_one(self) -> None:
        peer = Preferring(Preferences())
        peer.meet(ON_WIFI, window=Credit(1, 1 << 20))
        peer.send("a", "b")
        assert len(peer.said()) == 1
        peer.session.preferences.prefer(prefer())
        assert peer.session.stuck
        assert peer.turn() == ([], {})
        peer.session.lost()
        peer.meet(ON_WIFI, received=1)
        assert peer.left() == {ON_WIFI: ["b"]}

    def test_without_wishes_everything_leaves_as_it_came(self) -> None:
        peer = preferring(ON_MNO, queues=(QueueTerms("home", links=("wifi",)),))
        peer.send("a", queue="home")
        peer.send("b")
        peer.send("c", reliability=Reliability.BEST_EFFORT)
        assert peer.left() == {ON_MNO: ["b", "c"]}
        peer.taken(1)
        peer.send("d", queue="home")
        peer.session.preferences.prefer(Preferences())
        frames, routed = peer.turn()
        assert routed == {}
        assert [f.body for f in frames if isinstance(f, MessageFrame)] == [b"a", b"d"]
        peer.restart()
        assert peer.session.preferences.preferences == Preferences()

    def test_other_wishes_hold_at_once_and_what_was_used_stays_used(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(1),))
        peer.send("a", "b", "c")
        assert peer.left() == {ON_MNO: ["a"]}
        peer.session.preferences.prefer(prefer(limits=(per_day(2),), zone="Europe/Oslo"))
        assert peer.left() == {ON_MNO: ["b"]}
        assert peer.used() == [2]


class TestPieces:
    TERMS = DeviceTerms(app="shop", name="phone", segment=1000)

    def large(self, *channels: int, **preferences: object) -> tuple[Preferring, int]:
        peer = Preferring(prefer(**preferences), self.TERMS)
        peer.meet(*channels)
        (key,) = peer.send("x" * 5000)
        peer.turn()
        return peer, key

    def pieces(self, peer: Preferring) -> dict[int, int]:
        """Bytes of pieces that leave, by channel."""
        found: dict[int, int] = {}
        while True:
            _, routed = peer.turn()
            sent = [(c, f) for c, frames in routed.items() for f in frames if isinstance(f, Piece)]
            if not sent:
                return found
            for channel, piece in sent:
                found[channel] = found.get(channel, 0) + len(piece.body)

    def test_a_body_goes_ahead_over_the_link_that_was_chosen_and_is_paid_for(self) -> None:
        limit = per_day(10_000, Measure.BYTES, link="mno")
        peer, key = self.large(ON_MNO, limits=(limit,))
        peer.arrive(Taken(key, 0, 1 << 20))
        assert self.pieces(peer) == {ON_MNO: 5000}
        assert peer.used() == [5000]
        peer.arrive(Ending(key, EndStatus.CONFIRMED))
        _, routed = peer.turn()
        (frame,) = routed[ON_MNO]
        assert isinstance(frame, MessageFrame)
        assert frame.headers is not None
        assert (frame.headers.ahead, frame.body) == (5000, b"")
        (used,) = peer.used()
        assert 5000 < used < 5100

    def test_it_counts_as_one_message(self) -> None:
        peer, key = self.large(ON_MNO, limits=(per_day(1), per_day(1, Measure.UNITS)))
        peer.arrive(Taken(key, 0, 1 << 20))
        assert self.pieces(peer) == {ON_MNO: 5000}
        peer.arrive(Ending(key, EndStatus.CONFIRMED))
        peer.turn()
        assert peer.used() == [1, 1]

    def test_no_body_is_begun_that_cannot_be_afforded(self) -> None:
        peer, key = self.large(ON_MNO, limits=(per_day(4000, Measure.BYTES, link="mno"),))
        peer.arrive(Taken(key, 0, 1 << 20))
        assert self.pieces(peer) == {}
        assert peer.why(key) == [Code.NEVER_FITS]
        peer.session.link_up(ON_WIFI, "wifi")
        assert self.pieces(peer) == {ON_WIFI: 5000}

    def test_only_what_left_is_paid_for_when_its_link_is_lost(self) -> None:
        limits = (per_day(10_000, Measure.BYTES, link="mno"),)
        peer, key = self.large(ON_MNO, ON_WIFI, limits=limits, queues=(ONLY_MNO,))
        peer.arrive(Taken(key, 0, 2000))
        assert self.pieces(peer) == {ON_MNO: 2000}
        assert peer.used() == [5000]
        peer.session.rerouted(ON_MNO)
        assert peer.used() == [2000]
        peer.session.link_up(ON_MNO + 10, "mno")
        peer.arrive(Taken(key, 1500, 1 << 20))
        assert self.pieces(peer) == {ON_MNO + 10: 3500}
        assert peer.used() == [5500]

    def test_a_body_that_is_too_late_is_given_up(self) -> None:
        peer = Preferring(prefer(limits=(per_day(0),)), self.TERMS)
        peer.meet(ON_MNO)
        (key,) = peer.send("x" * 5000, deliver_within=5000)
        peer.turn()
        peer.arrive(Taken(key, 0, 1 << 20))
        frames, _ = peer.turn(5 * SECOND)
        assert peer.refusals() == {key: "expired"}
        assert Ending(key, EndStatus.ABORTED, reason="it is too late") in frames

    def test_in_a_new_contact_the_gateway_is_asked_whether_it_still_has_a_body(self) -> None:
        """It may have gone back to an older copy of itself, which nobody told the device."""
        peer, key = self.large(ON_MNO)
        peer.arrive(Taken(key, 0, 1 << 20))
        assert self.pieces(peer) == {ON_MNO: 5000}
        peer.arrive(Ending(key, EndStatus.CONFIRMED))
        peer.session.lost()
        peer.meet(ON_MNO)
        frames, routed = peer.turn()
        assert Piece(key, 0, b"") in frames
        assert not routed
        peer.arrive(Taken(key, 0, 1 << 20))
        assert self.pieces(peer) == {ON_MNO: 5000}
        peer.arrive(Ending(key, EndStatus.CONFIRMED))
        _, routed = peer.turn()
        assert [f.key for f in routed[ON_MNO] if isinstance(f, MessageFrame)] == [key]

    def test_a_body_waits_behind_one_of_its_lane_that_was_taken_back(self) -> None:
        peer = Preferring(prefer(), self.TERMS)
        peer.meet(ON_MNO)
        (first,) = peer.send("a" * 5000)
        (second,) = peer.send("b" * 4000, deliver_within=5000)
        peer.turn()
        peer.arrive(Taken(first, 0, 1 << 20))
        peer.turn()
        peer.arrive(Ending(first, EndStatus.CONFIRMED))
        peer.turn()  # The first leaves, and the body of the second begins.
        peer.session.lost()
        peer.meet(ON_MNO)
        peer.turn()
        peer.turn(6 * SECOND)
        for key in (first, second):
            peer.arrive(Taken(key, 0, 1 << 20))
        assert self.pieces(peer) == {ON_MNO: 5000}
        peer.arrive(Ending(first, EndStatus.CONFIRMED))
        _, routed = peer.turn()
        assert [f.key for f in routed[ON_MNO] if isinstance(f, MessageFrame)] == [first]
        assert peer.refusals() == {second: "expired"}

    def test_a_body_that_waits_holds_up_none_of_another_queue(self) -> None:
        patient = QueueTerms("photos", links=("wifi",))
        peer = Preferring(prefer(queues=(patient,)), self.TERMS)
        peer.meet(ON_MNO)
        (waits,) = peer.send("a" * 5000, queue="photos")
        (goes,) = peer.send("b" * 4000)
        peer.turn()
        for key in (waits, goes):
            peer.arrive(Taken(key, 0, 1 << 20))
        assert self.pieces(peer) == {ON_MNO: 4000}

    def test_a_body_that_the_gateway_will_not_take_is_refused(self) -> None:
        peer, key = self.large(ON_MNO)
        peer.arrive(Ending(key, EndStatus.STOPPED, reason="too much"))
        peer.turn()
        assert peer.refusals() == {key: "too_large"}

    def test_a_stream_is_granted_some_bytes_at_a_time(self) -> None:
        limit = per_day(100_000, Measure.BYTES, link="mno")
        terms = DeviceTerms(app="shop", name="phone", stream_window=256 << 10)
        peer = Preferring(prefer(limits=(limit,)), terms)
        peer.meet(ON_MNO)
        headers = Headers(to="device:x", stream=True)
        key = peer.session.pieces.open_stream(NOW, headers)
        peer.turn()
        peer.taken(1)
        assert peer.session.pieces.outgoing.write(key, b"x" * 150_000) == 150_000
        peer.turn()
        peer.arrive(Taken(key, 0, 1 << 20))
        assert self.pieces(peer) == {ON_MNO: 64 << 10}
        assert peer.why(key) == [Code.OVER_LIMIT]
        peer.session.link_up(ON_WIFI, "wifi")
        assert self.pieces(peer) == {ON_WIFI: 150_000 - (64 << 10)}


ONLY_MNO = QueueTerms("", links=("mno",))


class TestRequests:
    def ask(self, peer: Preferring, *, reply_within: int, callback: str = "") -> int:
        headers = Headers(to="device:x", reply_within=reply_within, deliver_within=reply_within)
        expects = Expectation(target="device:x", callback=callback)
        return peer.session.requests.ask(peer.now, expects, headers=headers, body=b"?")

    def test_a_request_that_waited_until_nobody_waits_for_its_answer_ends_once(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(0),))
        key = self.ask(peer, reply_within=1000)
        peer.turn()
        peer.session.expire(NOW + SECOND)
        peer.turn(SECOND)
        ends = [h for h in peer.session.session_events() if isinstance(h, Refused | TimedOut)]
        assert ends == [TimedOut(key)]

    def test_also_one_for_a_callback_that_has_been_told(self) -> None:
        peer = preferring(ON_MNO, limits=(per_day(0),))
        self.ask(peer, reply_within=1000, callback="price")
        peer.turn()
        peer.session.expire(NOW + SECOND)
        peer.session.finished(*peer.session.fresh(NOW + SECOND))
        peer.turn(SECOND)
        assert peer.refusals() == {}
        assert peer.session.waiting == 0
