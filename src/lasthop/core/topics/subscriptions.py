"""Changes of subscriptions and their terms: by a device, by an administrator, or by the rules that
follow a device's context."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.core.names import check_subscription, check_topic
from lasthop.core.rights.rights import NoRight
from lasthop.core.rights.rule import Verb
from lasthop.core.session import Session
from lasthop.core.spine import Spine
from lasthop.core.topics.advertised import AdvertisedTopics
from lasthop.core.topics.catching_up import CatchingUp
from lasthop.core.topics.histories import Histories
from lasthop.core.topics.index import TopicIndex
from lasthop.core.topics.patterns import is_pattern
from lasthop.core.topics.topic_history import Since
from lasthop.decision.volume.context import meets
from lasthop.decision.volume.rules import MAX_RULES, ContextRule, conditions, plain
from lasthop.decision.volume.terms import TopicTerms
from lasthop.errors import InvalidRequest, QuotaExceeded, Rejected, TooLarge
from lasthop.events import Kind
from lasthop.message import Target, TargetKind


class TopicSubscriptions:
    """Changes what devices are subscribed to."""

    def __init__(
        self, spine: Spine, topics: AdvertisedTopics, index: TopicIndex, histories: Histories
    ) -> None:
        self._spine = spine
        self._deliveries = spine.deliveries
        self._topics = topics
        self._index = index
        self.catching_up = CatchingUp(spine, histories, self._caught_up)

    def check_right(self, session: Session, topic: str | None) -> None:
        """Raise an error unless a device may subscribe to a topic, or to all topics of a
        pattern."""
        rights, device = self._deliveries.rights, session.device
        if rights is not None:
            target = Target(TargetKind.TOPIC, check_subscription(topic))
            rights.check_device(device.app, device.name, Verb.SUBSCRIBE, target)

    def subscribe(
        self,
        session: Session,
        topic: str | None,
        now: Micros,
        terms: TopicTerms | None = None,
        *,
        by_rule: bool = False,
        xpath: str | None = None,
        since: Since | None = None,
    ) -> bool:
        """Add a subscription, or change its terms or filter; return False if nothing changes. A
        filter that is not given stays as it is; an empty one is removed. A new subscription begins
        with what the topic remembers `since` a point."""
        device = session.device
        record = device.record
        topic = check_subscription(topic)
        if terms is not None:
            if self._spine.terms is None:
                raise InvalidRequest("this gateway has no ranked topics", topic=topic)
            if is_pattern(topic):
                raise InvalidRequest(
                    "terms can be set for one topic, not for a pattern", topic=topic
                )
            # Raise an error for wrong terms before anything is changed.
            terms.subscription(record.zone, retention=self._deliveries.limits.retained)
        pending = self.catching_up.topics(device.number)
        most = self._deliveries.limits.subscriptions_per_device
        has = topic in record.subscriptions or topic in pending
        if len(record.subscriptions) + len(pending) >= most and not has:
            raise QuotaExceeded("too many subscriptions", retry_after=60, limit=most)
        if since is not None:
            if is_pattern(topic) or xpath:
                raise InvalidRequest(
                    "a subscription with a pattern or a filter begins now, not with what topics"
                    " remember",
                    topic=topic,
                )
            if not has and terms is None and not since.nothing:
                self.catching_up.begin(session, topic, since, now, at_once=False)
                return True
        if topic in pending and terms is None and xpath is None:
            return False
        # The same for a wrong expression.
        filtered = xpath is not None and self._index.filters.set(device, topic, xpath)
        new = self._index.subscribe(device, topic)
        # The device, or an administrator, asks for it: the rules no longer end it.
        if topic in record.ruled and not by_rule:
            record.ruled = [name for name in record.ruled if name != topic]
        if terms is not None and self._spine.terms is not None:
            changed = self._spine.terms.subscribe(session, topic, terms, now) or new
            self._mute(session, now)
        else:
            changed = new
            if new:
                self._deliveries.commits.record(Kind.SUBSCRIBED, now, session, topic=topic)
        if filtered and not changed:
            reason = "a filter was set" if xpath else "a filter was removed"
            self._deliveries.commits.record(
                Kind.CONTEXT_CHANGED, now, session, topic=topic, reason=reason
            )
        if changed or filtered:
            self._note(session)
        if changed:
            self._topics.subscribed(session, topic, now)
        if since is not None and not has and not since.nothing:
            self.catching_up.begin(session, topic, since, now, at_once=True)
        return changed or filtered

    def _caught_up(self, session: Session, topic: str, now: Micros) -> None:
        """Subscribe a device that has everything that the topic remembered."""
        if self._index.subscribe(session.device, topic):
            reason = "it has what the topic remembered"
            self._deliveries.commits.record(
                Kind.SUBSCRIBED, now, session, topic=topic, reason=reason
            )
            self._note(session)
            self._topics.subscribed(session, topic, now)

    def unsubscribe(self, session: Session, topic: str | None, now: Micros) -> bool:
        """Remove a subscription; return False if there was none."""
        device = session.device
        topic = check_subscription(topic)
        stopped = self.catching_up.stop(device.number, topic)
        if not self._index.unsubscribe(device, topic):
            return stopped
        if self._spine.terms is not None:
            self._spine.terms.unsubscribe(session, topic, now)
        device.record.ruled = [name for name in device.record.ruled if name != topic]
        self._note(session)
        self._deliveries.commits.record(Kind.UNSUBSCRIBED, now, session, topic=topic)
        return True

    def set_rules(self, session: Session, rules: list[ContextRule], now: Micros) -> None:
        """Let a device's subscriptions follow its context by these rules."""
        if len(rules) > MAX_RULES:
            raise TooLarge("too many rules", size=len(rules), limit=MAX_RULES)
        record = session.device.record
        for rule in rules:
            check_topic(rule.rule().topic.replace("{", "").replace("}", ""))
            if rule.terms is not None:
                rule.terms.subscription(record.zone, retention=self._deliveries.limits.retained)
        record.rules = rules
        self._note(session)
        reason = "an administrator changed rules"
        self._deliveries.commits.record(Kind.CONTEXT_CHANGED, now, session, reason=reason)
        self.context_changed(session, now)

    def context_changed(self, session: Session, now: Micros) -> None:
        """Subscribe a device to the topics that its rules yield in its new context.

        The first rule that yields a topic decides about it. Subscriptions that the device made
        itself are left alone.
        """
        record = session.device.record
        if record.rules:
            self._follow_rules(session, plain(record.context), now)
        self._mute(session, now)

    def _follow_rules(self, session: Session, context: dict[str, str], now: Micros) -> None:
        record = session.device.record
        wanted: dict[str, ContextRule] = {}
        for rule in record.rules:
            topic = rule.rule().topic_in(context)
            if topic is not None and _is_topic(topic):
                wanted.setdefault(topic, rule)
        for topic in [name for name in record.ruled if name not in wanted]:
            self.unsubscribe(session, topic, now)
        for topic, rule in wanted.items():
            mine = topic in record.ruled
            # A subscription that was asked for is not changed by rules.
            if topic in record.subscriptions and not mine:
                continue
            try:
                # The administrator wrote the rule, but the device says where it is.
                self.check_right(session, topic)
            except NoRight as error:
                self._deliveries.commits.record(
                    Kind.CONTEXT_CHANGED, now, session, topic=topic, reason=error.detail
                )
                continue
            if not mine:
                record.ruled = [*record.ruled, topic]
            self.subscribe(session, topic, now, rule.terms, by_rule=True)
        self._note(session)

    def _mute(self, session: Session, now: Micros) -> None:
        """Mute the topics whose terms or rules make them quiet in the present context, and unmute
        the others."""
        muted = self._spine.terms.muted(session) if self._spine.terms is not None else {}
        if self._spine.terms is None or not muted:
            return
        record = session.device.record
        quieting = [rule for rule in record.rules if rule.quiet_when is not None]
        terms = {topic: t.quiet_when for topic, t in record.terms.items() if t.quiet_when}
        if not quieting and not terms and not any(muted.values()):
            return
        context = plain(record.context)
        quiet = {topic for topic, when in terms.items() if meets(context, conditions(when) or {})}
        for rule in quieting:
            topic = rule.rule().topic_in(context)
            if topic is not None and meets(context, conditions(rule.quiet_when) or {}):
                quiet.add(topic)
        for topic in muted:
            self._spine.terms.mute(session, topic, topic in quiet, now)

    def _note(self, session: Session) -> None:
        device = session.device
        self._deliveries.commits.open.devices[device.number] = device.row()
        self._deliveries.commits.hurry()


def _is_topic(text: str) -> bool:
    try:
        check_topic(text)
    except (Rejected, InvalidRequest):
        return False
    return True
