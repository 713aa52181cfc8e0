"""Every field of a message has its place wherever messages are described, or a reason why not.

Who adds a field to `lasthop.message.Message` adds a row to `FIELDS`; the tests then say what is
missing where.

About `message.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lasthop.access.rest.openapi import document
from lasthop.access.rest.operations import OPERATIONS
from lasthop.access.rest.requests import Publication
from lasthop.clock import SECOND
from lasthop.core import envelope
from lasthop.core.contacts import inbound
from lasthop.core.publishing.copying import at_default, maker
from lasthop.core.publishing.submission import SAID, Submission, message_of, submission_of
from lasthop.device.message import Message as DeviceMessage
from lasthop.events import Event
from lasthop.message import (
    Binding,
    DeliveryMethod,
    Handling,
    Message,
    Quality,
    Reliability,
    Target,
    TargetKind,
)
from lasthop.surrogate.mail import Content, Mail
from lasthop.wire.hop.fields import HEADERS, Field
from lasthop.wire.hop.frames import Headers, MessageFrame
from tests.core.rig import Rig, to

ROOT = Path(__file__).parent.parent
SDK = ROOT / "sdk/javascript/src"


class Because(str):
    """Why a field has no place somewhere."""

    __slots__ = ()


def camel(name: str) -> str:
    """As JavaScript spells it."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


# What each place has.


@cache
def javascript_headers() -> dict[str, int]:
    """The headers that the SDK for JavaScript knows, and their tags."""
    table = (SDK / "wire/fields.js").read_text().partition("export const HEADERS")[2]
    rows = re.findall(r'^  \[(\d+), "(\w+)",', table, re.MULTILINE)
    return {name: int(tag) for tag, name in rows}


@cache
def documented_headers() -> dict[str, int]:
    """The table of headers in the specification."""
    text = (ROOT / "docs/hop-protocol.md").read_text()
    table = text.partition("| tag | header | value |\n")[2].partition("\n\n")[0]
    return {
        name: int(tag)
        for tag, name in re.findall(r"^\| (\d+) \| ([a-z ]+) \|", table, re.MULTILINE)
    }


@cache
def javascript_message() -> set[str]:
    """What an application in JavaScript may ask a message for."""
    text = (SDK / "message.js").read_text().partition("export class Message")[2]
    found = re.findall(r"^  get (\w+)\(|^    this\.(\w+) =", text, re.MULTILINE)
    return {one or other for one, other in found}


def hop_headers() -> set[str]:
    """What stands in a frame: headers that have a tag, and the frame's own fields."""
    return {field.name for field in HEADERS.fields} | set(MessageFrame.__struct_fields__)


def openapi() -> set[str]:
    """The properties of a request in the OpenAPI document."""
    schemas = document(OPERATIONS, "1")["components"]["schemas"]
    return set(schemas["Publication"]["properties"])


PLACES: dict[str, Callable[[], set[str]]] = {
    "request": lambda: set(Publication.__struct_fields__),
    "openapi": openapi,
    "submission": lambda: set(Submission.__struct_fields__),
    "hop": hop_headers,
    "hop in JavaScript": lambda: set(javascript_headers()) | {"key", "topic", "body"},
    "protocol": lambda: set(documented_headers()) | {"key", "topic", "body"},
    "device": lambda: {name for name in dir(DeviceMessage) if name[0] != "_"},
    "device in JavaScript": javascript_message,
    "event": lambda: set(Event.__struct_fields__),
    "surrogate": lambda: {*Mail.__struct_fields__, *Content.__struct_fields__},
}
"""Where messages are described, and the names that are there."""


def row(
    request: str,
    hop: str,
    device: str,
    event: str,
    surrogate: str,
    *,
    submission: str = "",
    javascript: str = "",
    protocol: str = "",
) -> dict[str, str]:
    """The places of one field. What is not said follows from the rest: the OpenAPI document has
    what a request has, JavaScript and the specification have what is on the hop, and a submission
    has the message's own name for it."""
    return {
        "request": request,
        "openapi": request,
        "submission": submission,
        "hop": hop,
        "hop in JavaScript": javascript or spelled(hop, camel),
        "protocol": protocol or spelled(hop, lambda name: name.replace("_", " ")),
        "device": device,
        "device in JavaScript": javascript or spelled(device, camel),
        "event": event,
        "surrogate": surrogate,
    }


def spelled(name: str, how: Callable[[str], str]) -> str:
    """A name as it is spelled elsewhere; a reason stays a reason."""
    return name if isinstance(name, Because) else how(name)


OWN = Because("the gateway gives it")
CREDENTIAL = Because("it follows from who asks")
AT_THE_GATEWAY = Because("it is over when the message leaves the gateway")
NOT_IN_LOG = Because("bodies and what describes them are never in an event")
NOT_FILLED = Because("the schema has it, and no step of a delivery says it")
NOT_WRITTEN = Because("a surrogate sees what it may change or needs to answer")
IN_REASONS = Because("the event's reason says what came of it")
NO_STREAMS = Because("the SDK for JavaScript has no streams, pulls or groups")
ASKED_BACK = Because("it follows from the message that is answered")

FIELDS: dict[str, dict[str, str]] = {
    "key": row(OWN, "key", "key", "msg", "key", submission=OWN),
    "salt": row(OWN, *[Because("the key alone identifies it there")] * 4, submission=OWN),
    "app": row(
        CREDENTIAL,
        Because("a device has one app, which HELLO names"),
        Because("a device has one app"),
        "app",
        Because("a surrogate serves one app"),
        submission=CREDENTIAL,
    ),
    "source": row(CREDENTIAL, "source", "source", "source", "source", submission=CREDENTIAL),
    "target": row("to", "topic", "topic", "target", "target"),
    "accepted_at": row(
        OWN,
        Because("the key's time says it"),
        "published_at",
        "t",
        "at",
        submission=OWN,
        javascript=Because("the key's time says it"),
    ),
    "body": row("body", "body", "body", "size", "body"),
    "content_type": row("content_type", "content_type", "content_type", NOT_IN_LOG, "content_type"),
    "title": row("title", "title", "title", NOT_IN_LOG, "title"),
    "priority": row("priority", "priority", "priority", "priority", "priority"),
    "rank": row("rank", "rank", "rank", "rank", "rank"),
    "deliver_after": row("deliver_after", AT_THE_GATEWAY, AT_THE_GATEWAY, "after", AT_THE_GATEWAY),
    "deliver_before": row(
        "deliver_before",
        "deliver_within",
        "deadline",
        "before",
        "deliver_before",
        protocol="deliver before",
    ),
    "delay_tolerance": row(
        "delay_tolerance",
        "tolerance",
        Because("only who sends it holds it for a better link"),
        IN_REASONS,
        Because("a surrogate decides what becomes of it, not when it leaves"),
    ),
    "reliability": row("reliability", "reliability", "reliability", "reliability", NOT_WRITTEN),
    "method": row(
        "method",
        Because("only its reliability bears on the hop"),
        Because("only its reliability bears on a device"),
        NOT_FILLED,
        NOT_WRITTEN,
    ),
    "handling": row(
        "handling", "handling", "handling", Because("it changes nothing on the way"), NOT_WRITTEN
    ),
    "queue": row("queue", "queue", "queue", NOT_FILLED, "queue"),
    "replace_key": row("replace_key", AT_THE_GATEWAY, AT_THE_GATEWAY, IN_REASONS, AT_THE_GATEWAY),
    "in_reply_to": row(ASKED_BACK, "in_reply_to", "in_reply_to", "other", "answers"),
    "correlation": row(
        ASKED_BACK,
        "correlation",
        Because("the device's answer echoes it by itself"),
        Because("it is another device's own key"),
        Because("the gateway echoes it by itself"),
    ),
    "reply_before": row(
        "reply_within",
        "reply_within",
        "reply_before",
        Because("what comes of it is an event of its own: replied, or nothing"),
        "reply_before",
        protocol="reply wanted",
    ),
    "headers": row(
        "headers",
        "extra",
        "extra",
        Because("only the trace is, as `trace`"),
        "headers",
        protocol="headers",
    ),
    "quality": row(
        Because("networks and bearers are words of PAP, which says them"),
        AT_THE_GATEWAY,
        AT_THE_GATEWAY,
        IN_REASONS,
        AT_THE_GATEWAY,
    ),
    "answer": row(
        ASKED_BACK,
        "answer",
        Because("what nobody waits for is dropped before the application sees it"),
        Because("the event `replied` says so"),
        Because("what a surrogate answers is an answer"),
    ),
    "binding": row(
        "claim",
        "binding",
        "claimable",
        Because("the event `settled` says what was decided"),
        Because("what is decided for a whole group passes no surrogate"),
        javascript=NO_STREAMS,
    ),
    "stream": row(
        Because("a stream is opened by an operation of its own"),
        "stream",
        "opens_stream",
        Because("a stream has events of its own"),
        Because("streams pass no surrogate"),
        javascript=NO_STREAMS,
    ),
    "pull": row("pull", "pull", "pull_size", IN_REASONS, NOT_WRITTEN, javascript=NO_STREAMS),
    "immediate": row(
        "immediate",
        "immediate",
        Because("whoever gets it was there"),
        IN_REASONS,
        Because("a surrogate decides what becomes of it, not who is there"),
    ),
}


def unplaced(kind: type[msgspec.Struct]) -> list[str]:
    """What is to be done about fields of which nobody has said where they stand."""
    return [
        f"{kind.__name__}.{name} has no row in FIELDS of tests/test_fields.py: say what it is"
        f" called in each of {', '.join(PLACES)}, or Because(...) why it is not there"
        for name in kind.__struct_fields__
        if name not in FIELDS
    ]


def test_every_field_of_a_message_says_where_it_stands() -> None:
    assert unplaced(Message) == []
    assert list(FIELDS) == list(Message.__struct_fields__)


def test_a_field_that_nobody_placed_is_named_with_what_to_do() -> None:
    class More(Message, array_like=True):
        mood: str = ""

    (said,) = unplaced(More)
    assert said.startswith("More.mood has no row in FIELDS of tests/test_fields.py: say what it is")
    assert "request, openapi, submission, hop" in said


@pytest.mark.parametrize("place", PLACES)
def test_what_a_row_names_is_there(place: str) -> None:
    there = PLACES[place]()
    missing = {
        field: name
        for field, places in FIELDS.items()
        if not isinstance(name := places[place] or field, Because) and name not in there
    }
    assert missing == {}, f"{place} has no such name"


def test_a_reason_is_no_excuse_for_what_is_there_by_the_same_name() -> None:
    for place in ("request", "submission", "hop", "surrogate"):
        there = PLACES[place]()
        for field, places in FIELDS.items():
            if isinstance(places[place], Because):
                assert field not in there, f"{place} has {field}: {places[place]}"


@pytest.mark.parametrize("field", HEADERS.fields, ids=lambda field: str(field.name))
def test_a_header_has_one_tag_in_both_languages_and_in_the_specification(field: Field) -> None:
    assert field.tag in documented_headers().values()
    documented = {"deliver_within": "deliver before", "reply_within": "reply wanted"}
    documented |= {"extra": "headers"}
    said = documented.get(field.name, field.name.replace("_", " "))
    assert documented_headers()[said] == field.tag
    assert javascript_headers().get(camel(field.name), field.tag) == field.tag
    assert getattr(Headers(), field.name) == field.default


# What is copied, and what is compared.

OTHER: dict[str, Any] = {
    "target": Target(TargetKind.TOPIC, "news"),
    "body": b"b",
    "content_type": "a/b",
    "title": "t",
    "priority": 9,
    "rank": 1.5,
    "deliver_after": 1,
    "deliver_before": 2,
    "delay_tolerance": 3,
    "reliability": Reliability.BEST_EFFORT,
    "method": DeliveryMethod.ONESHOT,
    "handling": Handling.SILENT,
    "queue": "q",
    "replace_key": "k",
    "in_reply_to": 4,
    "correlation": 5,
    "reply_before": 6,
    "headers": (("a", "b"),),
    "quality": Quality("GSM"),
    "answer": True,
    "binding": Binding.CLAIM,
    "stream": True,
    "pull": True,
    "immediate": True,
}
"""For every field that a submission has: something that is not its default."""


def test_a_message_has_everything_from_its_submission() -> None:
    assert set(OTHER) == set(SAID)
    submission = msgspec.convert(OTHER, Submission, strict=False, from_attributes=True)
    message = message_of(submission, key=7, salt=8, app="a", source="s", accepted_at=9)
    assert msgspec.structs.asdict(message) == OTHER | {
        "key": 7,
        "salt": 8,
        "app": "a",
        "source": "s",
        "accepted_at": 9,
    }
    assert submission_of(message) == submission


@pytest.mark.parametrize("field", [*envelope.COPIED, *envelope.TIMES])
def test_whatever_differs_in_one_field_travels_with_headers(field: str) -> None:
    """A comparison that forgets a field would drop it silently."""
    rig = Rig()
    channel = rig.connect()
    value: Any = rig.now + SECOND if field in envelope.TIMES else OTHER[field]
    if field == "reliability":
        value = Reliability.AT_LEAST_ONCE_DELIVERY
    rig.publish(to("phone", **{field: value}))
    rig.run()
    (frame,) = rig.messages(channel)
    assert frame.headers is not None
    header = (envelope.COPIED | envelope.TIMES)[field]
    assert getattr(frame.headers, header) == (value if field in envelope.COPIED else 1000)


def test_headers_of_devices_and_for_devices_are_accounted_for() -> None:
    """A header that is named after a field is copied by itself; others have to be known."""
    next_message = set(Message.__struct_fields__) & set(Headers.__struct_fields__)
    assert next_message == {*envelope.COPIED, *envelope.OTHERWISE} - {"headers"}
    assert next_message - {"source"} == {*inbound.FROM_DEVICES, *inbound.OTHERWISE} - {"headers"}


class Point(msgspec.Struct):
    x: int = 0
    y: str | None = None
    z: Handling = Handling.FOREGROUND


def test_what_is_made_has_what_is_copied_given_and_left_out() -> None:
    make = maker(Point, {"x": "size"}, ["z"])

    class Sized:
        size = 5

    assert make(Sized(), z=Handling.SILENT) == Point(5, None, Handling.SILENT)


def test_who_wants_to_make_what_a_struct_has_not_is_told_at_once() -> None:
    with pytest.raises(TypeError, match="Point has no colour"):
        maker(Point, {"colour": "colour"}, ())


@pytest.mark.parametrize("change", [{"x": 1}, {"y": ""}, {"z": Handling.SILENT}])
def test_one_field_makes_the_difference(change: dict[str, object]) -> None:
    plain = at_default(Point, Point.__struct_fields__)
    assert plain(Point())
    assert not plain(msgspec.structs.replace(Point(), **change))


# Nobody counts places.

BY_NAME_ONLY = {"lasthop.message": "Message", "lasthop.core.publishing.submission": "Submission"}
BY_NAME_ONLY |= {"lasthop.wire.hop.frames": "Headers", "lasthop.surrogate.mail": "Mail"}


def by_place(tree: ast.Module) -> Iterator[int]:
    """The lines in which one of the long structs is made with arguments that have no name."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if BY_NAME_ONLY.get(node.module or "") == alias.name
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name in imported:
                yield node.lineno


def test_nobody_makes_a_message_by_counting_places() -> None:
    counted = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line in by_place(ast.parse(path.read_bytes()))
    ]
    assert counted == []
