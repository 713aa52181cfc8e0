"""The device asks when it is quiet, and both sides notice when nobody is there."""

from lasthop.clock import SECOND
from lasthop.wire.hop.heartbeat import PATIENCE, Beat, Listening, Pinging

NOW = 1_800_000_000_000_000
INTERVAL = 100 * SECOND


def test_the_device_pings_after_a_silent_interval() -> None:
    device = Pinging(NOW, interval=INTERVAL)
    assert device.next_due() == NOW + INTERVAL
    assert device.check(NOW + INTERVAL - 1) is Beat.QUIET
    assert device.check(NOW + INTERVAL) is Beat.PING
    assert device.check(NOW + INTERVAL) is Beat.QUIET


def test_traffic_both_ways_spares_the_ping() -> None:
    device = Pinging(NOW, interval=INTERVAL)
    device.on_received(NOW + 70 * SECOND)
    device.on_sent(NOW + 60 * SECOND)
    assert device.next_due() == NOW + 160 * SECOND


def test_sending_alone_does_not_spare_the_ping() -> None:
    device = Pinging(NOW, interval=INTERVAL)
    device.on_sent(NOW + 99 * SECOND)
    assert device.check(NOW + INTERVAL) is Beat.PING


def test_receiving_alone_does_not_spare_the_ping() -> None:
    device = Pinging(NOW, interval=INTERVAL)
    device.on_received(NOW + 99 * SECOND)
    assert device.check(NOW + INTERVAL) is Beat.PING
    device.on_received(NOW + INTERVAL)
    assert device.next_due() == NOW + 2 * INTERVAL


def test_without_an_answer_the_channel_is_dead() -> None:
    device = Pinging(NOW, interval=INTERVAL)
    device.check(NOW + INTERVAL)
    assert device.next_due() == NOW + INTERVAL + PATIENCE
    assert device.check(NOW + INTERVAL + PATIENCE - 1) is Beat.QUIET
    assert device.check(NOW + INTERVAL + PATIENCE) is Beat.DEAD


def test_who_asks_often_gives_up_soon() -> None:
    device = Pinging(NOW, interval=20 * SECOND)
    device.check(NOW + 20 * SECOND)
    assert device.check(NOW + 50 * SECOND - 1) is Beat.QUIET
    assert device.check(NOW + 50 * SECOND) is Beat.DEAD


def test_whatever_arrives_proves_life_and_tells_how_long_the_ping_waited() -> None:
    device = Pinging(NOW, interval=INTERVAL)
    assert device.on_received(NOW) is None
    device.check(NOW + INTERVAL)
    assert device.on_received(NOW + INTERVAL + 5) == 5
    assert device.on_received(NOW + INTERVAL + 6) is None
    assert device.check(NOW + 250 * SECOND) is not Beat.DEAD


def test_the_interval_can_be_learned() -> None:
    device = Pinging(NOW, interval=INTERVAL)
    device.interval = 2 * INTERVAL
    assert device.next_due() == NOW + 2 * INTERVAL


def test_the_gateway_never_pings_and_waits_two_and_a_half_intervals() -> None:
    gateway = Listening(NOW, interval=INTERVAL)
    gateway.on_sent(NOW + 200 * SECOND)
    assert gateway.next_due() == NOW + 250 * SECOND
    assert gateway.check(NOW + 250 * SECOND - 1) is Beat.QUIET
    assert gateway.check(NOW + 250 * SECOND) is Beat.DEAD
    assert gateway.on_received(NOW + 249 * SECOND) is None
    assert gateway.check(NOW + 250 * SECOND) is Beat.QUIET


def test_a_pinging_device_is_never_dropped_by_its_gateway() -> None:
    device, gateway = Pinging(NOW, interval=INTERVAL), Listening(NOW, interval=INTERVAL)
    now = NOW
    for _ in range(50):
        now = device.next_due()
        assert gateway.check(now) is Beat.QUIET
        assert device.check(now) is Beat.PING
        gateway.on_received(now)
        device.on_received(now)
