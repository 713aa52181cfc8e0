"""The data of the dashboard's pages that the REST door does not offer.

Lists are returned page by page, and counts over many devices have a limit, because a page may be
open on a gateway of a hundred thousand devices.
"""

from __future__ import annotations

from heapq import nsmallest
from itertools import islice

import msgspec

from lasthop.access.rest.answers import DeviceInfo, device_of
from lasthop.clock import Micros
from lasthop.core.delivery import Delivery
from lasthop.core.gateway import Gateway
from lasthop.core.preferences.feature import preferences_of
from lasthop.core.session import Session
from lasthop.decision.volume.entry import Place
from lasthop.errors import NotFound
from lasthop.message import Target, TargetKind
from lasthop.runtime.engine import Engine
from lasthop.wire.hop.connection import Open

PAGE = 50
"""The number of rows of a list in one page."""

MOST_SCANNED = 20_000
"""The largest number of devices that are counted for an overview."""

MOST_RANKED = 5_000
"""The largest number of messages in a histogram of ranks."""

BARS = 20


class LineView(msgspec.Struct, omit_defaults=True):
    """One live channel of a device."""

    link: str
    network: str = ""
    carrier: str = ""
    heartbeat: float | None = None
    """Seconds of silence after which the device checks whether the gateway still answers."""
    round_trip: float | None = None
    """The smoothed round trip of the channel, in milliseconds."""
    sending: bool = False
    """Whether this is the channel over which the gateway sends, if the device has several."""


class MailView(msgspec.Struct, omit_defaults=True):
    """One message that has not been delivered to a device yet."""

    id: str
    state: str
    changed_at: Micros
    size: int
    priority: int
    topic: str = ""
    title: str = ""
    attempts: int = 0


class DeviceRowView(msgspec.Struct, omit_defaults=True):
    """A device in the list of devices."""

    info: DeviceInfo
    lines: list[LineView] = []
    limits: int = 0
    """The number of budget limits of the device."""


class DevicePage(msgspec.Struct, omit_defaults=True):
    """One page of the list of devices."""

    devices: list[DeviceRowView]
    total: int
    next: int | None = None


class DeviceView(msgspec.Struct, omit_defaults=True):
    """The data about one device that the answers of the REST door do not contain."""

    info: DeviceInfo
    lines: list[LineView]
    assigned: int
    received: int
    delivered: int
    inbound: int
    in_flight: int
    window: tuple[int, int]
    mailbox: list[MailView]
    mailbox_size: int


class TopicRowView(msgspec.Struct, omit_defaults=True):
    """A topic in the list of topics."""

    topic: str
    subscribers: int
    title: str = ""
    advertised: bool = False


class TopicPage(msgspec.Struct, omit_defaults=True):
    """One page of the list of topics, ordered by name."""

    topics: list[TopicRowView]
    total: int
    next: str | None = None


class Subscriber(msgspec.Struct, omit_defaults=True):
    """A device that has subscribed to a topic, with the terms of a ranked subscription."""

    device: str
    ranked: bool = False
    mode: str = ""
    max: int | None = None
    threshold: float | None = None
    policy: str = ""
    unread: int = 0
    waiting: int = 0


class Bar(msgspec.Struct):
    """One bar of a histogram: the messages with ranks from `low` to `high`."""

    low: float
    high: float
    here: int
    """The number of messages with these ranks that wait at the gateway."""
    there: int
    """The number of messages with these ranks that devices store and their users have not read."""


class TopicView(msgspec.Struct, omit_defaults=True):
    """A topic, its subscribers, and the ranks of its undelivered messages."""

    topic: str
    subscribers: list[Subscriber]
    total: int
    ranks: list[Bar] = []


class LinkView(msgspec.Struct, omit_defaults=True):
    """All live channels over links with one label."""

    link: str
    channels: int
    networks: int
    round_trip: tuple[float, float] | None = None
    """The round trips in milliseconds: median and 90th percentile."""
    heartbeat: tuple[float, float] | None = None
    """The heartbeat intervals in seconds: shortest and longest."""
    price: tuple[float, float] | None = None
    """The price of a kilobyte by the tariffs that devices have declared: lowest and highest."""


class LinkPage(msgspec.Struct):
    """The links by which devices are connected now."""

    links: list[LinkView]
    looked_at: int
    in_contact: int


class Views:
    """Reads the data of the dashboard's pages from a running gateway."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def _gateway(self) -> Gateway:
        return self._engine.gateway

    def apps(self) -> list[str]:
        """Return the names of the apps that have devices."""
        return self._gateway.registry.apps()

    def devices(self, app: str, *, after: int = 0, search: str = "") -> DevicePage:
        """Return a page of the devices, in the order of their registration."""
        gateway = self._gateway
        everyone = gateway.registry.reach(app, Target(TargetKind.APP, ""))
        found = (
            device
            for device in everyone.values()
            if device.number > after and (not search or search in device.name)
        )
        page = list(islice(found, PAGE + 1))
        rows = []
        for device in page[:PAGE]:
            session = gateway.deliveries.session(device)
            device_preferences = preferences_of(session)
            limits = (
                len(device_preferences.preferences.limits) if device_preferences is not None else 0
            )
            rows.append(DeviceRowView(device_of(device, session), self._lines(session), limits))
        return DevicePage(rows, len(everyone), page[PAGE - 1].number if len(page) > PAGE else None)

    def device(self, app: str, name: str) -> DeviceView:
        """Return the data about one device; raise `NotFound` if there is none."""
        gateway = self._gateway
        device = gateway.registry.named(app, name)
        session = gateway.deliveries.session(device)
        outbound = session.lane.outbound
        return DeviceView(
            info=device_of(device, session),
            lines=self._lines(session),
            assigned=outbound.assigned,
            received=outbound.received,
            delivered=outbound.delivered,
            inbound=session.lane.inbound.received,
            in_flight=outbound.in_flight,
            window=(session.lane.window.messages, session.lane.window.bytes),
            mailbox=[_mail(delivery) for delivery in islice(session.mailbox.values(), PAGE)],
            mailbox_size=len(session.mailbox),
        )

    def _lines(self, session: Session) -> list[LineView]:
        lines = []
        for line in session.lines:
            channel = self._engine.channel(line.channel)
            machine = getattr(channel, "machine", None)
            view = LineView(
                link=line.link or "unnamed",
                network=line.network,
                carrier=_carrier(channel),
                sending=line is session.line and len(session.lines) > 1,
            )
            if isinstance(machine, Open):
                view.heartbeat = machine.heartbeat.interval / 1e6
                smoothed = machine.roundtrip.smoothed
                view.round_trip = None if smoothed is None else smoothed / 1e3
            lines.append(view)
        return lines

    def topics(self, app: str, *, after: str = "") -> TopicPage:
        """Return a page of the topics that have subscribers or are advertised."""
        gateway = self._gateway
        advertised = {row.topic: row for row in gateway.topics.advertised.all(app)}
        names = set(gateway.topics.index.names(app)) | advertised.keys()
        page = nsmallest(PAGE + 1, (name for name in names if name > after))
        rows = []
        for name in page[:PAGE]:
            subscribers = gateway.registry.reach(app, Target(TargetKind.TOPIC, name))
            row = advertised.get(name)
            title = row.title if row is not None else ""
            rows.append(TopicRowView(name, len(subscribers), title, row is not None))
        return TopicPage(rows, len(names), page[PAGE - 1] if len(page) > PAGE else None)

    def topic(self, app: str, name: str) -> TopicView:
        """Return a topic's first subscribers, and the ranks of the messages that are on their way
        to them."""
        gateway = self._gateway
        devices = gateway.registry.reach(app, Target(TargetKind.TOPIC, name))
        if not devices and gateway.topics.advertised.find(app, name) is None:
            raise NotFound("no device has subscribed to this topic, and it is not advertised")
        subscribers: list[Subscriber] = []
        ranks: list[tuple[float, Place]] = []
        for device in islice(devices.values(), MOST_SCANNED):
            session = gateway.deliveries.session(device)
            subscription = gateway.ranked.subscription(session, name)
            if subscription is not None and len(ranks) < MOST_RANKED:
                ranks += subscription.feed.ranks()[: MOST_RANKED - len(ranks)]
            if len(subscribers) < PAGE:
                shown = Subscriber(device.name, ranked=subscription is not None)
                if subscription is not None:
                    terms = subscription.terms
                    shown.mode, shown.max, shown.threshold = terms.mode, terms.max, terms.threshold
                    shown.policy = subscription.choice.label
                    shown.unread = subscription.feed.unread_there
                    shown.waiting = len(subscription.feed.ranks()) - shown.unread
                subscribers.append(shown)
            elif len(ranks) >= MOST_RANKED:
                break
        return TopicView(name, subscribers, len(devices), bars(ranks))

    def links(self) -> LinkPage:
        """Return how devices are connected now, by the label of the link."""
        sessions = self._gateway.deliveries.sessions_in_contact()
        seen: dict[str, list[LineView]] = {}
        prices: dict[str, list[float]] = {}
        for session in islice(sessions, MOST_SCANNED):
            for line in self._lines(session):
                seen.setdefault(line.link, []).append(line)
            device_preferences = preferences_of(session)
            if device_preferences is not None:
                for link in device_preferences.preferences.links:
                    prices.setdefault(link.label, []).append(link.tariff.price(1000) / 1e6)
        labels = sorted(seen, key=lambda label: -len(seen[label]))
        rows = [_link(label, seen[label], prices.get(label, [])) for label in labels]
        return LinkPage(rows, min(len(sessions), MOST_SCANNED), len(sessions))


def bars(ranks: list[tuple[float, Place]]) -> list[Bar]:
    """Return a histogram of ranks; a single bar if all ranks are equal."""
    if not ranks:
        return []
    low, high = min(rank for rank, _ in ranks), max(rank for rank, _ in ranks)
    width = (high - low) / BARS
    if not width:
        there = sum(place is Place.DEVICE for _, place in ranks)
        return [Bar(low, high, len(ranks) - there, there)]
    found = [Bar(low + width * n, low + width * (n + 1), 0, 0) for n in range(BARS)]
    for rank, place in ranks:
        bar = found[min(BARS - 1, int((rank - low) / width))]
        if place is Place.DEVICE:
            bar.there += 1
        else:
            bar.here += 1
    return found


def _mail(delivery: Delivery) -> MailView:
    message = delivery.item.message
    target = message.target
    return MailView(
        id=message.id,
        state=delivery.state.name.lower(),
        changed_at=delivery.changed_at,
        size=delivery.item.size,
        priority=message.priority,
        topic=target.name if target.kind is TargetKind.TOPIC else "",
        title=message.title or "",
        attempts=delivery.attempts,
    )


def _link(label: str, lines: list[LineView], prices: list[float]) -> LinkView:
    trips = sorted(line.round_trip for line in lines if line.round_trip is not None)
    beats = [line.heartbeat for line in lines if line.heartbeat is not None]
    last = len(trips) - 1
    return LinkView(
        link=label,
        channels=len(lines),
        networks=len({line.network for line in lines if line.network}),
        round_trip=(trips[last // 2], trips[round(last * 0.9)]) if trips else None,
        heartbeat=(min(beats), max(beats)) if beats else None,
        price=(min(prices), max(prices)) if prices else None,
    )


def _carrier(channel: object) -> str:
    """Return the common name of what carries a channel, or an empty text."""
    return _CARRIERS.get(type(channel).__name__, "")


_CARRIERS = {"StreamLink": "TCP", "WebSocketLink": "WebSocket", "RequestLink": "HTTP"}
