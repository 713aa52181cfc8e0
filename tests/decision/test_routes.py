"""Which variant and bearer carry a push: what is required holds, what is named is preferred."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from lasthop.clock import SECOND
from lasthop.decision.links import Link, Tariff
from lasthop.decision.routes import (
    VARIANTS,
    AddressForm,
    Route,
    RouteRefusal,
    RouteSelection,
    Variant,
    obstacle,
    select,
)
from lasthop.errors import InvalidRequest
from lasthop.message import DeliveryMethod, Quality

UNCONFIRMED, CONFIRMED = DeliveryMethod.UNCONFIRMED, DeliveryMethod.CONFIRMED
UDP = Route(Variant.WSP, "192.0.2.1")
SESSION = Route(Variant.WSP_SESSION, "192.0.2.1")
HTTP = Route(Variant.HTTP, "192.0.2.1")

SMS = Route(Variant.SMS, "+15551999")
IP_VARIANTS = [each for each in Variant if VARIANTS[each].form is AddressForm.IP]

routes_drawn = st.lists(
    st.builds(
        Route,
        st.sampled_from(IP_VARIANTS),
        st.sampled_from(["192.0.2.1", "192.0.2.2:99"]),
        bearer=st.sampled_from(["Packet Data", "GPRS", "CSD"]),
        network=st.sampled_from(["", "GSM"]),
    ),
    max_size=5,
    unique=True,
)
qualities = st.none() | st.builds(
    Quality,
    network=st.sampled_from(["", "any", "gsm", "AMPS"]),
    network_required=st.booleans(),
    bearer=st.sampled_from(["", "Any", "gprs", "SMS"]),
    bearer_required=st.booleans(),
)


def chosen(*routes: Route, method: DeliveryMethod = UNCONFIRMED, **facts: object) -> RouteSelection:
    found = select(routes, method=method, size=100, now=0, **facts)  # type: ignore[arg-type]
    assert isinstance(found, RouteSelection)
    return found


@pytest.mark.conformance("PPG-GEN-S-008", "PPG-GEN-S-025")
@given(routes_drawn, qualities, st.sampled_from(DeliveryMethod))
def test_a_route_is_chosen_exactly_when_one_satisfies_everything(
    routes: list[Route], quality: Quality | None, method: DeliveryMethod
) -> None:
    wanted = quality or Quality()
    fitting = [r for r in routes if obstacle(r.network, r.bearer, wanted) is None]
    able = [
        route
        for route in fitting
        if (method is not CONFIRMED or VARIANTS[route.variant].confirms)
        and (
            method is not DeliveryMethod.CONFIRMED_WITH_RESPONSE or VARIANTS[route.variant].answers
        )
    ]
    found = select(routes, method=method, size=100, now=0, quality=quality)
    if not able:
        assert isinstance(found, RouteRefusal)
        assert (found.code == 3007) == bool(fitting)
        return
    assert isinstance(found, RouteSelection)
    assert found.route in able
    asks = method not in (UNCONFIRMED, DeliveryMethod.ONESHOT)
    assert found.confirmed == (asks and VARIANTS[found.route.variant].confirms)


def test_a_bearer_that_is_only_named_is_preferred() -> None:
    other = Route(Variant.WSP, "192.0.2.2", bearer="GPRS", network="GSM")
    assert chosen(UDP, other, quality=Quality(bearer="gprs")).route == other
    assert chosen(UDP, other, quality=Quality(network="gsm")).route == other
    assert chosen(UDP, quality=Quality(bearer="gprs")).route == UDP


def test_what_can_confirm_is_preferred_unless_nobody_asks() -> None:
    assert chosen(UDP, SESSION, method=DeliveryMethod.NOT_SPECIFIED).confirmed
    assert chosen(UDP, SESSION, method=DeliveryMethod.PREFER_CONFIRMED).route == SESSION
    assert chosen(UDP, SESSION, method=UNCONFIRMED).route == UDP


def test_what_has_failed_goes_last() -> None:
    failures: Mapping[Route, int] = {SESSION: 1}
    prefer = DeliveryMethod.PREFER_CONFIRMED
    assert chosen(UDP, SESSION, method=prefer, failures=failures).route == UDP
    assert chosen(UDP, SESSION, method=CONFIRMED, failures=failures).route == SESSION
    assert chosen(UDP, SESSION, method=prefer, failures={SESSION: 1, UDP: 1}).route == SESSION


def test_among_equals_cost_decides_and_the_deadline_before_it() -> None:
    dear = Route(Variant.WSP, "192.0.2.2", link=Link("gprs", Tariff(per_unit=9), latency=SECOND))
    slow = Route(Variant.WSP, "192.0.2.3", link=Link("csd", Tariff(), latency=9 * SECOND))
    assert chosen(dear, slow).route == slow
    assert chosen(dear, slow, deliver_before=5 * SECOND).route == dear


@pytest.mark.parametrize(
    "variant, address, endpoint",
    [
        (Variant.WSP, "192.0.2.1", ("192.0.2.1", 2948)),
        (Variant.HTTP, "192.0.2.1", ("192.0.2.1", 4035)),
        (Variant.WSP, "192.0.2.1:9200", ("192.0.2.1", 9200)),
        (Variant.WSP, "2001:db8::1", ("2001:db8::1", 2948)),
        (Variant.WSP, "[2001:db8::1]:9200", ("2001:db8::1", 9200)),
        (Variant.WSP, "[2001:db8::1]", ("2001:db8::1", 2948)),
    ],
)
def test_an_address_may_have_a_port(
    variant: Variant, address: str, endpoint: tuple[str, int]
) -> None:
    assert Route(variant, address).endpoint() == endpoint


@pytest.mark.parametrize(
    "address", ["", "phone", "192.0.2.1:x", "192.0.2.1:0", "[::1:5", "a:70000"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidRequest, match=r"IP address|between 1 and 65535"):
        Route(Variant.WSP, address)


class TestPhones:
    def test_the_address_of_a_route_has_a_type(self) -> None:
        assert SMS.endpoint() == ("+15551999", 0)
        assert {VARIANTS[each].form for each in Variant} == {AddressForm.IP, AddressForm.NUMBER}
        for address in ("192.0.2.1", "", "+", "12", "+1-555", "1" * 21):
            with pytest.raises(InvalidRequest, match="phone number"):
                Route(Variant.SMS, address)

    def test_a_phone_has_the_bearer_and_the_network_of_short_messages(self) -> None:
        wanted = Quality("GSM", True, "SMS", True)
        assert chosen(UDP, SMS, quality=wanted).route == SMS
        assert SMS.served == ("GSM", "SMS")
        assert Route(Variant.SMS, "+15551999", "GPRS", "AMPS").served == ("AMPS", "GPRS")

    def test_a_phone_confirms_nothing(self) -> None:
        found = select([SMS], method=CONFIRMED, size=9, now=0)
        assert isinstance(found, RouteRefusal)
        assert found.code == 3007
        assert not chosen(SMS, method=DeliveryMethod.PREFER_CONFIRMED).confirmed
