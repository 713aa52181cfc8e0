"""Which ways a device uses: scripts, and properties that hold whatever happens. About
`device/ways.py`, `device/way_plan.py` and `device/way_track.py`."""

from __future__ import annotations

import os
from random import Random

from hypothesis import given, settings, strategies as st

from lasthop.clock import MILLISECOND, MINUTE, SECOND
from lasthop.device.retry import ChannelReplaced
from lasthop.device.way import (
    ConnectWay,
    GatewayWay,
    LeaveWay,
    NoWay,
    Origin,
    RenewWay,
    SayHello,
    WayDown,
    WayState,
    WaySuspect,
    WayUp,
)
from lasthop.device.way_plan import LEAST_PATIENCE, MOST_PATIENCE
from lasthop.device.ways import patience
from lasthop.errors import Unauthorized
from lasthop.wire.hop.frames import Close, CloseCode
from tests.device.ways_rig import PaperWorld

WIFI = GatewayWay("tcps://a:7300", "wifi")
MOBILE = GatewayWay("wss://b/hop", "mno")
CABLE = GatewayWay("https://c/hop", "ethernet")
ALL = (WIFI, MOBILE, CABLE)

MINUTES = int(os.environ.get("LASTHOP_WAYS_MINUTES", "3"))
"""Virtual minutes of the long script; nightly an hour."""


def named(world: PaperWorld, kind: type) -> list[GatewayWay]:
    return [action.way for action in world.log if isinstance(action, kind)]


# Connections are raced.


def test_the_first_way_is_tried_first_and_the_others_only_when_it_takes_long() -> None:
    world = PaperWorld(ALL)
    assert named(world, ConnectWay) == [WIFI]
    world.run(SECOND)
    assert world.state(WIFI) is WayState.OPEN
    assert named(world, ConnectWay) == [WIFI]
    assert world.told == [WayUp(WIFI)]


def test_a_connection_that_hangs_does_not_hold_up_the_next() -> None:
    world = PaperWorld(ALL)
    world.attempt[WIFI.identity] += 1  # Nobody ever answers this attempt.
    world.run(250 * MILLISECOND)
    assert named(world, ConnectWay) == [WIFI, MOBILE]
    world.run(SECOND)
    assert world.state(MOBILE) is WayState.OPEN
    assert world.state(WIFI) is WayState.IDLE, "the slower attempt is given up"
    assert named(world, SayHello) == [MOBILE]


def test_what_failed_is_followed_by_the_next_way_without_a_pause() -> None:
    world = PaperWorld(ALL)
    world.works = {WIFI.url: "closed", MOBILE.url: "closed"}
    assert world.run(2 * SECOND) <= SECOND
    assert world.state(CABLE) is WayState.OPEN


def test_a_hello_that_nobody_answers_is_given_up_when_another_way_is_ready() -> None:
    world = PaperWorld(ALL)
    world.works = {WIFI.url: "silent"}
    assert world.run(5 * SECOND) <= 2 * SECOND
    assert world.state(MOBILE) is WayState.OPEN
    assert not any(isinstance(e, WaySuspect) for e in world.told)


def test_a_gateway_that_answers_slowly_is_given_more_and_more_time() -> None:
    world = PaperWorld(ALL)
    world.works = dict.fromkeys((way.url for way in ALL), "silent")
    world.run(5 * MINUTE)
    said = named(world, SayHello)
    assert 5 < len(said) < 30, "a stalled gateway is not asked without end"


def test_preferred_ways_come_first() -> None:
    best = GatewayWay("tcps://best", "wifi", preference=5)
    world = PaperWorld([MOBILE, best])
    assert named(world, ConnectWay) == [best]


def test_what_worked_comes_before_what_failed_again_and_again() -> None:
    world = PaperWorld([WIFI, MOBILE])
    world.works = {WIFI.url: "closed", MOBILE.url: "closed"}
    world.run(5 * SECOND)
    world.works = {WIFI.url: "closed"}
    world.run(5 * SECOND)
    world.end(MOBILE, "gone")
    assert [status.way for status in world.ways.status()] == [MOBILE, WIFI]


# Contact is kept.


def test_the_loss_of_a_way_leads_to_another_at_once() -> None:
    world = PaperWorld(ALL)
    world.run(5 * SECOND)
    world.take_away(WIFI, "closed")
    assert world.run(5 * SECOND) <= SECOND
    assert world.state(MOBILE) is WayState.OPEN
    assert WayDown(WIFI, "the network is gone") in world.told


def test_a_lone_way_is_dialled_again_with_longer_and_longer_pauses() -> None:
    world = PaperWorld([WIFI])
    world.run(5 * SECOND)
    world.take_away(WIFI, "closed")
    count = len(named(world, ConnectWay))
    world.run(2 * MINUTE)
    eager = len(named(world, ConnectWay)) - count
    world.run(20 * MINUTE)
    later = len(named(world, ConnectWay)) - count - eager
    assert 30 <= eager <= 80, "every four seconds at the longest"
    assert 20 <= later <= 50, "then once a minute"
    assert [event for event in world.told if isinstance(event, NoWay)] != []


def test_the_application_hears_once_that_no_way_works() -> None:
    world = PaperWorld(ALL)
    world.works = dict.fromkeys((way.url for way in ALL), "closed")
    world.run(MINUTE)
    (no_way,) = [event for event in world.told if isinstance(event, NoWay)]
    assert no_way.until is not None
    assert no_way.problem == "nobody is there"


def test_a_gateway_that_asks_to_wait_is_not_dialled_before_by_any_race() -> None:
    world = PaperWorld([WIFI, MOBILE])
    world.run(5 * SECOND)
    world.end(WIFI, "full", Close(CloseCode.OVERLOADED, 60_000, "full"))
    world.run(SECOND)
    count = named(world, ConnectWay).count(WIFI)
    world.works[MOBILE.url] = "closed"
    world.end(MOBILE, "gone")
    world.run(50 * SECOND)
    assert named(world, ConnectWay).count(WIFI) == count
    world.run(12 * SECOND)
    assert world.state(WIFI) is WayState.OPEN


# Silence.


def test_patience_lies_between_one_second_and_two_and_a_half() -> None:
    assert patience(0) == LEAST_PATIENCE == SECOND
    assert patience(2 * SECOND) == 2 * SECOND
    assert patience(60 * SECOND) == MOST_PATIENCE


def test_a_silent_way_is_suspect_and_another_one_is_joined() -> None:
    world = PaperWorld(ALL)
    world.run(5 * SECOND)
    world.take_away(WIFI, "silent")
    assert world.run(10 * SECOND) <= 5 * SECOND
    assert world.state(WIFI) is WayState.SUSPECT
    assert world.state(MOBILE) is WayState.OPEN
    (say,) = [a for a in world.log if isinstance(a, SayHello) and a.way == MOBILE]
    assert say.join
    world.run(20 * SECOND)
    assert world.state(WIFI) is not WayState.SUSPECT, "it is hopeless: another way answers"


def test_a_suspect_that_answers_after_all_is_trusted_again() -> None:
    world = PaperWorld([WIFI])
    world.run(5 * SECOND)
    world.take_away(WIFI, "silent")
    world.run(4 * SECOND)
    assert world.state(WIFI) is WayState.SUSPECT
    world.give_back(WIFI)
    world.later("answer", WIFI)
    world.run(SECOND)
    assert world.state(WIFI) is WayState.OPEN
    assert world.told[-1] == WayUp(WIFI)


def test_a_gateway_that_stalls_costs_no_channel() -> None:
    world = PaperWorld([WIFI, MOBILE])
    world.run(5 * SECOND)
    world.take_away(WIFI, "silent")
    world.take_away(MOBILE, "silent")
    world.run(20 * SECOND)
    assert world.state(WIFI) is WayState.SUSPECT
    assert WIFI.identity in world.open
    assert not any(isinstance(action, LeaveWay) and action.way == WIFI for action in world.log)


def test_the_gateway_does_not_go_on_into_the_void() -> None:
    """Both ways are wanted, and the gateway sends over the newer one, which falls silent."""
    world = PaperWorld([WIFI])
    world.run(5 * SECOND)
    world.ways.join(MOBILE, world.now)
    world.run(5 * SECOND)
    world.take_away(MOBILE, "silent")
    world.ways.spoke(MOBILE, world.now, SECOND)
    world.run(4 * SECOND)
    assert world.contact
    assert world.state(WIFI) is WayState.OPEN
    assert named(world, RenewWay) == [WIFI]
    world.give_back(MOBILE)
    world.run(30 * SECOND)
    assert world.state(WIFI) is world.state(MOBILE) is WayState.OPEN


def test_a_gateway_that_has_forgotten_the_contact_is_greeted_anew() -> None:
    """The gateway was started again, and the end of the old channel got lost."""
    world = PaperWorld([WIFI, MOBILE])
    world.run(5 * SECOND)
    world.take_away(WIFI, "silent")
    world.open.clear()
    world.sends_over.clear()
    world.ways.spoke(WIFI, world.now, SECOND)
    world.run(6 * SECOND)
    says = [action for action in world.log if isinstance(action, SayHello) and action.way == MOBILE]
    assert [say.join for say in says] == [True, False]
    assert world.state(MOBILE) is WayState.OPEN


# What the application wants.


def test_a_joined_way_is_joined_again_whenever_it_drops() -> None:
    world = PaperWorld([WIFI])
    world.run(5 * SECOND)
    world.ways.join(MOBILE, world.now)
    world.run(5 * SECOND)
    for _ in range(3):
        assert world.state(WIFI) is world.state(MOBILE) is WayState.OPEN
        world.end(MOBILE, "gone")
        assert world.contact
        world.run(5 * SECOND)
    assert world.state(MOBILE) is WayState.OPEN


def test_without_contact_join_and_switch_are_kept_in_mind() -> None:
    world = PaperWorld([WIFI])
    world.works = {WIFI.url: "closed"}
    world.run(5 * SECOND)
    world.ways.join(MOBILE, world.now)
    world.run(SECOND)
    assert world.state(MOBILE) is WayState.OPEN
    world.give_back(WIFI)
    world.run(10 * SECOND)
    assert world.state(WIFI) is WayState.OPEN, "one more beside the first"
    world.ways.switch(CABLE, world.now)
    world.run(5 * SECOND)
    assert [way.url for way in world.open.values()] == [CABLE.url]


def test_a_switch_to_what_does_not_work_yet_happens_later() -> None:
    world = PaperWorld([WIFI])
    world.run(5 * SECOND)
    world.works = {MOBILE.url: "closed"}
    world.ways.switch(MOBILE, world.now)
    world.run(10 * SECOND)
    assert world.state(WIFI) is WayState.OPEN
    world.give_back(MOBILE)
    world.run(2 * MINUTE)
    assert [way.url for way in world.open.values()] == [MOBILE.url]


def test_a_way_that_is_preferred_is_used_as_soon_as_it_works() -> None:
    better = GatewayWay("tcps://better", "wifi", preference=1)
    world = PaperWorld([better, MOBILE])
    world.works = {better.url: "closed"}
    world.run(20 * SECOND)
    assert world.state(MOBILE) is WayState.OPEN
    world.give_back(better)
    world.run(2 * MINUTE)
    assert [way.url for way in world.open.values()] == [better.url]
    assert world.state(MOBILE) is WayState.IDLE


def test_a_way_that_is_removed_is_left() -> None:
    world = PaperWorld([WIFI, MOBILE])
    world.run(5 * SECOND)
    world.ways.remove(WIFI, world.now)
    world.act()
    world.run(5 * SECOND)
    assert [way.url for way in world.open.values()] == [MOBILE.url]
    assert world.ways.find(WIFI) is None
    world.ways.remove(MOBILE, world.now)
    world.act()
    world.run(5 * SECOND)
    assert world.told[-1] == NoWay(None, world.told[-1].problem)  # type: ignore[union-attr]
    assert world.ways.next_due() is None


# Limits and refusals.


def test_a_closed_link_rests_as_long_as_it_must_and_others_go_on() -> None:
    other = GatewayWay("wss://b2/hop", "mno")
    world = PaperWorld([MOBILE, other, WIFI])
    world.run(5 * SECOND)
    world.end(MOBILE, "spent", Close(CloseCode.LINK_CLOSED, 600_000, "spent"))
    world.run(5 * SECOND)
    assert world.state(WIFI) is WayState.OPEN
    assert world.state(MOBILE) is world.state(other) is WayState.CLOSED
    world.end(WIFI, "gone")
    world.works[WIFI.url] = "closed"
    count = named(world, ConnectWay).count(MOBILE)
    world.run(500 * SECOND)
    assert named(world, ConnectWay).count(MOBILE) == count
    world.run(120 * SECOND)
    assert world.contact


def test_when_the_only_link_is_closed_the_application_hears_until_when() -> None:
    world = PaperWorld([MOBILE])
    world.run(5 * SECOND)
    world.end(MOBILE, "spent", Close(CloseCode.LINK_CLOSED, 600_000, "spent"))
    no_way = world.told[-1]
    assert isinstance(no_way, NoWay)
    assert no_way.until is not None
    assert 600 * SECOND <= no_way.until - world.now <= 601 * SECOND
    # Another way is taken as soon as the application names one.
    world.ways.join(WIFI, world.now)
    world.run(SECOND)
    assert world.state(WIFI) is WayState.OPEN


def test_over_a_spent_link_the_device_receives_until_there_is_another() -> None:
    world = PaperWorld([MOBILE, WIFI])
    world.works = {WIFI.url: "closed"}
    world.run(5 * SECOND)
    world.ways.spent("mno", world.now + 600 * SECOND, world.now)
    world.run(5 * SECOND)
    assert world.state(MOBILE) is WayState.OPEN
    world.give_back(WIFI)
    world.run(2 * MINUTE)
    assert [way.url for way in world.open.values()] == [WIFI.url]
    assert world.state(MOBILE) is WayState.IDLE


def test_a_refused_credential_bars_one_way_and_the_device_only_when_all_are_barred() -> None:
    world = PaperWorld([WIFI, MOBILE])
    world.refuses = {WIFI.url: Close(CloseCode.UNAUTHORIZED, 0, "wrong token")}
    world.run(5 * SECOND)
    assert world.state(WIFI) is WayState.BARRED
    assert world.state(MOBILE) is WayState.OPEN
    assert not world.ways.final
    world.refuses[MOBILE.url] = Close(CloseCode.UNAUTHORIZED, 0, "wrong token")
    world.end(MOBILE, "gone")
    world.run(MINUTE)
    assert isinstance(world.ways.final, Unauthorized)
    world.refuses.clear()
    world.ways.add(GatewayWay(WIFI.url, WIFI.link, token="another"), world.now)
    world.run(SECOND)
    assert world.contact


def test_another_program_that_takes_over_ends_the_device() -> None:
    world = PaperWorld(ALL)
    world.run(5 * SECOND)
    world.end(WIFI, "a newer channel took over", Close(CloseCode.REPLACED, 0, "newer"))
    assert isinstance(world.ways.final, ChannelReplaced)
    world.run(MINUTE)
    assert named(world, ConnectWay) == [WIFI], "two programs must not fight over one session"


def test_a_hello_of_our_own_that_came_late_does_not() -> None:
    world = PaperWorld([WIFI])
    world.run(5 * SECOND)
    world.open.clear()
    world.ways.lost(WIFI, "newer", world.now, Close(CloseCode.REPLACED), ours=True)
    world.attempt[WIFI.identity] += 1
    world.act()
    assert world.ways.final is None
    world.run(5 * SECOND)
    assert world.contact


# What the gateway tells.


def test_told_ways_are_used_and_replaced_and_those_of_the_application_remain() -> None:
    told = GatewayWay("tcps://told", origin=Origin.GATEWAY)
    world = PaperWorld([WIFI])
    world.run(5 * SECOND)
    world.ways.told([told], world.now)
    world.take_away(WIFI, "closed")
    world.run(5 * SECOND)
    assert world.state(told) is WayState.OPEN
    other = GatewayWay("tcps://other", origin=Origin.GATEWAY)
    world.ways.told([other], world.now)
    assert world.contact, "it is not left while nothing else works"
    world.end(told, "gone")
    world.run(5 * SECOND)
    assert world.ways.find(told) is None
    assert world.state(other) is WayState.OPEN
    world.ways.told([], world.now)
    assert world.ways.find(WIFI) is not None


def test_a_told_way_that_the_application_has_named_is_the_applications() -> None:
    world = PaperWorld([WIFI])
    world.ways.told([GatewayWay(WIFI.url, WIFI.link, origin=Origin.GATEWAY)], world.now)
    world.ways.told([], world.now)
    found = world.ways.find(WIFI)
    assert found is not None
    assert found.way.origin is Origin.APPLICATION


# Whatever happens.


@settings(deadline=None)
@given(st.integers(0, 1 << 32))
def test_whatever_happens_one_way_that_works_is_enough(seed: int) -> None:
    """Two of three ways are taken away in turn, closed or silent, and so are ways that rest."""
    script(seed, minutes=0.5)


def test_an_hour_of_ways_that_come_and_go() -> None:
    longest = max(script(seed, minutes=MINUTES) for seed in range(2))
    print(f"{MINUTES} virtual minutes: without contact at most {longest / SECOND:.2f} s")


def script(seed: int, *, minutes: float) -> int:
    """Play one script; return the longest time without contact."""
    random = Random(seed)
    world = PaperWorld(ALL, seed=seed)
    world.run(SECOND)
    end, longest = world.now + round(minutes * MINUTE), 0
    left = random.choice(ALL)
    while world.now < end:
        left = random.choice([way for way in ALL if way is not left])
        world.give_back(left)
        for way in ALL:
            if way is not left:
                world.take_away(way, random.choice(("closed", "silent")))
        alone = world.run(random.randint(5, 30) * SECOND)
        assert alone <= 5 * SECOND, (seed, alone / SECOND)
        longest = max(longest, alone)
    return longest


@settings(deadline=None)
@given(st.integers(0, 1 << 32))
def test_promises_hold_whatever_the_application_does(seed: int) -> None:
    random = Random(seed)
    world = PaperWorld(ALL[: random.randint(1, 3)], seed=seed)
    for _ in range(30):
        way = random.choice(ALL)
        match random.randrange(9):
            case 0:
                world.take_away(way, random.choice(("closed", "silent")))
            case 1 | 2:
                world.give_back(way)
            case 3:
                world.ways.join(way, world.now)
            case 4:
                world.ways.switch(way, world.now)
            case 5 if len(world.ways.status()) > 1:
                world.ways.remove(way, world.now)
            case 6:
                world.ways.spent(
                    way.link or "", world.now + random.randint(0, 9) * SECOND, world.now
                )
            case 7 if way.identity in world.open:
                code = random.choice((CloseCode.BYE, CloseCode.LINK_CLOSED, CloseCode.OVERLOADED))
                world.end(way, "said so", Close(code, random.randint(0, 5000), "said so"))
            case _:
                world.ways.network_changed(world.now)
        world.act()
        world.run(random.choice((10 * MILLISECOND, SECOND, 4 * SECOND)))
    # In the end everything works, and so does the device.
    for way in ALL:
        world.give_back(way)
    if not world.ways.status():
        world.ways.add(WIFI, world.now)
    world.act()
    world.run(90 * SECOND)
    assert world.contact
