"""Names that people give to topics, groups and queues, and targets as people write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lasthop.errors import InvalidRequest, TooLarge
from lasthop.message import Target, TargetKind

MAX_TOPIC: Final = 200
MAX_NAME: Final = 200
"""The largest size of a name in bytes: names are part of keys, events and frames."""

ONE, MANY = "*", "#"
"""Words with a meaning in a topic pattern: `*` is any one word, `#` any number of words."""


def check_subscription(topic: str | None) -> str:
    """Return `topic` if it is a topic or a pattern in which some words are `*` (any one word) or
    `#` (any number of words); otherwise raise an error."""
    if topic:
        check_topic(".".join("x" if word in (ONE, MANY) else word for word in topic.split(".")))
        return topic
    return check_topic(topic)


def check_topic(topic: str | None) -> str:
    """Return `topic` if it has up to 200 bytes of words separated by dots, none with `*` or `#`;
    otherwise raise an error."""
    if not topic:
        raise InvalidRequest("a topic is needed")
    size = len(topic) if topic.isascii() else len(topic.encode())
    if size > MAX_TOPIC:
        raise TooLarge("topic too long", size=size, limit=MAX_TOPIC)
    if any(c in "*#/ " or not c.isprintable() for c in topic) or "" in topic.split("."):
        raise InvalidRequest(
            "a topic must be words separated by dots, without spaces, `/`, `*` and `#`", topic=topic
        )
    return topic


def check_name(name: str) -> str:
    """Return `name` if it can be the name of a group or queue (up to 200 bytes, no spaces, no
    slashes); otherwise raise an error."""
    if not name:
        raise InvalidRequest("a group or queue needs a name")
    size = len(name.encode())
    if size > MAX_NAME:
        raise TooLarge("the name is too long", size=size, limit=MAX_NAME)
    if any(c in "/ " or not c.isprintable() for c in name):
        raise InvalidRequest("a name must not contain spaces or slashes", name=name)
    return name


_ADDRESSABLE = set(TargetKind) - {TargetKind.PUSH, TargetKind.PUBLISHER}


def parse_target(text: str | None) -> Target:
    """Return the target that a text of the form `kind:name` stands for, or raise an error."""
    kind, colon, name = (text or "").partition(":")
    if not colon or kind not in _ADDRESSABLE or (not name and kind != TargetKind.APP):
        raise InvalidRequest(
            "a target is device:NAME, user:NAME, topic:NAME, service:NAME, group:NAME, queue:NAME"
            " or app:",
            target=text,
        )
    target = Target(TargetKind(kind), name)
    check = _CHECKED.get(target.kind)
    if check is not None:
        check(name)
    return target


_CHECKED: dict[TargetKind, Callable[[str], str]] = {
    TargetKind.TOPIC: check_topic,
    TargetKind.GROUP: check_name,
    TargetKind.QUEUE: check_name,
}
"""The check of the name, for kinds of target whose names have a form of their own."""
