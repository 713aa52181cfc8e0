"""What a surrogate can do with one message, and what it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.clock import SECOND
from lasthop.surrogate import Answer, Decision, Drop, Mail, Relay, Surrogate, Way, request
from lasthop.surrogate.mail import Content, MailAction, OutgoingMail, Verdict
from tests.surrogate.runners import START, Bench


class Scripted(Surrogate):
    """Does what the test says."""

    script: Any = None

    def to_device(self, mail: Mail) -> Decision | None:
        decision: Decision | None = type(self).script(self, mail)
        return decision


def verdict_of(script: Any, body: str = "hello", **fields: Any) -> Verdict:
    """What comes of one message."""
    kind = type("Once", (Scripted,), {"script": staticmethod(script)})
    verdict: Verdict = Bench(kind).give(body, **fields)
    return verdict


def test_everything_is_relayed_unless_a_subclass_says_otherwise() -> None:
    bench = Bench(Surrogate)
    assert bench.give("x") == Verdict()
    assert bench.give("x", way=Way.FROM_DEVICE) == Verdict()


def test_a_message_is_changed_where_something_is_given() -> None:
    verdict = verdict_of(lambda s, m: Relay(title="new", headers={"a": "b"}))
    assert verdict.action is MailAction.RELAY
    assert verdict.content == Content(b"hello", title="new", headers=(("a", "b"),))
    assert verdict_of(lambda s, m: Relay(body="text", rank=2)).content == Content(b"text", rank=2.0)


def test_a_change_that_changes_nothing_is_none() -> None:
    assert verdict_of(lambda s, m: Relay(body=m.body)).content is None
    assert verdict_of(lambda s, m: Relay()) == Verdict()


def test_a_message_is_answered() -> None:
    verdict = verdict_of(lambda s, m: Answer("ok", "text/x", headers=[("a", "b")]))
    assert verdict.action is MailAction.ANSWER
    assert verdict.content == Content(b"ok", "text/x", headers=(("a", "b"),))


def test_a_message_is_dropped_with_a_reason() -> None:
    verdict = verdict_of(lambda s, m: Drop("he sleeps"))
    assert (verdict.action, verdict.reason) == (MailAction.DROP, "he sleeps")
    assert len(verdict_of(lambda s, m: Drop("x" * 5000)).reason) == 500


def test_more_messages_are_sent() -> None:
    verdict = verdict_of(lambda s, m: s.send("device:tablet", "psst", priority=7, ttl=1.5))
    assert verdict.sends == (OutgoingMail("device:tablet", Content(b"psst"), 7, 1_500_000),)


def test_the_time_is_that_of_the_input() -> None:
    seen = []
    verdict_of(lambda s, m: seen.append((s.now, m.at)))
    assert seen == [(START, START)]


@pytest.mark.parametrize(
    "script, why",
    [
        (lambda s, m: "relay", "a hook must return Relay, Answer, Drop or None, not str"),
        (lambda s, m: Answer(3), "a body must be bytes or text, not int"),  # type: ignore[arg-type]
        (lambda s, m: Relay(title=3), "not the content of a message"),  # type: ignore[arg-type]
        (lambda s, m: Relay(headers={"a": 1}), "not the content"),  # type: ignore[arg-type]
        (
            lambda s, m: s.send("device:x", "", priority=10),
            "a priority must be a number from 0 to 9",
        ),
        (lambda s, m: s.send("device:x", "", ttl=0), "a ttl must be above 0 seconds"),
        (
            lambda s, m: [s.send("device:x", "") for _ in range(101)],
            "cannot send more than 100 messages",
        ),
    ],
    ids=["kind", "body", "title", "headers", "priority", "ttl", "many"],
)
def test_mistakes_are_told(script: Any, why: str) -> None:
    with pytest.raises((TypeError, ValueError), match=why):
        verdict_of(script)


class Counting(Surrogate):
    """Counts, and fails at what it is told to fail at."""

    def __init__(self) -> None:
        self.began_with = self.state.get("count", 0)

    def to_device(self, mail: Mail) -> Decision | None:
        self.state["count"] = self.state.get("count", 0) + 1
        self.send("device:phone", str(self.state["count"]))
        if mail.body == b"fail":
            raise OSError("no")
        return None


def test_what_fails_changes_nothing() -> None:
    bench = Bench(Counting)
    bench.give("ok")
    for _ in range(3):
        with pytest.raises(OSError, match="no"):
            bench.give("fail")
    verdict = bench.give("ok")
    assert [send.content.body for send in verdict.sends] == [b"2"]


def test_another_worker_goes_on_where_the_last_one_was() -> None:
    bench = Bench(Counting)
    bench.give("ok")
    bench.restart()
    assert [send.content.body for send in bench.give("ok").sends] == [b"2"]


def test_init_may_look_at_the_state_and_not_change_it() -> None:
    class Eager(Surrogate):
        def __init__(self) -> None:
            self.state["count"] = 1

    with pytest.raises(TypeError, match="__init__ may read the state, but must not change it"):
        Bench(Eager)


def test_requests_go_to_the_method_that_is_marked_for_them() -> None:
    class Shop(Surrogate):
        @request("open?")
        def is_open(self, mail: Mail) -> Decision | None:
            return Answer("yes")

    bench = Bench(Shop)
    assert bench.ask("open?").content == Content(b"yes")
    assert bench.ask("closed?") == Verdict()
    assert bench.give("open?") == Verdict()


def test_two_methods_for_one_request_are_a_mistake() -> None:
    class Torn(Surrogate):
        @request("x")
        def one(self, mail: Mail) -> None: ...

        @request("x")
        def two(self, mail: Mail) -> None: ...

    with pytest.raises(TypeError, match="one and two both handle 'x'"):
        Bench(Torn)


def test_mail_says_what_it_is_in_plain_words() -> None:
    mail = Bench(Surrogate).mail("x", headers={"Method": "list", "A": "b"})
    assert (mail.body, mail.title, mail.method) == (b"x", None, "list")
    assert mail.headers == {"method": "list", "a": "b"}
    assert mail.content_type.startswith("text/plain")
    assert mail.at == START < START + SECOND
