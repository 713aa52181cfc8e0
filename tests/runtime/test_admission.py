"""How many connections there may be, from where, and who leaves."""

from __future__ import annotations

import resource

import pytest

from lasthop.runtime.admission import (
    Admission,
    ConnectionPlace,
    descriptors_for_connections,
    network_of,
)


def enter(admission: Admission, peer: str = "192.0.2.1") -> ConnectionPlace:
    return admission.enter(peer, lambda: None)


def cuttable(admission: Admission, cut: list[ConnectionPlace]) -> ConnectionPlace:
    place = admission.enter(None, lambda: cut.append(place))
    return place


def test_connections_are_settled_up_to_a_limit() -> None:
    admission = Admission(most=lambda: 2)
    places = [enter(admission) for _ in range(3)]
    assert [place.crowded for place in places] == [False, False, True]
    places[0].leave()
    places[2].leave()
    assert admission.connections == 1
    assert not enter(admission).crowded


def test_no_address_has_more_than_its_share() -> None:
    admission = Admission(most=lambda: 100, per_address=2)
    places = [enter(admission) for _ in range(3)]
    assert [place.crowded for place in places] == [False, False, True]
    assert not enter(admission, "192.0.2.2").crowded
    places[0].leave()
    assert not enter(admission).crowded


def test_no_address_has_more_than_half() -> None:
    admission = Admission(most=lambda: 4, per_address=100)
    assert [enter(admission).crowded for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_a_proxy_on_this_machine_brings_everybody(peer: str) -> None:
    admission = Admission(most=lambda: 4, per_address=1)
    assert not any(enter(admission, peer).crowded for _ in range(4))
    assert enter(admission, peer).crowded


def test_addresses_are_not_counted_where_that_is_turned_off() -> None:
    admission = Admission(most=lambda: 4, per_address=0)
    assert not any(enter(admission).crowded for _ in range(4))


@pytest.mark.parametrize(
    "peer, network",
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:0db8:0000:0000"),
        ("2001:db8::2:1", "2001:0db8:0000:0000"),
        ("fe80::1%eth0", "fe80:0000:0000:0000"),
        ("127.0.0.1", None),
        ("", None),
    ],
)
def test_addresses_of_one_subscriber_are_one(peer: str, network: str | None) -> None:
    assert network_of(peer) == network


def test_the_oldest_guest_makes_room() -> None:
    admission, cut = Admission(most=lambda: 0, reserve=2), list[ConnectionPlace]()
    guests = [cuttable(admission, cut) for _ in range(3)]
    assert cut == guests[:1]
    assert admission.connections == 2
    guests[0].leave()
    assert admission.connections == 2


def test_an_administrator_does_not_make_room_while_others_can() -> None:
    admission, cut = Admission(most=lambda: 0, reserve=2), list[ConnectionPlace]()
    guests = [cuttable(admission, cut) for _ in range(2)]
    guests[0].trusted = True
    cuttable(admission, cut).trusted = True
    assert cut == guests[1:]
    cuttable(admission, cut)
    assert cut == [guests[1], guests[0]]


def test_a_place_is_left_once() -> None:
    admission = Admission(most=lambda: 2, per_address=1)
    place = enter(admission)
    enter(admission, "192.0.2.2")
    place.leave()
    place.leave()
    assert admission.connections == 1


def test_some_files_are_kept_for_other_things() -> None:
    assert descriptors_for_connections(1024) == 768
    assert descriptors_for_connections(200) == 50
    assert descriptors_for_connections(resource.RLIM_INFINITY) > 1_000_000
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert descriptors_for_connections() == descriptors_for_connections(soft)
