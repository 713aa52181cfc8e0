"""Subscriptions that look into messages."""

from __future__ import annotations

import pytest

from lasthop.core.gateway import Withdrawal
from lasthop.core.limits import Limits
from lasthop.core.pushes.feature import Order
from lasthop.core.topics.filters import LIMITS
from lasthop.errors import Malformed
from lasthop.message import Target, TargetKind
from lasthop.wire.hop.frames import Headers, MessageFrame, Operation
from lasthop.wire.hop.topics import XPATH_HEADER
from lasthop_xml.weft.session import Level, WeftEncoder
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xebu.encoder import Encoder as XebuEncoder
from lasthop_xml.xpath.errors import XPathTooLarge
from lasthop_xml.xpath.reading import Outcome, Reading, read
from lasthop_xml.xpath.subscriptions import Subscriptions
from tests.core.rig import APP, SHOP, Rig, to

TEA = b"<order><goods>tea</goods><count>2</count></order>"
MILK = b"<order><goods>milk</goods><count>9</count></order>"
XML = "application/xml"


def publish(rig: Rig, *bodies: bytes, topic: str = "orders", content_type: str = XML) -> None:
    rig.publish(*(to(f"topic:{topic}", body, content_type=content_type) for body in bodies))
    rig.run()


def subscribe(rig: Rig, name: str, topic: str, xpath: str | None) -> bool:
    changed = rig.gateway.topics.subscribe(APP, name, topic, rig.now, xpath=xpath)
    rig.run()
    return changed


def accepted(rig: Rig) -> dict[str, str]:
    """What the log says of each device when a delivery began."""
    return {e["dev"]: e["reason"] for e in rig.events() if e["kind"] == "accepted"}


def test_a_device_gets_what_its_expression_selects(rig: Rig) -> None:
    tea, many, all_ = (rig.connect(name) for name in ("tea", "many", "all"))
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    subscribe(rig, "many", "orders", "//count[. > 5]")
    subscribe(rig, "all", "orders", None)
    publish(rig, TEA, MILK)
    assert rig.bodies(tea) == [TEA]
    assert rig.bodies(many) == [MILK]
    assert rig.bodies(all_) == [TEA, MILK]


def test_messages_are_read_in_every_form_that_stands_for_itself(rig: Rig) -> None:
    tea = rig.connect("tea")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    forms = {
        "application/soap+xml; charset=utf-8": TEA,
        "application/vnd.shop+xml": TEA,
        "application/x-ebu+data": XebuEncoder().encode(parse_xml(TEA)),
        "application/x-weft": WeftEncoder().encode(parse_xml(TEA)),
    }
    for content_type, body in forms.items():
        publish(rig, body, content_type=content_type)
    assert rig.bodies(tea) == list(forms.values())


@pytest.mark.parametrize("content_type", ["text/plain; charset=utf-8", "application/json"])
def test_what_is_no_xml_by_its_type_matches_nothing(rig: Rig, content_type: str) -> None:
    tea = rig.connect("tea")
    subscribe(rig, "tea", "orders", "//order | //a")
    publish(rig, TEA, content_type=content_type)
    assert rig.bodies(tea) == []
    assert rig.gateway.topics.index.filters.outcomes == {Outcome.NO_XML: 1}


UNREADABLE = [
    (XML, b"<order>", "no element found (line=1, column=8)"),
    (XML, b"", "no element found (line=1, column=1)"),
    ("application/vnd.shop+xml", b"{}", "not well-formed (invalid token) (line=1, column=1)"),
    (
        "application/x-weft; profile=12345678",
        b"\xff",
        "a message ends early, or uses an unknown number",
    ),
    (
        XML,
        b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        "entity declarations are refused",
    ),
]


@pytest.mark.parametrize("content_type, body, why", UNREADABLE)
def test_what_a_filter_cannot_read_is_delivered_and_explained(
    rig: Rig, content_type: str, body: bytes, why: str
) -> None:
    tea, all_ = rig.connect("tea"), rig.connect("all")
    subscribe(rig, "tea", "orders", "//order | //a")
    subscribe(rig, "all", "orders", None)
    publish(rig, body, content_type=content_type)
    assert rig.bodies(tea) == rig.bodies(all_) == [body]
    assert accepted(rig) == {
        "tea": f"its filter could not read the body: {why}; in contact",
        "all": "in contact",
    }
    assert rig.gateway.topics.index.filters.outcomes == {Outcome.MALFORMED: 1}


def test_a_device_in_an_unreadable_hurry_still_waits_for_its_time(rig: Rig) -> None:
    tea = rig.connect("tea")
    subscribe(rig, "tea", "orders", "//order")
    after = rig.now + 1_000_000
    rig.publish(to("topic:orders", b"<order>", content_type=XML, deliver_after=after))
    rig.run()
    assert rig.bodies(tea) == []
    rig.pass_time(2_000_000)
    assert rig.bodies(tea) == [b"<order>"]


def large(goods: str, count: int = 3000) -> bytes:
    """An order that is too large to be read in one turn."""
    return b"<order><goods>%s</goods>%s</order>" % (goods.encode(), b"<line/>" * count)


def dense(goods: str, count: int) -> bytes:
    """The same at weft's level `max`, with texts that differ."""
    lines = b"".join(b"<line>%x</line>" % (n * 2654435761 % 2**32) for n in range(count))
    body = b"<order><goods>%s</goods>%s</order>" % (goods.encode(), lines)
    return WeftEncoder(Level.MAX).encode(parse_xml(body))


def test_a_large_message_waits_for_the_worker_and_what_follows_waits_behind_it(rig: Rig) -> None:
    tea, all_ = rig.connect("tea"), rig.connect("all")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    subscribe(rig, "all", "orders", None)
    first, second = large("tea"), large("milk")
    publish(rig, first, TEA, second)
    publish(rig, MILK)
    assert rig.bodies(tea) == rig.bodies(all_) == []
    (effect,) = rig.matches
    assert effect.body == first
    rig.match()
    assert rig.bodies(tea) == [first, TEA]
    assert rig.bodies(all_) == [first, TEA, second, MILK]


def test_another_source_does_not_wait_behind_a_large_message(rig: Rig) -> None:
    tea = rig.connect("tea")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    publish(rig, large("tea"))
    rig.publish(to("topic:orders", TEA, content_type=XML), source="publisher:other")
    rig.run()
    assert rig.bodies(tea) == [TEA]
    rig.match()
    assert rig.bodies(tea) == [TEA, large("tea")]


def test_sources_take_turns_with_the_worker(rig: Rig) -> None:
    rig.connect("tea")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    for number in range(3):
        publish(rig, large(f"a{number}"))
    rig.publish(to("topic:orders", large("b"), content_type=XML), source="publisher:other")
    rig.run()
    asked = []
    filters = rig.gateway.topics.index.filters
    while rig.matches:
        effect = rig.matches.pop()
        asked.append(effect.body)
        reading = filters.read(effect.app, effect.content_type, effect.body)
        rig.gateway.topics.matched(effect.message, reading, rig.now)
        rig.run()
    assert asked == [large("a0"), large("a1"), large("b"), large("a2")]


def test_many_small_messages_at_once_take_no_longer_than_a_turn_may(rig: Rig) -> None:
    tea = rig.connect("tea")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    publish(rig, *[TEA, MILK] * 200)
    assert 0 < len(rig.bodies(tea)) < 60
    rig.match()
    assert sum(1 for _ in rig.store.all_deliveries()) == 200


def test_a_body_that_expands_is_not_read_in_a_turn(rig: Rig) -> None:
    tea = rig.connect("tea")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    text = b"<order><goods>tea</goods>%s</order>" % (b"a" * 500_000)
    body = WeftEncoder(Level.DEFLATE).encode(parse_xml(text))
    assert len(body) < 2000
    publish(rig, body, content_type="application/x-weft+deflate")
    assert rig.bodies(tea) == []
    rig.match()
    assert rig.bodies(tea) == [body]


TOO_LARGE = [
    (XML, large("tea", 60_000), "a document has too many events (most=100000)"),
    (XML, b"<a>" * 300 + b"</a>" * 300, "elements are too deeply nested (most=200)"),
]


@pytest.mark.parametrize("content_type, body, why", TOO_LARGE)
def test_what_is_too_large_for_a_filter_is_delivered_and_explained(
    rig: Rig, content_type: str, body: bytes, why: str
) -> None:
    rig.connect("tea")
    subscribe(rig, "tea", "orders", "/order[goods = 'milk']")
    publish(rig, body, content_type=content_type)
    rig.match()
    (reason,) = accepted(rig).values()
    assert reason.startswith(f"its filter could not read the body: {why}")
    assert rig.gateway.topics.index.filters.outcomes == {Outcome.TOO_LARGE: 1}
    assert rig.gateway.deliveries.named(APP, "tea").mailbox


def test_weft_at_its_densest_is_read_up_to_a_limit_of_its_own() -> None:
    table = Subscriptions[str]()
    table.add("//goods", "//goods")
    most = read(table, "application/x-weft+max", dense("tea", 9_000), LIMITS)
    assert (most.outcome, list(most.matched)) == (Outcome.READ, ["//goods"])
    more = read(table, "application/x-weft+max", dense("tea", 11_000), LIMITS)
    assert (more.outcome, more.reason) == (
        Outcome.TOO_LARGE,
        "a message has too many events (most=30000)",
    )
    text = b"<a>%s</a>" % b"".join(b"%x" % (n * 2654435761 % 2**32) for n in range(40_000))
    body = WeftEncoder(Level.MAX).encode(parse_xml(text))
    long = read(table, "application/x-weft+max", body, LIMITS)
    assert (long.outcome, long.reason) == (
        Outcome.TOO_LARGE,
        "a message expands to too much text (most=262144)",
    )


def test_a_message_that_waits_for_the_worker_outlives_a_crash(rig: Rig) -> None:
    rig.connect("tea")
    rig.connect("milk")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    subscribe(rig, "milk", "orders", "/order[goods = 'milk']")
    publish(rig, large("tea"), TEA)
    rig.crash()
    rig.run()
    assert len(rig.matches) == 1
    rig.match()
    assert rig.bodies(rig.resume("tea")) == [large("tea"), TEA]
    assert rig.bodies(rig.resume("milk")) == []


def test_a_body_that_was_left_to_the_store_is_fetched_for_the_worker() -> None:
    rig = Rig(Limits(resident=0))
    tea = rig.connect("tea")
    milk = rig.connect("milk")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    subscribe(rig, "milk", "orders", "/order[goods = 'milk']")
    publish(rig, large("milk"), large("tea"))
    rig.match()
    assert rig.fetches
    rig.fetch()
    rig.match()
    while rig.fetches:
        rig.fetch()
        rig.run()
    assert rig.bodies(tea) == [large("tea")]
    assert rig.bodies(milk) == [large("milk")]


def test_a_message_that_waits_for_the_worker_can_be_taken_back(rig: Rig) -> None:
    tea = rig.connect("tea")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    keys = rig.publish(*(to("topic:orders", large("tea"), content_type=XML) for _ in range(2)))
    rig.run()
    for key in keys:
        assert rig.gateway.cancel(APP, key, rig.now) == Withdrawal(1, 0)
    rig.match()
    assert rig.bodies(tea) == []
    assert not list(rig.store.all_deliveries())
    assert not rig.gateway.deliveries.items


def test_what_replaces_a_message_passes_the_filters_itself(rig: Rig) -> None:
    tea = rig.connect("tea")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    (key,) = rig.publish(to("topic:orders", large("tea"), content_type=XML))
    rig.run()
    new = to("topic:orders", MILK, content_type=XML)
    withdrawal, _ = rig.gateway.replace(APP, key, SHOP, new, rig.now)
    assert withdrawal == Withdrawal(1, 0)
    rig.match()
    assert rig.bodies(tea) == []
    assert not rig.gateway.deliveries.items


def test_a_filter_that_came_while_the_message_was_read_lets_it_pass_with_a_remark(rig: Rig) -> None:
    tea = rig.connect("tea")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    publish(rig, large("milk"))
    subscribe(rig, "tea", "orders", "/order[goods = 'coffee']")
    (effect,) = rig.matches
    reading = Reading(Outcome.READ)
    rig.gateway.topics.matched(effect.message, reading, rig.now)
    rig.run()
    assert rig.bodies(tea) == [large("milk")]
    assert accepted(rig)["tea"].startswith("its filter is newer than the message")


def test_many_who_do_not_want_a_message_are_passed_over_in_few_commits() -> None:
    rig = Rig(Limits(fanout_batch=5))
    for number in range(100):
        rig.connect(f"d{number}")
        subscribe(rig, f"d{number}", "orders", "//tea" if number < 99 else "//goods")
    publish(rig, TEA)
    rig.match()
    (row,) = rig.store.all_deliveries()
    assert row.device == rig.gateway.registry.named(APP, "d99").number


def test_a_word_about_something_else_is_ignored(rig: Rig) -> None:
    tea = rig.connect("tea")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    publish(rig, large("tea"))
    rig.gateway.topics.matched(1, Reading(Outcome.READ), rig.now)
    rig.run()
    assert rig.bodies(tea) == []
    rig.match()
    assert rig.bodies(tea) == [large("tea")]


def test_the_worker_hears_of_expressions_that_come_and_go(rig: Rig) -> None:
    rig.connect("tea")
    rig.connect("milk")
    filters = rig.gateway.topics.index.filters
    subscribe(rig, "tea", "orders", "//tea")
    publish(rig, large("tea"))
    assert [effect.changes for effect in rig.matches] == [None]
    assert list(filters.expressions()) == [(APP, "//tea")]
    subscribe(rig, "milk", "orders", "//tea")
    subscribe(rig, "tea", "orders", "//milk")
    rig.match()
    publish(rig, large("tea"))
    assert [effect.changes for effect in rig.matches] == [{(APP, "//milk"): True}]
    rig.match()
    subscribe(rig, "milk", "orders", "")
    publish(rig, large("tea"))
    assert [effect.changes for effect in rig.matches] == [{(APP, "//tea"): False}]


def test_a_push_of_pap_to_a_topic_passes_the_same_filters(rig: Rig) -> None:
    tea = rig.connect("tea")
    rig.connect("all")
    subscribe(rig, "tea", "orders", "/order[goods = 'tea']")
    subscribe(rig, "all", "orders", None)
    address = "WAPPUSH=orders/TYPE=USER@ppg.example"
    rig.gateway.pushes.point(APP, "USER:orders", Target(TargetKind.TOPIC, "orders"))
    for number, body in enumerate((MILK, TEA)):
        order = Order(
            push_id=f"p{number}",
            addresses=(address,),
            submission=to("topic:orders", body, content_type=XML),
        )
        rig.gateway.pushes.submit(APP, "initiator:shop", order, rig.now)
        rig.run()
    assert rig.bodies(tea) == [TEA]


def test_one_subscription_that_fits_is_enough(rig: Rig) -> None:
    device = rig.connect("device")
    subscribe(rig, "device", "orders.*", "//milk")
    subscribe(rig, "device", "orders.new", "/order[goods = 'tea']")
    publish(rig, TEA, topic="orders.new")
    publish(rig, MILK, topic="orders.new")
    publish(rig, TEA, topic="orders.old")
    assert rig.bodies(device) == [TEA]
    subscribe(rig, "device", "#", None)
    publish(rig, MILK, topic="orders.old")
    assert rig.bodies(device) == [TEA, MILK]


def test_an_expression_is_changed_kept_and_removed(rig: Rig) -> None:
    tea = rig.connect("tea")
    assert subscribe(rig, "tea", "orders", "//goods[. = 'tea']")
    assert not subscribe(rig, "tea", "orders", "//goods[. = 'tea']")
    assert not subscribe(rig, "tea", "orders", None)
    publish(rig, MILK)
    assert rig.bodies(tea) == []
    assert subscribe(rig, "tea", "orders", "//goods[. = 'milk']")
    publish(rig, MILK, TEA)
    assert rig.bodies(tea) == [MILK]
    assert subscribe(rig, "tea", "orders", "")
    publish(rig, TEA)
    assert rig.bodies(tea) == [MILK, TEA]
    subscribe(rig, "tea", "orders", "//nothing")
    rig.gateway.topics.unsubscribe(APP, "tea", "orders", rig.now)
    subscribe(rig, "tea", "orders", None)
    publish(rig, TEA)
    assert rig.bodies(tea) == [MILK, TEA, TEA]


def test_expressions_outlive_a_crash_and_go_with_their_device(rig: Rig) -> None:
    rig.connect("tea")
    subscribe(rig, "tea", "orders", "//goods[. = 'tea']")
    rig.crash()
    publish(rig, TEA, MILK)
    assert rig.bodies(rig.resume("tea")) == [TEA]
    rig.gateway.admin.remove(APP, "tea", rig.now)
    rig.run()
    assert not rig.gateway.topics.index.filters._tables
    publish(rig, TEA)


def test_a_fan_out_that_goes_on_after_a_crash_looks_again() -> None:
    rig = Rig(Limits(fanout_batch=1))
    for number in range(6):
        rig.connect(f"d{number}")
        subscribe(rig, f"d{number}", "orders", "//goods[. = 'tea']" if number % 2 else None)
    rig.publish(to("topic:orders", MILK, content_type=XML))
    rig.run_commits(2)
    rig.crash()
    rig.run()
    got = [len(rig.bodies(rig.resume(f"d{number}"))) for number in range(6)]
    assert got == [1, 0, 1, 0, 1, 0]


def test_a_device_says_so_itself(rig: Rig) -> None:
    tea = rig.connect("tea")
    extra = ((XPATH_HEADER, "/order[goods = 'tea']"),)
    headers = Headers(operation=Operation.SUBSCRIBE, extra=extra)
    rig.hear(tea, MessageFrame(0, 77, "orders", headers))
    publish(rig, MILK, TEA)
    assert rig.bodies(tea) == [TEA]


def test_a_bad_expression_is_refused_and_changes_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.connect("tea")
    with pytest.raises(Malformed):
        subscribe(rig, "tea", "orders", "/order[")
    monkeypatch.setattr("lasthop.core.topics.filters.MOST_FILTERS", 0)
    with pytest.raises(XPathTooLarge, match="there are too many subscriptions"):
        subscribe(rig, "tea", "orders", "//a")
    record = rig.gateway.registry.named(APP, "tea").record
    assert (record.subscriptions, record.filters) == ([], {})


def test_nobody_reads_a_message_that_no_expression_concerns(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.connect("tea")
    plain = rig.connect("plain")
    subscribe(rig, "tea", "orders", "//goods")
    subscribe(rig, "plain", "news", None)
    monkeypatch.setattr("lasthop.core.topics.filters.read", None)
    publish(rig, TEA, topic="news")
    assert rig.bodies(plain) == [TEA]
