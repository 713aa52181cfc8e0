"""One promise at a time: what a feed does with an arrival, a change of rank, a contact, a read."""

from __future__ import annotations

import pytest

from lasthop.clock import DAY, HOUR, Micros
from lasthop.decision.constraints import QuietHours
from lasthop.decision.policies import POLICIES, Policy, Tuning
from lasthop.decision.volume.effects import DropEvent, Effect, Forward, Hold, Rerank, Retract, Show
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.holdings import HISTORY
from lasthop.decision.volume.inputs import (
    Arrived,
    ContactDown,
    ContactUp,
    EventWithdrawn,
    Held,
    Muted,
    OfflineRead,
    RankChanged,
    Read,
    Woken,
)
from lasthop.decision.volume.subscription import Mode, Subscription

UP, DOWN, WOKEN = ContactUp(), ContactDown(), Woken()


def feed(
    policy: str = "on-demand",
    subscription: Subscription | None = None,
    *,
    contact: bool = True,
    limit: int | None = None,
) -> Feed:
    made = Feed(subscription or Subscription(), POLICIES[policy](Tuning(prefetch_limit=limit)))
    if contact:
        made.take(UP, 0)
    return made


def shown(effects: list[Effect]) -> list[int]:
    return [key for effect in effects if isinstance(effect, Show) for key in effect.keys]


def sent(effects: list[Effect]) -> list[int]:
    return [effect.key for effect in effects if isinstance(effect, Forward)]


def test_an_on_demand_event_waits_for_a_read_and_is_answered_in_one_go() -> None:
    proxy = feed()
    assert proxy.take(Arrived(1, 5.0), 0) == [Hold(1, "kept for a read")]
    effects = proxy.take(Read(4), 1)
    assert sent(effects) == shown(effects) == [1]
    assert proxy.take(Read(4), 2) == []
    assert proxy.why(1) == "read, or over"


def test_a_read_takes_the_best_of_both_sides_and_sends_only_what_is_missing() -> None:
    proxy = feed("buffer", limit=2)
    for key, rank in ((1, 5.0), (2, 1.0), (3, 9.0), (4, 4.0)):
        proxy.take(Arrived(key, rank), 0)
    effects = proxy.take(Read(3, 2, (Held(1, 5.0), Held(2, 1.0))), 1)
    assert shown(effects) == [3, 1, 4]
    assert [e.key for e in effects if isinstance(e, Forward) and "read" in e.reason] == [3, 4]


def test_what_a_read_takes_makes_room_at_once() -> None:
    proxy = feed("buffer", limit=1)
    proxy.take(Arrived(1, 5.0), 0)
    proxy.take(Arrived(2, 4.0), 0)
    effects = proxy.take(Read(1, 1), 1)
    assert shown(effects) == [1]
    assert sent(effects) == [2]


def test_max_bounds_a_read_and_what_it_leaves_is_there_for_the_next() -> None:
    proxy = feed(subscription=Subscription(max=2))
    for key in range(1, 6):
        proxy.take(Arrived(key, float(key)), 0)
    assert [shown(proxy.take(Read(9), at)) for at in (1, 2, 3)] == [[5, 4], [3, 2], [1]]


def test_an_expired_event_is_never_shown_and_frees_its_room() -> None:
    proxy = feed("buffer", limit=1)
    proxy.take(Arrived(1, 9.0, 10), 0)
    proxy.take(Arrived(2, 1.0), 0)
    assert proxy.next_wake() == 10
    assert sent(proxy.take(WOKEN, 10)) == [2]
    assert proxy.take(Arrived(3, 1.0, 10), 10) == [DropEvent(3, "expired")]
    assert shown(proxy.take(Read(None), 11)) == [2]


def test_a_rank_that_falls_retracts_what_was_sent_ahead() -> None:
    proxy = feed("on-line", Subscription(threshold=1.0))
    proxy.take(Arrived(1, 5.0), 0)
    assert proxy.take(RankChanged(1, 0.5), 1) == [Retract(1, "ranked below Threshold")]
    assert proxy.take(Read(None), 2) == []
    assert sent(proxy.take(RankChanged(1, 3.0), 3)) == [1]


def test_a_fall_and_a_rise_out_of_contact_are_no_news_of_a_retraction() -> None:
    proxy = feed("on-line", Subscription(threshold=1.0))
    proxy.take(Arrived(1, 5.0), 0)
    proxy.take(DOWN, 1)
    assert proxy.take(RankChanged(1, 0.0), 2) == []
    assert proxy.take(RankChanged(1, 4.0), 3) == []
    assert proxy.take(UP, 4) == [Rerank(1, 4.0)]


def test_a_fall_out_of_contact_is_told_with_the_next_one() -> None:
    proxy = feed("on-line", Subscription(threshold=1.0))
    proxy.take(Arrived(1, 5.0), 0)
    proxy.take(Arrived(2, 5.0), 0)
    proxy.take(DOWN, 1)
    proxy.take(RankChanged(1, 0.0), 2)
    proxy.take(RankChanged(2, 0.0), 2)
    read = OfflineRead(3, 1, (2,))
    assert proxy.take(ContactUp((read,)), 4) == [Retract(1, "ranked below Threshold")]


def test_a_known_event_that_arrives_again_only_changes_its_rank() -> None:
    proxy = feed()
    proxy.take(Arrived(1, 1.0), 0)
    proxy.take(Arrived(2, 2.0), 0)
    proxy.take(Arrived(1, 3.0), 1)
    assert shown(proxy.take(Read(None), 2)) == [1, 2]
    assert proxy.take(Arrived(1, 9.0), 3) == []


def test_a_rank_below_threshold_is_remembered_until_it_rises() -> None:
    proxy = feed(subscription=Subscription(threshold=1.0))
    assert proxy.take(Arrived(1, 0.0), 0) == [Hold(1, "ranked below Threshold")]
    assert proxy.take(Read(None), 1) == []
    proxy.take(RankChanged(1, 1.0), 2)
    assert shown(proxy.take(Read(None), 3)) == [1]


def test_a_withdrawn_event_is_gone_on_both_sides() -> None:
    proxy = feed("buffer", limit=1)
    proxy.take(Arrived(1, 5.0), 0)
    proxy.take(Arrived(2, 4.0), 0)
    assert proxy.take(EventWithdrawn(2), 1) == [DropEvent(2, "withdrawn by its publisher")]
    assert proxy.take(EventWithdrawn(1), 1) == [Retract(1, "withdrawn by its publisher")]
    assert proxy.take(Read(None), 2) == []


def test_what_a_lost_session_took_with_it_is_sent_again() -> None:
    proxy = feed("on-line")
    proxy.take(Arrived(1, 5.0), 0)
    proxy.take(DOWN, 1)
    assert sent(proxy.take(ContactUp(lost=(1,)), 2)) == [1]


def test_a_device_may_know_what_a_gateway_has_forgotten() -> None:
    proxy = feed()
    proxy.take(Arrived(1, 3.0), 0)
    effects = proxy.take(Read(2, 3, (Held(8, 5.0), Held(9, 1.0))), 1)
    assert shown(effects) == [8, 1]
    assert sent(effects) == [1]
    assert proxy.take(Read(1, 1, (Held(8, 5.0),)), 2)[0] == Retract(8, "read, or over")


def test_a_full_device_drops_its_worst_for_a_better_one_which_stays_available() -> None:
    proxy = feed("on-line", Subscription(storage=2))
    proxy.take(Arrived(1, 1.0), 0)
    proxy.take(Arrived(2, 2.0), 0)
    assert proxy.take(Arrived(3, 3.0), 0) == [Forward(3, "sent ahead of a read", 1)]
    assert proxy.take(Arrived(4, 0.0), 0) == [Hold(4, "no better than what fills the device")]
    assert shown(proxy.take(Read(None), 1)) == [3, 2, 1, 4]


def test_a_quota_spares_what_will_be_the_best_of_tomorrow() -> None:
    proxy = feed(subscription=Subscription(max=1, retention=2))
    proxy.take(Arrived(1, 0.0), 0)  # The lowest rank, but it outlives the others.
    proxy.take(Arrived(2, 5.0, 10), 0)
    effects = proxy.take(Arrived(3, 9.0, 20), 0)
    assert effects[-1] == DropEvent(2, "the quota is full, and it is outranked")
    assert shown(proxy.take(Read(None), 1)) == [3]
    assert shown(proxy.take(Read(None), 30)) == [1]


def test_history_is_bounded() -> None:
    proxy = feed()
    for key in range(2 * HISTORY):
        proxy.take(Arrived(key, 1.0), key)
        proxy.take(Read(None), key)
    assert proxy.why(0) == "not known here"
    assert proxy.why(HISTORY) == "read, or over"


def test_an_on_line_topic_shows_at_once_and_catches_up_with_the_best() -> None:
    proxy = feed(subscription=Subscription(mode=Mode.ON_LINE, max=2))
    effects = proxy.take(Arrived(1, 1.0), 0)
    assert sent(effects) == shown(effects) == [1]
    proxy.take(DOWN, 1)
    for key, rank in ((2, 1.0), (3, 3.0), (4, 2.0)):
        assert proxy.take(Arrived(key, rank), 2) == [Hold(key, "no contact")]
    assert shown(proxy.take(UP, 3)) == [3, 4]
    assert shown(proxy.take(Read(None), 4)) == [2]
    assert proxy.take(RankChanged(1, -1.0), 5) == []


def test_what_was_shown_unasked_is_retracted_when_its_rank_falls() -> None:
    proxy = feed(subscription=Subscription(mode=Mode.ON_LINE, threshold=1.0))
    proxy.take(Arrived(1, 2.0), 0)
    assert [type(effect) for effect in proxy.take(RankChanged(1, 0.0), 1)] == [Retract]
    assert proxy.take(RankChanged(1, 0.0), 2) == []


def test_an_on_demand_topic_interrupts_for_a_high_rank() -> None:
    proxy = feed(subscription=Subscription(interrupt=9.0))
    assert shown(proxy.take(Arrived(1, 8.0), 0)) == []
    assert shown(proxy.take(Arrived(2, 9.0), 0)) == [2]
    assert shown(proxy.take(RankChanged(1, 10.0), 1)) == [1]
    proxy.take(DOWN, 2)
    proxy.take(Arrived(3, 9.5), 3)
    proxy.take(Arrived(4, 1.0), 3)
    assert shown(proxy.take(UP, 4)) == [3]


def test_an_on_line_topic_is_quiet_in_a_meeting() -> None:
    proxy = feed(subscription=Subscription(mode=Mode.ON_LINE, interrupt=9.0, max=1))
    proxy.take(Muted(True), 0)
    assert shown(proxy.take(Arrived(1, 1.0), 1)) == []
    assert shown(proxy.take(Arrived(2, 2.0), 1)) == []
    assert shown(proxy.take(Arrived(3, 9.0), 1)) == [3]
    assert shown(proxy.take(Muted(False), 2)) == [2]


def test_an_on_line_topic_is_quiet_at_night_and_catches_up_in_the_morning() -> None:
    night = QuietHours("UTC", 22 * 60, 7 * 60)
    proxy = feed(subscription=Subscription(mode=Mode.ON_LINE, quiet=night))
    assert proxy.next_wake() == 7 * HOUR
    assert shown(proxy.take(Arrived(1, 1.0), 1)) == []
    assert shown(proxy.take(WOKEN, 7 * HOUR)) == [1]
    assert shown(proxy.take(Arrived(2, 1.0), 8 * HOUR)) == [2]
    assert proxy.next_wake() == 22 * HOUR


def at(hour: int, day: int = 0) -> Micros:
    return day * DAY + hour * HOUR


def test_a_digest_shows_the_best_at_its_times_and_no_more_than_the_day_allows() -> None:
    preferences = Subscription(
        mode=Mode.ON_LINE, times=(8 * 60, 18 * 60), max=2, max_per_day=3, threshold=0.0
    )
    proxy = feed(subscription=preferences)
    for key in range(1, 9):
        assert shown(proxy.take(Arrived(key, float(key)), at(1))) == []
    assert proxy.next_wake() == at(8)
    assert shown(proxy.take(WOKEN, at(8))) == [8, 7]
    assert shown(proxy.take(WOKEN, at(18))) == [6]
    proxy.take(DOWN, at(20))
    proxy.take(WOKEN, at(8, day=1))
    assert shown(proxy.take(UP, at(9, day=1))) == [5, 4]
    assert shown(proxy.take(Read(None), at(10, day=1))) == [3, 2]


def test_a_rank_is_a_number() -> None:
    proxy = feed()
    with pytest.raises(ValueError, match="a rank must be a number"):
        proxy.take(Arrived(1, float("nan")), 0)
    proxy.take(Arrived(1, 1.0), 0)
    with pytest.raises(ValueError, match="a rank must be a number"):
        proxy.take(RankChanged(1, float("nan")), 0)


class One(Policy):
    """Room for one; counts how often it was asked."""

    asked = 0

    def room(self, *, on_device: int) -> int:
        self.asked += 1
        return 1 - on_device


class Growing(One):
    """Room for one more after every read."""

    reads = 0

    def read(self, *, wanted: int, offline: bool, at: int) -> None:
        self.reads += 1

    def room(self, *, on_device: int) -> int:
        return super().room(on_device=on_device) + self.reads


def test_a_policy_that_learns_nothing_is_not_asked_twice_whether_there_is_room() -> None:
    policy = One(Tuning())
    proxy = Feed(Subscription(), policy)
    proxy.take(UP, 0)
    assert sent(proxy.take(Arrived(1, 0.5), 1)) == [1]
    for key in range(2, 30):
        assert sent(proxy.take(Arrived(key, key / 100), key)) == []
    assert policy.asked < 5
    assert sent(proxy.take(OfflineRead(40, 1, (1,)), 40)) == [29]
    assert sent(proxy.take(OfflineRead(41, 1, (29,)), 41)) == [28]


def test_a_policy_that_learns_is_asked_again() -> None:
    proxy = Feed(Subscription(), Growing(Tuning()))
    proxy.take(UP, 0)
    for key in range(1, 9):
        proxy.take(Arrived(key, key / 10), key)
    assert proxy.on_device() == [1]
    assert sent(proxy.take(OfflineRead(20, 1, ()), 20)) == [8]
    assert sent(proxy.take(OfflineRead(21, 1, ()), 21)) == [7]


def test_what_fell_while_the_device_was_away_counts_no_more_after_a_restart() -> None:
    proxy = feed("buffer", Subscription(threshold=3), limit=2)
    proxy.take(Arrived(1, 5.0), 0)
    proxy.take(DOWN, 1)
    proxy.take(RankChanged(1, 2.0), 2)
    entry = proxy.entry(1)
    assert entry is not None
    heir = feed("buffer", Subscription(threshold=3), limit=2, contact=False)
    heir.resume(proxy.state(), [entry])
    assert shown(heir.take(Read(4), 3)) == shown(proxy.take(Read(4), 3)) == []
