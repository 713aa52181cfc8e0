"""The subscribers of topics, by name or by pattern."""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.core.registry import Device, Index, Registry
from lasthop.core.topics.filters import Filters
from lasthop.core.topics.patterns import PatternTree, is_pattern


class TopicIndex(Index):
    """Finds the subscribers of a topic, by its name and by patterns."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.filters = Filters()
        self._by_topic: dict[tuple[str, str], dict[int, Device]] = {}
        self._by_pattern: dict[str, PatternTree[Device]] = {}
        """The subscriptions to patterns, by app."""
        self._last_matched: tuple[tuple[int, str, str], dict[int, Device]] = ((-1, "", ""), {})
        """The devices last found for a topic by patterns, and the state of the registry then:
        batches ask for the same topic again and again."""

    def added(self, device: Device) -> None:
        if device.record.filters:
            self.filters.add(device)
        for topic in device.record.subscriptions:
            self._enter(device, topic)

    def removed(self, device: Device) -> None:
        for topic in list(device.record.subscriptions):
            self.unsubscribe(device, topic)
        self.filters.remove(device)

    def has_subscribers(self, app: str, name: str) -> bool:
        """Whether a device has subscribed to the topic by its name, not by a pattern."""
        return bool(self._by_topic.get((app, name)))

    def reach(self, app: str, name: str) -> Mapping[int, Device]:
        subscribers = self._by_topic.get((app, name), {})
        tree = self._by_pattern.get(app)
        if tree is None:
            return subscribers
        asked = self._registry.changes, app, name
        if self._last_matched[0] != asked:
            self._last_matched = asked, tree.match(name) | subscribers
        return self._last_matched[1]

    def subscribe(self, device: Device, topic: str) -> bool:
        """Add a subscription; return False if it exists already."""
        if not self._enter(device, topic):
            return False
        device.record.subscriptions.append(topic)
        return True

    def unsubscribe(self, device: Device, topic: str) -> bool:
        """Remove a subscription; return False if there was none."""
        if not self._forget(device, topic):
            return False
        device.record.subscriptions.remove(topic)
        if topic in device.record.filters:
            self.filters.set(device, topic, "")
        return True

    def names(self, app: str) -> list[str]:
        """Return the topics of an app that a device has subscribed to by name, in no order."""
        return [topic for of, topic in self._by_topic if of == app]

    def _enter(self, device: Device, topic: str) -> bool:
        self._registry.changes += 1
        if is_pattern(topic):
            tree = self._by_pattern.setdefault(device.app, PatternTree())
            return tree.add(topic, device.number, device)
        subscribers = self._by_topic.setdefault((device.app, topic), {})
        if device.number in subscribers:
            return False
        subscribers[device.number] = device
        return True

    def _forget(self, device: Device, topic: str) -> bool:
        self._registry.changes += 1
        if is_pattern(topic):
            tree = self._by_pattern.get(device.app)
            if tree is None or not tree.remove(topic, device.number):
                return False
            if not len(tree):
                del self._by_pattern[device.app]
            return True
        subscribers = self._by_topic.get((device.app, topic))
        if subscribers is None or subscribers.pop(device.number, None) is None:
            return False
        if not subscribers:
            del self._by_topic[device.app, topic]
        return True
