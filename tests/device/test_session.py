"""What a device promises, with the real gateway at the other end of a breakable link."""

from __future__ import annotations

from lasthop.clock import MILLISECOND, SECOND
from lasthop.core.lifecycle import State
from tests.device.world import World


def connected() -> World:
    world = World()
    world.dial()
    world.carry()
    return world


def test_messages_arrive_once_and_in_order() -> None:
    world = connected()
    world.publish("a", "b", "c")
    world.carry()
    assert world.bodies() == ["a", "b", "c"]
    assert world.states() == {State.DELIVERED: 3}


def test_what_was_sent_on_a_broken_link_comes_again_once() -> None:
    world = connected()
    world.publish("a", "b")
    world.carry_down()
    world.reset()
    world.dial()
    world.carry()
    assert world.bodies() == ["a", "b"]


def test_a_late_message_is_dropped_and_the_gateway_told() -> None:
    world = connected()
    world.publish("a", "late", "b", before=world.now + SECOND)
    world.publish("c")
    world.now += SECOND + MILLISECOND
    world.carry()
    assert world.bodies() == ["c"]
    assert world.states() == {State.DELIVERED: 1, State.EXPIRED: 3}


def test_a_gateway_restored_from_an_older_copy_repeats_nothing() -> None:
    world = connected()
    world.publish("a")
    world.carry()
    backup = world.copy_of_store()
    world.publish("b", "c")
    world.carry()
    world.restore_gateway(backup)
    world.publish("d")
    world.dial()
    world.carry()
    world.dial()
    world.carry()
    assert world.bodies() == ["a", "b", "c", "d"]
