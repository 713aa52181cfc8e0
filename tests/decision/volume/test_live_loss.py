"""The live loss that a gateway sees is that of the rehearsal, wherever it can be known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lasthop.clock import HOUR
from lasthop.decision.policies import POLICIES
from lasthop.decision.trial_verdict import Outlook, judge_trial, loss_of
from lasthop.decision.volume.device_queue import DeviceQueue
from lasthop.decision.volume.effects import Forward, Rerank, Retract, Show
from lasthop.decision.volume.feed import Feed
from lasthop.decision.volume.inputs import (
    Arrived,
    ContactDown,
    ContactUp,
    EventWithdrawn,
    Input,
    OfflineRead,
    RankChanged,
    Read,
    Woken,
)
from lasthop.decision.volume.live_loss import MOST, LossWatch
from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.run import run
from lasthop.simulation.last_hop.trace import LOOK, draw

HARD = Parameters(max=None, outage=0.9, expiration=8.0, years=0.4)
FULL = Parameters(max=8, outage=0.9, years=0.4)


def watched(p: Parameters) -> LossWatch:
    """Play a trace as a gateway and a device do, with a watch beside the feed."""
    feed = Feed(p.subscription(), POLICIES[p.policy](p.tuning()))
    device = DeviceQueue(max_per_read=p.max)
    watch = LossWatch((), threshold=p.threshold)
    linked = False

    def take(given: Input, now: int) -> None:
        effects = feed.take(given, now)
        watch.take(given, effects, now)
        for effect in effects:
            if isinstance(effect, Forward):
                entry = arrived[effect.key]
                device.forward(effect, rank=entry.rank, expires_at=entry.expires_at)
            elif isinstance(effect, Show):
                device.show(effect)
            elif isinstance(effect, Retract):
                device.retract(effect)
            elif isinstance(effect, Rerank):
                device.rerank(effect)

    arrived: dict[int, Arrived] = {}
    for now, kind, drawn in draw(p).inputs():
        given = drawn
        while (wake := feed.next_wake()) is not None and wake <= now:
            take(Woken(), wake)
        if isinstance(given, Arrived):
            arrived[given.key] = given
        if isinstance(given, ContactUp):
            linked, given = True, device.contact()
        elif isinstance(given, ContactDown):
            linked = False
        if kind == LOOK:
            if not linked:
                device.read_offline(p.max, now)
                continue
            given = Read(p.max, device.count(now))
        take(given, now)
    return watch


def live(p: Parameters) -> float:
    watch = watched(p)
    return loss_of([(watch.read, watch.lost)]).loss


@pytest.mark.parametrize("policy", ["on-demand", "unified", "predictive", "expiration"])
@pytest.mark.parametrize("world", [HARD, FULL], ids=["expiring", "overflow"])
def test_the_live_loss_is_near_that_of_the_rehearsal(policy: str, world: Parameters) -> None:
    p = replace(world, policy=policy, expiration_threshold=8.0)
    if world is HARD:
        assert live(p) == pytest.approx(run(p).loss, abs=0.02)
    else:
        # A message that never expires is late and not lost, as long as it is there.
        assert live(p) <= run(p).loss + 0.02


@pytest.mark.parametrize("world", [HARD, FULL], ids=["expiring", "overflow"])
def test_who_sends_all_ahead_loses_nothing(world: Parameters) -> None:
    assert watched(replace(world, policy="on-line")).lost == 0


def test_a_trial_of_a_bad_version_is_taken_back_and_of_a_good_one_is_not() -> None:
    """Each device has a world of its own; the verdict is that of the gateway."""

    def devices(policy: str, first: int) -> list[tuple[int, int]]:
        world = replace(HARD, policy=policy, years=0.1)
        watches = [watched(replace(world, seed=seed)) for seed in range(first, first + 10)]
        return [(watch.read, watch.lost) for watch in watches]

    control = loss_of(devices("predictive", 100))
    for policy, outlook in (("predictive", Outlook.WAIT), ("on-demand", Outlook.TAKE_BACK)):
        trial = loss_of(devices(policy, 200))
        found = judge_trial(trial, control, tolerated=0.01, age=HOUR, lasts=20 * HOUR)
        assert found.outlook is outlook, (policy, trial, control)


def away(*keys: int) -> LossWatch:
    """A watch of messages that wait at the gateway, ranked by their keys, after a contact."""
    watch = LossWatch((), threshold=0.0)
    for key in keys:
        watch.take(Arrived(key, float(key), 10 * HOUR), [], HOUR)
    watch.take(ContactUp(), [], HOUR)
    watch.take(ContactDown(), [], 2 * HOUR)
    return watch


def contact(watch: LossWatch, *looks: OfflineRead, now: int = 11 * HOUR) -> None:
    watch.take(ContactUp(looks), [], now)
    watch.take(ContactDown(), [], now + HOUR)


def test_what_could_have_been_there_and_expires_unread_is_lost() -> None:
    watch = away(1, 2)
    contact(watch, OfflineRead(3 * HOUR, None, ()))
    assert (watch.read, watch.lost) == (0, 2)


def test_only_as_many_are_missed_as_the_user_wanted() -> None:
    watch = away(1, 2, 3)
    contact(watch, OfflineRead(3 * HOUR, 2, ()))
    assert watch.lost == 2


def test_a_better_one_on_the_device_takes_the_place() -> None:
    watch = away(1, 2, 3)
    watch.take(Arrived(9, 9.0, None), [Forward(9, "ahead")], HOUR)
    contact(watch, OfflineRead(3 * HOUR, 1, (9,)))
    assert (watch.read, watch.lost) == (1, 0)


def test_what_is_read_later_was_late_and_not_lost() -> None:
    watch = away(1)
    watch.take(ContactUp((OfflineRead(3 * HOUR, None, ()),)), [], 4 * HOUR)
    watch.take(Read(None), [Forward(1, "asked"), Show((1,), "asked")], 5 * HOUR)
    contact(watch)
    assert (watch.read, watch.lost) == (1, 0)


def test_what_came_after_the_contact_could_not_have_been_there() -> None:
    watch = away()
    watch.take(Arrived(1, 1.0, 10 * HOUR), [], 3 * HOUR)
    contact(watch, OfflineRead(4 * HOUR, None, ()))
    assert watch.lost == 0


def test_what_had_expired_before_the_look_was_not_missed() -> None:
    watch = away(1)
    contact(watch, OfflineRead(10 * HOUR + 1, None, ()), now=12 * HOUR)
    assert watch.lost == 0


def test_what_is_taken_back_or_falls_below_threshold_is_not_lost() -> None:
    watch = away(1, 2)
    watch.take(ContactUp((OfflineRead(3 * HOUR, None, ()),)), [], 4 * HOUR)
    watch.take(EventWithdrawn(1), [], 5 * HOUR)
    watch.take(RankChanged(2, -1.0), [], 5 * HOUR)
    contact(watch)
    assert watch.lost == 0


def test_a_feed_with_very_many_messages_is_watched_in_part() -> None:
    watch = away(*range(1, 3 * MOST))
    contact(watch, OfflineRead(3 * HOUR, None, ()))
    assert watch.lost == MOST
