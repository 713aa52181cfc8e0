"""Who there is, and how they are found."""

from __future__ import annotations

import pytest

from lasthop.core.registry import Device, DeviceRecord, Registry
from lasthop.core.topics.index import TopicIndex
from lasthop.errors import NotFound
from lasthop.message import Target, TargetKind


def names(registry: Registry, kind: TargetKind, name: str = "", app: str = "app") -> list[str]:
    return [device.name for device in registry.reach(app, Target(kind, name)).values()]


def with_topics() -> Registry:
    """A registry in which topics can be found."""
    registry = Registry()
    registry.index(TopicIndex(registry), TargetKind.TOPIC)
    return registry


def topics(registry: Registry) -> TopicIndex:
    index = registry._by_kind[TargetKind.TOPIC]
    assert isinstance(index, TopicIndex)
    return index


@pytest.fixture
def registry() -> Registry:
    registry = with_topics()
    for name, user in [("a", "ann"), ("b", "ann"), ("c", "")]:
        registry.add("app", name, DeviceRecord(user=user))
    registry.add("other", "a", DeviceRecord(user="ann"))
    return registry


def device(registry: Registry, name: str) -> Device:
    found = registry.find("app", name)
    assert found is not None
    return found


def test_targets_reach_whom_they_stand_for_in_their_own_app(registry: Registry) -> None:
    topics(registry).subscribe(device(registry, "c"), "news")
    assert names(registry, TargetKind.DEVICE, "b") == ["b"]
    assert names(registry, TargetKind.USER, "ann") == ["a", "b"]
    assert names(registry, TargetKind.TOPIC, "news") == ["c"]
    assert names(registry, TargetKind.TOPIC, "news", app="other") == []
    assert names(registry, TargetKind.APP) == ["a", "b", "c"]
    assert names(registry, TargetKind.APP, app="unknown") == []


@pytest.mark.parametrize("kind", [TargetKind.DEVICE, TargetKind.USER])
def test_a_name_that_stands_for_nobody_is_an_error(registry: Registry, kind: TargetKind) -> None:
    with pytest.raises(NotFound):
        registry.reach("app", Target(kind, "nobody"))


def test_a_removed_device_is_found_nowhere_and_leaves_nothing(registry: Registry) -> None:
    for name in "abc":
        topics(registry).subscribe(device(registry, name), "news")
        registry.remove(device(registry, name))
    registry.remove(registry.reach("other", Target(TargetKind.DEVICE, "a"))[4])
    assert len(registry) == 0
    assert not any(
        index
        for index in (
            registry._by_user,
            topics(registry)._by_topic,
            registry._by_app,
            registry._by_name,
        )
    )


def test_numbers_are_not_given_out_twice(registry: Registry) -> None:
    removed = device(registry, "c")
    registry.remove(removed)
    assert registry.add("app", "c", DeviceRecord()).number == 5
    assert registry.numbered(3) is None


def test_everything_comes_back_from_its_rows(registry: Registry) -> None:
    topics(registry).subscribe(device(registry, "c"), "news")
    restored = with_topics()
    restored.restore([d.row() for d in registry], 9)
    assert names(restored, TargetKind.USER, "ann") == ["a", "b"]
    assert names(restored, TargetKind.TOPIC, "news") == ["c"]
    assert restored.add("app", "d", DeviceRecord()).number == 9
    assert topics(restored).unsubscribe(device(restored, "c"), "news")
    assert not topics(restored).unsubscribe(device(restored, "c"), "news")


def test_who_is_found_by_patterns_is_looked_for_again_after_any_change(registry: Registry) -> None:
    target = Target(TargetKind.TOPIC, "news.world")
    first = registry.add("app", "first", DeviceRecord())
    topics(registry).subscribe(first, "news.#")
    assert set(registry.reach("app", target)) == {first.number}
    assert registry.reach("app", target) is registry.reach("app", target)
    second = registry.add("app", "second", DeviceRecord())
    topics(registry).subscribe(second, "news.world")
    assert set(registry.reach("app", target)) == {first.number, second.number}
    topics(registry).unsubscribe(first, "news.#")
    assert set(registry.reach("app", target)) == {second.number}
    topics(registry).subscribe(first, "*.world")
    registry.remove(first)
    assert set(registry.reach("app", target)) == {second.number}
