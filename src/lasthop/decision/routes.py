"""Which protocol variant and which bearer carry a push over the air to a device.

A device that does not connect by itself has routes. `select` keeps those that the publisher's
delivery method and quality of service allow (Push Proxy Gateway 5.1.2.2.1 and 5.1.2.2.2), prefers
routes that have not failed yet and those that can confirm, and lets the transmission algorithm
choose among the rest by cost and deadline.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from ipaddress import ip_address
from typing import TypeAlias

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.decision.budgets import Budgets
from lasthop.decision.choice import Choice, MessageToPlace, QueueTerms
from lasthop.decision.cost import BALANCED, Weights
from lasthop.decision.decide import Action
from lasthop.decision.links import SMS_BYTES, Link, Tariff
from lasthop.decision.reasons import Code, Reason, because, in_words
from lasthop.decision.transmission import choose
from lasthop.errors import InvalidRequest, LinkContradiction
from lasthop.message import DeliveryMethod, Quality
from lasthop.wire.pap.bearers import serves

Place: TypeAlias = Callable[[Sequence[Link]], Choice]
"""A function that chooses among the links of routes, by the device's preferences and budgets."""

MAX_ROUTES = 8
"""The largest number of routes of one device: each is looked at for every push to the device."""


class Variant(StrEnum):
    """The over-the-air protocols that lasthop itself speaks."""

    WSP = "wsp"
    """OTA-WSP without a connection: one datagram, and no answer."""
    WSP_SESSION = "wsp-session"
    """OTA-WSP in a session over WTP, which the client opens."""
    HTTP = "http"
    """OTA-HTTP, in which the client is the HTTP server."""
    SMS = "sms"
    """Short messages: OTA-WSP without a connection for the phone's push client, or plain text."""


class AddressForm(StrEnum):
    """What the address of a route is."""

    IP = "ip"
    """An IP address, with or without a port."""
    NUMBER = "number"
    """A phone number, with a plus in front if it is international."""
    FREE = "free"
    """Whatever the carrier reads in it."""


class Variation(msgspec.Struct, frozen=True, kw_only=True):
    """What one protocol over the air can do, and its defaults."""

    link: Link
    """The link values of a route that declares none of its own."""
    port: int | None = None
    """The port at which a client listens if its address names none. None: addresses of this
    protocol are not internet addresses, and its carrier interprets them."""
    numbers: bool = False
    """Whether addresses of this protocol are phone numbers."""
    bearer: str = "Packet Data"
    network: str = ""
    """The bearer and the network of a route that names none, spelled as in WDP."""
    confirms: bool = False
    """Whether the client confirms that it has received a push (5.1.1.2)."""
    answers: bool = False
    """Whether the client can return content with its confirmation."""
    overhead: int = 256
    """The most octets that the protocol usually adds to body, headers and content type of a push:
    so much is reserved in budgets before a push leaves. A carrier that needs more reports
    `NeedsMore`, and more is reserved."""

    @property
    def form(self) -> AddressForm:
        """What addresses of this protocol are."""
        if self.numbers:
            return AddressForm.NUMBER
        return AddressForm.FREE if self.port is None else AddressForm.IP


def _packet_data(label: str, latency: Micros) -> Link:
    return Link(label, Tariff(), latency=latency)  # Packet data at a flat rate costs nothing.


VARIANTS: dict[str, Variation] = {
    # The client of a session is asked at its push port to open one; the port numbers are IANA's.
    Variant.WSP: Variation(link=_packet_data("wsp", SECOND), port=2948),
    Variant.WSP_SESSION: Variation(
        link=_packet_data("wsp-session", 2 * SECOND), port=2948, confirms=True
    ),
    Variant.HTTP: Variation(
        link=_packet_data("http", SECOND), port=4035, confirms=True, answers=True
    ),
    Variant.SMS: Variation(
        link=Link("sms", Tariff(unit=SMS_BYTES), latency=10 * SECOND),
        numbers=True,
        bearer="SMS",
        network="GSM",
        overhead=7,  # The ports; most pushes shrink when they are adapted.
    ),
}
"""The one table of protocols over the air. Those of other packages are added when a gateway starts
whose settings name them; see docs/how-to/extend.md."""

_UNSERVED = Variation(link=_packet_data("unserved", SECOND))
"""The values of a protocol that a stored route names but no carrier serves any more."""


def check_variant(variant: str) -> None:
    """Refuse a protocol variant that is not in `VARIANTS`."""
    if variant not in VARIANTS:
        known = ", ".join(VARIANTS)
        raise InvalidRequest(
            f"routes: unknown variant {variant!r}: choose from {known}", field="routes"
        )


def variation(variant: str) -> Variation:
    """Return what the protocol of this name can do, also if no carrier serves it any more."""
    return VARIANTS.get(variant, _UNSERVED)


class Route(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One address and protocol by which a carrier reaches a device over the air."""

    variant: str
    """The name of the protocol, a key of `VARIANTS`."""
    address: str
    """An IP address, with a port if the client does not listen at the usual one; a phone number; or
    whatever the variant uses as an address."""
    bearer: str = ""
    network: str = ""
    """Bearer and network, spelled as in WDP, or those of the variant; a push that requires one only
    takes routes that name it."""
    link: Link | None = None
    """The route's cost and speed, if they are known."""

    def __post_init__(self) -> None:
        known = variation(self.variant)
        if known.numbers and not _NUMBER.fullmatch(self.address):
            raise InvalidRequest(
                "the address of a route must be a phone number: digits, with or without a plus",
                address=self.address,
            )
        self.endpoint()

    @property
    def served(self) -> tuple[str, str]:
        """The network and the bearer that the route uses."""
        known = variation(self.variant)
        return self.network or known.network, self.bearer or known.bearer

    def endpoint(self) -> tuple[str, int]:
        """Return the host and port to send to; port 0 if the address is not an internet address."""
        port = variation(self.variant).port
        return (self.address, 0) if port is None else _endpoint(self.address, port)


_NUMBER = re.compile(r"\+?[0-9]{3,20}")
"""A phone number: E.164 allows 15 digits, some services use three, and testers more."""


@lru_cache(maxsize=16_384)
def _endpoint(address: str, port: int) -> tuple[str, int]:
    host, text = address, ""
    if host.startswith("["):
        host, bracket, rest = host[1:].partition("]")
        text = rest.removeprefix(":") if bracket else "no bracket"
    elif host.count(":") == 1:
        host, _, text = host.partition(":")
    try:
        ip_address(host)
        port = int(text) if text else port
    except ValueError:
        raise InvalidRequest(
            "the address of a route must be an IP address, with or without a colon and a port",
            address=address,
        ) from None
    if not 0 < port < 65536:
        raise InvalidRequest("the port of a route must be between 1 and 65535", address=address)
    return host, port


class RouteSelection(msgspec.Struct, frozen=True, gc=False):
    """The route that is to carry a push now."""

    route: Route
    confirmed: bool
    """Whether the client is asked to confirm the push."""
    reason: str
    choice: Choice | None = None
    """The choice of the link, if the device's preferences were asked."""


class RouteRefusal(msgspec.Struct, frozen=True):
    """The answer that no route will ever be suitable, with PAP's status code and the reason."""

    code: int
    reason: str


_NO_BUDGETS = Budgets((), zone_name="UTC")
_ASKS_NOTHING = frozenset({DeliveryMethod.UNCONFIRMED, DeliveryMethod.ONESHOT})
_NO_QUALITY = Quality()


def obstacle(network: str, bearer: str, quality: Quality) -> RouteRefusal | None:
    """Return why a link with this network and bearer does not meet what the publisher requires;
    None if it does."""
    if quality.network_required and not serves(quality.network, frozenset({network})):
        return RouteRefusal(3009, f"the required network is not available: {quality.network}")
    if quality.bearer_required and not serves(quality.bearer, frozenset({bearer})):
        return RouteRefusal(3010, f"the required bearer is not available: {quality.bearer}")
    return None


class NoLink(msgspec.Struct, frozen=True):
    """A lasting conflict: the publisher requires a link that the device does not want and by which
    it cannot be reached."""

    names: tuple[str, ...]

    def reason(self) -> Reason:
        return because(Code.LINK_CONFLICT, names="; ".join(self.names))

    def error(self) -> LinkContradiction:
        """Return the conflict as the error that the publisher gets."""
        return LinkContradiction("no link satisfies all constraints", conflict=self.names)


def contradiction(quality: Quality, terms: QueueTerms, routes: Sequence[Route]) -> NoLink | None:
    """Return a conflict if no link will ever do: the device limits this queue to some links, the
    publisher requires another one, and none of the routes meets the requirement."""
    bearer = quality.bearer
    if not quality.bearer_required or terms.links is None or serves(bearer, frozenset(terms.links)):
        return None
    if any(obstacle(*route.served, quality) is None for route in routes):
        return None
    only = ", ".join(terms.links)
    return NoLink((f"required bearer {bearer}", f"queue {terms.name!r} only over {only}"))


def select(
    routes: Sequence[Route],
    *,
    method: DeliveryMethod,
    size: int,
    now: Micros,
    quality: Quality | None = None,
    deliver_before: Micros | None = None,
    failures: Mapping[Route, int] | None = None,
    weights: Weights = BALANCED,
    place: Place | None = None,
) -> RouteSelection | RouteRefusal | Choice:
    """Select the route for one push, now; or return the choice to hold or expire it. `failures`
    counts the failed attempts by route; `place` chooses by the device's preferences.

    A network or bearer that is required excludes all other routes; one that is only named is
    preferred.
    """
    if len(routes) == 1 and not (quality or place) and _able(routes[0].variant, method):
        only = routes[0]  # Most devices have one route.
        asks = method not in _ASKS_NOTHING
        return RouteSelection(only, asks and variation(only.variant).confirms, "one way")
    wanted = quality or _NO_QUALITY
    refusal: RouteRefusal | None = None
    fitting = []
    for route in routes:
        against = obstacle(*route.served, wanted)
        if against is None:
            fitting.append(route)
        elif refusal is None or against.code > refusal.code:
            refusal = against  # The bearer is checked last: that route came closest.
    if not fitting:
        return refusal or RouteRefusal(3003, "no route to the device that this gateway serves")
    able = [route for route in fitting if _able(route.variant, method)]
    if not able:
        return RouteRefusal(3007, f"no route to the device can do {method}")
    tried = failures or {}
    fewest = min(tried.get(route, 0) for route in able)
    able = [route for route in able if tried.get(route, 0) == fewest]
    able = _preferring(able, wanted)
    confirms = [route for route in able if variation(route.variant).confirms]
    asks = method not in _ASKS_NOTHING
    if asks and confirms:
        able = confirms
    if place is not None:
        return _placed(able, place, asks=asks)
    route, reason = _cheapest(able, size, now, deliver_before, weights)
    return RouteSelection(route, asks and variation(route.variant).confirms, reason)


def link_of(route: Route) -> Link:
    """Return the link of a route: its own values, or those of its protocol."""
    return route.link or variation(route.variant).link


def _numbered(routes: Sequence[Route]) -> list[Link]:
    """Return the links of routes, each with the place of its route as its channel."""
    return [msgspec.structs.replace(link_of(route), channel=n) for n, route in enumerate(routes, 1)]


def _placed(routes: Sequence[Route], place: Place, *, asks: bool) -> RouteSelection | Choice:
    choice = place(_numbered(routes))
    if choice.action is not Action.SEND:
        return choice
    route = routes[choice.channel - 1]
    confirmed = asks and variation(route.variant).confirms
    return RouteSelection(route, confirmed, in_words(choice.reasons), choice)


def _able(variant: str, method: DeliveryMethod) -> bool:
    if method is DeliveryMethod.CONFIRMED_WITH_RESPONSE:
        return variation(variant).answers
    return method is not DeliveryMethod.CONFIRMED or variation(variant).confirms


def _preferring(routes: list[Route], wanted: Quality) -> list[Route]:
    for name, of in ((wanted.bearer, 1), (wanted.network, 0)):
        preferred = [r for r in routes if serves(name, frozenset({r.served[of]}))]
        routes = preferred or routes
    return routes


def _cheapest(
    routes: list[Route], size: int, now: Micros, deliver_before: Micros | None, weights: Weights
) -> tuple[Route, str]:
    if len(routes) == 1:
        return routes[0], "one way"
    choice = choose(
        MessageToPlace(size, since=now, deliver_before=deliver_before),
        queue=QueueTerms("push", weights),
        current=_numbered(routes),
        budgets=_NO_BUDGETS,
        now=now,
    )
    chosen = routes[max(choice.channel, 1) - 1]
    return chosen, str(choice.reasons[-1])
