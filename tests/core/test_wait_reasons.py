"""What an open delivery waits for, also behind the head of a lane, and until when."""

from __future__ import annotations

from lasthop.clock import DAY, HOUR, SECOND
from lasthop.core.air.feature import FIRST_PAUSE
from lasthop.core.feature import WaitReason
from lasthop.core.publishing.submission import Submission
from lasthop.decision.budgets import Limit, Measure
from lasthop.decision.links import Link, Tariff
from lasthop.decision.localtime import Period
from lasthop.decision.preferences import Preferences
from lasthop.decision.routes import Route, Variant
from lasthop.decision.volume.terms import TopicTerms
from lasthop.delivery.carrier import NotReached
from lasthop.message import Target, TargetKind, format_id
from lasthop.wire.hop.frames import Ack, Credit
from tests.core.rig import APP, Rig, to

UDP = Route(Variant.WSP, "192.0.2.1")


def waits(rig: Rig, key: int, name: str = "phone") -> WaitReason:
    device = rig.gateway.registry.named(APP, name)
    found = rig.gateway.waiting(key, device.number, rig.now)
    assert found is not None
    return found


def id_of(rig: Rig, key: int) -> str:
    message = rig.gateway.deliveries.items[key].message
    return format_id(message.key, message.salt)


ONE_A_DAY = Preferences(
    links=(Link("wifi", Tariff()),), limits=(Limit(1, Measure.MESSAGES, Period.DAY),)
)


def spent(rig: Rig) -> Rig:
    """Let the phone have no message left for today."""
    rig.gateway.preferences.prefer(APP, "phone", ONE_A_DAY, rig.now)
    rig.publish(to("phone"))
    rig.run()
    return rig


def test_without_contact(rig: Rig) -> None:
    rig.add("phone")
    (key,) = rig.publish(to("phone"))
    rig.run()
    assert waits(rig, key) == ("the device is not in contact", None)


def test_for_its_time(rig: Rig) -> None:
    rig.connect()
    later = rig.now + HOUR
    (key,) = rig.publish(to("phone", deliver_after=later))
    rig.run()
    assert waits(rig, key) == ("its deliver_after has not come", later)


def test_a_deadline_that_comes_first_is_when_it_ends(rig: Rig) -> None:
    rig.add("phone")
    before = rig.now + HOUR
    (key,) = rig.publish(to("phone", deliver_before=before))
    rig.run()
    assert waits(rig, key) == ("the device is not in contact; it expires then", before)


def test_for_credit(rig: Rig) -> None:
    rig.connect(window=Credit(1, 1 << 20))
    first, second = rig.publish(to("phone"), to("phone"))
    rig.run()
    assert waits(rig, first).reason == "the device has yet to acknowledge it"
    assert waits(rig, second).reason.startswith("the device takes no more before it acknowledges")


def test_for_the_application(rig: Rig) -> None:
    channel = rig.connect()
    (key,) = rig.publish(to("phone"))
    rig.run()
    rig.hear(channel, Ack(1, 0))
    assert waits(rig, key).reason == "the application on the device has yet to process it"


def test_for_a_device_that_left(rig: Rig) -> None:
    channel = rig.connect()
    (key,) = rig.publish(to("phone"))
    rig.run()
    rig.lose(channel)
    assert "is not in contact to acknowledge it" in waits(rig, key).reason


def test_behind_the_head_of_a_held_lane(rig: Rig) -> None:
    rig.connect(link="wifi")
    spent(rig)
    head, second, third = rig.publish(*[to("phone")] * 3)
    rig.run()
    until = (rig.now // DAY + 1) * DAY
    found = waits(rig, head)
    assert found.until == until
    assert "1 messages per day" in found.reason
    for key in (second, third):
        behind = waits(rig, key)
        assert behind.reason.startswith(f"it is behind message {id_of(rig, head)}, which waits: ")
        assert behind.reason.endswith(found.reason)
        assert behind.until == until


def test_the_next_one_is_the_head_when_the_first_has_ended(rig: Rig) -> None:
    rig.connect(link="wifi")
    spent(rig)
    head, second, third = rig.publish(*[to("phone")] * 3)
    rig.run()
    rig.gateway.cancel(APP, head, rig.now)
    assert "behind" not in waits(rig, second).reason
    assert f"behind message {id_of(rig, second)}" in waits(rig, third).reason


def test_what_was_held_in_an_earlier_contact_waits_for_the_device(rig: Rig) -> None:
    channel = rig.connect(link="wifi")
    spent(rig)
    (key,) = rig.publish(to("phone"))
    rig.run()
    rig.lose(channel)
    assert waits(rig, key).reason == "the device is not in contact"


def test_with_a_carrier_and_after_its_failure(rig: Rig) -> None:
    rig.add("phone", UDP)
    (key,) = rig.publish(to("phone"))
    rig.run()
    assert waits(rig, key).reason == "its carrier over wsp has yet to report"
    rig.report(NotReached("no network"))
    assert waits(rig, key) == ("its carrier could not deliver it", rig.now + FIRST_PAUSE)


def test_for_a_limit_over_the_air(rig: Rig) -> None:
    rig.add("phone", UDP)
    spent(rig)
    (key,) = rig.publish(to("phone"))
    rig.run()
    assert waits(rig, key).until == (rig.now // DAY + 1) * DAY


def test_for_the_feed_of_a_ranked_topic(rig: Rig) -> None:
    rig.connect()
    rig.gateway.topics.subscribe(APP, "phone", "news", rig.now, TopicTerms(max=1))
    rig.run()
    news = Target(TargetKind.TOPIC, "news")
    keys = [rig.publish(Submission(target=news, rank=r))[0] for r in (1.0, 2.0, 3.0)]
    rig.run()
    found = {waits(rig, key).reason for key in keys if rig.state(key).name == "PENDING"}
    assert found <= {"its group, queue or topic has yet to decide about it"}


def test_nothing_is_said_of_what_is_over(rig: Rig) -> None:
    channel = rig.connect()
    (key,) = rig.publish(to("phone"))
    rig.run()
    rig.ack(channel, 1)
    device = rig.gateway.registry.named(APP, "phone")
    assert rig.gateway.waiting(key, device.number, rig.now) is None
    assert rig.gateway.waiting(key, 99, rig.now) is None


def test_the_answer_changes_nothing(rig: Rig) -> None:
    rig.connect(link="wifi")
    spent(rig)
    keys = rig.publish(*[to("phone", deliver_before=rig.now + 9 * SECOND)] * 3)
    rig.run()
    before = rig.events()
    for key in keys:
        waits(rig, key)
    rig.run()
    assert rig.events() == before
