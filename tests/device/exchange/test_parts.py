"""Bindings, patterns of topics, and answers that decline.

About `device/exchange/binding.py`, `device/exchange/declining.py` and `core/topics/patterns.py`.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from lasthop.core.topics.patterns import PatternTree
from lasthop.device.exchange.binding import Binding, Bytes, Content, Json, Text
from lasthop.device.exchange.declining import Declined, declined, encode
from lasthop.device.message import Message
from lasthop.errors import InvalidRequest
from lasthop.wire.hop.frames import Headers
from lasthop.wire.hop.services import DECLINED_TYPE
from lasthop.wire.hop.topics import fits
from tests.device.peer import frame

WORDS = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=5).map(".".join)


class Point(msgspec.Struct):
    x: int
    y: int = 0


@pytest.mark.parametrize(
    "binding, value, content_type",
    [
        (Text(), "grüße", "text/plain; charset=utf-8"),
        (Bytes(), b"\x00\xff", "application/octet-stream"),
        (Bytes("image/png"), b"\x89PNG", "image/png"),
        (Json(Point), Point(1, 2), "application/json"),
        (Json(), {"a": [1, None]}, "application/json"),
    ],
)
def test_what_a_binding_writes_it_reads(
    binding: Binding[object], value: object, content_type: str
) -> None:
    content = binding.encode(value, "device:x")
    assert content.content_type == content_type
    assert binding.takes(content_type)
    assert binding.decode(content, "device:x") == value


@pytest.mark.parametrize(
    "binding, body, told",
    [
        (Text(), b"\xff", "the body is not text in UTF-8: invalid start byte"),
        (Json(Point), b'{"x": "one"}', "the body is not the expected JSON"),
        (Json(Point), b"{", "the body is not the expected JSON"),
        (Json(), b"[" * 100_000, "the body is not the expected JSON"),
    ],
)
def test_what_cannot_be_read_is_refused(binding: Binding[object], body: bytes, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told):
        binding.decode(Content("x/y", body), "device:x")


def test_bindings_know_their_types() -> None:
    assert Json().takes("application/problem+json; charset=utf-8")
    assert not Json().takes("text/plain")
    assert not Text().takes("application/json")


@given(WORDS, st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=5).map(".".join))
def test_patterns_mean_what_they_mean_at_the_gateway(pattern: str, topic: str) -> None:
    tree: PatternTree[int] = PatternTree()
    tree.add(pattern, 1, 1)
    assert fits(pattern, topic) == (1 in tree.match(topic))


def test_who_declines_is_understood() -> None:
    def answer(body: str, content_type: str = DECLINED_TYPE) -> Message:
        return Message(frame(0, body, headers=Headers(content_type=content_type)), "text/plain")

    told = declined(answer(encode(Declined("busy", "later")).decode()))
    assert told is not None
    assert (told.reason, told.detail) == ("busy", "later")
    told = declined(answer("nonsense"))
    assert told is not None
    assert (told.reason, told.detail) == ("unknown", "nonsense")
    assert declined(answer("{}", "application/json")) is None
