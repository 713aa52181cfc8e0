"""Topics as a feature: publishing to subscribers, subscribing, and subscriptions that follow a
device's context."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery, Item
from lasthop.core.feature import (
    CoreFeature,
    Operate,
    OrderKey,
    Selection,
    TargetRule,
    Word,
)
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.publishing.submission import Submission
from lasthop.core.publishing.targets import PlainTarget
from lasthop.core.registry import Device
from lasthop.core.session import Session
from lasthop.core.spine import Spine
from lasthop.core.topics.advertised import AdvertisedTopics
from lasthop.core.topics.filter_queue import FilterQueue
from lasthop.core.topics.filters import Sieve
from lasthop.core.topics.histories import Histories
from lasthop.core.topics.index import TopicIndex
from lasthop.core.topics.subscriptions import TopicSubscriptions
from lasthop.core.topics.topic_history import Since, beginning
from lasthop.decision.volume.rules import ContextRule
from lasthop.decision.volume.terms import TopicTerms, decode_terms
from lasthop.errors import InvalidRequest, TooLarge
from lasthop.events import Kind
from lasthop.message import Message, TargetKind
from lasthop.store.commit import Restored
from lasthop.store.ranked import RankedRestored
from lasthop.store.remembered import HistoryRestored
from lasthop.wire.hop.frames import FEED_TYPE, Headers, MessageFrame, Operation
from lasthop.wire.hop.topics import LAST_HEADER, SINCE_HEADER, XPATH_HEADER
from lasthop_xml.xpath.reading import Reading

_decode_context = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class TopicFeature(CoreFeature):
    """Topics and subscriptions, except for the terms of ranked topics."""

    def __init__(self, spine: Spine) -> None:
        self._deliveries = deliveries = spine.deliveries
        self._fanouts = spine.fanouts
        self.index = TopicIndex(deliveries.registry)
        self._unread = FilterQueue(deliveries, self.index.filters)
        deliveries.registry.index(self.index, TargetKind.TOPIC)
        self.advertised = AdvertisedTopics(deliveries, spine.fanouts)
        self.histories = Histories(deliveries)
        self.subscriptions = TopicSubscriptions(spine, self.advertised, self.index, self.histories)

    def targets(self) -> Mapping[TargetKind, TargetRule]:
        return {
            TargetKind.TOPIC: TopicTarget(self._deliveries, self._fanouts, self.index, self._unread)
        }

    def words(self) -> Mapping[str, Word]:
        return {FEED_TYPE: FeedWord()}

    def operations(self) -> Mapping[int, Operate]:
        return {
            Operation.SUBSCRIBE: self._subscribe,
            Operation.UNSUBSCRIBE: self._unsubscribe,
            Operation.CONTEXT: self._context,
        }

    def turned(self) -> None:
        self.index.filters.turned()

    def fetched(self, messages: Mapping[int, Message], now: Micros) -> None:
        self._unread.fetched(messages)

    def matched(self, key: int, reading: Reading, now: Micros) -> None:
        """Continue with a message that the driver has matched with the filters."""
        if self._unread.answered(key, reading):
            self._fanouts.go_on(key, now)

    def accepted(self, message: Message, now: Micros) -> bool:
        return self.histories.accepted(message, now)

    def withdrawn(self, app: str, key: int, now: Micros) -> None:
        self.histories.withdrawn(app, key)

    def before_commit(self) -> None:
        self.histories.before_commit()

    def wake(self, now: Micros) -> None:
        self.histories.wake(now)

    def next_due(self) -> Micros | None:
        return self.histories.next_due()

    def recalled(
        self, device: int, messages: Mapping[int, Message], had: Collection[int], now: Micros
    ) -> None:
        self.subscriptions.catching_up.recalled(device, messages, had, now)

    def removed(self, session: Session, now: Micros) -> None:
        self.subscriptions.catching_up.removed(session.device.number)

    def restore(self, restored: Restored, now: Micros) -> None:
        self.advertised.restore(restored.of(RankedRestored).topics)
        memories = list(restored.memories)
        self.histories.restore(restored.of(HistoryRestored).rows, memories, now)
        self.subscriptions.catching_up.restore(memories)

    def finish(self, now: Micros) -> None:
        self.subscriptions.catching_up.finish(now)

    # Operations of administrators.

    def subscribe(
        self,
        app: str,
        name: str,
        topic: str,
        now: Micros,
        terms: TopicTerms | None = None,
        *,
        xpath: str | None = None,
        since: Since | None = None,
    ) -> bool:
        """Subscribe a device to a topic; return False if it is already subscribed with the same
        terms and filter."""
        session = self._deliveries.named(app, name)
        return self.subscriptions.subscribe(session, topic, now, terms, xpath=xpath, since=since)

    def unsubscribe(self, app: str, name: str, topic: str, now: Micros) -> bool:
        """End a device's subscription; return False if there was none."""
        return self.subscriptions.unsubscribe(self._deliveries.named(app, name), topic, now)

    def set_rules(self, app: str, name: str, rules: list[ContextRule], now: Micros) -> None:
        """Let a device's subscriptions follow its context by these rules."""
        self.subscriptions.set_rules(self._deliveries.named(app, name), rules, now)

    # Operations of devices.

    def _subscribe(
        self, session: Session, frame: MessageFrame, headers: Headers, now: Micros
    ) -> None:
        self.subscriptions.check_right(session, frame.topic)
        terms = decode_terms(frame.body) if frame.body else None
        extra = dict(headers.extra)
        xpath = extra.get(XPATH_HEADER)
        since = beginning(extra.get(SINCE_HEADER), extra.get(LAST_HEADER), now)
        self.subscriptions.subscribe(session, frame.topic, now, terms, xpath=xpath, since=since)

    def _unsubscribe(
        self, session: Session, frame: MessageFrame, headers: Headers, now: Micros
    ) -> None:
        self.subscriptions.unsubscribe(session, frame.topic, now)

    def _context(
        self, session: Session, frame: MessageFrame, headers: Headers, now: Micros
    ) -> None:
        """Store a device's report of its place and activity, and let its subscriptions follow."""
        limit, body = self._deliveries.limits.context, frame.body
        if len(body) > limit:
            raise TooLarge("context too large", size=len(body), limit=limit)
        try:
            report = _decode_context(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequest(f"a context must be a JSON object: {error}") from None
        device = session.device
        device.record.context = {name: bytes(value) for name, value in report.items()}
        self._deliveries.commits.open.devices[device.number] = device.row()
        self._deliveries.commits.record(Kind.CONTEXT_CHANGED, now, session, size=len(body))
        self.subscriptions.context_changed(session, now)


class TopicTarget(PlainTarget):
    """The subscribers of a topic, some of whom have a filter."""

    def __init__(
        self, deliveries: Deliveries, fanouts: Fanouts, index: TopicIndex, unread: FilterQueue
    ) -> None:
        super().__init__(deliveries, fanouts)
        self._filters = index.filters
        self._unread = unread

    def select(
        self, app: str, what: Message | Submission, devices: Mapping[int, Device], *, resident: bool
    ) -> Selection | None:
        if what.content_type == FEED_TYPE:
            return None  # Notices of the gateway about a topic concern every subscriber.
        body = what.body if resident else None
        return self._filters.sieve(app, what.target.name, devices, what.content_type, body)

    def begin(self, item: Item, devices: Mapping[int, Device], now: Micros) -> None:
        message = item.message
        selection = self.select(message.app, message, devices, resident=item.resident)
        self._fanouts.begin(item, devices, now, selection)

    def find_out(self, order: OrderKey, item: Item, selection: Selection) -> None:
        assert isinstance(selection, Sieve)
        self._unread.put(order, item, selection)


class FeedWord:
    """How the gateway's own notices about a topic travel."""

    must_arrive = False

    def frame(self, delivery: Delivery) -> MessageFrame:
        """Return the frame of an instruction, which the device follows without passing it to its
        application."""
        message = delivery.item.message
        seq = delivery.seq if delivery.seq >= 0 else None
        topic = message.target.topic or message.queue
        instructs = Headers(operation=Operation.FEED, in_reply_to=message.in_reply_to)
        return MessageFrame(seq, message.key, topic, instructs, message.body)
