"""Everything that a device can ask for, with and without the right to it.

About `core/rights/`.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from lasthop.core.gateway import Idempotency
from lasthop.core.rights.rights import NoRight
from lasthop.core.rights.rule import OF_DEVICES, AccessRule, Verb
from lasthop.decision.volume.rules import ContextRule
from lasthop.errors import Conflict, NotFound
from lasthop.message import Binding, Target, TargetKind
from lasthop.wire.hop.frames import ALL_FEATURES, ERROR_TYPE, Headers, MessageFrame, Operation
from lasthop.wire.hop.services import Question, Service, encode
from tests.core.rig import APP, Rig, publication, to


def says(
    seq: int, operation: Operation, topic: str | None = None, body: bytes = b"", **headers: Any
) -> MessageFrame:
    return MessageFrame(seq, 77, topic, Headers(operation=operation, **headers), body)


ASKED: dict[str, MessageFrame] = {
    "publish topic:news": MessageFrame(0, 77, "news", Headers(), b"up"),
    "publish app:": publication(0, target="app:"),
    "send device:tablet": publication(0),
    "send user:anna": publication(0, target="user:anna"),
    "send group:team": publication(0, target="group:team"),
    "send queue:jobs": publication(0, target="queue:jobs"),
    "send service:print": publication(0, target="service:print"),
    "send device:tablet ": says(0, Operation.REPLY, in_reply_to=5, to="device:tablet"),
    "send device:tablet  ": publication(0, stream=True),
    "subscribe topic:news": says(0, Operation.SUBSCRIBE, "news"),
    "subscribe topic:#": says(0, Operation.SUBSCRIBE, "#"),
    "join group:team": says(0, Operation.JOIN, to="group:team"),
    "consume queue:jobs": says(0, Operation.JOIN, to="queue:jobs"),
    "join service:print": says(0, Operation.OFFER, body=encode(Service("print"))),
}
"""What a device asks for, by the right that it needs: a verb and a target."""


def refusals(rig: Rig, channel: int) -> list[dict[str, str]]:
    frames = rig.messages(channel)
    return [
        json.loads(frame.body)
        for frame in frames
        if frame.headers is not None and frame.headers.content_type == ERROR_TYPE
    ]


def denied(rig: Rig, channel: int) -> bool:
    return any(refusal["code"] == "no_right" for refusal in refusals(rig, channel))


@pytest.mark.parametrize("right", ASKED)
def test_a_gateway_of_least_rights_refuses_a_device_what_no_rule_allows(right: str) -> None:
    rig = Rig(least=True)
    channel = rig.connect(features=int(ALL_FEATURES))
    rig.hear(channel, ASKED[right])
    (refusal,) = refusals(rig, channel)
    assert refusal["code"] == "no_right"
    assert refusal["detail"].startswith(f"no rule allows {right.replace(' ', ' on ', 1).strip()}")


@pytest.mark.parametrize("right", ASKED)
def test_a_device_may_do_what_a_rule_allows(right: str) -> None:
    verb, on = right.split()[:2]
    rule = AccessRule(name="r", who=("device:phone",), allow=(Verb(verb),), on=(on,))
    rig = Rig(least=True, rules=(rule,))
    channel = rig.connect(features=int(ALL_FEATURES))
    rig.hear(channel, ASKED[right])
    assert not denied(rig, channel)


@pytest.mark.parametrize("right", ASKED)
def test_what_a_rule_denies_is_denied_on_an_open_gateway_too(right: str) -> None:
    verb, on = right.split()[:2]
    rules = (
        AccessRule(name="all", who=("*",), allow=OF_DEVICES),
        AccessRule(name="not", who=("device:phone",), deny=(Verb(verb),), on=(on,)),
    )
    rig = Rig(rules=rules)
    channel = rig.connect(features=int(ALL_FEATURES))
    rig.hear(channel, ASKED[right])
    assert denied(rig, channel)
    other = rig.connect("watch", features=int(ALL_FEATURES))
    rig.hear(other, ASKED[right])
    assert not denied(rig, other)


def test_a_device_without_rights_gets_what_is_sent_to_it_and_answers() -> None:
    rig = Rig(least=True)
    channel = rig.connect()
    (key,) = rig.publish(to("phone", reply_before=rig.now + 60_000_000))
    rig.run()
    assert rig.bodies(channel) == [b"hello"]
    rig.hear(channel, says(0, Operation.REPLY, body=b"yes", in_reply_to=key))
    assert refusals(rig, channel) == []


def test_a_claim_needs_the_right_to_it() -> None:
    rig = Rig(rules=(AccessRule(name="r", who=("device:phone",), deny=(Verb.CLAIM,)),))
    channel = rig.connect(features=int(ALL_FEATURES))
    rig.hear(channel, says(0, Operation.JOIN, to="group:team"))
    (key,) = rig.publish(to("group:team", binding=Binding.CLAIM))
    rig.run()
    rig.hear(channel, says(1, Operation.CLAIM, in_reply_to=key))
    assert denied(rig, channel)


def test_a_device_finds_the_services_that_it_may_send_to() -> None:
    rule = AccessRule(name="r", who=("device:phone",), deny=(Verb.SEND,), on=("service:secret",))
    rig = Rig(rules=(rule,))
    tablet = rig.connect("tablet")
    for seq, name in enumerate(("print", "secret")):
        rig.hear(tablet, says(seq, Operation.OFFER, body=encode(Service(name))))
    channel = rig.connect()
    rig.hear(channel, says(0, Operation.FIND, body=msgspec.json.encode(Question())))
    assert b"print" in rig.bodies(channel)[-1]
    assert b"secret" not in rig.bodies(channel)[-1]


def test_a_device_does_not_choose_a_topic_by_saying_where_it_is() -> None:
    rule = AccessRule(name="r", who=("*",), allow=(Verb.SUBSCRIBE,), on=("topic:city.oslo",))
    rig = Rig(least=True, rules=(rule,))
    channel = rig.connect()
    follows = msgspec.convert({"topic": "city.{place}"}, ContextRule)
    rig.gateway.topics.set_rules(APP, "phone", [follows], rig.now)
    rig.hear(channel, says(0, Operation.CONTEXT, body=b'{"place": "bergen"}'))
    rig.hear(channel, says(1, Operation.CONTEXT, body=b'{"place": "oslo"}'))
    device = rig.gateway.registry.named(APP, "phone")
    assert device.record.subscriptions == ["city.oslo"]
    reasons = [event.get("reason") for event in rig.events()]
    assert "no rule allows subscribe on topic:city.bergen" in reasons


def test_administrators_subscribe_a_device_whatever_its_rights_are() -> None:
    rig = Rig(least=True)
    rig.connect()
    assert rig.gateway.topics.subscribe(APP, "phone", "news", rig.now)


class TestPublishers:
    RULE = AccessRule(
        name="r", who=("credential:shop",), deny=(Verb.PUBLISH,), on=("topic:secret.#",)
    )

    def test_are_refused_what_a_rule_denies(self) -> None:
        rig = Rig(rules=(self.RULE,))
        rig.publish(to("topic:news"))
        with pytest.raises(NoRight):
            rig.publish(to("topic:news"), to("topic:secret.plan"))

    def test_learn_how_an_earlier_request_ended_though_a_rule_came_since(self) -> None:
        rig = Rig()
        once = Idempotency("k", b"digest")
        source, messages = "publisher:shop", [to("topic:secret.plan")]
        rig.gateway.publish(APP, source, messages, rig.now, once=once)
        rig.gateway.rules.add(self.RULE)
        again = rig.gateway.publish(APP, source, messages, rig.now, once=once)
        assert again.repeated is not None

    def test_do_not_replace_a_message_by_one_that_they_may_not_send(self) -> None:
        rig = Rig(rules=(self.RULE,))
        rig.connect()
        (key,) = rig.publish(to("phone", deliver_after=rig.now + 60_000_000))
        with pytest.raises(NoRight):
            rig.gateway.replace(APP, key, "publisher:shop", to("topic:secret.x"), rig.now)


class TestRuleBook:
    RULE = AccessRule(name="r", app=APP, who=("device:phone",), deny=(Verb.SEND,), on=("device:*",))

    def test_costs_nothing_without_rules(self) -> None:
        assert Rig().gateway.deliveries.rights is None

    def test_outlives_a_restart(self) -> None:
        rig = Rig()
        rig.gateway.rules.add(self.RULE)
        rig.run()
        rig.crash()
        assert rig.gateway.rules.of(APP) == [(self.RULE, False)]
        rig.gateway.rules.remove(APP, "r")
        rig.run()
        rig.crash()
        assert rig.gateway.rules.of(APP) == []
        assert rig.gateway.deliveries.rights is None

    def test_holds_from_the_next_message_on(self) -> None:
        rig = Rig()
        tablet = rig.connect("tablet")
        channel = rig.connect()
        rig.hear(channel, publication(0, b"0"))
        rig.gateway.rules.add(self.RULE)
        rig.hear(channel, publication(1, b"1"))
        rig.gateway.rules.remove(APP, "r")
        rig.hear(channel, publication(2, b"2"))
        assert rig.bodies(tablet) == [b"0", b"2"]

    def test_does_not_change_what_the_configuration_says(self) -> None:
        rig = Rig(rules=(self.RULE,))
        with pytest.raises(Conflict, match="a rule of this name is in the configuration"):
            rig.gateway.rules.add(self.RULE)
        with pytest.raises(Conflict, match="this rule is in the configuration; remove it there"):
            rig.gateway.rules.remove(APP, "r")
        with pytest.raises(NotFound, match="no such rule"):
            rig.gateway.rules.remove(APP, "other")

    def test_explains_who_may_do_what(self) -> None:
        rig = Rig(rules=(self.RULE,))
        rig.connect()
        asked = Target(TargetKind.DEVICE, "tablet")
        answer = rig.gateway.rules.explain(APP, "device:phone", Verb.SEND, asked)
        assert answer == (False, "r", "the rule r denies send on device:*")
        with pytest.raises(NotFound):
            rig.gateway.rules.explain(APP, "device:nobody", Verb.SEND, asked)
