"""Channels that are there to be lost: they disturb nobody, and their end is an event."""

from __future__ import annotations

import pytest

from lasthop.clock import SECOND
from lasthop.events import Kind
from lasthop.wire.hop.frames import Ack, CloseCode, Welcome
from lasthop.wire.hop.heartbeat import ANSWERED, UNHEARD
from tests.core.rig import Rig, to


@pytest.fixture
def rig() -> Rig:
    return Rig()


def outcomes(rig: Rig) -> list[tuple[str, str, int]]:
    rig.run()
    events = [event for event in rig.events() if event["kind"] == Kind.HEARTBEAT]
    return [(e["reason"], e["network"], e["interval"] // SECOND) for e in events]


def probe(rig: Rig) -> int:
    return rig.connect(probe=True, heartbeat=84, network="op:one")


def end(rig: Rig, channel: int, reason: str) -> None:
    rig.gateway.channel_lost(channel, reason, rig.now)


def granted(rig: Rig, channel: int) -> int | None:
    (welcome,) = rig.sent[channel]
    assert isinstance(welcome, Welcome)
    return welcome.heartbeat


def test_a_probe_leaves_the_channel_of_its_device_alone(rig: Rig) -> None:
    channel = rig.connect(network="op:one")
    trial = probe(rig)
    assert granted(rig, trial) == 84
    assert rig.disconnected == []
    rig.publish(to("phone", b"a"))
    rig.run()
    assert rig.bodies(channel) == [b"a"]
    assert rig.bodies(trial) == []
    rig.hear(trial, Ack(1, 1))  # Nobody listens there.
    end(rig, trial, "broken")
    rig.publish(to("phone", b"b"))
    rig.run()
    assert rig.bodies(channel) == [b"a", b"b"]


def test_what_outlived_its_silence_is_an_event(rig: Rig) -> None:
    trial = probe(rig)
    rig.pass_time(84 * SECOND)
    end(rig, trial, ANSWERED)
    assert outcomes(rig) == [("answered", "op:one", 84)]


def test_what_was_forgotten_is_an_event_if_the_device_is_still_on_that_network(rig: Rig) -> None:
    rig.connect(network="op:one")
    trial = probe(rig)
    rig.pass_time(210 * SECOND)
    end(rig, trial, UNHEARD)
    assert outcomes(rig) == [("missed", "op:one", 84)]


@pytest.mark.parametrize("network", [None, "ssid:home"])
def test_silence_of_a_device_that_went_away_says_nothing(rig: Rig, network: str | None) -> None:
    if network is not None:
        rig.connect(network=network)
    trial = probe(rig)
    rig.pass_time(210 * SECOND)
    end(rig, trial, UNHEARD)
    assert outcomes(rig) == []


@pytest.mark.parametrize("reason", [ANSWERED, UNHEARD, "connection reset"])
def test_what_ended_early_or_otherwise_says_nothing(rig: Rig, reason: str) -> None:
    rig.connect(network="op:one")
    trial = probe(rig)
    rig.pass_time(83 * SECOND)
    end(rig, trial, reason)
    other = probe(rig)
    rig.pass_time(300 * SECOND)
    end(rig, other, "connection reset")
    assert outcomes(rig) == []


def test_a_device_has_one_probe_at_a_time(rig: Rig) -> None:
    first = probe(rig)
    second = probe(rig)
    assert [gone.channel for gone in rig.disconnected] == [first]
    assert rig.disconnected[0].code is CloseCode.REPLACED
    rig.pass_time(84 * SECOND)
    end(rig, first, ANSWERED)
    assert outcomes(rig) == []
    end(rig, second, ANSWERED)
    assert outcomes(rig) == [("answered", "op:one", 84)]


@pytest.mark.parametrize("asked, given", [(None, 270), (1, 10), (900, 900), (100_000, 3600)])
def test_the_silence_that_a_device_asks_for_is_granted_within_limits(
    rig: Rig, asked: int | None, given: int
) -> None:
    assert rig.welcome(rig.connect(heartbeat=asked)).heartbeat == given
    assert rig.welcome(rig.join(heartbeat=asked)).heartbeat == given
    assert granted(rig, rig.connect(probe=True, heartbeat=asked)) == given


def test_what_others_found_on_a_network_is_told(rig: Rig) -> None:
    rig.gateway.contacts.tell_of_networks({"op:one": 250 * SECOND}.get)
    assert rig.welcome(rig.connect(network="op:one")).found == 250
    assert rig.welcome(rig.connect(network="op:two")).found is None
    assert rig.welcome(rig.connect()).found is None


def test_a_probe_needs_the_same_credentials_as_any_channel(rig: Rig) -> None:
    rig.add("phone")
    trial = probe(rig)
    assert rig.sent.get(trial) is None
    assert rig.disconnected[0].code is CloseCode.UNAUTHORIZED
