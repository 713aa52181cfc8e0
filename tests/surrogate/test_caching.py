"""Answers kept at the gateway: fresh ones are used again, and policies say which stay."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lasthop.clock import SECOND
from lasthop.surrogate import (
    Answer,
    CachePolicy,
    Decision,
    Drop,
    Entry,
    Lru,
    Mail,
    Relay,
    StaleWhileAway,
    Surrogate,
    TimeToLive,
    Way,
    cacheable,
    request,
)
from lasthop.surrogate.caching import MOST_ASKED, Freshness
from lasthop.surrogate.mail import Content, MailAction
from tests.surrogate.runners import Bench


def album(**terms: Any) -> type[Surrogate]:
    """A surrogate that keeps what devices answer to `list`."""

    class Album(Surrogate):
        @cacheable(**terms)
        def list(self, mail: Mail) -> Decision | None:
            return None

        def to_device(self, mail: Mail) -> Decision | None:
            decision = super().to_device(mail)
            if mail.user == "unlucky":
                raise OSError("after all was done")
            return decision

    return Album


def fill(bench: Bench, body: str, reply: str, control: str = "", **fields: Any) -> None:
    """A request that goes to the device, which answers."""
    assert bench.ask("list", body, **fields).action is MailAction.RELAY
    bench.reply(bench.last, reply, control, **fields)


def hit(bench: Bench, body: str, **fields: Any) -> bytes | None:
    """What a request is answered with, if it is."""
    verdict = bench.ask("list", body, **fields)
    return verdict.content.body if verdict.action is MailAction.ANSWER else None


def test_a_devices_answer_is_used_again_until_it_expires() -> None:
    bench = Bench(album(ttl=60))
    fill(bench, "paris", "photos")
    assert hit(bench, "paris") == b"photos"
    assert hit(bench, "rome") is None
    bench.now += 59 * SECOND
    assert hit(bench, "paris") == b"photos"
    bench.now += SECOND
    assert hit(bench, "paris") is None


def test_answers_survive_another_worker() -> None:
    bench = Bench(album(ttl=60))
    bench.ask("list", "paris")
    asked = bench.last
    bench.restart()
    bench.reply(asked, "photos")
    bench.restart()
    assert hit(bench, "paris") == b"photos"


@pytest.mark.parametrize(
    "control, kept_for",
    [
        ("max-age=10", 10),
        ("max-age=600", 600),
        ("public, MAX-AGE=10", 10),
        ("no-store", 0),
        ("no-store, max-age=10", 0),
        ("max-age=soon", 60),
        ("max-age=-1", 60),
        ("max-age=" + "9" * 40, 60),
        ("", 60),
    ],
)
def test_an_answer_says_itself_how_long_it_is_good_for(control: str, kept_for: int) -> None:
    bench = Bench(album(ttl=60))
    fill(bench, "paris", "photos", control)
    assert (hit(bench, "paris") is not None) == (kept_for > 0)
    bench.now += (kept_for - 1) * SECOND
    assert (hit(bench, "paris") is not None) == (kept_for > 0)
    bench.now += SECOND
    assert hit(bench, "paris") is None


def test_without_a_ttl_only_answers_are_kept_that_say_so() -> None:
    bench = Bench(album())
    fill(bench, "paris", "photos")
    assert hit(bench, "paris") is None
    bench.reply(bench.last, "photos", "max-age=10")
    assert hit(bench, "paris") == b"photos"


def test_answers_are_of_one_device_unless_they_are_shared() -> None:
    bench = Bench(album(ttl=60))
    fill(bench, "paris", "photos")
    assert hit(bench, "paris", device="tablet") is None
    bench = Bench(album(ttl=60, shared=True))
    fill(bench, "paris", "photos")
    assert hit(bench, "paris", device="tablet") == b"photos"


def test_a_function_tells_requests_apart() -> None:
    bench = Bench(album(ttl=60, key=lambda mail: mail.body[:1]))
    fill(bench, "paris", "photos")
    assert hit(bench, "porto") == b"photos"


def test_a_method_may_answer_itself_and_is_asked_once() -> None:
    calls = []

    class Clock(Surrogate):
        @request("time")
        @cacheable(ttl=60)
        def tell(self, mail: Mail) -> Decision | None:
            calls.append(mail.body)
            return Answer("noon", headers={"cache-control": "max-age=5"})

    bench = Bench(Clock)
    for _ in range(3):
        assert bench.ask("time").content.body == b"noon"
    assert calls == [b""]
    bench.now += 5 * SECOND
    bench.ask("time")
    assert calls == [b"", b""]


def test_what_goes_on_is_what_is_kept() -> None:
    class Shrinking(Surrogate):
        @cacheable(ttl=60)
        def list(self, mail: Mail) -> Decision | None:
            return None

        def from_device(self, mail: Mail) -> Decision | None:
            return Drop("no") if mail.body == b"secret" else Relay(body=mail.body.lower())

    bench = Bench(Shrinking)
    fill(bench, "paris", "PHOTOS")
    assert hit(bench, "paris") == b"photos"
    fill(bench, "rome", "secret")
    assert hit(bench, "rome") is None


def test_an_answer_to_something_else_is_not_kept() -> None:
    bench = Bench(album(ttl=60))
    bench.ask("list", "paris")
    bench.reply(bench.last + 5, "photos")
    bench.reply(bench.last, "photos", device="tablet")
    assert hit(bench, "paris") is None


def test_a_dropped_request_is_not_waited_for() -> None:
    class Closed(Surrogate):
        @cacheable(ttl=60)
        def list(self, mail: Mail) -> Decision | None:
            return Drop("closed")

    bench = Bench(Closed)
    bench.ask("list")
    assert bench.entries == {}


def test_requests_that_are_never_answered_do_not_fill_the_state() -> None:
    bench = Bench(album(ttl=60))
    for n in range(MOST_ASKED + 50):
        bench.ask("list", str(n))
    assert len(bench.entries) == MOST_ASKED
    bench.restart()
    bench.ask("list", "one more")
    assert len(bench.entries) == MOST_ASKED


def test_an_answer_that_does_not_fit_is_not_kept() -> None:
    bench = Bench(album(ttl=60), limit=5000)
    fill(bench, "paris", "x" * 10_000)
    assert hit(bench, "paris") is None
    fill(bench, "rome", "small")
    assert hit(bench, "rome") == b"small"


def test_while_the_device_is_away_old_answers_do() -> None:
    bench = Bench(album(ttl=60, policy=StaleWhileAway(stale_for=3600)))
    fill(bench, "paris", "photos", online=True)
    bench.now += 100 * SECOND
    assert hit(bench, "paris", online=True) is None
    assert hit(bench, "paris", online=False) == b"photos"
    bench.now += 3560 * SECOND
    assert hit(bench, "paris", online=False) is None


def test_an_answer_says_itself_how_long_it_does_while_the_device_is_away() -> None:
    bench = Bench(album(ttl=60, policy=StaleWhileAway(stale_for=10)))
    fill(bench, "paris", "photos", "max-age=5, stale-while-away=100")
    bench.now += 104 * SECOND
    assert hit(bench, "paris") == b"photos"
    bench.now += SECOND
    assert hit(bench, "paris") is None


def test_what_expires_first_goes_first() -> None:
    bench = Bench(album(ttl=60, policy=TimeToLive(2)))
    fill(bench, "a", "A", "max-age=100")
    fill(bench, "b", "B", "max-age=50")
    fill(bench, "c", "C", "max-age=70")
    assert (hit(bench, "a"), hit(bench, "b"), hit(bench, "c")) == (b"A", None, b"C")


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=60),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_lru_keeps_what_an_ordered_dictionary_keeps(
    uses: list[tuple[str, bool]], capacity: int, restart_every: int
) -> None:
    bench = Bench(album(ttl=10_000, policy=Lru(capacity)))
    model: OrderedDict[str, bytes] = OrderedDict()
    for n, (key, fails) in enumerate(uses):
        bench.now += SECOND
        if restart_every and n % (restart_every + 1) == 0:
            bench.restart()
        if fails:
            with pytest.raises(OSError, match="after all was done"):
                bench.ask("list", key, user="unlucky")
        expected = model.get(key)
        assert hit(bench, key) == expected
        if expected is not None:
            model.move_to_end(key)
            continue
        bench.reply(bench.last, key)
        model[key] = key.encode()
        while len(model) > capacity:
            model.popitem(last=False)


def test_a_policy_of_ones_own_is_a_few_lines() -> None:
    class Once(CachePolicy):
        """Every answer is used once, and the shortest-lived is worth least."""

        def serves(self, entry: Entry, *, now: int, online: bool) -> bool:
            return entry.used == entry.stored

        def over(self, entry: Entry, *, now: int) -> bool:
            return False

    bench = Bench(album(ttl=60, policy=Once()))
    fill(bench, "paris", "photos")
    bench.now += SECOND
    assert hit(bench, "paris") == b"photos"
    assert hit(bench, "paris") is None


def test_answers_are_let_go_of_one_device_or_of_all() -> None:
    class Album(Surrogate):
        @cacheable(ttl=60)
        def list(self, mail: Mail) -> Decision | None:
            return None

        def from_device(self, mail: Mail) -> Decision | None:
            if mail.body == b"changed":
                self.forget("list", device=mail.device)
            if mail.body == b"all changed":
                self.forget("list")
            if mail.body == b"nonsense":
                self.forget("nothing")
            return None

    bench = Bench(Album)
    for device in ("phone", "phone-2"):
        fill(bench, "paris", device, device=device)
    bench.give("changed", way=Way.FROM_DEVICE)
    assert hit(bench, "paris") is None
    assert hit(bench, "paris", device="phone-2") == b"phone-2"
    bench.reply(bench.last - 1, "again")
    assert hit(bench, "paris") == b"again"
    bench.give("all changed", way=Way.FROM_DEVICE)
    assert hit(bench, "paris") is hit(bench, "paris", device="phone-2") is None
    with pytest.raises(ValueError, match="no cacheable method handles 'nothing'"):
        bench.give("nonsense", way=Way.FROM_DEVICE)


def test_a_cache_keeps_something() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Lru(0)


def test_freshness_is_read_leniently() -> None:
    content = Content(headers=(("Cache-Control", "max-age = 5,, =,stale-while-away=7"),))
    assert Freshness.of(content) == Freshness(True, None, 7)


def test_what_a_device_sends_is_no_request() -> None:
    bench = Bench(album(ttl=60))
    fill(bench, "paris", "photos")
    verdict = bench.ask("list", "paris", way=Way.FROM_DEVICE)
    assert verdict.action is MailAction.RELAY
