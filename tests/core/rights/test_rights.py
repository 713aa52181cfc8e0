"""The rights that follow from rules, against the plainest way to find them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lasthop.core.rights.rights import CallerRights, NoRight, Rights, Who
from lasthop.core.rights.rule import AccessRule, Verb, checked
from lasthop.errors import InvalidRequest
from lasthop.message import Target, TargetKind
from tests.core.rights.test_patterns import topics_of

verbs = st.sampled_from([Verb.PUBLISH, Verb.SUBSCRIBE, Verb.SEND])
who = st.sampled_from(["*", "device:*", "device:phone", "device:tab*", "user:anna", "credential:*"])
on = st.sampled_from(
    ["#", "topic:#", "topic:a.*", "topic:a.b", "topic:*.b", "device:*", "device:phone", "user:anna"]
)
rules = st.lists(
    st.builds(
        AccessRule,
        name=st.sampled_from("rstuv"),
        app=st.sampled_from(["*", "app", "other"]),
        who=st.lists(who, min_size=1, max_size=2).map(tuple),
        allow=st.lists(verbs, max_size=2).map(tuple),
        deny=st.lists(verbs, max_size=1).map(tuple),
        on=st.lists(on, min_size=1, max_size=2).map(tuple),
    ),
    max_size=6,
)
callers = st.sampled_from(
    [
        Who("app", "device", "phone", "anna"),
        Who("app", "device", "tablet"),
        Who("app", "credential", "shop"),
    ]
)
targets = st.sampled_from(["topic:a.b", "topic:a.c", "topic:b", "device:phone", "user:anna"])


def concerns(rule: AccessRule, caller: Who) -> bool:
    """Whether a rule is about a caller, entry by entry."""
    named = {
        "*": True,
        "device:*": caller.kind == "device",
        "device:phone": (caller.kind, caller.name) == ("device", "phone"),
        "device:tab*": (caller.kind, caller.name) == ("device", "tablet"),
        "user:anna": caller.user == "anna",
        "credential:*": caller.kind == "credential",
    }
    return rule.app in ("*", caller.app) and any(named[entry] for entry in rule.who)


def stands_for(entry: str, target: str) -> bool:
    """Whether an entry of `on` stands for a target, by listing."""
    kind, _, name = target.partition(":")
    if entry in ("#", target) or entry == f"{kind}:*" != "topic:*":
        return True
    return entry.startswith("topic:") and kind == "topic" and name in topics_of(entry[6:])


@given(rules, callers, verbs, targets, st.booleans())
def test_deny_wins_and_what_nobody_allows_is_refused(
    given: list[AccessRule], caller: Who, verb: Verb, target: str, free: bool
) -> None:
    hit = [
        rule
        for rule in given
        if concerns(rule, caller) and any(stands_for(on, target) for on in rule.on)
    ]
    expected = not any(verb in rule.deny for rule in hit) and (
        free or any(verb in rule.allow for rule in hit)
    )
    rights = CallerRights(caller, given, frozenset({verb} if free else ()))
    answer = rights.answer(verb, *target.split(":"))
    assert answer.allowed == expected
    assert rights.answer(verb, *target.split(":")) is answer
    if answer.rule:
        (decided, *_) = [rule for rule in hit if rule.name == answer.rule]
        assert answer.rule in answer.reason
        assert concerns(decided, caller)


@given(rules, callers, st.sampled_from(["a.*", "#", "a.#", "*.b", "a.b"]))
def test_a_subscription_to_a_pattern_never_gets_more_than_its_topics_one_by_one(
    given: list[AccessRule], caller: Who, pattern: str
) -> None:
    rights = CallerRights(caller, given, frozenset())
    if rights.answer(Verb.SUBSCRIBE, "topic", pattern).allowed:
        for topic in topics_of(pattern):
            assert rights.answer(Verb.SUBSCRIBE, "topic", topic).allowed


def made(*given: AccessRule, least: bool = True, users: dict[str, str] | None = None) -> Rights:
    return Rights(
        given,
        least=least,
        user_of=lambda app, name: (users or {}).get(name, ""),
        narrow=lambda app, name: name == "narrow",
    )


NEWS = Target(TargetKind.TOPIC, "news.world")


def test_a_refusal_names_the_rule_and_has_a_code_of_its_own() -> None:
    rights = made(
        AccessRule(name="quiet", who=("device:*",), deny=(Verb.PUBLISH,), on=("topic:news.#",))
    )
    with pytest.raises(NoRight, match=r"the rule quiet denies publish on topic:news\.#") as refused:
        rights.check_message("app", "device:phone", NEWS)
    assert refused.value.code == "no_right"
    assert refused.value.fields["rule"] == "quiet"
    with pytest.raises(NoRight, match=r"no rule allows publish on topic:news\.world"):
        made().check_message("app", "device:phone", NEWS)


def test_publishers_have_what_their_scopes_say_and_narrow_ones_need_a_rule() -> None:
    rights = made(
        AccessRule(
            name="news", who=("credential:narrow",), allow=(Verb.PUBLISH,), on=("topic:news.*",)
        )
    )
    rights.check_message("app", "publisher:shop", Target(TargetKind.DEVICE, "phone"))
    rights.check_message("app", "publisher:narrow", NEWS)
    with pytest.raises(NoRight):
        rights.check_message("app", "publisher:narrow", Target(TargetKind.DEVICE, "phone"))


def test_the_gateway_and_answers_to_publishers_need_no_right() -> None:
    made().check_message("app", "gateway", NEWS)
    made().check_message("app", "surrogate:phone", NEWS)
    made().check_message("app", "device:phone", Target(TargetKind.PUBLISHER, ""))


def test_rights_follow_a_device_to_its_next_user() -> None:
    users = {"phone": "anna"}
    home = AccessRule(
        name="home", who=("user:*",), allow=(Verb.PUBLISH,), on=("topic:home.{user}.#",)
    )
    rights = made(home, users=users)
    door = Target(TargetKind.TOPIC, "home.anna.door")
    rights.check_message("app", "device:phone", door)
    users["phone"] = "bert"
    with pytest.raises(NoRight):
        rights.check_message("app", "device:phone", door)
    users["phone"] = ""
    with pytest.raises(NoRight):
        rights.check_message("app", "device:phone", door)


@pytest.mark.parametrize(
    "rule, message",
    [
        (AccessRule(name="r", who=("*",)), "a rule allows or denies something"),
        (AccessRule(name="r", who=("phone",), allow=(Verb.SEND,)), "a rule is for"),
        (AccessRule(name="r", who=("*",), allow=(Verb.SEND,), on=("news",)), "a rule is on"),
    ],
)
def test_a_rule_that_cannot_be_understood_is_refused(rule: AccessRule, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        checked(rule)


def test_a_broad_rule_allows_something_on_everything_to_many() -> None:
    assert AccessRule(name="r", who=("device:*",), allow=(Verb.SEND,)).broad
    assert not AccessRule(name="r", who=("device:phone",), allow=(Verb.SEND,)).broad
    assert not AccessRule(name="r", who=("device:*",), allow=(Verb.SEND,), on=("topic:a",)).broad
    assert not AccessRule(name="r", who=("device:*",), deny=(Verb.SEND,)).broad


def test_a_device_may_send_to_itself_unless_a_rule_denies_it() -> None:
    itself, other = (Target(TargetKind.DEVICE, name) for name in ("phone", "tablet"))
    made().check_message("app", "device:phone", itself)
    with pytest.raises(NoRight, match="no rule allows send on device:tablet"):
        made().check_message("app", "device:phone", other)
    denied = AccessRule(name="quiet", who=("device:*",), deny=(Verb.SEND,), on=("device:*",))
    with pytest.raises(NoRight, match="the rule quiet denies send"):
        made(denied).check_message("app", "device:phone", itself)
