"""Topics that publishers advertise and withdraw. A topic needs no advertisement to be used; an
advertised one can be found, and its subscribers are told when it is withdrawn."""

from __future__ import annotations

from collections.abc import Iterable

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.names import check_topic
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.session import Session
from lasthop.errors import Conflict, NotFound, QuotaExceeded
from lasthop.events import Kind
from lasthop.message import GATEWAY, Message, Target, TargetKind
from lasthop.store.ranked import RankedChanges, TopicRow
from lasthop.wire.hop.feeds import TopicWithdrawn, encode_instructions
from lasthop.wire.hop.frames import FEED_TYPE

MAX_ADVERTISED = 10_000
"""The largest number of topics that an app can advertise: all of them are kept in memory, and can
be listed."""


class AdvertisedTopics:
    """The topics that publishers advertise, by app."""

    def __init__(self, deliveries: Deliveries, fanouts: Fanouts) -> None:
        self._deliveries = deliveries
        self._fanouts = fanouts
        self._topics: dict[tuple[str, str], TopicRow] = {}
        self._count: dict[str, int] = {}

    def restore(self, rows: Iterable[TopicRow]) -> None:
        """Add the advertisements that the store has."""
        for row in rows:
            self._keep(row)

    def _keep(self, row: TopicRow) -> None:
        if (row.app, row.topic) not in self._topics:
            self._count[row.app] = self._count.get(row.app, 0) + 1
        self._topics[row.app, row.topic] = row

    def find(self, app: str, topic: str) -> TopicRow | None:
        """Return the advertisement of a topic, even if it was withdrawn; None if there never was
        one."""
        return self._topics.get((app, topic))

    def all(self, app: str) -> list[TopicRow]:
        """Return what an app advertises now, sorted by name."""
        rows = [row for row in self._topics.values() if row.app == app and not row.withdrawn_at]
        return sorted(rows, key=lambda row: row.topic)

    def advertise(self, app: str, topic: str, source: str, title: str, now: Micros) -> bool:
        """Advertise a topic; return False if it is advertised with the same title already."""
        topic = check_topic(topic)
        row = self.find(app, topic)
        if row is not None and not row.withdrawn_at:
            if row.source != source:
                raise Conflict("another publisher advertises this topic", topic=topic)
            if row.title == title:
                return False
        if row is None and self._count.get(app, 0) >= MAX_ADVERTISED:
            raise QuotaExceeded(
                "too many topics are advertised", retry_after=60, limit=MAX_ADVERTISED
            )
        since = now if row is None or row.withdrawn_at else row.advertised_at
        self._note(TopicRow(app, topic, source, title, since))
        self._deliveries.commits.record(Kind.ADVERTISED, now, app=app, topic=topic, source=source)
        return True

    def withdraw(self, app: str, topic: str, source: str, now: Micros, *, force: bool) -> int:
        """Withdraw an advertisement, and return how many subscribers are told. Only the publisher
        that advertised the topic, or an administrator (`force`), may do so."""
        row = self.find(app, topic)
        if row is None or row.withdrawn_at:
            raise NotFound("no such topic is advertised", topic=topic)
        if row.source != source and not force:
            raise Conflict("another publisher advertises this topic", topic=topic)
        self._note(TopicRow(app, topic, row.source, row.title, row.advertised_at, now))
        self._deliveries.commits.record(Kind.WITHDRAWN, now, app=app, topic=topic, source=source)
        target = Target(TargetKind.TOPIC, topic)
        devices = dict(self._deliveries.registry.reach(app, target))
        if devices:
            message = self._notice(app, target, now)
            self._fanouts.begin(self._deliveries.own(message), devices, now)
        return len(devices)

    def subscribed(self, session: Session, topic: str, now: Micros) -> None:
        """Tell a device that has just subscribed to a topic if its advertisement was withdrawn
        before."""
        device = session.device
        row = self.find(device.app, topic)
        if row is not None and row.withdrawn_at:
            message = self._notice(device.app, Target(TargetKind.TOPIC, topic), now)
            self._fanouts.begin(self._deliveries.own(message), {device.number: device}, now)

    def _notice(self, app: str, target: Target, now: Micros) -> Message:
        deliveries = self._deliveries
        message = Message(
            key=deliveries.keys.key(now),
            salt=deliveries.keys.salt(),
            app=app,
            source=GATEWAY,
            target=target,
            accepted_at=now,
            body=encode_instructions((TopicWithdrawn(),)),
            content_type=FEED_TYPE,
        )
        deliveries.commits.add_message(message)
        return message

    def _note(self, row: TopicRow) -> None:
        self._keep(row)
        self._deliveries.commits.open.of(RankedChanges).topics[row.app, row.topic] = row
        self._deliveries.commits.hurry()
