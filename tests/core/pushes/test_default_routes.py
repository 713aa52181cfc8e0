"""Addresses that need no registration: who may address them, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.core.lifecycle import State
from lasthop.core.pushes.addresses import AddressUnknown
from lasthop.core.pushes.default_routes import DefaultRoute, NotAddressable
from lasthop.core.registry import DeviceRecord
from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import Sent
from lasthop.errors import Expired, Overloaded, TooLarge
from lasthop.message import Quality
from tests.core.pushes.initiator import Initiator, user
from tests.core.rig import APP, Rig

PHONE = "WAPPUSH=+1555-1999/TYPE=PLMN@ppg.example.com"
OTHER = "WAPPUSH=+15552000/TYPE=PLMN@ppg.example.com"
ABROAD = "WAPPUSH=+4400/TYPE=PLMN@ppg.example.com"


def route(**fields: Any) -> DefaultRoute:
    known: dict[str, Any] = {
        "name": "phones",
        "app": APP,
        "addresses": ("PLMN:+1555*",),
        "who": ("initiator",),
        "variant": Variant.SMS,
        "most": 100,
    }
    return DefaultRoute(**known | fields)


def standing(*routes: DefaultRoute) -> tuple[Rig, Initiator]:
    rig = Rig(default_routes=routes or (route(),))
    return rig, Initiator(rig)


@pytest.mark.conformance("PPG-ADD-S-003")
def test_a_phone_needs_no_registration() -> None:
    rig, initiator = standing()
    key = initiator.push("1", PHONE)
    (carry,) = rig.carries
    assert carry.parcel.route == Route(Variant.SMS, "+15551999")
    rig.report(Sent())
    assert rig.state(key) is State.SENT
    assert initiator.reports("1")[PHONE].state == "delivered"
    device = rig.gateway.registry.named(APP, "PLMN:+15551999")
    assert (device.record.implied, device.record.addresses) == ("phones", ["PLMN:+15551999"])


def test_the_second_push_finds_the_device_of_the_first() -> None:
    rig, initiator = standing()
    initiator.push("1", PHONE)
    initiator.push("2", PHONE)
    assert len(rig.gateway.registry) == 1
    rig.crash()
    initiator.push("3", PHONE)
    assert len(rig.gateway.registry) == 1


def test_several_addresses_and_two_spellings_of_one() -> None:
    rig, initiator = standing()
    again = "WAPPUSH=+1.555.1999/TYPE=PLMN@ppg.example.com"
    initiator.register("tablet", "alice")
    initiator.push("1", PHONE, again, OTHER, user("alice"))
    assert {c.parcel.route.address for c in rig.carries} == {"+15551999", "+15552000"}
    assert len(rig.gateway.registry) == 3


class TestNoOpenRelay:
    def test_without_a_default_route_an_address_is_unknown(self) -> None:
        rig, initiator = standing(route(addresses=("PLMN:+49*",)))
        with pytest.raises(AddressUnknown):
            initiator.push("1", PHONE)
        assert len(rig.gateway.registry) == 0

    @pytest.mark.parametrize("fields", [{"who": ("other",)}, {"who": ("init",)}])
    def test_others_may_not_address_it(self, fields: dict[str, Any]) -> None:
        rig, initiator = standing(route(**fields))
        with pytest.raises(NotAddressable) as refused:
            initiator.push("1", PHONE)
        assert refused.value.pap_code == 2001
        assert len(rig.gateway.registry) == 0

    def test_another_app_has_it_not(self) -> None:
        _, initiator = standing(route(app="other"))
        with pytest.raises(AddressUnknown):
            initiator.push("1", PHONE)

    @pytest.mark.parametrize("who", ["*", "init*", "initiator"])
    def test_names_are_patterns(self, who: str) -> None:
        rig, initiator = standing(route(who=("nobody", who)))
        initiator.push("1", PHONE)
        assert len(rig.carries) == 1

    def test_a_device_is_no_initiator(self) -> None:
        assert not route(who=("*",)).admits("device:phone")

    def test_one_that_may_not_be_addressed_keeps_the_push_from_no_other(self) -> None:
        rig, initiator = standing()
        initiator.push("1", ABROAD, PHONE)
        assert len(rig.carries) == 1
        assert initiator.reports("1")[ABROAD].code == 2003

    def test_a_second_route_may_admit_whom_the_first_does_not(self) -> None:
        rig, initiator = standing(route(name="a", who=("other",)), route(name="b", most=5))
        initiator.push("1", PHONE)
        device = rig.gateway.registry.named(APP, "PLMN:+15551999")
        assert device.record.implied == "b"

    def test_there_is_a_limit_to_their_number(self) -> None:
        rig, initiator = standing(route(most=1))
        initiator.push("1", PHONE)
        with pytest.raises(Overloaded):
            initiator.push("2", OTHER)
        initiator.push("3", PHONE)
        rig.crash()
        with pytest.raises(Overloaded):
            initiator.push("4", OTHER)
        rig.gateway.admin.remove(APP, "PLMN:+15551999", rig.now)
        initiator.push("5", OTHER)


class TestRefusals:
    def test_a_refused_push_makes_no_device(self) -> None:
        rig, initiator = standing()
        with pytest.raises(TooLarge):
            initiator.push("1", PHONE, body=bytes(2 << 20))
        with pytest.raises(Expired):
            initiator.push("2", PHONE, deliver_before=rig.now)
        assert len(rig.gateway.registry) == 0

    def test_a_name_that_is_taken_stays_with_its_device(self) -> None:
        rig, initiator = standing()
        rig.gateway.admin.register(APP, "PLMN:+15551999", DeviceRecord(), rig.now)
        with pytest.raises(AddressUnknown):
            initiator.push("1", PHONE)

    def test_a_registered_device_comes_first(self) -> None:
        rig, initiator = standing(route(who=("other",)))
        udp = Route(Variant.WSP, "192.0.2.1")
        initiator.register("mine", addresses=["PLMN:+15551999"], routes=[udp])
        initiator.push("1", PHONE)
        assert rig.carries[0].parcel.route == udp


def test_a_required_bearer_is_met_or_reported() -> None:
    rig, initiator = standing()
    key = initiator.push("1", PHONE, quality=Quality("GSM", True, "SMS", True))
    assert len(rig.carries) == 1
    other = initiator.push("2", PHONE, quality=Quality(bearer="GPRS", bearer_required=True))
    assert rig.row(other).code == 3010
    assert rig.state(key) is State.SENDING


@pytest.mark.parametrize(
    "address, place",
    [
        ("WAPPUSH=192.0.2.001/TYPE=IPv4@ppg", "192.0.2.1"),
        ("WAPPUSH=2001:0DB8:0000:0000:0000:0000:0000:0001/TYPE=IPv6@ppg", "2001:db8::1"),
    ],
)
def test_an_internet_address_stands_for_itself(address: str, place: str) -> None:
    rig, initiator = standing(route(addresses=("IPv4:*", "IPv6:*"), variant=Variant.WSP))
    initiator.push("1", address)
    assert rig.carries[0].parcel.route == Route(Variant.WSP, place)
