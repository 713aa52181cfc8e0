"""Subscriptions that look into messages."""

from __future__ import annotations

import pytest

from lasthop.core.mailroom import Limits
from lasthop.errors import Malformed
from lasthop.wire.hop.frames import Headers, MessageFrame, Operation
from lasthop.wire.hop.topics import XPATH_HEADER
from lasthop.wire.weft.session import Encoder as WeftEncoder
from lasthop.wire.xas.xmlparse import parse_xml
from lasthop.wire.xebu.encoder import Encoder as XebuEncoder
from lasthop.wire.xpath.errors import XPathTooLarge
from tests.core.rig import APP, Rig, to

TEA = b"<order><goods>tea</goods><count>2</count></order>"
MILK = b"<order><goods>milk</goods><count>9</count></order>"
XML = "application/xml"


def publish(rig: Rig, *bodies: bytes, topic: str = "orders", content_type: str = XML) -> None:
    rig.publish(*(to(f"topic:{topic}", body, content_type=content_type) for body in bodies))
    rig.run()


def subscribe(rig: Rig, name: str, topic: str, xpath: str | None) -> bool:
    changed = rig.gateway.subscribe(APP, name, topic, rig.now, xpath=xpath)
    rig.run()
    return changed


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


@pytest.mark.parametrize(
    "content_type, body",
    [
        ("text/plain; charset=utf-8", TEA),
        (XML, b"<order>"),
        (XML, b""),
        ("application/x-weft; profile=12345678", b"\xff"),
        ("application/xml", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"),
    ],
)
def test_what_is_no_xml_matches_nothing(rig: Rig, content_type: str, body: bytes) -> None:
    tea = rig.connect("tea")
    subscribe(rig, "tea", "orders", "//order | //a")
    publish(rig, body, content_type=content_type)
    assert rig.bodies(tea) == []


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
    rig.gateway.unsubscribe(APP, "tea", "orders", rig.now)
    subscribe(rig, "tea", "orders", None)
    publish(rig, TEA)
    assert rig.bodies(tea) == [MILK, TEA, TEA]


def test_expressions_outlive_a_crash_and_go_with_their_device(rig: Rig) -> None:
    rig.connect("tea")
    subscribe(rig, "tea", "orders", "//goods[. = 'tea']")
    rig.crash()
    publish(rig, TEA, MILK)
    assert rig.bodies(rig.resume("tea")) == [TEA]
    rig.gateway.remove(APP, "tea", rig.now)
    rig.run()
    assert not rig.gateway.registry.filters._tables
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
    monkeypatch.setattr("lasthop.core.filters.MOST_FILTERS", 0)
    with pytest.raises(XPathTooLarge, match="there are too many subscriptions"):
        subscribe(rig, "tea", "orders", "//a")
    record = rig.gateway.device(APP, "tea").record
    assert (record.subscriptions, record.filters) == ([], {})


def test_nobody_reads_a_message_that_no_expression_concerns(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.connect("tea")
    plain = rig.connect("plain")
    subscribe(rig, "tea", "orders", "//goods")
    subscribe(rig, "plain", "news", None)
    monkeypatch.setattr("lasthop.core.filters._matching", None)
    publish(rig, TEA, topic="news")
    assert rig.bodies(plain) == [TEA]
